"""The threads that watch one job, or how far several are: when they ask again, and what they do not ask twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.canned import CannedScheduler
from support.waiting import NEVER, PATIENCE, wait_until

import torchx_tui.tui.watch.feed as feed_module
import torchx_tui.tui.watch.poller as poller_module
import torchx_tui.tui.watch.progress as progress_module
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.types import Capabilities
from torchx_tui.diagnosis.metrics.series import Series
from torchx_tui.diagnosis.metrics.store import save_series
from torchx_tui.settings.config import MetricsSettings, WatchSettings
from torchx_tui.specs import AppDef, AppState, NotAllowedError, Role, SchedulerError
from torchx_tui.specs.calls import NoAnswerError
from torchx_tui.tui.rows import RowProgress
from torchx_tui.tui.watch.feed import Feed, JobWatcher, UsageWatcher
from torchx_tui.tui.watch.poller import BackendPoller
from torchx_tui.tui.watch.progress import ProgressWatcher

SETTINGS = WatchSettings(interval_seconds=100, slowest_seconds=10_000, timeout_seconds=1000)
ONE = "local_cwd://torchx/one-x"


@pytest.fixture
def scheduler(tmp_path: Path) -> CannedScheduler:
    scheduler = CannedScheduler(logs=tmp_path / "logs")
    for name in ("one-x", "two-x", "three-x"):
        scheduler.add(name, AppState.RUNNING, 60)
        scheduler.write_log(name, 0, [(10, "o", "".join(f"step {step}/10 loss: 1.5\n" for step in range(1, 6)))])
    return scheduler


@pytest.fixture
def runner(scheduler: CannedScheduler, tmp_path: Path) -> Runner:
    schedulers = dict.fromkeys(("local_cwd", "kubernetes"), scheduler)
    return Runner(journal=Journal(tmp_path / "journal"), schedulers=schedulers)


@pytest.fixture
def described(scheduler: CannedScheduler, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the jobs that are asked about."""
    asked: list[str] = []
    describe = scheduler.describe
    monkeypatch.setattr(scheduler, "describe", lambda app_id: (asked.append(app_id), describe(app_id))[1])
    return asked


def failing(error: Exception) -> Any:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("state", "error", "idle", "seconds"),
    [
        (AppState.RUNNING, None, 0, 50),
        (AppState.RUNNING, None, 3600, 250),
        # Nothing of it will change.
        (AppState.FAILED, None, 0, None),
        (None, None, 0, None),
        (AppState.RUNNING, SchedulerError("the server is away"), 0, 200),
        (AppState.RUNNING, NotAllowedError("not yours"), 0, 10_000),
    ],
)
def test_when_a_job_is_asked_about_again(runner, scheduler, monkeypatch, state, error, idle, seconds):
    posted: list[Any] = []
    if state is None:
        del scheduler.described["one-x"]
    else:
        scheduler.set_state("one-x", state)
    if error is not None:
        monkeypatch.setattr(scheduler, "describe", failing(error))
    idle_since = time.monotonic() - idle
    watcher = JobWatcher(runner, posted.append, SETTINGS, lambda: idle_since)
    watcher.watch(ONE)
    # Whatever was before: what is new is a change.
    watcher._changed_at -= 1e6
    assert watcher.describe(ONE) == seconds
    (message,) = posted
    assert (message.handle, message.error) == (ONE, str(error or ""))


def test_a_description_is_posted_again_after_a_failure(runner, scheduler, monkeypatch):
    posted: list[Any] = []
    watcher = JobWatcher(runner, posted.append, SETTINGS, time.monotonic)
    watcher.watch(ONE)
    for error in (SchedulerError("away"), NoAnswerError("late")):
        watcher.describe(ONE)
        with monkeypatch.context() as patched:
            patched.setattr(scheduler, "describe", failing(error))
            watcher.describe(ONE)
    watcher.describe(ONE)
    assert [message.error for message in posted] == ["", "away", "", "local_cwd: late", ""]


