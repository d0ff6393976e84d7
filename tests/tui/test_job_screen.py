"""The Job screen of a failed job: the cause first, then what only follows from it."""

import pytest
from support.canned import busy_scheduler
from support.dashboard import make_app, until

from torchx_tui.specs import AppState
from torchx_tui.tui.config import LogSettings, Settings
from torchx_tui.tui.screens.job import JobScreen
from torchx_tui.tui.screens.jobs import JobsScreen
from torchx_tui.tui.widgets.job_table import JobTable
from torchx_tui.tui.widgets.timeline import Timeline

FAILED = "llama3-8b-sft-b7n1xk4t9wz0rg"


@pytest.fixture
def scheduler(tmp_path):
    return busy_scheduler(tmp_path / "logs")


async def open_failed(pilot, app):
    """Open the failed job, and wait until its logs were read for the cause."""
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count > 0, "rows")
    app.screen.table.move_to(f"local_cwd://torchx/{FAILED}")
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, JobScreen), "the Job screen")
    screen = app.screen
    await until(pilot, lambda: screen.why._failure is not None, "the cause")
    return screen


def drawn(screen):
    return screen.why._content.render().plain.splitlines()


async def test_the_errors_that_follow_are_listed_each_in_a_row(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_failed(pilot, app)
        rows = drawn(screen)
        head = next(number for number, row in enumerate(rows) if "first of 3 errors" in row)
        assert rows[head].split()[1:] == ["trainer/2", *["first", "of", "3", "errors,", "2", "follow", "from", "it"]]
        assert [row.split()[1] for row in rows[head + 1 : head + 3]] == ["trainer/0", "trainer/1"]
        assert all(row.endswith("…") for row in rows[head + 1 : head + 3])
        # What is copied is not cut.
        assert "RuntimeError: Connection closed by peer [10.0.0.3]:31338" in screen.why.reason
        assert screen.logs.log_pane.status.replica == 2


async def test_an_error_that_the_job_did_not_report_is_quoted_from_its_logs(scheduler, tmp_path):
    scheduler.described[FAILED].structured_error_msg = "<NONE>"
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_failed(pilot, app)
        assert "▎ RuntimeError: loss is nan at step 14917" in drawn(screen)


async def test_logs_without_an_error_add_nothing(scheduler, tmp_path):
    for k in range(4):
        scheduler.write_log(FAILED, k, [(200, "o", "step 1\n")])
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_failed(pilot, app)
        assert "error" not in "\n".join(drawn(screen)).replace("RuntimeError", "")


async def test_errors_of_the_settings_count(scheduler, tmp_path):
    for k in range(4):
        scheduler.write_log(FAILED, k, [(200, "o", f"PANIC in {k}\n")])
    settings = Settings(logs=LogSettings(error_patterns=("^PANIC",)))
    app = make_app(scheduler, tmp_path, settings=settings)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_failed(pilot, app)
        assert "PANIC in 2" in screen.why.reason


async def test_a_backend_that_keeps_no_timeline_gets_what_was_seen(scheduler, tmp_path):
    handle = "local_cwd://torchx/mixtral-8x7b-pt-w5zj0r7tn2bqcls"
    described = scheduler.described[handle.rpartition("/")[2]]
    described.timeline = []
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count > 0, "rows")
        for state in (AppState.RUNNING, AppState.PENDING, AppState.RUNNING):
            scheduler.set_state(described.app_id, state)
            await pilot.press("R")
            await until(pilot, lambda state=state: app.jobs.rows[handle].state is state, state.name)
        app.query_one(JobTable).move_to(handle)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.query_one(Timeline).changes)
        changes = app.screen.query_one(Timeline).changes
        assert [change.state.name for change in changes] == ["PENDING", "RUNNING", "PENDING", "RUNNING"]
        assert [change.at for change in changes[1:]] == sorted(change.at for change in changes[1:])
