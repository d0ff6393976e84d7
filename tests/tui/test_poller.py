"""The thread that asks a backend: whatever the backend does, rows stay, others go on, and it comes back by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.canned import CannedScheduler
from support.waiting import NEVER, PATIENCE, wait_until

import torchx_tui.tui.watch.poller as poller_module
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.history.launch_record import LaunchOrigin
from torchx_tui.backends.runner import Runner
from torchx_tui.settings.config import WatchSettings
from torchx_tui.specs import AppDef, AppState, Role, calls
from torchx_tui.tui.messages import BackendFailed, JobDescribed, JobsChanged
from torchx_tui.tui.rows import JobRow
from torchx_tui.tui.watch.feed import Feed
from torchx_tui.tui.watch.poller import BackendPoller
from torchx_tui.tui.watch.schedule import tick_seconds
from torchx_tui.tui.watch.store import JobStore

SETTINGS = WatchSettings(interval_seconds=0.02, slowest_seconds=0.1, timeout_seconds=0.6)


class Listener:
    """Collects messages, and waits for one."""

    def __init__(self) -> None:
        self.messages: list = []
        self._event = threading.Event()

    def __call__(self, message) -> None:
        self.messages.append(message)
        self._event.set()

    def wait(self, test: Callable[[object], object], since: int = 0):
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self._event.clear()
            for message in self.messages[since:]:
                if test(message):
                    return message
            self._event.wait(0.2)
        raise AssertionError(f"it did not come: {self.messages[-5:]}")

    def rows(self) -> list[JobRow]:
        rows: dict[str, JobRow] = {}
        for message in self.messages:
            if isinstance(message, JobsChanged):
                rows.update(message.changed)
        return list(rows.values())

    def states(self) -> dict[str, AppState]:
        rows: dict[str, AppState] = {}
        for message in self.messages:
            if isinstance(message, JobsChanged):
                rows.update({row.app_id: row.state for row in message.changed.values()})
                for handle in message.removed:
                    rows.pop(handle.rpartition("/")[2], None)
        return rows

    def wait_for_states(self, wanted: dict[str, AppState]) -> None:
        self.wait(lambda _: self.states() == wanted)


class Moody(CannedScheduler):
    """Answers as `mood` says."""

    mood: Callable[[], Any] | None = None
    asked = 0

    def list(self, cfg=None):
        self.asked += 1
        if self.mood is not None:
            answer = self.mood()
            if answer is not None:
                return answer
        return super().list(cfg)


class Clock:
    """The time by which calls take too long: it stands still until a test says otherwise."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked = 0

    def monotonic(self) -> float:
        self.asked += 1
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(calls, "time", made)
    return made


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


@pytest.fixture
def scheduler() -> Moody:
    scheduler = Moody()
    scheduler.add("one-x", AppState.RUNNING, 60)
    scheduler.add("two-x", AppState.PENDING, 60)
    return scheduler


@pytest.fixture
def start(journal: Journal) -> Iterator[Callable[..., tuple[BackendPoller, Listener]]]:
    started: list[BackendPoller] = []

    def begin(scheduler: CannedScheduler, settings: WatchSettings = SETTINGS) -> tuple[BackendPoller, Listener]:
        runner = Runner(journal=journal, schedulers={"local_cwd": scheduler})
        listener = Listener()
        poller = BackendPoller(runner, "local_cwd", listener, settings)
        started.append(poller)
        poller.start()
        return poller, listener

    yield begin
    for poller in started:
        poller.end()
    for poller in started:
        poller.join(PATIENCE)
        assert not poller.is_alive()


BOTH = {"one-x": AppState.RUNNING, "two-x": AppState.PENDING}


def failed(message: object) -> bool:
    return isinstance(message, BackendFailed)


def hang(scheduler: Moody, clock: Clock) -> threading.Event:
    """Let one question hang, and wait until its answer is awaited; return what releases it."""
    hanging, released = threading.Event(), threading.Event()

    def wait() -> None:
        if not hanging.is_set():
            hanging.set()
            released.wait(PATIENCE)

    scheduler.mood = wait
    assert hanging.wait(PATIENCE)
    # When it began, and how long it has taken.
    asked = clock.asked
    wait_until(lambda: clock.asked > asked + 1, "that it is waited for")
    return released


