"""The threads that watch one job, or how far several are: when they ask again, and what they do not ask twice."""

import threading
import time
from dataclasses import replace
from typing import Any

import pytest
from support.canned import CannedScheduler
from support.waiting import NEVER, PATIENCE, wait_until

import torchx_tui.tui.watch.feed as feed_module
import torchx_tui.tui.watch.poller as poller_module
import torchx_tui.tui.watch.progress as progress_module
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.base.timeouts import NoAnswerError
from torchx_tui.diagnosis.metrics.series import Series
from torchx_tui.diagnosis.metrics.store import save_series
from torchx_tui.diagnosis.progress.activity import Activity
from torchx_tui.diagnosis.progress.tracker import Progress
from torchx_tui.settings.config import MetricsSettings, Settings, WatchSettings
from torchx_tui.specs.errors import NotAllowedError, SchedulerError
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState
from torchx_tui.tui.rows import RowProgress
from torchx_tui.tui.watch.feed import Feed, JobWatcher, UsageWatcher
from torchx_tui.tui.watch.poller import BackendPoller
from torchx_tui.tui.watch.progress import ProgressWatcher

SETTINGS = WatchSettings(interval_seconds=100, slowest_seconds=10_000, timeout_seconds=1000)
ONE, TWO = "local_cwd://torchx/one-x", "local_cwd://torchx/two-x"
AWAY = SchedulerError("the server is away")


@pytest.fixture
def scheduler(tmp_path):
    scheduler = CannedScheduler(logs=tmp_path / "logs")
    for name in ("one-x", "two-x", "three-x"):
        scheduler.add(name, AppState.RUNNING, 60)
        scheduler.write_log(name, 0, [(10, "o", "".join(f"step {step}/10 loss: 1.5\n" for step in range(1, 6)))])
    return scheduler


@pytest.fixture
def runner(scheduler, tmp_path):
    schedulers = dict.fromkeys(("local_cwd", "kubernetes"), scheduler)
    return Runner(journal=Journal(tmp_path / "journal"), schedulers=schedulers)


@pytest.fixture
def described(scheduler, monkeypatch):
    """Return the jobs that are asked about."""
    asked, describe = [], scheduler.describe
    monkeypatch.setattr(scheduler, "describe", lambda app_id: asked.append(app_id) or describe(app_id))
    return asked


@pytest.fixture
def posted():
    return []


@pytest.fixture
def watcher(runner, posted):
    """Give what describes a job, without its thread."""
    watcher = JobWatcher(runner, posted.append, SETTINGS, time.monotonic)
    watcher.watch(ONE)
    return watcher


@pytest.fixture
def progress(runner, posted):
    """Give what reads how far jobs are, without its thread."""
    return ProgressWatcher(runner, posted.append, MetricsSettings())


@pytest.fixture
def feed(runner, posted):
    feed = Feed(runner, posted.append, Settings(watch=SETTINGS))
    feed.start([])
    yield feed
    feed.end()


def failing(error):
    def fail(*_):
        raise error

    return fail


def keep(step, total, printed):
    """Keep the loss of a job, as the reader of its log does."""
    series = Series("loss")
    series.add(step, float(printed), printed=printed)
    save_series(ONE, {"loss": series}, {"step": step, "total": total})


@pytest.mark.parametrize(
    ("state", "error", "idle", "seconds"),
    [
        (AppState.RUNNING, None, 0, 50),
        (AppState.RUNNING, None, 3600, 250),
        # Nothing of it will change.
        (AppState.FAILED, None, 0, None),
        (None, None, 0, None),
        (AppState.RUNNING, AWAY, 0, 200),
        (AppState.RUNNING, NotAllowedError("not yours"), 0, 10_000),
    ],
)
def test_when_a_job_is_asked_about_again(runner, scheduler, posted, monkeypatch, state, error, idle, seconds):
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


