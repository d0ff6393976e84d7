"""A backend that is away is asked again: until it answers or nobody wants it; other errors end that at once."""

from __future__ import annotations

import threading
import time

import pytest
from support.canned import CannedScheduler
from support.waiting import PATIENCE

from torchx_tui.backends import registry
from torchx_tui.backends.shared import changes
from torchx_tui.backends.shared.outage import until_answered
from torchx_tui.backends.types import LogQuery
from torchx_tui.specs import AppState, BackendUnavailableError, NotAllowedError

FOLLOW = LogQuery("app", "r", follow=True)

HANDLE = "local_cwd://torchx/x-1"
AWAY = BackendUnavailableError("nothing listens")


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(changes, "FIRST_RETRY_S", 0.01)
    monkeypatch.setattr(changes, "LONGEST_RETRY_S", 0.02)


class Away(CannedScheduler):
    """Is away at the questions of the numbers in `away`, counted from 0; the job ends with the last answer."""

    def __init__(self):
        super().__init__()
        self.away: set[int] = set()
        self.asked = 0
        self.ends_at = 0
        self.add("x-1", AppState.RUNNING, 60)

    def describe(self, app_id):
        self.error = AWAY if self.asked in self.away else None
        if self.asked >= self.ends_at and app_id in self.apps:
            self.set_state(app_id, AppState.SUCCEEDED)
        self.asked += 1
        return super().describe(app_id)


@pytest.fixture
def scheduler():
    return Away()


def test_wait_survives_every_outage_and_tells_each_once(runner, scheduler):
    scheduler.away, scheduler.ends_at = {0, 1, 2, 4, 5}, 5
    told = []
    status = runner.wait(HANDLE, 0.01, on_lost=lambda error: told.append(str(error)))
    assert status is not None
    assert status.state is AppState.SUCCEEDED
    assert told == ["nothing listens"] * 2
    assert scheduler.asked == 7


def test_a_wait_that_is_limited_ends_while_the_backend_is_away(runner, scheduler):
    scheduler.away, scheduler.ends_at = set(range(1, 10_000)), 10_000
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"has not ended within 0\.4 s: it was RUNNING last; nothing listens"):
        runner.wait(HANDLE, 0.01, timeout=0.4)
    assert time.monotonic() - began < PATIENCE
    # An answer of before is told with it.
    with pytest.raises(TimeoutError, match=r"within 0\.1 s: nothing listens"):
        runner.wait(HANDLE, 0.01, timeout=0.1)


def test_what_will_not_go_away_ends_a_wait_at_once(runner, scheduler):
    def refuses(app_id):
        scheduler.asked += 1
        raise NotAllowedError("you may not")

    scheduler.describe = refuses
    with pytest.raises(NotAllowedError):
        runner.wait(HANDLE)
    assert scheduler.asked == 1


def test_a_scheduler_that_is_not_set_up_is_asked_once(runner, scheduler, monkeypatch):
    monkeypatch.setattr(registry, "is_set_up", lambda name: False)
    scheduler.away = {0}
    with pytest.raises(BackendUnavailableError):
        runner.wait(HANDLE)
    assert scheduler.asked == 1


def test_a_scheduler_that_cannot_be_loaded_is_asked_once(runner, monkeypatch):
    asked = []

    def broken(name, *_, **__):
        asked.append(name)
        assert asked == ["slurm"]
        raise BackendUnavailableError("its package is not there")

    monkeypatch.setattr(registry, "is_set_up", lambda name: True)
    monkeypatch.setattr(registry, "create_scheduler", broken)
    with pytest.raises(BackendUnavailableError):
        runner.wait("slurm://torchx/1")


@pytest.mark.parametrize(
    ("interval", "timeout", "ends_at", "pauses"),
    [
        (None, None, 4, [0.2, 0.2, 0.2, 0.2]),
        (1.5, None, 40, [1.5]),
        (None, None, 70, [10.0]),
        (None, 0.5, 70, [0.2, 0.2, 0.1]),
    ],
)
def test_a_short_job_is_asked_for_often_and_a_long_one_seldom(
    runner,
    scheduler,
    monkeypatch,
    interval,
    timeout,
    ends_at,
    pauses,
):
    now, slept = 1000.0, []
    waiting, really_sleep = threading.get_ident(), time.sleep

    def sleep(seconds):
        nonlocal now
        if threading.get_ident() != waiting:
            really_sleep(seconds)
        else:
            slept.append(seconds)
            now += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(time, "sleep", sleep)
    scheduler.ends_at = ends_at
    given = () if interval is None else (interval,)
    if timeout is None:
        assert runner.wait(HANDLE, *given) is not None
    else:
        with pytest.raises(TimeoutError, match=r"has not ended within 0\.5 s: RUNNING"):
            runner.wait(HANDLE, *given, timeout=timeout)
    assert slept[-len(pauses) :] == pytest.approx(pauses)
    assert slept == sorted(slept, reverse=timeout is not None)
    # One that was waited for long is asked for ten times in the time that it takes twice as long.
    assert all(pause <= max(0.2, 0.1 * sum(slept[:number])) + 1e-9 for number, pause in enumerate(slept))


def test_stopping_ends_the_waiting():
    stop = threading.Event()

    def ask():
        raise AWAY

    with pytest.raises(BackendUnavailableError):
        until_answered(ask, stop, on_lost=lambda error: stop.set())
