"""Changes are told of as they happen."""

from __future__ import annotations

import json
import threading
import time

import pytest
from support.docker_containers import Replicas, replicas
from support.scripted_engine import refused
from support.scripted_server import Asked, Stream
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.docker.events import EngineListener, engine_events
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.docker_engine.client import Engine
from torchx_tui.backends.shared import changes
from torchx_tui.backends.shared.changes import Subscribers


class Told:
    """Counts calls."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self) -> None:
        self.times.append(time.monotonic())

    def more_than(self, count: int) -> None:
        wait_until(lambda: len(self.times) > count, "a change")


@pytest.fixture
def app(own_engine):
    """On an engine of its own: on a shared one, other tests' changes would be told in place of those that are meant."""
    with replicas() as made:
        yield made


def listening(events: Subscribers, app: Replicas, told: Told) -> None:
    """Wait until a change is told of."""

    def change() -> bool:
        container = app.start("true")
        container.remove(force=True)
        time.sleep(0.2)
        return bool(told.times)

    wait_until(change, "the connection")
    # What the last of them tells may come yet.
    count = -1
    while count != len(told.times):
        count = len(told.times)
        time.sleep(1)


def test_each_change_of_an_app_is_told(app):
    events, told = engine_events(app.engine), Told()
    events.subscribe(told)
    listening(events, app, told)
    container = None
    for change in ("start", "pause", "unpause", "kill", "remove"):
        count = len(told.times)
        if container is None:
            container = app.start("sleep 3600")
        else:
            container.remove(force=True) if change == "remove" else getattr(container, change)()
        told.more_than(count)
        time.sleep(0.3)
    events.close()


def test_other_containers_and_shells_are_not_told_of(own_engine):
    """On an engine where no other test makes changes."""
    with replicas() as app:
        container = app.start("sleep 3600")
        events, told = engine_events(app.engine), Told()
        events.subscribe(told)
        listening(events, app, told)
        count = len(told.times)
        app.client.containers.run("busybox:local", ["true"], remove=True)
        container.exec_run(["true"])
        time.sleep(0.5)
        assert len(told.times) == count
        events.close()


def test_a_burst_is_told_in_few_calls(app):
    events, told = engine_events(app.engine), Told()
    events.subscribe(told)
    listening(events, app, told)
    container = app.start("sleep 3600")
    count, began = len(told.times), time.monotonic()
    for number in range(40):
        container.rename(f"{app.app_id}-{number}")
    time.sleep(0.3)
    told_after, took = len(told.times), time.monotonic() - began
    assert 1 <= told_after - count <= took / 0.1 + 3
    events.close()


def test_one_connection_serves_all_and_ends_with_the_last(app):
    # The connection of a test before may be ending yet.
    others = set(threading.enumerate())
    events = engine_events(app.engine)
    tolds = [Told(), Told()]
    ends = [events.subscribe(told) for told in tolds]
    listening(events, app, tolds[0])
    named = [thread for thread in threading.enumerate() if thread.name == "docker-events" and thread not in others]
    assert len(named) == 1
    ends[0]()
    counts = [len(told.times) for told in tolds]
    app.start("true")
    tolds[1].more_than(counts[1])
    assert len(tolds[0].times) == counts[0]
    ends[1]()
    named[0].join(PATIENCE)
    assert not named[0].is_alive()
    again = Told()
    events.subscribe(again)
    listening(events, app, again)
    events.close()
    events.close()


def test_a_subscriber_that_fails_does_not_end_the_others(app):
    events, told = engine_events(app.engine), Told()

    def fail():
        raise RuntimeError("no")

    events.subscribe(fail)
    events.subscribe(told)
    listening(events, app, told)
    count = len(told.times)
    app.start("true")
    told.more_than(count)
    events.close()


@pytest.mark.slow
def test_an_engine_that_goes_and_comes_is_told_of(own_engine):
    with replicas() as app:
        events, told = engine_events(Engine()), Told()
        events.subscribe(told)
        listening(events, app, told)
        count = len(told.times)
        own_engine.kill()
        told.more_than(count)
        time.sleep(0.5)
        count = len(told.times)
        own_engine.start()
        told.more_than(count)
        time.sleep(0.5)
        count = len(told.times)
        app.start("true")
        told.more_than(count)
        events.close()


# Where an engine answers as it is told to


def test_listeners_hear_of_changes_end_and_return(scripted, monkeypatch):
    monkeypatch.setattr(changes, "FIRST_RETRY_S", 0.01)
    answers = iter([(200, b"{}\n"), refused(500, "it is starting"), None, (200, b"{}\n")])
    asked: list[Asked] = []
    told: list[int] = []

    def answer(question):
        asked.append(question)
        return next(answers, None)

    scripted.answers["GET", "/events"] = answer
    listener = EngineListener(scripted.engine(), lambda: told.append(len(asked)))
    thread = threading.Thread(target=listener.listen, daemon=True)
    thread.start()
    wait_until(lambda: len(asked) > 5, "several tries")
    listener.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    # A change and the end; nothing new while it is away; the return, a change and the end.
    assert told == [1, 1, 4, 4, 4]
    filters = json.loads(asked[0].params["filters"])
    assert (filters["type"], filters["label"]) == (["container"], ["torchx.pytorch.org/app-id"])
    assert sorted(filters["event"]) == [
        "create", "destroy", "die", "health_status", "oom", "pause", "rename", "restart", "start", "stop", "unpause",
    ]  # fmt: skip


def test_a_scheduler_that_is_closed_listens_no_more(scripted):
    others = set(threading.enumerate())
    content, told = Stream(), Told()
    scripted.answers["GET", "/events"] = 200, content
    scheduler = DockerScheduler("mine", scripted.engine())
    scheduler.subscribe(told)
    content.put({})
    told.more_than(0)
    (listens,) = (one for one in threading.enumerate() if one.name == "docker-events" and one not in others)
    # It waits for what the engine does not say.
    scheduler.close()
    listens.join(PATIENCE)
    assert not listens.is_alive()
    content.end()
