"""A job that makes no step: the word in the table, a note, and what the keys offer then."""

import os

import pytest
from support.canned import NOW
from support.pictures import RUNNING
from support.screens import jobs_of

from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.settings.config import MetricsSettings
from torchx_tui.tui.jobs import screen as jobs_screen
from torchx_tui.tui.messages import ProgressRead
from torchx_tui.tui.rows import RowProgress
from torchx_tui.tui.watch.progress import WatchedJob

SENTENCE = "no step for 9m, usually 49 s; no replica prints anything"
PROGRESS = RowProgress(4, 0.5, None, "loss", "0.871")


class Logged:
    """A job, and what was found as it was looked at; its first 20 steps took so many seconds each."""

    def __init__(self, folder, seconds=1, **cores):
        self.path = folder / "stdout.log"
        self.job = WatchedJob([ReplicaLog("trainer", 0, stdout=self.path)], **cores)
        self.now, self.found = 1_000.0, []
        for step in range(20):
            self.now += seconds
            self.write(f"step {step}/100 loss: {5 - step / 10}\n")
            self.found.append(self.look(0))

    def write(self, text):
        with self.path.open("a") as file:
            file.write(text)
        os.utime(self.path, (self.now, self.now))

    def look(self, later):
        return self.job.look(MetricsSettings(), self.now + later)


@pytest.mark.parametrize(("last", "is_stalled"), [("", True), ("saving checkpoint 20\n", False)])
def test_end_of_a_log_tells_a_stall(tmp_path, last, is_stalled):
    """It is one after 30 s without a step where a step took 1 s, and not while a checkpoint is saved."""
    logged = Logged(tmp_path)
    assert {found.stalled for found in logged.found} == {""}
    logged.write(last)
    assert logged.look(29).stalled == ""
    sentence = "no step for 2m 10s, usually 1.0s; no replica prints anything" if is_stalled else ""
    assert logged.look(130).stalled[: len(sentence) or None] == sentence
    if is_stalled:
        logged.now += 131
        logged.write("step 20/100 loss: 3\n")
    assert logged.look(0).stalled == ""


def test_job_that_works_is_not_stalled(tmp_path):
    cores = [(0.5,)]
    logged = Logged(tmp_path, 1, measure=lambda: cores[0])
    assert logged.look(60).stalled == ""
    cores[0] = (0.0,)
    assert "none uses its CPU" in logged.look(120).stalled


def test_how_long_it_is_until_the_last_step(tmp_path):
    assert Logged(tmp_path, 2).found[-1].seconds_left == pytest.approx(2 * 81)


async def test_stalled_job_has_a_word_a_note_and_a_key(app, monkeypatch):
    # What the job's log says takes no part.
    monkeypatch.setattr(jobs_screen, "PROGRESS_INTERVAL_S", 3600.0)
    async with jobs_of(app, (160, 45)) as screen:
        table = screen.table
        table.move_to(RUNNING)
        assert screen.key_is_enabled("b") is None

        def line():
            return table._job_line(RUNNING, table.size.width, table.rich_style).text

        stalled = PROGRESS._replace(stalled=SENTENCE, stalled_seconds=540.0)
        for _ in range(2):
            app.on_progress_read(ProgressRead({RUNNING: stalled}))
        await screen.pilot.pause()
        assert all(word in line() for word in ("! Stalled", "no step for 9m", "0.871"))
        assert "b Stacks" in screen.key_hints()
        assert f"{table.cursor_row.name} stalled: {SENTENCE}" in screen.message()
        assert table.cursor_stall == 540.0
        app.on_progress_read(ProgressRead({RUNNING: stalled._replace(stalled="")}))
        assert table.cursor_stall is None
        assert "Running" in line()


async def test_stall_is_announced_once_for_each_pause(app, monkeypatch):
    """Also if two readers of the job disagree about it."""
    notes = []
    async with jobs_of(app):
        # The table shows the job, so it is said in the status line.
        monkeypatch.setattr(app.status, "say", lambda text, **_: notes.append(text))
        for stalled, seconds in ((SENTENCE, 540.0), ("", 0.0), (SENTENCE, 539.0)):
            app.on_progress_read(ProgressRead({RUNNING: PROGRESS._replace(stalled=stalled, stalled_seconds=seconds)}))
        assert len(notes) == 1
        app.now = lambda: NOW + 600
        app.on_progress_read(ProgressRead({RUNNING: PROGRESS._replace(stalled=SENTENCE, stalled_seconds=60.0)}))
        assert len(notes) == 2


async def test_only_rows_that_look_different_are_drawn_again(app, monkeypatch):
    """What is read every few seconds sends nothing over a slow link while nothing changes."""
    async with jobs_of(app, (160, 45)) as screen:
        table, drawn = screen.table, []
        await screen.until(lambda: RUNNING in table.on_screen[0], "its row")
        app.on_progress_read(ProgressRead({RUNNING: PROGRESS}))
        assert "0.871" in screen.drawn()
        monkeypatch.setattr(table, "refresh", lambda *regions, **_: drawn.extend(regions or [table.region]))
        app.on_progress_read(ProgressRead({RUNNING: PROGRESS}))
        table.refresh_ages()
        assert drawn == []
        app.on_progress_read(ProgressRead({RUNNING: PROGRESS._replace(value="0.870")}))
        assert [region.height for region in drawn] == [1]