def test_description_is_posted_until_it_fails_or_differs(watcher, scheduler, posted, monkeypatch, caplog):
    # The very same object each time, as a scheduler may keep it.
    for words in ("waits", "waits", "runs", "runs"):
        scheduler.described["one-x"].msg = words
        watcher.describe(ONE)
    assert [message.error for message in posted] == ["", ""]
    for error in (AWAY, NoAnswerError("late")):
        with monkeypatch.context() as patched:
            patched.setattr(scheduler, "describe", failing(error))
            watcher.describe(ONE)
            watcher.describe(ONE)
        watcher.describe(ONE)
    late = "local_cwd: late"
    assert [message.error for message in posted[2:]] == [str(AWAY), str(AWAY), "", late, late, ""]
    # Each failure is noted once.
    assert caplog.text.count(f"describe of {ONE}: {AWAY}") == 1


def test_hanging_backend_holds_up_no_other_description(feed, scheduler, posted, hold):
    hold(scheduler, "describe", lambda app_id: app_id != "one-x")
    feed.watch("kubernetes://torchx/two-x")
    feed.watch(ONE)
    wait_until(lambda: posted, "the other job")
    assert (posted[0].handle, posted[0].described.state) == (ONE, AppState.RUNNING)


def test_description_asked_for_again_meanwhile_is_no_failure(feed, scheduler, posted, hold):
    held = hold(scheduler, "describe")
    feed.watch(ONE)
    assert held.begun.wait(PATIENCE)
    feed.refresh()
    # Longer than the thread takes to look whether its question is still wanted.
    assert not held.go.wait(0.5)
    held.go.set()
    wait_until(lambda: posted, "the description")
    assert (posted[0].error, posted[0].described is not None) == ("", True)


def test_usage_is_measured_after_a_pause(runner, scheduler, monkeypatch):
    monkeypatch.setattr(feed_module, "USAGE_INTERVAL_S", 3600.0)
    asked = []
    monkeypatch.setattr(scheduler, "usage", asked.append, raising=False)
    watcher = UsageWatcher(runner, lambda _: None, SETTINGS.timeout_seconds)
    watcher.start()
    try:
        watcher.watch(ONE)
        wait_until(lambda: asked, "the first job")
        watcher.watch(TWO)
        wait_until(lambda: "two-x" in asked, "the second job")
        assert asked == ["one-x", "two-x"]
    finally:
        watcher.end()


def test_end_of_a_log_is_read_when_its_job_ends(scheduler, feed, posted):
    """Whatever is on the screen, and whatever was kept of the job while it ran."""
    keep(5, 10, "1.5")
    lines = "".join(f"step {step}/10 loss: 0.{step}\n" for step in range(1, 11))
    scheduler.write_log("one-x", 0, [(10, "o", lines)])
    scheduler.set_state("one-x", AppState.SUCCEEDED)
    feed.read_ends([ONE])
    wait_until(lambda: posted, "how far it came")
    assert posted[0].progress == {ONE: RowProgress(10, 1.0, None, "loss", "0.10")}


def test_ended_job_is_asked_about_again_by_a_key(scheduler, feed, posted):
    scheduler.set_state("one-x", AppState.FAILED)
    feed.watch(ONE)
    wait_until(lambda: len(posted) == 1, "the job")
    feed.refresh()
    wait_until(lambda: len(posted) == 2, "the job again")
    # Who comes back after a long time sees what is.
    feed._last_key_at -= 3600
    assert feed.seconds_without_keys >= 3600
    feed.touch()
    wait_until(lambda: len(posted) == 3, "the job once more")
    assert feed.seconds_without_keys < 3600


def test_failure_of_a_backend_is_noted_once_until_it_answers(runner, scheduler, posted, monkeypatch, caplog):
    poller = BackendPoller(runner, "local_cwd", posted.append, SETTINGS)
    for _ in range(2):
        with monkeypatch.context() as patched:
            patched.setattr(scheduler, "list", failing(AWAY))
            seconds = [poller.tick() for _ in range(3)]
        # Each wait is longer than the one before.
        assert seconds == sorted(seconds)
        poller.tick()
    assert caplog.text.count(f"local_cwd did not answer: {AWAY}") == 2
    assert [type(message).__name__ for message in posted] == [*["BackendFailed"] * 3, "JobsChanged"] * 2