def test_only_what_changed_is_posted(scheduler, start, monkeypatch):
    made, row_of = [], poller_module.row_of
    monkeypatch.setattr(poller_module, "row_of", lambda app, record: made.append(app.app_id) or row_of(app, record))
    _, listener = start(scheduler)
    listener.wait_for_states(BOTH)
    scheduler.set_state("two-x", AppState.RUNNING)
    listener.wait_for_states({**BOTH, "two-x": AppState.RUNNING})
    first, second = (message for message in listener.messages if isinstance(message, JobsChanged))
    assert len(first.changed) == 2
    assert [row.app_id for row in second.changed.values()] == ["two-x"]
    asked = scheduler.asked
    while scheduler.asked < asked + 5:
        time.sleep(0.01)
    assert listener.messages[-1] is second
    # Nor is anything else made of it again.
    assert sorted(made) == ["one-x", "two-x", "two-x"]
    del scheduler.apps["one-x"]
    listener.wait_for_states({"two-x": AppState.RUNNING})


def test_a_backend_that_hangs_is_said_once_asked_anew_and_comes_back(scheduler, start, clock):
    _, listener = start(scheduler)
    listener.wait_for_states(BOTH)
    released = hang(scheduler, clock)
    clock.now = 0.35
    said = listener.wait(failed)
    assert "still waiting" in said.reason
    assert said.next_try == 0
    before = time.time()
    clock.now = 0.65
    said = listener.wait(lambda message: failed(message) and "no answer within" in message.reason)
    assert said.next_try > before
    assert listener.states() == BOTH
    scheduler.set_state("one-x", AppState.SUCCEEDED)
    # The hanging question never comes back; another one does.
    listener.wait_for_states({**BOTH, "one-x": AppState.SUCCEEDED})
    released.set()


def test_what_a_slow_answer_comes_to_is_news_and_the_next_tries_are_not():
    jobs = JobStore()
    assert jobs.fail(BackendFailed("local_cwd", "no answer for 1 s, still waiting", 5.0, 0.0))
    assert jobs.fail(BackendFailed("local_cwd", "did not answer with a list", 5.0, 9.0))
    assert not jobs.fail(BackendFailed("local_cwd", "connection refused", 5.0, 12.0))
    assert jobs.outages["local_cwd"].reason == "connection refused"


def test_a_slow_answer_is_taken(scheduler, start, clock):
    _, listener = start(scheduler)
    listener.wait_for_states(BOTH)
    released = hang(scheduler, clock)
    scheduler.set_state("two-x", AppState.FAILED)
    clock.now = 0.35
    listener.wait(failed)
    released.set()
    listener.wait_for_states({**BOTH, "two-x": AppState.FAILED})
    assert not any("within" in message.reason for message in listener.messages if failed(message))


@pytest.mark.parametrize("answer", [lambda: "<html>", lambda: 7, lambda: {"items": []}, lambda: ["<html>"]])
def test_garbage_empties_no_rows(scheduler, start, answer):
    _, listener = start(scheduler)
    listener.wait_for_states(BOTH)
    scheduler.mood = answer
    assert listener.wait(failed).reason
    assert listener.states() == BOTH
    scheduler.mood = None
    listener.wait(lambda message: isinstance(message, JobsChanged) and not message.changed)


def test_one_job_that_cannot_be_read_hides_no_other(scheduler, start, caplog):
    scheduler.apps["bad"] = replace(scheduler.apps["one-x"], app_id="bad", state=None, image=3)  # type: ignore[arg-type]
    _, listener = start(scheduler)
    listener.wait_for_states(BOTH)
    assert "a job that cannot be shown" in caplog.text


def test_a_backend_that_cannot_be_looked_at_is_asked_all_the_same(scheduler, start, monkeypatch):
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    monkeypatch.setattr(scheduler, "check", lambda: 1 / 0)
    poller, listener = start(scheduler)
    listener.wait_for_states(BOTH)
    poller.end()
    poller.join(PATIENCE)
    assert raised == []


def test_errors_are_backed_off_and_the_states_are_right_afterwards(scheduler, start):
    chance = iter([True, False] * 1000)

    def flaky():
        if next(chance):
            raise ConnectionResetError("connection reset in the middle of an answer")

    scheduler.mood = flaky
    _, listener = start(scheduler)
    assert "connection reset" in listener.wait(failed).reason
    listener.wait_for_states(BOTH)
    scheduler.mood = None
    scheduler.set_state("one-x", AppState.FAILED)
    listener.wait_for_states({**BOTH, "one-x": AppState.FAILED})


