"""How containers are made, started, ended and removed, where an engine answers as it is told to."""

import threading
import time
from concurrent.futures import wait
from types import SimpleNamespace

import pytest
from support.background import in_background
from support.scripted_engine import events, listed, refused
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker.lifecycle import AppCanceller, Launch
from torchx_tui.backends.docker.networks import ensure_network
from torchx_tui.backends.docker.request import DockerContainer, DockerJob
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.shared.progress import Progress, shown_progress
from torchx_tui.specs.errors import JobNotFoundError, SchedulerError
from torchx_tui.specs.roles import AppDef, Role


def network(name, number):
    # The later, the smaller its id.
    return {"Name": name, "Id": f"n{9 - number}", "Created": f"2026-01-0{number}"}


def asked_of(scripted):
    """Return what was asked since this was called last, but for questions."""
    found = [f"{asked.method} {asked.path[1:]}" for asked in scripted.asked if asked.method != "GET"]
    scripted.asked.clear()
    return found


@pytest.mark.parametrize("refusal", [None, refused(409, "network torchx already exists"), refused(500, "no room")])
def test_the_network_that_is_made_twice_at_once_is_there_once(scripted, caplog, refusal):
    there = [network("torchx-2", 1), network("torchx", 1)]
    scripted.answers["GET", "/networks"] = lambda asked: (200, there)
    engine = scripted.engine()
    ensure_network(engine, "torchx")
    assert asked_of(scripted) == []
    made = refusal or (201, {"Id": "n3"})

    def make(asked):
        assert (asked.body["Name"], asked.body["Driver"], asked.body["CheckDuplicate"]) == ("torchx", "bridge", True)
        there.extend(network("torchx", number) for number in (4, 2, 3, 5))
        return made

    there.pop()
    scripted.answers["POST", "/networks/create"] = make
    scripted.answers["DELETE", "/networks/n6"] = refused(403, "network has active endpoints")
    scripted.answers["DELETE", "/networks/n4"] = 204, b""
    # Another one was faster to remove the fourth.
    ensure_network(engine, "torchx")
    assert asked_of(scripted) == ["POST networks/create", *(f"DELETE networks/n{number}" for number in (6, 5, 4))]
    # That it was there already is nothing to tell of.
    assert ("no room" in caplog.text) is (refusal is not None and refusal[0] == 500)
    assert "already exists" not in caplog.text


def launch(scripted, replicas=1, network=None):
    """Launch an app on an engine that gives its containers ids by their numbers."""
    marks = [{labels.ROLE_NAME: "worker", labels.REPLICA_ID: str(k), labels.APP_ID: "app-x"} for k in range(replicas)]
    kwargs = [{"name": f"n{k}", "network": network, "labels": made} for k, made in enumerate(marks)]
    containers = [DockerContainer("busybox", ["run"], one) for one in kwargs]

    def create(asked):
        number = asked.params["name"].removeprefix("n")
        assert asked.body["Labels"] == {**marks[int(number)], labels.SUBMITTED_AT: "7.5"}
        scripted.gives(f"/containers/c{number}/json", {"Id": f"c{number}"})
        return 201, {"Id": f"c{number}"}

    scripted.answers["POST", "/containers/create"] = create
    for k in range(replicas):
        scripted.answers.setdefault(("POST", f"/containers/c{k}/start"), (204, b""))
    Launch(scripted.engine(), DockerJob("app-x", containers), {labels.SUBMITTED_AT: "7.5"}).run()


def test_order_in_which_containers_are_made_and_started(scripted):
    said = []
    with shown_progress(Progress(said.append)):
        launch(scripted, 3)
    steps = asked_of(scripted)
    assert steps[:4] == ["POST containers/create"] * 3 + ["POST containers/c0/start"]
    assert sorted(steps[4:]) == ["POST containers/c1/start", "POST containers/c2/start"]
    assert said == [*(f"creating {k} of 3" for k in (1, 2, 3)), *(f"starting {k} of 3" for k in (1, 2, 3))]


@pytest.mark.parametrize(
    ("words", "is_tried_again"),
    [
        ("network mine not found", True),
        ("network mine is ambiguous (2 matches found on name)", True),
        ("network mine is odd", False),
        ("device not found", False),
    ],
)
def test_network_that_is_gone_is_made_again(scripted, words, is_tried_again):
    started = iter([refused(404, words), (204, b"")])
    # There at first, then not; somebody makes it.
    there = iter([[network("mine", 1)], [], [], [network("mine", 2)]])
    scripted.answers["POST", "/containers/c0/start"] = lambda asked: next(started)
    scripted.answers["GET", "/networks"] = lambda asked: (200, next(there))
    if not is_tried_again:
        with pytest.raises(SchedulerError, match=f"worker/0: {words}"):
            launch(scripted, network="mine")
        return
    launch(scripted, network="mine")
    start = "POST containers/c0/start"
    assert asked_of(scripted) == ["POST containers/create", start, "POST networks/create", start]