def test_jobs_are_shown_although_the_journal_cannot_be_written(runner, posted, monkeypatch, caplog):
    app = AppDef("one", [Role("r", "", entrypoint="x")])
    runner.journal.record_intent(app, "local_cwd", "torchx", {}, expected_app_id="one-x")
    monkeypatch.setattr(poller_module, "JOURNAL_TIMEOUT_S", NEVER)
    monkeypatch.setattr(runner, "remember", failing(OSError("the disk is full")))
    BackendPoller(runner, "local_cwd", posted.append, SETTINGS).tick()
    assert [type(message).__name__ for message in posted] == ["JobsChanged"]
    assert "the journal cannot be written: the disk is full" in caplog.text


def test_job_that_cannot_be_shown_is_noted_once_and_hides_no_other(runner, scheduler, posted, caplog):
    shown = set(scheduler.apps)
    scheduler.apps["bad"] = replace(scheduler.apps["one-x"], app_id="bad", state=None, image=3)
    poller = BackendPoller(runner, "local_cwd", posted.append, SETTINGS)
    for _ in range(3):
        poller.tick()
    assert caplog.text.count("a job that cannot be shown") == 1
    assert {row.app_id for row in posted[0].changed.values()} == shown


def test_where_the_logs_of_a_job_are_is_asked_once(progress, scheduler, described, monkeypatch):
    handles = [f"local_cwd://torchx/{name}" for name in scheduler.apps]
    for handle in handles * 2:
        assert progress.look(handle) == RowProgress(5, 0.5, None, "loss", "1.5")
    assert described == ["one-x", "two-x", "three-x"]
    # Not more of them are kept than this.
    monkeypatch.setattr(progress_module, "MAX_CACHED_JOBS", 3)
    scheduler.add("four-x", AppState.RUNNING, 60)
    scheduler.write_log("four-x", 0, [(10, "o", "step 1/10\nstep 2/10\n")])
    assert progress.look("local_cwd://torchx/four-x") == RowProgress(2, 0.2, None, "", "")
    progress.look(handles[0])
    assert described[3:] == ["four-x", "one-x"]


@pytest.mark.parametrize(("is_read", "step"), [(True, 7), (False, 5)])
def test_table_shows_what_a_screen_has_read(runner, posted, is_read, step):
    activity = Activity(Progress(step=7, total=70), is_read=is_read)
    watcher = ProgressWatcher(runner, posted.append, MetricsSettings(), lambda _: activity)
    found = watcher.look(ONE)
    assert found is not None
    assert found.step == step


def test_followers_of_a_job_share_its_reader(runner, feed, posted):
    described, logs = feed.describe(ONE)
    activities = feed.activities
    for follower in ("card", "screen"):
        activities.follow(follower, ONE, described, logs)
    (reader,) = [thread for thread in threading.enumerate() if thread.name == "job-activity"]
    wait_until(lambda: activities.latest(ONE).progress.step == 5, "its last step")
    activities.leave("card")
    assert activities.latest(ONE) is not None
    activities.leave("screen")
    assert activities.latest(ONE) is None
    wait_until(lambda: not reader.is_alive(), "the end of the reader")


def test_server_is_asked_for_one_job_in_some_seconds(progress, described, monkeypatch):
    one, two = "kubernetes://torchx/one-x", "kubernetes://torchx/two-x"
    monkeypatch.setattr(progress_module, "SERVER_PAUSE_S", 3600.0)
    assert [bool(progress.look(handle)) for handle in (one, two, one)] == [True, False, True]
    assert described == ["one-x"]
    monkeypatch.setattr(progress_module, "SERVER_PAUSE_S", 0.0)
    assert progress.look(two)


def test_job_that_its_backend_does_not_know_yet_is_asked_about_again(progress, scheduler, described):
    found = scheduler.described.pop("one-x")
    assert progress.look(ONE) is None
    scheduler.described["one-x"] = found
    assert progress.look(ONE)
    assert described == ["one-x", "one-x"]


class WithoutFiles(CannedScheduler):
    log_files: Any = None


def test_backend_without_log_files_is_not_asked(progress, scheduler, described):
    scheduler.__class__ = WithoutFiles
    assert progress.look(ONE) is None
    assert described == []


def test_progress_of_what_is_on_the_screen_is_read(progress, posted):
    progress.start()
    progress.watch([ONE, "local_cwd://torchx/gone"], [TWO])
    wait_until(lambda: posted, "how far it is")
    assert list(posted[0].progress) == [ONE, TWO]
    progress.end()
    progress.join(PATIENCE)
    assert not progress.is_alive()
