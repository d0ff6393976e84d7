"""list, status, describe, log, wait, cancel, delete and prune, on real local jobs."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

import pytest
from support.command import Command, Ended
from support.shell import launches

from torchx_tui.backends.runner import Runner
from torchx_tui.specs import AppState

STATUS_KEYS = {
    *("state", "num_restarts", "roles", "msg", "structured_error_msg", "url"),
    *("handle", "app_id", "scheduler", "ui_url"),
}
SCRIPT = "echo out; echo err >&2; exit 3"


def launch(command: Command, *words: str) -> str:
    ended = command("run", "-s", "local_cwd", *words)
    return ended.out.strip()


@pytest.fixture
def failed(command: Command) -> str:
    """The handle of a job of two replicas that failed."""
    return launch(command, "utils.sh", "--num_replicas", "2", "--env", "HF_TOKEN=hush", "--", "sh", "-c", SCRIPT)


def test_status_names_the_rank_that_failed(command: Command):
    stderr = Path(__file__).parents[1] / "logs" / "recordings" / "torchrun_ddp.stderr"
    handle = launch(command, "utils.sh", "--", "sh", "-c", f"cat {stderr} >&2; exit 1")
    ended = command("status", handle)
    assert "    Msg: rank 1 failed: exit 1, ValueError: loss is nan at step 2" in ended.out.splitlines()


def lines(ended: Ended) -> list[str]:
    return sorted(ended.out.splitlines())


def test_list(command: Command, failed: str):
    ended = command("list", "-s", "local_cwd")
    header, row = ended.out.splitlines()
    assert header.split("  ")[0] == "APP HANDLE"
    assert row.split() == [failed, "sh", "FAILED"]
    (listed,) = command("list", "-s", "local_cwd", "--json").data
    assert (listed["handle"], listed["name"], listed["state"]) == (failed, "sh", "FAILED")
    assert (listed["scheduler"], listed["app_id"]) == ("local_cwd", failed.rpartition("/")[2])
    assert listed["finished_at"] >= listed["submitted_at"]


def test_list_of_everything_leaves_out_what_is_not_there(command: Command, failed: str):
    ended = command("list")
    assert (ended.code, failed in ended.out) == (0, True)
    assert ended.err.startswith("torchx-tui: local_docker is left out: ")


def test_list_takes_its_scheduler_from_torchxconfig(command: Command, failed: str, tmp_path: Path):
    (tmp_path / ".torchxconfig").write_text("[cli:list]\nscheduler = local_cwd\n")
    ended = command("list")
    assert (ended.code, ended.err, failed in ended.out) == (0, "", True)


def test_list_fills_a_wide_terminal(command: Command, failed: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    header, *rows = command("list", "-s", "local_cwd").out.splitlines()
    assert header.split() == [
        *["APP", "HANDLE", "APP", "NAME", "APP", "STATUS", "TIME", "NODES", "PROGRESS", "OR", "REASON"]
    ]
    assert any(failed in row and "exit" in row for row in rows)
    assert max(map(len, rows)) <= 150
    monkeypatch.setenv("COLUMNS", "100")
    header, *rows = command("list", "-s", "local_cwd").out.splitlines()
    assert " ".join(header.split()) == "APP HANDLE APP NAME APP STATUS"


def test_status(command: Command, failed: str):
    ended = command("status", failed)
    assert "State: FAILED" in ended.out
    assert re.search(r"sh/1 +FAILED +\d+ +\S* +20\d\d-\d\d-\d\d \d\d:\d\d:\d\d +\d+s", ended.out)
    data = command("status", "--json", failed).data
    assert set(data) == STATUS_KEYS
    assert (data["handle"], data["scheduler"], data["state"]) == (failed, "local_cwd", "FAILED")
    assert data["ui_url"] == data["url"]
    # TorchX writes the states of replicas as numbers.
    assert [replica["state"] for replica in data["roles"][0]["replicas"]] == [AppState.FAILED.value] * 2
    other = command("status", "--json", "--roles", "nope", failed)
    assert (other.data["roles"], "has no role nope; its roles are sh" in other.err) == ([], True)


def test_describe(command: Command, failed: str):
    ended = command("describe", failed)
    assert "'entrypoint': 'sh'" in ended.out
    assert "'num_replicas': 2" in ended.out
    assert "hush" not in ended.out
    data = command("describe", "--json", failed).data
    assert (data["handle"], data["state"], data["name"]) == (failed, "FAILED", "sh")
    assert data["roles"][0]["env"]["HF_TOKEN"] == "hush"
    assert [change["state"] for change in data["timeline"]][-1] == "FAILED"


def test_json_is_handed_on_as_it_is(command: Command):
    hostile = "a\x1b]0;pwned\x07b"
    handle = launch(command, "utils.echo", "--msg", hostile)
    assert command("describe", "--json", handle).data["roles"][0]["args"] == [hostile]
    assert json.loads(command("log", "--json", "--streams", "stdout", handle).out)["line"] == hostile
    app = command("dryrun", "-s", "local_cwd", "--json", "utils.echo", "--msg", hostile).data["app"]
    assert app["roles"][0]["args"] == [hostile]


def test_log_has_a_prefix_for_each_line(command: Command, failed: str):
    assert lines(command("log", failed)) == ["sh/0 err", "sh/0 out", "sh/1 err", "sh/1 out"]
    assert lines(command("log", "--streams", "stdout", failed)) == ["sh/0 out", "sh/1 out"]
    assert lines(command("log", "--regex", "er+", f"{failed}/sh/1")) == ["sh/1 err"]
    assert lines(command("log", f"{failed}/sh/0,1", "-t", "--streams", "stderr")) == ["sh/0 err", "sh/1 err"]
    assert lines(command("log", f"{failed}/")) == lines(command("log", f"{failed}/sh"))


@pytest.mark.parametrize(
    ("words", "told"),
    [(["--regex", "("], "regular expression|parenthesis|pattern"), (["--regex", "a**"], "repeat|expression")],
)
def test_a_malformed_expression_is_told_in_words(command: Command, failed: str, words: list[str], told: str):
    ended = command("log", *words, failed)
    assert (ended.code, "Traceback" in ended.err) == (2, False)
    assert re.search(told, ended.err), ended.err
    for place, there in (("nope", "no role nope. Its roles: sh"), ("sh/7", "no replica sh/7. Its replicas: 0 to 1")):
        ended = command("log", f"{failed}/{place}")
        assert (ended.code, there in ended.err) == (2, True)


def test_what_nobody_expects_is_told_in_words_too(command: Command, monkeypatch: pytest.MonkeyPatch):
    def fails(self: Runner, *_: object) -> None:
        raise OSError(5, "Input/output error", "/dev/broken")

    monkeypatch.setattr(Runner, "list", fails)
    ended = command("list", "-s", "local_cwd")
    assert (ended.code, ended.err) == (2, "torchx-tui: /dev/broken: Input/output error\n")


def test_log_as_json_is_an_object_a_line(command: Command, failed: str):
    told = [json.loads(line) for line in lines(command("log", "--json", "--streams", "stderr", failed))]
    assert told == [{"role": "sh", "replica": k, "line": "err"} for k in (0, 1)]


@pytest.mark.parametrize("verb", ["status", "describe", "log", "wait", "cancel", "delete"])
def test_an_unknown_job_ends_with_1(command: Command, verb: str):
    ended = command(verb, "local_cwd://torchx/none")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("torchx-tui: local_cwd://torchx/none is not known: ")


def test_wait_ends_as_the_job_did(command: Command, failed: str):
    ended = command("wait", failed)
    assert (ended.code, ended.out, "State: FAILED" in ended.err) == (1, "", True)
    succeeded = launch(command, "utils.echo")
    assert command("wait", succeeded).code == 0
    assert command("wait", "--json", succeeded).data["state"] == "SUCCEEDED"


def test_delete_removes_the_job_and_its_record(command: Command, failed: str):
    assert command("delete", failed).code == 0
    assert command("list", "-s", "local_cwd", "--json").data == []
    assert launches() == []


def test_read_only_refuses_what_changes_jobs(command: Command, failed: str):
    for argv in (["cancel", failed], ["delete", failed], ["prune"], ["run", "-s", "local_cwd", "utils.echo"]):
        ended = command("--read-only", *argv)
        assert (ended.code, "is not possible with --read-only" in ended.err) == (2, True)
    assert len(launches()) == 1


def test_prune_by_age(command: Command, failed: str):
    assert command("prune", "--older-than", "1").out == ""
    assert command("prune", "--older-than", "0", "--dryrun").out == f"{failed}\n"
    assert command("status", failed).code == 0
    assert command("prune", "--older-than", "0").out == f"{failed}\n"
    assert command("status", failed).code == 1


def test_prune_by_the_settings(command: Command, failed: str, own_home: Path):
    (state,) = (own_home / "state").rglob("state.json")
    document = json.loads(state.read_text())
    document["finished_at"] = time.time() - 31 * 86400
    state.write_text(json.dumps(document))
    os.utime(state, (0, 0))
    assert command("prune", "--dryrun").out == f"{failed}\n"
    assert command("prune").out == f"{failed}\n"
    assert command("prune").out == ""