def test_each_state_is_written_into_the_journal_once(scheduler, start, journal, monkeypatch):
    record = journal.record_intent(
        AppDef("one", [Role("r", "", entrypoint="x")]), "local_cwd", "torchx", {}, expected_app_id="one-x"
    )
    # What the journal tells is waited for.
    monkeypatch.setattr(poller_module, "JOURNAL_TIMEOUT_S", NEVER)
    written = []
    real = Runner.remember
    monkeypatch.setattr(Runner, "remember", lambda *args: (written.append(args[1:]), real(*args)))
    _, listener = start(scheduler)
    listener.wait_for_states(BOTH)
    scheduler.set_state("one-x", AppState.SUCCEEDED)
    listener.wait_for_states({**BOTH, "one-x": AppState.SUCCEEDED})
    handle = "local_cwd://torchx/one-x"
    assert written == [(handle, AppState.RUNNING, ""), (handle, AppState.SUCCEEDED, "")]
    assert journal.find(record.handle).state == "SUCCEEDED"


def test_preemption_is_legal_and_life_after_the_end_is_noted(scheduler, start, caplog):
    _, listener = start(scheduler)
    listener.wait_for_states(BOTH)
    scheduler.set_state("one-x", AppState.PENDING)
    listener.wait_for_states({**BOTH, "one-x": AppState.PENDING})
    assert "says its backend" not in caplog.text
    scheduler.set_state("one-x", AppState.FAILED)
    listener.wait_for_states({**BOTH, "one-x": AppState.FAILED})
    scheduler.set_state("one-x", AppState.RUNNING)
    listener.wait_for_states(BOTH)
    assert "local_cwd://torchx/one-x was FAILED and is RUNNING now, says its backend" in caplog.text


def test_a_job_that_its_backend_does_not_know_yet_is_submitted(start, monkeypatch):
    monkeypatch.setattr(poller_module, "NEW_JOB_S", 1800.0)
    scheduler = Moody()
    scheduler.add("new-x", AppState.UNKNOWN, 0)
    scheduler.apps["new-x"].submitted_at = time.time()
    scheduler.add("old-x", AppState.UNKNOWN, 0)
    scheduler.apps["old-x"].submitted_at = time.time() - 3600
    _, listener = start(scheduler)
    listener.wait_for_states({"new-x": AppState.SUBMITTED, "old-x": AppState.UNKNOWN})


def test_a_backend_can_push_changes(scheduler, start):
    told: list[Callable[[], object]] = []
    ended = threading.Event()

    def subscribe(on_change):
        told.append(on_change)
        return ended.set

    scheduler.subscribe = subscribe
    poller, listener = start(scheduler, replace(SETTINGS, interval_seconds=1000, slowest_seconds=1000))
    listener.wait_for_states(BOTH)
    scheduler.set_state("two-x", AppState.RUNNING)
    told[0]()
    listener.wait_for_states({**BOTH, "two-x": AppState.RUNNING})
    poller.end()
    assert ended.wait(PATIENCE)


def test_a_backend_that_hangs_holds_up_no_description_of_another_ones_job(scheduler, journal):
    hanging = Moody()
    hanging.add("stuck-x", AppState.RUNNING, 5)
    released = threading.Event()
    hanging.describe = lambda app_id: (released.wait(PATIENCE), None)[1]
    runner = Runner(journal=journal, schedulers={"local_cwd": scheduler, "local_docker": hanging})
    listener = Listener()
    feed = Feed(runner, listener, replace(SETTINGS, timeout_seconds=1000))
    feed.start(["local_cwd", "local_docker"])
    try:
        listener.wait(lambda message: isinstance(message, JobsChanged) and message.scheduler == "local_docker")
        feed.watch("local_docker://torchx/stuck-x")
        feed.watch("local_cwd://torchx/one-x")
        described = listener.wait(lambda message: isinstance(message, JobDescribed))
        assert described.handle == "local_cwd://torchx/one-x"
        assert described.described.state is AppState.RUNNING
    finally:
        released.set()
        feed.end()


def test_a_description_that_is_asked_for_again_meanwhile_is_no_failure(scheduler, journal):
    runner = Runner(journal=journal, schedulers={"local_cwd": scheduler})
    describe, asked, go_on = scheduler.describe, threading.Event(), threading.Event()

    def slow(app_id):
        asked.set()
        assert go_on.wait(PATIENCE)
        return describe(app_id)

    scheduler.describe = slow
    listener = Listener()
    feed = Feed(runner, listener, replace(SETTINGS, timeout_seconds=1000))
    feed.start([])
    try:
        feed.watch("local_cwd://torchx/one-x")
        assert asked.wait(PATIENCE)
        feed.refresh()
        # Longer than the thread takes to look whether its question is still wanted.
        assert not go_on.wait(0.5)
        go_on.set()
        posted = listener.wait(lambda message: isinstance(message, JobDescribed))
        assert (posted.error, posted.described is not None) == ("", True)
    finally:
        go_on.set()
        feed.end()


