"""A supervisor that is started before there is anything to launch: it is used, or ends."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest
from support.waiting import wait_until

from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.specs import AppDef, Role


def supervisors() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "supervisor.py" in " ".join(child.cmdline())]


def started(before: list[psutil.Process]) -> psutil.Process:
    """Return the one supervisor that is new; of a process that has just begun no command line is seen yet."""
    (new,) = wait_until(lambda: [one for one in supervisors() if one not in before], "a supervisor")
    return new


def test_it_is_taken_for_the_next_launch(tmp_path: Path) -> None:
    scheduler = LocalScheduler("torchx", root=tmp_path, handle_signals=False)
    before = supervisors()
    scheduler.expect_launch()
    scheduler.expect_launch()
    ahead = started(before)
    app_id = scheduler.submit(AppDef("two", [Role("r", "", entrypoint="sh", args=["-c", "exit 0"])]), {})
    again = scheduler.submit(AppDef("two", [Role("r", "", entrypoint="sh", args=["-c", "exit 0"])]), {})
    for one in (app_id, again):
        wait_until(lambda one=one: (found := scheduler.describe(one)) and found.finished_at, f"the end of {one}")
    assert app_id != again
    wait_until(lambda: not ahead.is_running() or ahead.status() == psutil.STATUS_ZOMBIE, "its end")
    scheduler.close()


def test_it_ends_where_nothing_is_launched(tmp_path: Path) -> None:
    scheduler = LocalScheduler("torchx", root=tmp_path, handle_signals=False)
    before = supervisors()
    scheduler.expect_launch()
    ahead = started(before)
    scheduler.close()
    assert not ahead.is_running()
    assert list(tmp_path.iterdir()) == []


def test_a_job_has_the_environment_of_its_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A component may change it, which runs after the supervisor was started."""
    scheduler = LocalScheduler("torchx", root=tmp_path, handle_signals=False)
    before = supervisors()
    scheduler.expect_launch()
    ahead = started(before)
    monkeypatch.setenv("SET_BY_THE_COMPONENT", "yes")
    app_id = scheduler.submit(
        AppDef("env", [Role("r", "", entrypoint="sh", args=["-c", "echo $SET_BY_THE_COMPONENT"])]), {}
    )
    wait_until(lambda: (found := scheduler.describe(app_id)) and found.finished_at, "its end")
    assert list(scheduler.log_iter(app_id, "r")) == ["yes\n"]
    assert not ahead.is_running()
    scheduler.close()