def test_there_is_a_pause_before_usage_is_measured_again(runner, scheduler, monkeypatch):
    monkeypatch.setattr(feed_module, "USAGE_INTERVAL_S", 3600.0)
    asked: list[str] = []
    monkeypatch.setattr(scheduler, "capabilities", Capabilities(usage=True))
    monkeypatch.setattr(scheduler, "usage", asked.append)
    watcher = UsageWatcher(runner, lambda _: None, SETTINGS.timeout_seconds)
    watcher.start()
    try:
        watcher.watch(ONE)
        wait_until(lambda: asked, "the first job")
        watcher.watch("local_cwd://torchx/two-x")
        wait_until(lambda: "two-x" in asked, "the second job")
        assert asked == ["one-x", "two-x"]
    finally:
        watcher.end()


@pytest.fixture
def feed(runner: Runner) -> Iterator[tuple[Feed, list[Any]]]:
    posted: list[Any] = []
    feed = Feed(runner, posted.append, SETTINGS)
    feed.start([])
    yield feed, posted
    feed.end()


def test_how_far_jobs_are_is_read_once_somebody_looks(feed):
    watching, posted = feed
    watching.watch_progress((), ())
    assert watching._progress_watcher is None
    series = Series("loss")
    series.add(7, 0.5, printed="0.50")
    save_series(ONE, {"loss": series}, {"step": 7, "total": 70})
    watching.watch_progress((), [ONE])
    wait_until(lambda: posted, "how far it came")
    assert posted[0].progress == {ONE: RowProgress(7, 0.1, None, "loss", "0.50")}


def test_all_its_threads_end(runner: Runner) -> None:
    others = set(threading.enumerate())
    watching = Feed(runner, lambda message: None, SETTINGS)
    watching.start(["local_cwd"])
    watching.watch(ONE)
    watching.watch_usage(ONE)
    watching.watch_progress([ONE])
    assert len(set(threading.enumerate()) - others) >= 4
    watching.end()
    wait_until(lambda: set(threading.enumerate()) <= others, "the end of its threads")


def test_a_job_that_has_ended_is_asked_about_again_by_a_key(scheduler, feed):
    scheduler.set_state("one-x", AppState.FAILED)
    watching, posted = feed
    watching.watch(ONE)
    wait_until(lambda: len(posted) == 1, "the job")
    watching.refresh()
    wait_until(lambda: len(posted) == 2, "the job again")
    # Who comes back after a long time sees what is.
    watching._last_key_at -= 3600
    assert watching.seconds_without_keys >= 3600
    watching.touch()
    wait_until(lambda: len(posted) == 3, "the job once more")
    assert watching.seconds_without_keys < 3600


def test_what_a_backend_fails_of_is_noted_once_until_it_answers(runner, scheduler, monkeypatch, caplog):
    posted: list[Any] = []
    poller = BackendPoller(runner, "local_cwd", posted.append, SETTINGS)
    words = "local_cwd did not answer: the server is away"
    for _ in range(2):
        with monkeypatch.context() as patched:
            patched.setattr(scheduler, "list", failing(SchedulerError("the server is away")))
            seconds = [poller.tick() for _ in range(3)]
        # Each wait is longer than the one before.
        assert seconds == sorted(seconds)
        poller.tick()
    assert caplog.text.count(words) == 2
    assert [type(message).__name__ for message in posted] == [*["BackendFailed"] * 3, "JobsChanged"] * 2


def test_jobs_are_shown_although_the_journal_cannot_be_written(runner, monkeypatch, caplog):
    app = AppDef("one", [Role("r", "", entrypoint="x")])
    runner.journal.record_intent(app, "local_cwd", "torchx", {}, expected_app_id="one-x")
    monkeypatch.setattr(poller_module, "JOURNAL_TIMEOUT_S", NEVER)
    monkeypatch.setattr(runner, "remember", failing(OSError("the disk is full")))
    posted: list[Any] = []
    BackendPoller(runner, "local_cwd", posted.append, SETTINGS).tick()
    assert [type(message).__name__ for message in posted] == ["JobsChanged"]
    assert "the journal cannot be written: the disk is full" in caplog.text


