"""Pictures of the Stacks screen, of a job whose rank 0 saves a checkpoint while the others wait."""

import pytest
from support.canned import NOW, CannedScheduler, busy_scheduler, let_run_commands
from support.dashboard import make_app, until
from support.hung import hung_snapshot
from support.pictures import FAILED, RUNNING, SIZES, at_job, stands_at_cause
from support.screens import table_of

from torchx_tui.diagnosis.stacks import take
from torchx_tui.diagnosis.stacks.kept import keep_snapshot
from torchx_tui.specs.status import AppState
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.stacks import screen as stacks
from torchx_tui.tui.stacks.screen import StacksScreen


@pytest.fixture
def app(tmp_path, monkeypatch):
    monkeypatch.setattr(stacks, "PAUSE_S", 0.0)
    monkeypatch.setattr(take, "take_snapshot", lambda *_, **__: hung_snapshot("checkpoint", at=NOW - 3, seconds=0.31))
    scheduler = let_run_commands(CannedScheduler(logs=tmp_path / "logs"))
    scheduler.add("llama3-8b-sft-zq2wmx7v5hkdfd", AppState.RUNNING, 2460, replicas=4)
    return make_app(scheduler, tmp_path)


async def open_stacks(pilot):
    table = await table_of(pilot, 1)
    stacks = await table.open(StacksScreen, "b")
    await table.until(lambda: stacks.is_done, "the stacks")


async def open_stalled(pilot):
    """The Job screen of a stalled job, whose stacks were taken when that was seen."""
    app = pilot.app
    await at_job(RUNNING, "enter")(pilot)
    await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.activity.is_read, "its log")
    await until(pilot, lambda: RUNNING in app.jobs.taken and app.screen.doing._stacks.display, "the finding")
    # The same is in the status line for some seconds.
    await until(pilot, lambda: app.status.message, "the message")
    app.status.clear()


def test_stalled_job_with_its_stacks(snap_compare, tmp_path):
    keep_snapshot(hung_snapshot("checkpoint", at=NOW - 3, seconds=0.31, handle=RUNNING))
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path)
    assert snap_compare(app, sizes=SIZES, run_before=open_stalled)


def test_stacks(snap_compare, app):
    assert snap_compare(app, sizes=SIZES, run_before=open_stacks)


def test_job_that_hung_and_failed(snap_compare, tmp_path):
    """The Why pane says where its ranks stood when its stacks were last taken."""
    keep_snapshot(hung_snapshot("checkpoint", handle=FAILED, pace="hangs"))
    scheduler = busy_scheduler(tmp_path / "logs")

    def stands(app):
        return stands_at_cause(app) and FAILED in app.jobs.explained

    run_before = at_job(FAILED, "enter", wait=stands)
    assert snap_compare(make_app(scheduler, tmp_path), terminal_size=SIZES["80x24"], run_before=run_before)
