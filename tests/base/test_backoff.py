from __future__ import annotations

import threading
import time

import pytest

from torchx_tui.base import backoff
from torchx_tui.base.backoff import Backoff, jittered


@pytest.fixture
def without_jitter(monkeypatch):
    monkeypatch.setattr(backoff, "jittered", lambda seconds: seconds)


class RecordingEvent(threading.Event):
    """An event that notes how long it was waited for, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout)
        return self.is_set()


@pytest.mark.usefixtures("without_jitter")
def test_waits_double_until_a_reset():
    waits = Backoff(0.5, 3.0)
    assert [waits.next() for _ in range(5)] == [0.5, 1.0, 2.0, 3.0, 3.0]
    waits.reset()
    assert [waits.next() for _ in range(2)] == [0.5, 1.0]


def test_each_wait_is_jittered_by_a_fifth_also_the_longest():
    firsts = {Backoff(1.0, 8.0).next() for _ in range(200)}
    longest = Backoff(8.0, 8.0)
    longests = {longest.next() for _ in range(200)}
    assert len(firsts) > 100
    assert len(longests) > 100
    assert all(0.8 <= seconds <= 1.2 for seconds in firsts)
    assert all(6.4 <= seconds <= 9.6 for seconds in longests)
    assert 0.8 <= jittered(1.0) <= 1.2


def test_many_failures_do_not_overflow():
    waits = Backoff(1.0, 30.0)
    assert max(waits.next() for _ in range(5000)) <= 36.0


@pytest.mark.usefixtures("without_jitter")
def test_wait_keeps_to_its_limit():
    waits, event = Backoff(1.0, 8.0), RecordingEvent()
    assert not any([waits.wait(event), waits.wait(event, limit=0.3), waits.wait(event, limit=-1.0), waits.wait(event)])
    # What a limit cut short counts as a wait: the next one doubles all the same.
    assert event.waits == [1.0, 0.3, 0.0, 8.0]


def test_a_wait_ends_when_its_event_is_set():
    event = threading.Event()
    threading.Timer(0.05, event.set).start()
    began = time.monotonic()
    assert Backoff(60.0, 60.0).wait(event)
    assert time.monotonic() - began < 30