@pytest.mark.parametrize("is_here", [True, False])
def test_short_image_name_of_podman_is_launched(scripted, is_here):
    scripted.gives("/networks", [network("torchx", 1)])
    scripted.gives("/containers/json", [])
    scripted.gives("/containers/c0/json", {"Id": "c0"})
    scripted.answers["POST", "/containers/c0/start"] = 204, b""
    found = {"localhost/busybox:local"} if is_here else set()

    def create(asked):
        image = asked.body["Image"]
        return (201, {"Id": "c0"}) if image in found else refused(404, f"No such image: {image}")

    scripted.answers["POST", "/containers/create"] = create
    container = DockerContainer("busybox:local", ["run"], {"labels": {labels.ROLE_NAME: "r", labels.REPLICA_ID: "0"}})
    made = Launch(scripted.engine(), DockerJob("app-x", [container]), {})
    if is_here:
        made.run()
        assert asked_of(scripted)[-1] == "POST containers/c0/start"
    else:
        with pytest.raises(SchedulerError, match="there is no image busybox:local: "):
            made.run()


@pytest.mark.parametrize("listing", [(200, [listed(0), listed(1)]), refused(500, "it is busy")])
def test_what_is_left_behind_is_said(scripted, listing):
    scripted.answers["POST", "/containers/c1/start"] = refused(404, "No such image: busybox:1")
    scripted.answers["GET", "/containers/json"] = listing
    scripted.answers["DELETE", "/containers/c0"] = 204, b""
    scripted.answers["DELETE", "/containers/c1"] = refused(500, "device or resource busy")
    with pytest.raises(SchedulerError) as raised:
        launch(scripted, 2)
    assert str(raised.value) == (
        "app-x was not launched: worker/1: there is no image busybox:1: it could not be pulled, or pulling is off; "
        "check its name. Left behind: c1: remove with `docker rm -f`"
    )
    removed = scripted.requests("DELETE")
    assert sorted(asked.path[-2:] for asked in removed) == ["c0", "c1"]
    assert all(asked.params == {"v": "True", "link": "False", "force": "True"} for asked in removed)
    scripted.answers["DELETE", "/containers/c1"] = 204, b""
    with pytest.raises(SchedulerError, match=r"check its name$"):
        launch(scripted, 2)


def test_a_launch_that_is_cancelled_says_what_it_leaves(scripted):
    scripted.has(listed(0))
    scripted.answers["DELETE", "/containers/c0"] = refused(500, "device or resource busy")

    def end(words):
        progress.cancel()

    progress = Progress(end)
    with shown_progress(progress), pytest.raises(SchedulerError, match="Left behind: c0: remove"):
        launch(scripted, 2)
    assert [step for step in asked_of(scripted) if "start" in step] == []


@pytest.fixture
def patient(monkeypatch):
    """However slow the engine is, its answer to a request to stop is waited for."""
    monkeypatch.setattr("torchx_tui.backends.docker.lifecycle.REFUSAL_TIMEOUT_S", NEVER)


@pytest.mark.usefixtures("patient")
def test_a_cancel_ends_what_lives_once_and_removes_what_waits(scripted, monkeypatch):
    now = 100.0
    monkeypatch.setattr("torchx_tui.backends.docker.lifecycle.time", SimpleNamespace(monotonic=lambda: now))
    states = ("running", "paused", "restarting", "created", "exited")
    scripted.has(*(listed(k, state) for k, state in enumerate(states)))
    for k in range(3):
        scripted.answers["POST", f"/containers/c{k}/stop"] = 204, b""
    scripted.answers["DELETE", "/containers/c3"] = 204, b""
    ending = AppCanceller(scripted.engine(), 7.6)
    ending.cancel("app-x")
    assert {asked.params["t"] for asked in scripted.asked if asked.path.endswith("/stop")} == {"8"}
    assert sorted(asked_of(scripted)) == ["DELETE containers/c3", *(f"POST containers/c{k}/stop" for k in range(3))]
    ending.cancel("app-x")
    assert asked_of(scripted) == []
    # After the grace it is asked for again.
    now += 9.0
    ending.cancel("app-x")
    removed = [asked.params for asked in scripted.requests("DELETE")]
    assert removed == [{"v": "True", "link": "False", "force": "True"}]
    assert len(asked_of(scripted)) == 4


def test_cancel_keeps_the_request_to_stop(scripted, caplog):
    """Engines 23.0 to 24.0.2 kill a container if the request to stop it is dropped."""
    scripted.has(listed(0))
    ended = threading.Event()
    answer = refused(500, "cannot stop it")
    scripted.answers["POST", "/containers/c0/stop"] = lambda asked: answer if ended.wait(PATIENCE) else None
    canceller = AppCanceller(scripted.engine(), 3)
    canceller.cancel("app-x")
    assert not ended.is_set()
    closing = in_background(canceller.close)
    wait([closing], 0.3)
    assert not closing.done()
    ended.set()
    closing.result(PATIENCE)
    wait_until(
        lambda: "app-x was not cancelled in all replicas: worker/0: cannot stop it" in caplog.text, "a log entry"
    )
    with pytest.raises(SchedulerError, match="cannot stop it"):
        canceller.cancel("app-x")
    assert [asked.path for asked in scripted.asked].count("/containers/c0/stop") == 2


