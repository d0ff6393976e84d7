"""Changes are told of as they happen."""

import json
import threading
import time

import pytest
from support.background import in_background
from support.docker_containers import replicas
from support.scripted_engine import refused
from support.scripted_server import Stream
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.docker.events import EngineListener, engine_events
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.docker_engine.client import Engine
from torchx_tui.backends.shared import changes


class Told:
    """Counts calls."""

    def __init__(self):
        self.times = []

    def __call__(self):
        self.times.append(time.monotonic())

    def more_than(self, count):
        wait_until(lambda: len(self.times) > count, "a change")


@pytest.fixture
def app(own_engine):
    """On an engine of its own: on a shared one, other tests' changes would be told in place of those that are meant."""
    with replicas() as made:
        yield made


def listening(events, app, told):
    """Wait until a change is told of."""

    def change():
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
    asked = []
    told = []

    def answer(question):
        asked.append(question)
        return next(answers, None)

    scripted.answers["GET", "/events"] = answer
    listener = EngineListener(scripted.engine(), lambda: told.append(len(asked)))
    listening = in_background(listener.listen)
    wait_until(lambda: len(asked) > 5, "several tries")
    listener.close()
    listening.result(PATIENCE)
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
    scripted.gives("/events", content)
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
