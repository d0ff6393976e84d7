"""The history of a long journal: shown in parts, newest first, while keys and the filter go on working."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from support.canned import NOW, CannedScheduler
from support.dashboard import make_app, screen_text, until

from torchx_tui.backends.history import journal as journal_module
from torchx_tui.backends.history.launch_record import LaunchRecord, encode_record
from torchx_tui.specs import AppState
from torchx_tui.specs.files import read_file
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.ui.keys_screen import KeysScreen

COUNT = 1500
AT_ONCE = 300


@pytest.fixture
def app(scheduler: CannedScheduler, tmp_path: Path) -> TorchXTuiApp:
    """The dashboard, with a journal of many launches that no backend knows any more."""
    folder = tmp_path / "journal"
    folder.mkdir()
    for number in range(COUNT):
        at = NOW - 10 * (COUNT - number)
        record = LaunchRecord(
            id=f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}-000000-{number:08x}",
            at=at,
            scheduler="local_cwd",
            session="torchx",
            app={"name": "old", "roles": []},
            app_id=f"old-{number:05}",
            state="SUCCEEDED",
        )
        (folder / f"{record.id}.json").write_bytes(encode_record(record))
    return make_app(scheduler, tmp_path)


@pytest.fixture
def scheduler() -> CannedScheduler:
    return CannedScheduler()


@pytest.fixture
def released(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Reading takes very long after so many records, until this is set."""
    event, read = threading.Event(), []

    def reading(path: str, limit: int) -> bytes:
        read.append(path)
        if len(read) > AT_ONCE:
            event.wait(0.3)
        return read_file(path, limit)

    monkeypatch.setattr(journal_module, "read_file", reading)
    return event


def past(screen: JobsScreen) -> list[str]:
    return [row.app_id for row in screen.table.rows if row.history]


async def test_the_newest_are_there_and_keys_work_before_the_rest_is_read(
    app: TorchXTuiApp, released: threading.Event, monkeypatch: pytest.MonkeyPatch
):
    # A message of success goes after some seconds.
    said: list[str] = []
    monkeypatch.setattr(app.status, "say", lambda text, **_: said.append(text))
    async with app.run_test(size=(160, 40)) as pilot:
        screen = app.screen
        assert isinstance(screen, JobsScreen)
        await pilot.press("H")
        await until(pilot, lambda: past(screen), "the newest launches")
        assert said[0] == "Reading the journal"
        assert said[1].startswith("Reading the journal: ")
        assert said[1].endswith(" records left")
        assert past(screen)[0] == f"old-{COUNT - 1:05}"
        assert len(past(screen)) < COUNT
        # The filter is typed meanwhile, and holds for what comes later.
        await pilot.press("slash", *"old-0000", "enter")
        await until(pilot, lambda: past(screen) == [], "the filter")
        released.set()
        await until(pilot, lambda: len(past(screen)) == 10, "the oldest")
        await pilot.press("slash", *["backspace"] * 8, "enter")
        await until(pilot, lambda: len(past(screen)) == COUNT, "all")
        assert past(screen) == [f"old-{number:05}" for number in reversed(range(COUNT))]
        assert f"{COUNT:,}" in screen_text(app)
        await pilot.press("1")
        info = f"{COUNT:,}  newest first, with history"
        await until(pilot, lambda: screen.table_pane.rule.info.plain == info, "those of one backend")
        await pilot.press("0")
        assert said[2:] == [f"{COUNT:,} jobs of the past"]
        await pilot.press("H")
        await until(pilot, lambda: past(screen) == [], "no history")
        assert said[-1] == "History is hidden"


async def test_the_cursor_stays_on_a_launch_of_the_past(app: TorchXTuiApp):
    async with app.run_test(size=(160, 40)) as pilot:
        screen = app.screen
        assert isinstance(screen, JobsScreen)
        await pilot.press("H")
        await until(pilot, lambda: len(past(screen)) == COUNT, "all")
        await pilot.press("G", "k", "space", "k")
        assert screen.table.cursor_row is not None
        cursor, marked = screen.table.cursor_row.app_id, screen.table.marks.copy()
        await pilot.press("slash", *"old", "enter")
        await until(pilot, lambda: len(past(screen)) == COUNT, "all again")
        assert (screen.table.cursor_row.app_id, screen.table.marks) == (cursor, marked)
        await pilot.press("enter")
        await until(pilot, lambda: "history: the backend keeps no log of it" in screen_text(app), "its screen")


async def test_history_is_hidden_while_it_is_read(app: TorchXTuiApp, released: threading.Event):
    async with app.run_test(size=(160, 40)) as pilot:
        screen = app.screen
        assert isinstance(screen, JobsScreen)
        await pilot.press("H")
        await until(pilot, lambda: past(screen), "the newest launches")
        await pilot.press("H")
        released.set()
        await until(pilot, lambda: all(one.name != "read-history" for one in threading.enumerate()), "the reader's end")
        assert past(screen) == []


async def test_what_reads_the_journal_for_a_job_holds_up_no_key(
    app: TorchXTuiApp, scheduler: CannedScheduler, released: threading.Event
):
    # No launch of it is in the journal, which is only known once all of that was read.
    scheduler.add("foreign-x", AppState.RUNNING, 1)
    async with app.run_test(size=(160, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count, "the job")
        await pilot.press("Y", "question_mark")
        await until(pilot, lambda: isinstance(app.screen, KeysScreen), "the keys, before the command")
        await pilot.press("escape", "e", "question_mark")
        await until(pilot, lambda: isinstance(app.screen, KeysScreen), "the keys, before the form")
        await pilot.press("escape")
        released.set()
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen), "the form")


async def test_a_launch_of_a_backend_that_is_gone_is_old_news(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    folder.mkdir()
    record = LaunchRecord(
        id="20260101-000000-000000-00000001",
        at=NOW - 3600,
        scheduler="local_docker",
        session="torchx",
        app={"name": "old", "roles": []},
        app_id="old-1",
        state="RUNNING",
        state_at=NOW - 1800,
    )
    (folder / f"{record.id}.json").write_bytes(encode_record(record))
    app = make_app(CannedScheduler(), tmp_path)
    async with app.run_test(size=(160, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.jobs.answered, "the jobs")
        await pilot.press("H")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count == 1, "the launch")
        assert isinstance(app.screen, JobsScreen)
        row = app.screen.table.rows[0]
        assert (row.state, row.finished_at) == (AppState.RUNNING, None)
        assert row.why.startswith("last seen ")
