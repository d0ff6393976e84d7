"""A job that makes no step: the word in the table, a note, and what the keys offer then."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.canned import busy_scheduler
from support.dashboard import make_app, screen_text, until
from support.pictures import RUNNING
from textual.geometry import Region

from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.settings.config import MetricsSettings
from torchx_tui.tui.jobs import screen as jobs_screen
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.messages import ProgressRead
from torchx_tui.tui.rows import RowProgress
from torchx_tui.tui.ui.bars import KeyBar
from torchx_tui.tui.watch.progress import WatchedJob

SENTENCE = "no step for 9m, usually 49 s; no replica prints anything"


@pytest.mark.parametrize(("last", "is_stalled"), [("", True), ("saving checkpoint 20\n", False)])
def test_the_end_of_a_log_tells_a_stall(tmp_path: Path, last: str, is_stalled: bool) -> None:
    """It is one after 30 s without a step where a step took 1 s, and not while a checkpoint is saved."""
    path = tmp_path / "stdout.log"
    watched, settings, now = WatchedJob([ReplicaLog("trainer", 0, stdout=path)]), MetricsSettings(), 1_000.0

    def write(text: str) -> None:
        with path.open("a") as file:
            file.write(text)
        os.utime(path, (now, now))

    for step in range(20):
        now += 1
        write(f"step {step}/100 loss: {5 - step / 10}\n")
        assert watched.look(settings, now).stalled == ""
    write(last)
    assert watched.look(settings, now + 29).stalled == ""
    told = watched.look(settings, now + 130)
    assert (told.stalled != "") is is_stalled
    if is_stalled:
        assert told.stalled.startswith("no step for 2m 10s, usually 1.0s; no replica prints anything")
        now += 131
        write("step 20/100 loss: 3\n")
        assert watched.look(settings, now).stalled == ""


def test_a_job_that_works_is_not_stalled(tmp_path: Path) -> None:
    path, now, cores = tmp_path / "stdout.log", 1_000.0, [(0.5,)]
    watched = WatchedJob([ReplicaLog("trainer", 0, stdout=path)], lambda: cores[0])
    for step in range(20):
        now += 1
        with path.open("a") as file:
            file.write(f"step {step}/100 loss: 1.5\n")
        os.utime(path, (now, now))
        watched.look(MetricsSettings(), now)
    assert watched.look(MetricsSettings(), now + 60).stalled == ""
    cores[0] = (0.0,)
    assert "none uses its CPU" in watched.look(MetricsSettings(), now + 120).stalled


def test_how_long_it_is_until_the_last_step(tmp_path: Path) -> None:
    path = tmp_path / "stdout.log"
    watched, now = WatchedJob([ReplicaLog("trainer", 0, stdout=path)]), 1_000.0
    for step in range(20):
        now += 2
        with path.open("a") as file:
            file.write(f"step {step}/100 loss: 1.5\n")
        os.utime(path, (now, now))
        told = watched.look(MetricsSettings(), now)
    assert told.seconds_left == pytest.approx(2 * 81)


async def test_a_stalled_job_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a word with its sign, what takes the bar's place, one note, and the hint of the stacks."""
    # What the job's log says takes no part.
    monkeypatch.setattr(jobs_screen, "PROGRESS_INTERVAL_S", 3600.0)
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path)
    # A note goes after some seconds.
    monkeypatch.setattr(app, "NOTIFICATION_TIMEOUT", 3600.0)
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: RUNNING in app.jobs.rows, "the job")
        screen = app.screen
        assert isinstance(screen, JobsScreen)
        await until(pilot, lambda: any(row.handle == RUNNING for row in screen.table.rows), "its row")
        screen.table.move_to(RUNNING)
        assert not any(hint.key == "b" for hint in screen.query_one(KeyBar).hints)
        stalled = RowProgress(4, 0.5, None, "loss", "0.871", SENTENCE, 540.0)
        for _ in range(2):
            app.on_progress_read(ProgressRead({RUNNING: stalled}))
        await pilot.pause()
        line = screen.table._job_line(RUNNING, screen.table.size.width, screen.table.rich_style).text
        assert "! Stalled" in line
        assert "no step for 9m" in line
        assert "0.871" in line
        assert [hint.word for hint in screen.query_one(KeyBar).hints if hint.key == "b"] == ["Stacks"]
        notes = [note.message for note in app._notifications if "stalled" in note.message]
        assert len(notes) == 1
        assert SENTENCE in notes[0]
        assert screen.table.cursor_stall == 540.0
        app.on_progress_read(ProgressRead({RUNNING: stalled._replace(stalled="")}))
        assert screen.table.cursor_stall is None
        assert "Running" in screen.table._job_line(RUNNING, screen.table.size.width, screen.table.rich_style).text


async def test_only_rows_that_look_different_are_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read every few seconds sends nothing over a slow link while nothing changes."""
    app = make_app(busy_scheduler(tmp_path / "logs"), tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        await until(pilot, lambda: RUNNING in app.jobs.rows, "the job")
        assert isinstance(app.screen, JobsScreen)
        table = app.screen.table
        await until(pilot, lambda: RUNNING in table.on_screen[0], "its row")
        first = RowProgress(4, 0.5, None, "loss", "0.871")
        app.on_progress_read(ProgressRead({RUNNING: first}))
        assert "0.871" in screen_text(app)
        drawn: list[Region] = []
        monkeypatch.setattr(table, "refresh", lambda *regions, **_: drawn.extend(regions or [table.region]))
        app.on_progress_read(ProgressRead({RUNNING: first}))
        table.refresh_ages()
        assert drawn == []
        app.on_progress_read(ProgressRead({RUNNING: first._replace(value="0.870")}))
        assert [region.height for region in drawn] == [1]
