"""The history of a long journal: shown in parts, newest first, while keys and the filter go on working."""

import threading
import time

import pytest
from support.canned import NOW, CannedScheduler
from support.dashboard import make_app
from support.screens import jobs_of

from torchx_tui.backends.history import journal as journal_module
from torchx_tui.backends.history.launch_record import LaunchRecord, encode_record
from torchx_tui.base.files import read_file
from torchx_tui.specs.status import AppState
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.jobs import screen as jobs_screen
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.ui.keys_screen import KeysScreen

COUNT = 1100
AT_ONCE = 300
SIZE = (160, 40)


def remember(folder, at, app_id, **fields):
    """Write the record of a launch."""
    record_id = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(at))}-000000-{int(at) % 2**32:08x}"
    app = {"name": "old", "roles": []}
    record = LaunchRecord(record_id, at, fields.pop("scheduler"), "torchx", app, app_id=app_id, **fields)
    (folder / f"{record.id}.json").write_bytes(encode_record(record))


@pytest.fixture
def scheduler():
    return CannedScheduler()


@pytest.fixture
def journal(tmp_path):
    folder = tmp_path / "journal"
    folder.mkdir()
    return folder


@pytest.fixture
def long_journal(journal):
    """Write many launches that no backend knows any more."""
    for number in range(COUNT):
        at = NOW - 10 * (COUNT - number)
        remember(journal, at, f"old-{number:05}", scheduler="local_cwd", state="SUCCEEDED")


@pytest.fixture
def app(journal, scheduler, tmp_path):
    return make_app(scheduler, tmp_path)


@pytest.fixture
def released(long_journal, monkeypatch):
    """Reading takes very long after so many records, until this is set."""
    event, read = threading.Event(), []

    def reading(path, limit):
        read.append(path)
        if len(read) > AT_ONCE:
            event.wait(0.3)
        return read_file(path, limit)

    monkeypatch.setattr(journal_module, "read_file", reading)
    return event


async def test_history_is_filtered_while_it_is_read(app, released, monkeypatch):
    # A message of success goes after some seconds.
    said = []
    monkeypatch.setattr(app.status, "say", lambda text, **_: said.append(text))
    async with jobs_of(app, SIZE, 0) as table:
        await table.press("H", until=table.rows, what="the newest launches")
        assert said == ["Reading the history"]
        assert table.rows()[0] == f"old-{COUNT - 1:05}"
        assert len(table.rows()) < COUNT
        # The filter is typed meanwhile, and holds for what comes later.
        await table.press("slash", *"old-0000", "enter")
        await table.has(0)
        released.set()
        await table.has(10)
        await table.press("slash", *["backspace"] * 8, "enter")
        await table.has(COUNT)
        assert table.rows() == [f"old-{number:05}" for number in reversed(range(COUNT))]
        # The cursor and the marks stay.
        await table.press("G", "k", "space", "k")
        before = table.at(), table.table.marks.copy()
        await table.press("slash", *"old", "enter", shows=f"{COUNT:,} of {COUNT:,}", on="title")
        await table.has(COUNT)
        assert (table.at(), table.table.marks) == before
        job = await table.open(JobScreen, "enter")
        await table.shows("only in the history: its backend has no log of this job", on="drawn")
        assert job.row.app_id == before[0]
        await table.back("escape")
        await table.press("slash", *["backspace"] * 3, "enter")
        assert f"{COUNT:,}" in table.drawn()
        await table.press(
            "1", until=lambda: table.title() == f"{COUNT:,}  1 marked  newest first, with history", what="one backend"
        )
        await table.press("0")
        assert said[1:] == [f"{COUNT:,} older jobs in history"]
        await table.press("H")
        await table.has(0)
        assert said[-1] == "History is hidden"


async def test_older_history_is_read_at_the_end_of_the_table(app, long_journal, monkeypatch):
    monkeypatch.setattr(jobs_screen, "HISTORY_ROWS", 100)
    async with jobs_of(app, SIZE, 0) as table:
        await table.press("H", shows="200 older jobs in history; more below the last row")
        assert len(table.rows()) == 200
        await table.press("G")
        await table.has(COUNT)
        await table.shows(f"{COUNT:,} older jobs in history")


async def test_reading_the_journal_holds_up_no_key(app, scheduler, released):
    async with jobs_of(app, SIZE, 0) as table:
        # History is hidden while it is read.
        await table.press("H", until=table.rows, what="the newest launches")
        await table.press("H")
        await table.has(0)
        # No launch of it is in the journal, which is only known once all of that was read.
        scheduler.add("foreign-x", AppState.RUNNING, 1)
        await table.press("R")
        await table.has(1)
        # The keys are shown before the command to launch it, and before its form.
        await table.open(KeysScreen, "Y", "question_mark")
        await table.back("escape")
        await table.open(KeysScreen, "e", "question_mark")
        await table.press("escape")
        released.set()
        await table.until(lambda: isinstance(app.screen, LaunchScreen), "the form")
        await table.until(lambda: all(one.name != "read-history" for one in threading.enumerate()), "the reader's end")
        assert table.rows() == ["foreign-x"]


async def test_listed_job_is_no_longer_of_the_past(app, scheduler, journal):
    remember(journal, NOW - 60, "job-1", scheduler="local_cwd", state="RUNNING")
    async with jobs_of(app, SIZE, 0) as table:
        await table.press("H")
        await table.has(1)
        scheduler.add("job-1", AppState.RUNNING, 1)
        await table.press("R", until=lambda: table.table.rows[0].why == "", what="the listed row")
        assert table.title() == "1  newest first, with history"