@pytest.mark.usefixtures("patient")
def test_a_cancel_that_fails_may_be_tried_again_at_once(scripted):
    scripted.has(listed(0), listed(1), listed(2), listed(3, "created"))
    scripted.answers["POST", "/containers/c0/stop"] = refused(500, "cannot stop it")
    scripted.answers["POST", "/containers/c1/stop"] = refused(404, "No such container: c1")
    scripted.answers["POST", "/containers/c2/stop"] = 304, b""
    scripted.answers["DELETE", "/containers/c3"] = refused(409, "removal of container c3 is already in progress")
    ending = AppCanceller(scripted.engine(), 0.1)
    for _ in range(2):
        with pytest.raises(SchedulerError) as raised:
            ending.cancel("app-x")
        assert str(raised.value) == "app-x was not cancelled in all replicas: worker/0: cannot stop it"
        assert {asked.params["t"] for asked in scripted.asked if asked.path.endswith("/stop")} == {"1"}
        assert len(asked_of(scripted)) == 4


def test_a_deletion_takes_the_apps_own_networks_along(scripted):
    scripted.has(listed(0), listed(1, "exited"))
    scripted.answers["POST", "/containers/c0/stop"] = refused(500, "cannot stop it")
    for k in range(2):
        scripted.answers["DELETE", f"/containers/c{k}"] = 204, b""
    scripted.gives("/networks", [network("a", 1), network("b", 2)])
    scripted.answers["DELETE", "/networks/n8"] = refused(403, "it is in use")
    scripted.answers["DELETE", "/networks/n7"] = 204, b""
    ending = AppCanceller(scripted.engine(), 3)
    ending.delete("app-x")
    assert scripted.asked[-3].params == {"filters": f'{{"label": ["{labels.APP_ID}=app-x"]}}'}
    steps = asked_of(scripted)
    assert (steps[0], sorted(steps[1:3])) == (
        "POST containers/c0/stop",
        ["DELETE containers/c0", "DELETE containers/c1"],
    )
    assert steps[3:] == ["DELETE networks/n8", "DELETE networks/n7"]
    scripted.answers["DELETE", "/containers/c1"] = refused(500, "it is stuck")
    with pytest.raises(SchedulerError) as raised:
        ending.delete("app-x")
    assert str(raised.value) == "app-x was not deleted in all replicas: worker/1: it is stuck"
    assert not any("networks" in step for step in asked_of(scripted))


@pytest.mark.usefixtures("patient")
def test_a_scheduler_gives_ten_seconds(scripted):
    scripted.has(listed(0))
    scripted.answers["POST", "/containers/c0/stop"] = 204, b""
    scheduler = DockerScheduler("mine", scripted.engine())
    assert scheduler.exists("app-x")
    scheduler.cancel("app-x")
    assert scripted.asked[-1].params["t"] == "10"
    assert [row.host for row in scheduler.list()] == ["127.0.0.1"]
    scripted.has()
    assert not scheduler.exists("app-x")
    assert scheduler.describe("app-x") is None
    with pytest.raises(JobNotFoundError):
        scheduler.describe_native("app-x")
    scheduler.close()


@pytest.mark.parametrize("pull", [True, False])
def test_images_are_pulled_before_a_launch_where_that_is_wanted(scripted, pull):
    scheduler = DockerScheduler("mine", scripted.engine())
    made = scheduler.submit_dryrun(AppDef("job", [Role("worker", "busybox", entrypoint="run")]), {"pull": pull})
    scripted.gives("/images/busybox/json", {"Id": "sha256:1"})
    scripted.answers["POST", "/images/create"] = 200, events({"status": "Download complete"})
    scripted.gives("/networks", [network("torchx", 1)])
    scripted.answers["POST", "/containers/create"] = 201, {"Id": "c0"}
    scripted.gives("/containers/c0/json", {"Id": "c0"})
    scripted.answers["POST", "/containers/c0/start"] = 204, b""
    before = time.time()
    assert scheduler.schedule(made) == made.request.app_id
    (created,) = (asked.body for asked in scripted.requests(path="/containers/create"))
    assert before - 0.001 <= float(created["Labels"][labels.SUBMITTED_AT]) <= time.time()
    steps = ["POST images/create"] * pull + ["POST containers/create", "POST containers/c0/start"]
    assert asked_of(scripted) == steps
    with scheduler.workspace_engine() as client:
        assert client.api.base_url.startswith("http://127.0.0.1:")
    scheduler.close()