def test_a_description_that_fails_again_and_again_is_noted_once(scheduler, journal, monkeypatch, caplog):
    runner = Runner(journal=journal, schedulers={"local_cwd": scheduler})
    monkeypatch.setattr(scheduler, "describe", lambda _: 1 / 0)
    listener = Listener()
    feed = Feed(runner, listener, SETTINGS)
    feed.start([])
    try:
        feed.watch("local_cwd://torchx/one-x")
        listener.wait(lambda _: sum(message.error == "division by zero" for message in listener.messages) > 2)
        assert caplog.text.count("describe of local_cwd://torchx/one-x: division by zero") == 1
    finally:
        feed.end()


def test_a_description_is_posted_once_until_it_differs(scheduler, journal):
    runner = Runner(journal=journal, schedulers={"local_cwd": scheduler})
    asked = threading.Semaphore(0)
    describe = scheduler.describe

    def counting(app_id):
        asked.release()
        # The very same object each time, as a scheduler may keep it.
        found = scheduler.described["one-x"]
        found.msg = words[0]
        return describe(app_id)

    words = ["waits"]
    scheduler.describe = counting
    listener = Listener()
    feed = Feed(runner, listener, SETTINGS)
    feed.start([])
    try:
        feed.watch("local_cwd://torchx/one-x")
        for _ in range(10):
            assert asked.acquire(timeout=PATIENCE)
        posted = [message for message in listener.messages if isinstance(message, JobDescribed)]
        assert len(posted) == 1
        words[0] = "runs"
        listener.wait(lambda message: isinstance(message, JobDescribed) and message is not posted[0])
        # Who looks anew has not seen it.
        before = len(listener.messages)
        feed.watch("local_cwd://torchx/one-x")
        listener.wait(lambda message: isinstance(message, JobDescribed), since=before)
    finally:
        feed.end()


def test_a_screen_that_begins_to_look_as_the_pause_ends_is_told(scheduler, journal):
    runner = Runner(journal=journal, schedulers={"local_cwd": scheduler})
    listener = Listener()
    feed = Feed(runner, listener, SETTINGS)
    looks = iter([True])

    class Wake(threading.Event):
        def wait(self, timeout=None):
            woken = super().wait(timeout)
            if not woken and next(looks, False):
                feed.watch("local_cwd://torchx/one-x")
            return woken

    feed._watcher._wake = Wake()
    feed.start([])
    try:
        feed.watch("local_cwd://torchx/one-x")
        first = listener.wait(lambda message: isinstance(message, JobDescribed))
        listener.wait(lambda message: isinstance(message, JobDescribed) and message is not first)
    finally:
        feed.end()


def test_rows_do_not_wait_for_a_long_history(scheduler, journal, start, monkeypatch):
    app = AppDef("train", [Role("r", "", entrypoint="sh")])
    for name in ("one-x", "two-x"):
        Journal(journal.folder).record_intent(
            app, "local_cwd", "torchx", {}, origin=LaunchOrigin("demo.train"), expected_app_id=name
        )
    monkeypatch.setattr(poller_module, "JOURNAL_TIMEOUT_S", 0.0)
    _, listener = start(scheduler, replace(SETTINGS, interval_seconds=1000, slowest_seconds=1000))
    listener.wait_for_states(BOTH)
    assert {row.component for row in listener.rows()} == {""}
    monkeypatch.setattr(poller_module, "JOURNAL_TIMEOUT_S", NEVER)
    # Without being asked, long before the next tick.
    listener.wait(lambda _: {row.component for row in listener.rows()} == {"demo.train"})


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
def test_it_is_asked_less_often_while_nobody_looks_or_nothing_runs(journal, state, idle, seconds):
    scheduler = Moody()
    scheduler.add("one-x", state, 60)
    runner = Runner(journal=journal, schedulers={"local_cwd": scheduler})
    settings = WatchSettings(interval_seconds=100, slowest_seconds=10_000, timeout_seconds=1000)
    idle_since = time.monotonic() - idle
    poller = BackendPoller(runner, "local_cwd", Listener(), settings, lambda: idle_since)
    # A fifth longer or shorter.
    assert seconds * 0.8 <= poller.tick() <= seconds * 1.2
