"""A query of an unavailable backend is repeated until it is answered or cancelled; other errors end it at once."""

import threading
import time
from contextlib import nullcontext
from unittest.mock import Mock

import pytest
from backend.tables import TABLES
from support.canned import CannedScheduler
from support.waiting import PATIENCE

from torchx_tui.backends import registry
from torchx_tui.backends.shared import changes
from torchx_tui.backends.shared.outage import until_answered
from torchx_tui.specs.errors import BackendUnavailableError, NotAllowedError
from torchx_tui.specs.status import AppState

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
        self.away = set()
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


def test_wait_survives_outages_and_reports_each_once(runner, scheduler):
    scheduler.away, scheduler.ends_at = {0, 1, 2, 4, 5}, 5
    reports = []
    status = runner.job(HANDLE).wait(0.01, on_lost=lambda error: reports.append(str(error)))
    assert status.state is AppState.SUCCEEDED
    assert reports == ["nothing listens"] * 2
    assert scheduler.asked == 7


def test_a_timeout_ends_a_wait_during_an_outage(runner, scheduler):
    scheduler.away, scheduler.ends_at = set(range(1, 10_000)), 10_000
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"has not ended within 0\.4 s: it was RUNNING last; nothing listens"):
        runner.job(HANDLE).wait(0.01, timeout=0.4)
    assert time.monotonic() - began < PATIENCE
    # The message has the last answer, if there was one.
    with pytest.raises(TimeoutError, match=r"within 0\.1 s: nothing listens"):
        runner.job(HANDLE).wait(0.01, timeout=0.1)


@pytest.mark.parametrize(("is_set_up", "error"), [(True, NotAllowedError), (False, BackendUnavailableError)])
def test_a_permanent_error_ends_a_wait(runner, scheduler, monkeypatch, is_set_up, error):
    monkeypatch.setattr(registry, "is_set_up", lambda name: is_set_up)
    scheduler.describe = Mock(side_effect=error("no"))
    with pytest.raises(error):
        runner.job(HANDLE).wait()
    scheduler.describe.assert_called_once()


def test_a_scheduler_that_cannot_be_loaded_is_tried_once(runner, monkeypatch):
    create = Mock(side_effect=BackendUnavailableError("its package is not there"))
    monkeypatch.setattr(registry, "is_set_up", lambda name: True)
    monkeypatch.setattr(registry, "create_scheduler", create)
    with pytest.raises(BackendUnavailableError):
        runner.job("slurm://torchx/1").wait()
    create.assert_called_once()


@pytest.mark.parametrize(("interval", "timeout", "ends_at", "pauses"), TABLES["outage"]["pauses"])
def test_long_jobs_are_asked_for_less_often(runner, scheduler, monkeypatch, interval, timeout, ends_at, pauses):
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
    with pytest.raises(TimeoutError, match=r"has not ended within 0\.5 s: RUNNING") if timeout else nullcontext():
        assert runner.job(HANDLE).wait(*interval, timeout=timeout or None) is not None
    assert slept[-len(pauses) :] == pytest.approx(pauses)
    assert slept == sorted(slept, reverse=timeout > 0)
    # While a job gets twice as old it is asked for about ten times.
    assert all(pause <= max(0.2, 0.1 * sum(slept[:number])) + 1e-9 for number, pause in enumerate(slept))


def test_stopping_ends_the_waiting():
    stop = threading.Event()
    with pytest.raises(BackendUnavailableError):
        until_answered(Mock(side_effect=AWAY), stop, on_lost=lambda error: stop.set())
