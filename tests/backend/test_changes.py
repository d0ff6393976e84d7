"""Who is told of changes: once for a burst, for as long as they want, and whatever fails on the way."""

from __future__ import annotations

import threading

import pytest
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.backends.shared import changes
from torchx_tui.backends.shared.changes import Subscribers
from torchx_tui.specs.backoff import Backoff


class Listening:
    """Listens until it is closed, or until a test lets it fail."""

    def __init__(self, changed):
        self.changed = changed
        self.listens = 0
        self.closed = threading.Event()
        self.failures = 0
        self.going_on = threading.Event()

    def listen(self):
        self.listens += 1
        if self.failures:
            self.failures -= 1
            raise ConnectionError
        assert self.closed.wait(PATIENCE)

    def close(self):
        self.closed.set()


class World:
    """Subscribers, and everything that was made for them."""

    def __init__(self, failures=0):
        self.made: list[Listening] = []
        self._failures = failures
        self.subscribers = Subscribers("test-changes", self._make)

    def _make(self, changed):
        self.made.append(Listening(changed))
        self.made[-1].failures = self._failures
        return self.made[-1]

    def threads(self):
        return [thread for thread in threading.enumerate() if thread.name.startswith("test-changes")]


class Told:
    """Counts how often it was told."""

    def __init__(self):
        self.times = 0
        self.event = threading.Event()

    def __call__(self):
        self.times += 1
        self.event.set()

    def wait(self):
        assert self.event.wait(PATIENCE)
        self.event.clear()


def test_all_who_want_to_know_are_told_by_one_who_listens():
    world, first, second = World(), Told(), Told()
    world.subscribers.subscribe(first)
    world.subscribers.subscribe(second)
    (listening,) = world.made
    listening.changed()
    first.wait()
    second.wait()
    listening.changed()
    first.wait()
    assert not first.event.wait(0.5)
    world.subscribers.close()


def test_a_burst_is_told_once_or_twice():
    world, told = World(), Told()
    world.subscribers.subscribe(told)
    for _ in range(1000):
        world.made[0].changed()
    told.wait()
    # The last change is told too, though the first was told before it.
    wait_until(lambda: told.times, "the burst is told")
    assert told.times <= 2
    world.subscribers.close()


def test_what_follows_at_once_is_told_a_little_later(monkeypatch):
    monkeypatch.setattr(changes, "QUIET_S", NEVER)
    world, told = World(), Told()
    world.subscribers.subscribe(told)
    assert not told.event.wait(0.2)
    world.made[0].changed()
    told.wait()
    world.made[0].changed()
    assert not told.event.wait(0.5)
    world.subscribers.close()
    wait_until(lambda: not world.threads(), "its threads have ended")


def test_nobody_listens_any_more_once_the_last_has_gone():
    world, first, second = World(), Told(), Told()
    end_first, end_second = world.subscribers.subscribe(first), world.subscribers.subscribe(second)
    end_first()
    assert not world.made[0].closed.is_set()
    world.made[0].changed()
    second.wait()
    assert first.times == 0
    end_second()
    end_second()
    assert world.made[0].closed.is_set()
    wait_until(lambda: not world.threads(), "its threads have ended")
    # Who comes later is told by another one.
    end_third = world.subscribers.subscribe(first)
    world.made[1].changed()
    first.wait()
    end_third()
    wait_until(lambda: not world.threads(), "its threads have ended")


def test_nothing_is_begun_once_it_is_closed():
    world, told = World(), Told()
    world.subscribers.subscribe(told)
    world.subscribers.close()
    world.subscribers.close()
    assert world.made[0].closed.is_set()
    world.subscribers.subscribe(told)()
    assert len(world.made) == 1
    wait_until(lambda: not world.threads(), "its threads have ended")


def test_one_who_fails_keeps_nobody_from_being_told():
    def fail():
        raise ValueError

    world, told = World(), Told()
    world.subscribers.subscribe(fail)
    world.subscribers.subscribe(told)
    for _ in range(2):
        world.made[0].changed()
        told.wait()
    world.subscribers.close()


def test_listening_is_begun_again_and_everybody_is_told_after_an_error():
    world, told = World(failures=1), Told()
    world.subscribers.subscribe(told)
    told.wait()
    wait_until(lambda: world.made[0].listens == 2, "it listens again")
    assert all(thread.daemon for thread in world.threads())
    world.subscribers.close()
    wait_until(lambda: not world.threads(), "its threads have ended")


@pytest.mark.parametrize(("long_enough", "waits"), [(600.0, [1.0, 2.0, 4.0]), (-1.0, [1.0, 1.0, 1.0])])
def test_what_fails_again_and_again_waits_longer_and_what_listened_for_long_does_not(monkeypatch, long_enough, waits):
    waited = []

    class Noting(Backoff):
        def wait(self, stop_event, limit=None):
            waited.append(self.next())
            return stop_event.is_set()

    monkeypatch.setattr(changes, "LONGEST_RETRY_S", long_enough)
    monkeypatch.setattr(changes, "retry_backoff", lambda: Noting(1.0, 60.0))
    world = World(failures=3)
    end = world.subscribers.subscribe(Told())
    wait_until(lambda: world.made[0].listens == 4, "it listens again")
    # Each wait is up to a fifth longer or shorter.
    assert waited == [pytest.approx(seconds, rel=0.21) for seconds in waits]
    end()
