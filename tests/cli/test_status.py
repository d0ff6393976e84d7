"""Commands about jobs that need more than a command line: a log of torchrun, a clock, a terminal, other users."""

from __future__ import annotations

import ast
import json
import os
import sys
import time
from pathlib import Path

from torchx_tui.backends.runner import Runner
from torchx_tui.backends.types import BY_TORCHX
from torchx_tui.specs.status import AppState, RoleStatus

HANDLE = "local_cwd://torchx/job-1"


def test_status_names_the_rank_that_failed(command):
    stderr = Path(__file__).parents[1] / "logs" / "recordings" / "torchrun_ddp.stderr"
    ran = command("run", "-s", "local_cwd", "utils.sh", "--", "sh", "-c", f"cat {stderr} >&2; exit 1")
    ended = command("status", ran.out.strip())
    assert "    Msg: rank 1 failed: exit 1, ValueError: loss is nan at step 2" in ended.out.splitlines()


def test_list_fills_a_wide_terminal(command, scheduler, monkeypatch):
    scheduler.add("job-1", AppState.FAILED, 60, why=f"exit 1: {'x' * 200}")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    def lines(columns: int) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        return command("list", "-s", "local_cwd").out.splitlines()

    header, row = lines(140)
    assert " ".join(header.split()) == "APP HANDLE APP NAME APP STATUS TIME NODES PROGRESS OR REASON"
    assert (len(row), "exit 1: xxx" in row) == (140, True)
    assert " ".join(lines(139)[0].split()) == "APP HANDLE APP NAME APP STATUS"


def test_status_has_the_page_of_the_job(command, scheduler):
    scheduler.add("job-1", AppState.RUNNING, 60)
    scheduler.described["job-1"].ui_url = "https://x"
    data = command("status", "--json", HANDLE).data
    assert (data["handle"], data["app_id"], data["ui_url"], data["url"]) == (HANDLE, "job-1", "https://x", "https://x")


def test_unknown_role_is_named_with_the_known_ones(command, scheduler):
    scheduler.add("job-1", AppState.RUNNING, 60)
    found = scheduler.described["job-1"]

    def said() -> str:
        return command("status", "--roles", "nope,trainer", HANDLE).err

    assert said() == f"torchx-tui: {HANDLE} has no role nope; its roles are trainer\n"
    found.roles_statuses.append(RoleStatus("reader", []))
    assert "its roles are trainer, reader" in said()
    found.roles_statuses = []
    assert "has no role nope; its roles are trainer" in said()
    found.roles = []
    assert "its roles are not known" in said()


def test_describe_is_a_literal(command, scheduler):
    scheduler.add("job-1", AppState.RUNNING, 60)
    scheduler.described["job-1"].metadata = {"team": "z"}
    text = command("describe", HANDLE).out
    app = ast.literal_eval(text.replace("<RetryPolicy.APPLICATION: 'APPLICATION'>", "None"))
    assert list(app) == ["name", "roles", "metadata"]
    assert (app["name"], app["metadata"], app["roles"][0]["name"]) == ("job", {"team": "z"}, "trainer")
    scheduler.described["job-1"].name = ""
    assert command("describe", HANDLE).out.startswith("{ 'name': 'job-1',")


def test_unexpected_error_is_a_sentence(command, monkeypatch):
    def fails(self: Runner, *_: object) -> None:
        raise OSError(5, "Input/output error", "/dev/broken")

    monkeypatch.setattr(Runner, "list", fails)
    ended = command("list", "-s", "local_cwd")
    assert (ended.code, ended.err) == (2, "torchx-tui: /dev/broken: Input/output error\n")


def test_deleted_job_of_torchx_keeps_its_logs(command, scheduler):
    scheduler.add("job-1", AppState.SUCCEEDED, 60)
    scheduler.described["job-1"].notes = [BY_TORCHX]
    scheduler.described["job-1"].log_dir = "/logs/job-1"
    said = command("delete", HANDLE).err
    assert said == f"torchx-tui: {HANDLE} is no longer shown; its logs are TorchX's and stay in /logs/job-1\n"
    scheduler.add("job-1", AppState.SUCCEEDED, 60)
    assert command("delete", HANDLE).err == ""


def test_prune_deletes_own_old_jobs(command, scheduler, monkeypatch):
    for app_id in ("old-1", "other-1", "foreign-1"):
        scheduler.add(app_id, AppState.SUCCEEDED, 3600)
    scheduler.add("runs-1", AppState.RUNNING, 3600)
    scheduler.apps["other-1"].user = "bob"
    scheduler.apps["foreign-1"].foreign = True
    now = (scheduler.apps["old-1"].finished_at or 0) + 86400 * 2
    monkeypatch.setattr("torchx_tui.base.files.user_name", lambda: "alice")
    monkeypatch.setattr("time.time", lambda: now)
    assert command("prune", "--older-than", "2").out == ""
    assert command("prune", "--older-than", "1.9", "--dryrun").out == "local_cwd://torchx/old-1\n"
    assert "old-1" in scheduler.apps
    assert command("prune", "--older-than", "1.9").out == "local_cwd://torchx/old-1\n"
    assert set(scheduler.apps) == {"other-1", "foreign-1", "runs-1"}


def test_prune_goes_on_after_a_failure(command, scheduler, monkeypatch):
    for app_id in ("one-1", "bad-1", "two-1"):
        scheduler.add(app_id, AppState.SUCCEEDED, 3600)
    monkeypatch.setattr("torchx_tui.base.files.user_name", lambda: "alice")
    delete = scheduler.delete

    def delete_some(app_id: str) -> None:
        if app_id == "bad-1":
            raise OSError(13, "Permission denied", "/jobs/bad-1")
        delete(app_id)

    monkeypatch.setattr(scheduler, "delete", delete_some)
    ended = command("prune", "--older-than", "0")
    assert (ended.code, ended.out) == (2, "local_cwd://torchx/one-1\nlocal_cwd://torchx/two-1\n")
    assert ended.err == "torchx-tui: local_cwd://torchx/bad-1 was not deleted: /jobs/bad-1: Permission denied\n"
    assert set(scheduler.apps) == {"bad-1"}


def test_prune_by_the_settings(command, own_home):
    handle = command("run", "-s", "local_cwd", "utils.echo").out.strip()
    (state,) = (own_home / "state").rglob("state.json")
    document = json.loads(state.read_text())
    document["finished_at"] = time.time() - 31 * 86400
    state.write_text(json.dumps(document))
    os.utime(state, (0, 0))
    assert [command("prune", *flags).out for flags in (["--dryrun"], [], [])] == [f"{handle}\n", f"{handle}\n", ""]


def test_prune_where_no_setting_limits_what_is_kept(command):
    ended = command("prune", "-s", "local_docker", "--dryrun")
    assert (ended.code, ended.out) == (2, "")
    assert "local_docker has no setting for how long finished jobs are kept: give an age in days" in ended.err


def test_time_of_a_replica_ends_with_it(command, scheduler):
    scheduler.add("job-1", AppState.UNKNOWN, 600, replicas=2)
    scheduler.described["job-1"].roles_statuses[0].replicas[1].state = AppState.RUNNING
    rows = [line.split() for line in command("status", HANDLE).out.splitlines() if line.startswith("trainer/")]
    assert [len(row) for row in rows] == [4, 6]
