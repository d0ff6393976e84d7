"""Who is notified of changes: once for a burst, until they unsubscribe, and despite failures."""

import threading

import pytest
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.backends.shared import changes
from torchx_tui.backends.shared.changes import Subscribers
from torchx_tui.base.backoff import Backoff


class Listening:
    """Listens until it is closed, after some failures."""

    def __init__(self, changed, failures):
        self.changed = changed
        self.listens = 0
        self.closed = threading.Event()
        self.failures = failures

    def listen(self):
        self.listens += 1
        if self.listens <= self.failures:
            raise ConnectionError
        assert self.closed.wait(PATIENCE)

    def close(self):
        self.closed.set()


class World:
    """Subscribers, and the listeners that were made for them."""

    def __init__(self, failures=0):
        self.made = []
        self.failures = failures
        self.subscribers = Subscribers("test-changes", self._make)

    def _make(self, changed):
        self.made.append(Listening(changed, self.failures))
        return self.made[-1]

    def threads(self):
        return [thread for thread in threading.enumerate() if thread.name.startswith("test-changes")]

    def subscribe(self):
        """Return a new subscriber, which counts its notifications, and the end of its subscription."""
        subscriber = Subscriber()
        return subscriber, self.subscribers.subscribe(subscriber)


class Subscriber:
    def __init__(self):
        self.times = 0
        self.event = threading.Event()

    def __call__(self):
        self.times += 1
        self.event.set()

    def wait(self):
        assert self.event.wait(PATIENCE)
        self.event.clear()


@pytest.fixture
def world():
    world = World()
    yield world
    world.subscribers.close()
    wait_until(lambda: not world.threads(), "its threads have ended")


def test_all_subscribers_share_a_listener(world):
    (first, _), (second, _) = world.subscribe(), world.subscribe()
    (listening,) = world.made
    listening.changed()
    first.wait()
    second.wait()
    listening.changed()
    first.wait()
    assert not first.event.wait(0.5)


def test_a_burst_is_notified_once_or_twice(world):
    subscriber, _ = world.subscribe()
    for _ in range(1000):
        world.made[0].changed()
    subscriber.wait()
    assert subscriber.times <= 2


def test_changes_in_succession_are_notified_later(world, monkeypatch):
    monkeypatch.setattr(changes, "QUIET_S", NEVER)
    subscriber, _ = world.subscribe()
    assert not subscriber.event.wait(0.2)
    world.made[0].changed()
    subscriber.wait()
    world.made[0].changed()
    assert not subscriber.event.wait(0.5)


def test_the_listener_ends_with_the_last_subscription(world):
    (first, end_first), (second, end_second) = world.subscribe(), world.subscribe()
    end_first()
    assert not world.made[0].closed.is_set()
    world.made[0].changed()
    second.wait()
    assert first.times == 0
    end_second()
    end_second()
    assert world.made[0].closed.is_set()
    wait_until(lambda: not world.threads(), "its threads have ended")
    # A later subscription has a new listener.
    third, end_third = world.subscribe()
    world.made[1].changed()
    third.wait()
    end_third()
    wait_until(lambda: not world.threads(), "its threads have ended")


def test_nothing_begins_after_close(world):
    world.subscribe()
    world.subscribers.close()
    world.subscribers.close()
    assert world.made[0].closed.is_set()
    _, end = world.subscribe()
    end()
    assert len(world.made) == 1


def test_a_failing_subscriber_stops_no_other(world):
    def fail():
        raise ValueError

    world.subscribers.subscribe(fail)
    subscriber, _ = world.subscribe()
    for _ in range(2):
        world.made[0].changed()
        subscriber.wait()


def test_listening_restarts_and_notifies_after_an_error(world):
    world.failures = 1
    subscriber, _ = world.subscribe()
    subscriber.wait()
    wait_until(lambda: world.made[0].listens == 2, "it listens again")
    assert all(thread.daemon for thread in world.threads())


@pytest.mark.parametrize(("long_enough", "waits"), [(600.0, [1.0, 2.0, 4.0]), (-1.0, [1.0, 1.0, 1.0])])
def test_repeated_failures_wait_longer(world, monkeypatch, long_enough, waits):
    waited = []

    class Noting(Backoff):
        def wait(self, stop_event, limit=None):
            waited.append(self.next())
            return stop_event.is_set()

    # A failure after a long time of listening is not a repeated one.
    monkeypatch.setattr(changes, "LONGEST_RETRY_S", long_enough)
    monkeypatch.setattr(changes, "retry_backoff", lambda: Noting(1.0, 60.0))
    world.failures = 3
    world.subscribe()
    wait_until(lambda: world.made[0].listens == 4, "it listens again")
    # Each wait is up to a fifth longer or shorter.
    assert waited == [pytest.approx(seconds, rel=0.21) for seconds in waits]