def test_a_job_that_cannot_be_shown_is_noted_once(runner, scheduler, caplog):
    scheduler.apps["bad"] = replace(scheduler.apps["one-x"], app_id="bad", image=3)
    poller = BackendPoller(runner, "local_cwd", lambda _: None, SETTINGS)
    for _ in range(3):
        poller.tick()
    assert caplog.text.count("a job that cannot be shown") == 1


def test_where_the_logs_of_a_job_are_is_asked_once(runner, scheduler, described, monkeypatch):
    watcher = ProgressWatcher(runner, lambda _: None, MetricsSettings())
    handles = [f"local_cwd://torchx/{name}" for name in scheduler.apps]
    for _ in range(2):
        for handle in handles:
            found = watcher.look(handle)
            assert found is not None
            assert (found.step, found.fraction, found.metric, found.value) == (5, 0.5, "loss", "1.5")
    assert described == ["one-x", "two-x", "three-x"]
    # Not more of them are kept than this.
    monkeypatch.setattr(progress_module, "MAX_CACHED_JOBS", 3)
    scheduler.add("four-x", AppState.RUNNING, 60)
    scheduler.write_log("four-x", 0, [(10, "o", "step 1/10\nstep 2/10\n")])
    four = watcher.look("local_cwd://torchx/four-x")
    assert four is not None
    assert (four.step, four.metric, four.value, four.stalled, four.stalled_seconds) == (2, "", "", "", 0.0)
    watcher.look(handles[0])
    assert described[3:] == ["four-x", "one-x"]


def test_a_server_is_asked_for_one_job_in_some_seconds(runner, scheduler, described, monkeypatch):
    monkeypatch.setattr(progress_module, "SERVER_PAUSE_S", 3600.0)
    watcher = ProgressWatcher(runner, lambda _: None, MetricsSettings())
    assert watcher.look("kubernetes://torchx/one-x")
    assert watcher.look("kubernetes://torchx/two-x") is None
    assert watcher.look("kubernetes://torchx/one-x")
    assert described == ["one-x"]
    monkeypatch.setattr(progress_module, "SERVER_PAUSE_S", 0.0)
    assert watcher.look("kubernetes://torchx/two-x")


def test_a_job_that_its_backend_does_not_know_yet_is_asked_about_again(runner, scheduler, described):
    found = scheduler.described.pop("one-x")
    watcher = ProgressWatcher(runner, lambda _: None, MetricsSettings())
    assert watcher.look(ONE) is None
    scheduler.described["one-x"] = found
    assert watcher.look(ONE)
    assert described == ["one-x", "one-x"]


def test_a_backend_without_log_files_is_not_asked(runner, scheduler, described):
    scheduler.capabilities = Capabilities()
    assert ProgressWatcher(runner, lambda _: None, MetricsSettings()).look(ONE) is None
    assert described == []


def test_the_thread_looks_at_what_is_on_the_screen(runner, scheduler):
    posted: list[Any] = []
    watcher = ProgressWatcher(runner, posted.append, MetricsSettings())
    watcher.start()
    try:
        watcher.watch([ONE, "local_cwd://torchx/gone"], ["local_cwd://torchx/two-x"])
        wait_until(lambda: posted, "how far it is")
        assert list(posted[0].progress) == [ONE, "local_cwd://torchx/two-x"]
    finally:
        watcher.end()
    watcher.join(PATIENCE)
    assert watcher not in threading.enumerate()


def test_the_end_of_a_log_is_read_when_its_job_ends(runner, scheduler, feed):
    """Whatever is on the screen, and whatever was kept of the job while it ran."""
    watching, posted = feed
    series = Series("loss")
    series.add(5, 1.5, printed="1.5")
    save_series(ONE, {"loss": series}, {"step": 5, "total": 10})
    lines = "".join(f"step {step}/10 loss: 0.{step}\n" for step in range(1, 11))
    scheduler.write_log("one-x", 0, [(10, "o", lines)])
    scheduler.set_state("one-x", AppState.SUCCEEDED)
    watching.read_ends([ONE])
    wait_until(lambda: posted, "how far it came")
    assert posted[0].progress == {ONE: RowProgress(10, 1.0, None, "loss", "0.10")}
