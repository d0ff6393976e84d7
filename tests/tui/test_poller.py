"""The thread that asks a backend: whatever the backend does, rows stay, others go on, and it comes back by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.canned import CannedScheduler
from support.waiting import NEVER, PATIENCE, wait_until

import torchx_tui.tui.watch.poller as poller_module
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.runner import Runner
from torchx_tui.base import timeouts as calls
from torchx_tui.settings.config import WatchSettings
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState
from torchx_tui.tui.messages import BackendFailed, JobsChanged
from torchx_tui.tui.watch.poller import BackendPoller
from torchx_tui.tui.watch.schedule import tick_seconds
from torchx_tui.tui.watch.store import JobStore

SETTINGS = WatchSettings(interval_seconds=0.02, slowest_seconds=0.1, timeout_seconds=0.6)
# Asked once, unless something wakes it.
SELDOM = replace(SETTINGS, interval_seconds=1000, slowest_seconds=1000)
ONE = "local_cwd://torchx/one"
APP = AppDef("one", [Role("r", "", entrypoint="x")])


class Posted(list):
    """What a poller posts."""

    def of(self, kind):
        return [message for message in self if isinstance(message, kind)]

    def rows(self):
        """Return the rows of the table by now."""
        rows = {}
        for message in self.of(JobsChanged):
            rows.update(message.changed)
            for handle in message.removed:
                del rows[handle]
        return rows.values()

    def states(self):
        return {row.app_id: row.state.name for row in self.rows()}

    def wait_for(self, **states):
        wait_until(lambda: self.states() == states, f"{states}")


class Moody(CannedScheduler):
    """Answers as `mood` says."""

    mood: Callable[[], Any] = staticmethod(lambda: None)

    def list(self, cfg=None):
        answer = self.mood()
        return super().list(cfg) if answer is None else answer


class Clock:
    """The time by which calls take too long: it stands still until a test says otherwise."""

    now = 0.0
    asked = 0

    def monotonic(self):
        self.asked += 1
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(calls, "time", made)
    return made


@pytest.fixture
def scheduler():
    scheduler = Moody()
    scheduler.add("one", AppState.RUNNING, 60)
    scheduler.add("two", AppState.PENDING, 60)
    return scheduler


@pytest.fixture
def runner(scheduler, tmp_path):
    return Runner(journal=Journal(tmp_path / "journal"), schedulers={"local_cwd": scheduler})


@pytest.fixture
def posted():
    return Posted()


@pytest.fixture
def poller(runner, posted):
    """Give a poller without its thread."""
    return BackendPoller(runner, "local_cwd", posted.append, SETTINGS)


@pytest.fixture
def start(runner, posted):
    """Give what starts a poller, and waits for its first rows."""
    started = []

    def begin(settings=SETTINGS):
        poller = BackendPoller(runner, "local_cwd", posted.append, settings)
        started.append(poller)
        poller.start()
        posted.wait_for(one="RUNNING", two="PENDING")
        return poller

    yield begin
    for poller in started:
        poller.end()
        poller.join(PATIENCE)
        assert not poller.is_alive()


def hang(scheduler, clock):
    """Let one question hang, and wait until its answer is awaited; return what releases it."""
    hanging, released = threading.Event(), threading.Event()

    def wait():
        if not hanging.is_set():
            hanging.set()
            released.wait(PATIENCE)

    scheduler.mood = wait
    assert hanging.wait(PATIENCE)
    # When it began, and how long it has taken.
    asked = clock.asked
    wait_until(lambda: clock.asked > asked + 1, "that it is waited for")
    return released


def test_only_what_changed_is_posted(scheduler, poller, posted, monkeypatch):
    made, row_of = [], poller_module.row_of
    monkeypatch.setattr(poller_module, "row_of", lambda app, record: made.append(app.app_id) or row_of(app, record))
    poller.tick()
    scheduler.set_state("two", AppState.RUNNING)
    for _ in range(3):
        poller.tick()
    assert [[row.app_id for row in message.changed.values()] for message in posted] == [["one", "two"], ["two"]]
    # Nor is anything else made of it again.
    assert made == ["one", "two", "two"]
    del scheduler.apps["one"]
    poller.tick()
    assert (len(posted), posted.states()) == (3, {"two": "RUNNING"})


def test_hanging_backend_is_asked_anew(scheduler, start, posted, clock):
    start()
    released = hang(scheduler, clock)
    clock.now = 0.35
    wait_until(lambda: posted.of(BackendFailed), "that it is slow")
    before = time.time()
    clock.now = 0.65
    wait_until(lambda: len(posted.of(BackendFailed)) == 2, "that it does not answer")
    slow, failed = posted.of(BackendFailed)
    assert ("still waiting" in slow.reason, slow.next_try) == (True, 0)
    assert "no answer within" in failed.reason
    assert failed.next_try > before
    assert posted.states() == {"one": "RUNNING", "two": "PENDING"}
    scheduler.set_state("one", AppState.SUCCEEDED)
    # The hanging question never comes back; another one does.
    posted.wait_for(one="SUCCEEDED", two="PENDING")
    released.set()


def test_slow_answer_is_taken(scheduler, start, posted, clock):
    start()
    released = hang(scheduler, clock)
    scheduler.set_state("two", AppState.FAILED)
    clock.now = 0.35
    wait_until(lambda: posted.of(BackendFailed), "that it is slow")
    released.set()
    posted.wait_for(one="RUNNING", two="FAILED")
    assert len(posted.of(BackendFailed)) == 1


def test_failure_after_a_slow_answer_is_news():
    jobs = JobStore()
    assert jobs.fail(BackendFailed("local_cwd", "no answer for 1 s, still waiting", 5.0, 0.0))
    assert jobs.fail(BackendFailed("local_cwd", "did not answer with a list", 5.0, 9.0))
    assert not jobs.fail(BackendFailed("local_cwd", "connection refused", 5.0, 12.0))
    assert jobs.outages["local_cwd"].reason == "connection refused"


@pytest.mark.parametrize("answer", ["<html>", 7, {"items": []}, ["<html>"]])
def test_garbage_empties_no_rows(scheduler, poller, posted, answer):
    poller.tick()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scheduler, "mood", lambda: answer)
        poller.tick()
    assert posted[1].reason
    poller.tick()
    assert [type(message) for message in posted] == [JobsChanged, BackendFailed, JobsChanged]
    assert not posted[2].changed
    assert posted.states() == {"one": "RUNNING", "two": "PENDING"}


def test_failed_check_does_not_stop_the_poller(scheduler, start, monkeypatch):
    raised = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    monkeypatch.setattr(scheduler, "check", lambda: 1 / 0)
    poller = start()
    poller.end()
    poller.join(PATIENCE)
    assert raised == []


def test_state_is_written_into_the_journal_once(scheduler, runner, poller, monkeypatch):
    runner.journal.record_intent(APP, "local_cwd", "torchx", {}, expected_app_id="one")
    # What the journal tells is waited for.
    monkeypatch.setattr(poller_module, "JOURNAL_TIMEOUT_S", NEVER)
    written, remember = [], runner.remember
    monkeypatch.setattr(runner, "remember", lambda *args: (written.append(args), remember(*args)))
    for state in (AppState.RUNNING, AppState.SUCCEEDED):
        scheduler.set_state("one", state)
        poller.tick()
        poller.tick()
    assert written == [(ONE, AppState.RUNNING, ""), (ONE, AppState.SUCCEEDED, "")]
    assert runner.journal.find(ONE).state == "SUCCEEDED"


def test_life_after_the_end_is_noted(scheduler, poller, posted, caplog):
    for state in ("RUNNING", "PENDING", "FAILED"):
        scheduler.set_state("one", AppState[state])
        poller.tick()
        assert posted.states()["one"] == state
    assert "says its backend" not in caplog.text
    scheduler.set_state("one", AppState.RUNNING)
    poller.tick()
    assert posted.states()["one"] == "RUNNING"
    assert f"{ONE} was FAILED and is RUNNING now, says its backend" in caplog.text


def test_new_job_without_a_state_is_submitted(scheduler, poller, posted, monkeypatch):
    monkeypatch.setattr(poller_module, "NEW_JOB_S", 1800.0)
    for app_id, age in (("one", 0), ("two", 3600)):
        scheduler.add(app_id, AppState.UNKNOWN, 0)
        scheduler.apps[app_id].submitted_at = time.time() - age
    poller.tick()
    assert posted.states() == {"one": "SUBMITTED", "two": "UNKNOWN"}


def test_backend_can_push_changes(scheduler, start, posted):
    subscribed, ended = [], threading.Event()
    scheduler.subscribe = lambda on_change: subscribed.append(on_change) or ended.set
    poller = start(SELDOM)
    scheduler.set_state("two", AppState.RUNNING)
    subscribed[0]()
    posted.wait_for(one="RUNNING", two="RUNNING")
    poller.end()
    assert ended.wait(PATIENCE)


def test_rows_do_not_wait_for_a_long_history(runner, start, posted, monkeypatch):
    for name in ("one", "two"):
        Journal(runner.journal.folder).record_intent(
            APP, "local_cwd", "torchx", {}, origin=LaunchOrigin("demo.train"), expected_app_id=name
        )
    monkeypatch.setattr(poller_module, "JOURNAL_TIMEOUT_S", 0.0)
    start(SELDOM)
    assert {row.component for row in posted.rows()} == {""}
    monkeypatch.setattr(poller_module, "JOURNAL_TIMEOUT_S", NEVER)
    # Without being asked, long before the next tick.
    wait_until(lambda: {row.component for row in posted.rows()} == {"demo.train"}, "the components")


@pytest.mark.parametrize(
    ("active", "quiet", "unwatched", "seconds"),
    [
        (True, 0, 0, 1),
        (True, 3600, 60, 1),
        (True, 0, 600, 5),
        (True, 3600, 3600, 30),
        (False, 0, 0, 3),
        (False, 120, 0, 6),
        (False, 3600, 0, 30),
        (False, 1e9, 1e9, 30),
    ],
)
def test_how_often_a_backend_is_asked(active, quiet, unwatched, seconds):
    assert tick_seconds(active=active, quiet=quiet, unwatched=unwatched, fastest=1, slowest=30) == seconds


@pytest.mark.parametrize(
    ("state", "idle", "seconds"),
    [(AppState.RUNNING, 0, 100), (AppState.RUNNING, 3600, 500), (AppState.SUCCEEDED, 0, 300)],
)
def test_poller_asks_less_often_when_idle(scheduler, runner, state, idle, seconds):
    for app_id in ("one", "two"):
        scheduler.set_state(app_id, state)
    settings = WatchSettings(interval_seconds=100, slowest_seconds=10_000, timeout_seconds=1000)
    idle_since = time.monotonic() - idle
    poller = BackendPoller(runner, "local_cwd", lambda _: None, settings, lambda: idle_since)
    # A fifth longer or shorter.
    assert seconds * 0.8 <= poller.tick() <= seconds * 1.2
