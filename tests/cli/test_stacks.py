"""stacks: what a shell is told of ranks that run, that are over, and that cannot be read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.command import Command
from support.waiting import wait_until

from torchx_tui.cli import stacks

SCRIPT = "import time\ndef rests():\n    time.sleep(600)\nrests()"


def functions(process: dict[str, Any]) -> list[str]:
    """Return the functions that a process of a take stands in."""
    return [frame["function"] for thread in process["threads"] for frame in thread["frames"]]


def test_a_job_that_runs_and_one_that_is_over(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rests.py"
    path.write_text(SCRIPT)
    words = ("--num_replicas", "2", "--env", "RANK=${replica_id},WORLD_SIZE=2", "--", sys.executable, str(path))
    handle = command("run", "-s", "local_cwd", "--detach", "utils.sh", *words).out.strip()

    def told():
        answer = command("stacks", handle, "--once", "--json")
        data = json.loads(answer.out) if answer.code == 0 and answer.out else {}
        stood = [functions(process) for process in data.get("processes", ())]
        return data if len(stood) == 2 and all("rests" in names for names in stood) else None

    def printed_with(words: str, *flags: str) -> str:
        # A take may be too late for a rank on a busy machine.
        def printed():
            answer = command("stacks", handle, *flags)
            return answer.out if answer.code == 0 and words in answer.out else ""

        return wait_until(printed, words)

    data = wait_until(told, "both ranks")
    assert [process["rank"] for process in data["processes"]] == [0, 1]
    assert (data["handle"], data["role"], data["world_size"], data["culprits"]) == (handle, "sh", 2, [])
    assert {"sentence", "pace", "details", "groups", "not_read", "at", "seconds"} <= data.keys()
    threads = [thread for process in data["processes"] for thread in process["threads"]]
    assert all(thread.keys() == {"name", "is_main", "frames"} for thread in threads)
    printed = printed_with("ranks 0-1", "--once")
    assert f'    File "{path}", line 3, in rests\n      time.sleep(600)\n' in printed
    assert "Two snapshots" not in printed
    monkeypatch.setattr(stacks, "PAUSE_S", 0.1)
    printed_with("  Two snapshots ")
    command("cancel", handle)
    command("wait", handle)
    over = command("stacks", handle)
    assert over.code == 0
    assert "has ended" in over.out


def test_running_job_without_python_has_not_ended(command: Command) -> None:
    handle = command("run", "-s", "local_cwd", "--detach", "utils.sh", "sleep", "600").out.strip()

    def printed() -> str:
        answer = command("stacks", handle, "--once")
        return answer.out if answer.code == 0 else ""

    assert wait_until(printed, "an answer about the running job") == (
        "no stacks of this running job: no Python process was found there\n"
    )
    command("delete", handle)


def test_what_cannot_be_asked(command: Command) -> None:
    unknown = command("stacks", "local_cwd://torchx/no-such-job")
    assert unknown.code in (1, 2)
    assert "no-such-job" in unknown.err
    handle = command("run", "-s", "local_cwd", "utils.echo", "--msg", "x").out.strip()
    wrong = command("stacks", handle, "--role", "nobody")
    assert wrong.code == 2
    assert "echo" in wrong.err
