"""stacks of ranks that run, that have ended and that are not Python."""

from __future__ import annotations

import json
import sys
from typing import Any

from support.waiting import wait_until

from torchx_tui.backends.runner import Runner
from torchx_tui.diagnosis.stacks import take
from torchx_tui.diagnosis.stacks.protocol import parse_snapshot
from torchx_tui.diagnosis.stacks.snapshot import ReplicaReply, StackSnapshot

SCRIPT = "import time\ndef rests():\n    time.sleep(600)\nrests()"


def test_running_job_and_ended_job(command, tmp_path, monkeypatch):
    path = tmp_path / "rests.py"
    path.write_text(SCRIPT)
    words = ("--num_replicas", "2", "--env", "RANK=${replica_id},WORLD_SIZE=2", "--", sys.executable, str(path))
    handle = command("run", "-s", "local_cwd", "--detach", "utils.sh", *words).out.strip()

    def both_ranks() -> dict[str, Any]:
        answer = command("stacks", handle, "--once", "--json")
        data = answer.data if answer.code == 0 and answer.out else {}
        texts = [json.dumps(process) for process in data.get("processes", ())]
        return data if len(texts) == 2 and all('"rests"' in text for text in texts) else {}

    def printed_with(words: str, *flags: str) -> str:
        # A snapshot may miss a rank on a busy machine.
        def printed() -> str:
            answer = command("stacks", handle, *flags)
            return answer.out if answer.code == 0 and words in answer.out else ""

        return wait_until(printed, words)

    data = wait_until(both_ranks, "both ranks")
    assert [process["rank"] for process in data["processes"]] == [0, 1]
    assert (data["handle"], data["role"], data["world_size"], data["culprits"]) == (handle, "sh", 2, [])
    assert {"sentence", "pace", "details", "groups", "not_read", "at", "seconds"} <= data.keys()
    threads = [thread for process in data["processes"] for thread in process["threads"]]
    assert all(thread.keys() == {"name", "is_main", "frames"} for thread in threads)
    printed = printed_with("ranks 0-1", "--once")
    assert f'    File "{path}", line 3, in rests\n      time.sleep(600)\n' in printed
    assert "Two snapshots" not in printed
    monkeypatch.setattr(take, "PAUSE_S", 0.1)
    printed_with("  Two snapshots ")
    command("cancel", handle)
    command("wait", handle)
    over = command("stacks", handle)
    assert over.code == 0
    assert "has ended" in over.out


def test_native_stacks_are_taken_once(command, monkeypatch):
    taken: list[bool] = []

    def take_snapshot(runner: Runner, handle: str, *, role: str, native: bool, stop: bool) -> StackSnapshot:
        taken.append(native)
        lines = ({"kind": "process", "rank": 0, "pid": 7, "is_main": True, "threads": []},)
        return parse_snapshot(handle, "sh", (ReplicaReply(0, lines),))

    monkeypatch.setattr(take, "take_snapshot", take_snapshot)
    monkeypatch.setattr(take, "PAUSE_S", 0.0)
    handle = command("run", "-s", "local_cwd", "utils.echo").out.strip()
    for flags, expected in ((["--native"], [True]), (["--once"], [False]), ([], [False, False])):
        taken.clear()
        assert command("stacks", handle, *flags).code == 0
        assert taken == expected


def test_running_job_without_python_has_not_ended(command):
    handle = command("run", "-s", "local_cwd", "--detach", "utils.sh", "sleep", "600").out.strip()

    answer = wait_until(lambda: command("stacks", handle, "--once").out, "an answer about the running job")
    assert answer == "no stacks of this running job: no Python process was found there\n"
    command("delete", handle)
