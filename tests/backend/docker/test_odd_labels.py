"""Labels that hold anything: each container costs its own row at most, and the other jobs are there."""

import json
import random
import threading
from contextlib import contextmanager
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.odd_values import odd_text, odd_value
from support.waiting import PATIENCE

from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker.describe import describe_app
from torchx_tui.backends.docker.listing import KnownTimes
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.runner import Runner
from torchx_tui.base.validation import encode_json
from torchx_tui.specs.handles import parse_app_handle
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.serialize import MAX_REPLICAS, appdef_to_dict, appdef_to_json
from torchx_tui.specs.status import AppState
from torchx_tui.tui.jobs.row_order import RowOrder
from torchx_tui.tui.ui.job_cells import COLUMNS_BY_KEY
from torchx_tui.tui.watch.poller import RowMaker

CASES = 3000
_BATCH = 500
_APP = AppDef("good", [Role("worker", "busybox", entrypoint="sh", args=["-c", "true"], num_replicas=1)])
_OURS = (
    *(labels.APP_ID, labels.ROLE_NAME, labels.REPLICA_ID, labels.APP_DEF, labels.APP_DEF_LEFT_OUT),
    *(labels.SUBMITTED_AT, labels.SESSION, labels.USER, labels.APP_NAME, labels.REPLICAS, labels.ROLE_INDEX),
)


class CannedEngine:
    """Answers with containers that exited with 0, whose labels a test gives."""

    is_remote = False
    host = "unix:///none.sock"

    def __init__(self):
        self.containers = {}
        answers = {"containers": self.listed, "inspect_container": self.inspected}
        self.api = SimpleNamespace(**answers, logs=lambda *_, **__: b"", inspect_image=lambda _: {})

    def put(self, name, marks):
        self.containers[name] = marks

    def client(self):
        return SimpleNamespace(api=self.api)

    @contextmanager
    def translate_errors(self, _name=""):
        yield

    def listed(self, filters, **_options):
        _, _, app_id = filters["label"].partition("=")
        # The containers of one app differ from its id in the sign alone.
        known = [app_id.replace("-", "")] if app_id.startswith("odd-") else self.containers
        found = {one: self.containers[one] for one in known if one in self.containers}
        return [
            {"Id": one, "Names": [f"/{one}"], "Image": "busybox", "Created": 100, "State": "exited", "Labels": marks}
            | {"Status": "Exited (0) 3 hours ago"}
            for one, marks in found.items()
            if not app_id or marks.get(labels.APP_ID) == app_id
        ]

    def inspected(self, name):
        state = {"Status": "exited", "ExitCode": 0, "StartedAt": "2026-01-01T00:00:00Z"}
        return {
            "Id": name,
            "Image": "sha256:1",
            "Config": {"Labels": self.containers[name], "Cmd": ["sh"], "Image": "busybox"},
            "State": {**state, "FinishedAt": "2026-01-01T00:00:01Z"},
        }


def good(app_id):
    """Return the labels of a job of ours."""
    return {
        labels.APP_ID: app_id,
        labels.ROLE_NAME: "worker",
        labels.REPLICA_ID: "0",
        labels.APP_NAME: "good",
        labels.SUBMITTED_AT: "90.5",
        labels.SESSION: "torchx",
        labels.USER: "me",
        labels.REPLICAS: "1",
        labels.ROLE_INDEX: "0",
        labels.APP_DEF: appdef_to_json(_APP),
    }


def odd(chance, app_id):
    """Return labels of which some are others; an engine gives texts, and what claims to be one may give anything."""
    found = good(app_id)
    if chance.random() < 0.5:
        found[labels.APP_DEF] = odd_text(chance, appdef_to_dict(_APP)).decode("utf-8", "replace")
    for _ in range(chance.randint(0, 3)):
        value = odd_value(chance)
        found[chance.choice(_OURS)] = value if chance.random() < 0.2 else str(value)
    return found


@pytest.fixture
def engine():
    return CannedEngine()


@pytest.fixture
def runner(engine, journal):
    docker = DockerScheduler("torchx", engine)
    return Runner(journal=journal, schedulers={"local_docker": docker})


def assert_rows(rows):
    json.loads(encode_json([asdict(row) for row in rows]), parse_constant=pytest.fail)
    made, faults = RowMaker().make(rows, {})
    assert faults == []
    for column in COLUMNS_BY_KEY.values():
        order = RowOrder(column.sort_key)
        order.reset(made.values())
        for row in made.values():
            order.drop(row.handle)
            order.put(row)
        assert sorted(order.handles()) == sorted(made)


def described_app(engine, app_id):
    """Return the description of an app that is there."""
    described = describe_app(cast(Any, engine), app_id, KnownTimes(), "here")
    assert described is not None
    return described


def test_any_labels(runner, engine):
    chance = random.Random(2)
    for _ in range(CASES // _BATCH):
        for number in range(_BATCH):
            engine.put(f"odd{number}", odd(chance, f"odd-{number}"))
        for name in ("good-a", "good-b"):
            engine.put(name, good(name))
        rows = runner.list("local_docker")
        assert_rows(rows)
        found = {row.app_id: row.state for row in rows}
        assert found["good-a"] == found["good-b"] == AppState.SUCCEEDED
        for number, row in enumerate(rows):
            described = runner.job(row.app_handle).describe()
            if described is None:  # an id with a slash is none of a handle's
                assert parse_app_handle(row.app_handle).app_id != row.app_id
                continue
            json.loads(encode_json(asdict(described)), parse_constant=pytest.fail)
            if number % 20 == 0:  # it is slow: YAML
                runner.job(row.app_handle).describe_native()


@pytest.mark.parametrize("time", ["nan", "inf", "-inf", "1e999", "-5", ""])
def test_a_time_that_is_none(runner, engine, time):
    engine.put("odd", {**good("odd-1"), labels.SUBMITTED_AT: time})
    engine.put("fine", good("good-1"))
    rows = runner.list("local_docker")
    assert [(row.app_id, row.submitted_at) for row in rows] == [("odd-1", 100.0), ("good-1", 90.5)]
    assert_rows(rows)


@pytest.mark.parametrize("app_id", ["", "a\nb", "\x1b[31m", "\ud800"])
def test_an_app_id_that_is_none_costs_its_own_row(runner, engine, app_id):
    engine.put("odd", good(app_id))
    engine.put("fine", good("good-1"))
    assert [row.app_id for row in runner.list("local_docker")] == ["good-1"]


def test_containers_are_inspected_side_by_side(engine):
    together = threading.Barrier(8)

    def inspected(name):
        together.wait(PATIENCE)
        return engine.inspected(name)

    engine.api.inspect_container = inspected
    for number in range(8):
        engine.put(f"c{number}", good("app") | {labels.REPLICA_ID: str(number)})
    assert [replica.id for replica in described_app(engine, "app").roles_statuses[0].replicas] == list(range(8))


def test_what_the_labels_of_an_inspection_hold_is_no_error(runner, engine):
    odd = {**good("app-1"), labels.REPLICA_ID: "first", labels.ROLE_NAME: "a\nb", labels.APP_DEF: "{"}
    engine.put("c1", odd)
    described = described_app(engine, "app-1")
    assert [(role.name, role.num_replicas) for role in described.roles] == [("", 1)]
    assert described.metadata == {"image of ": "sha256:1"}
    assert "first" not in runner.job("local_docker://torchx/app-1").describe_native()


def test_what_is_told_of_an_app(engine):
    engine.put("c1", good("app-1") | {labels.APP_DEF: appdef_to_json(AppDef("good", _APP.roles, {"team": "z"}))})
    described = described_app(engine, "app-1")
    assert (described.image, described.host, described.user, described.name) == ("busybox", "here", "me", "good")
    assert described.metadata == {"team": "z", "image of worker": "sha256:1"}
    assert (described.num_restarts, described.msg, described.structured_error_msg) == (0, "<NONE>", "<NONE>")
    start, end = 1_767_225_600.0, 1_767_225_601.0
    assert (described.submitted_at, described.started_at, described.finished_at) == (90.5, start, end)
    assert [(change.state, change.at) for change in described.timeline] == [
        (AppState.SUBMITTED, 90.5), (AppState.RUNNING, start), (AppState.SUCCEEDED, end),
    ]  # fmt: skip
    ((replica,),) = (status.replicas for status in described.roles_statuses)
    assert (replica.hostname, replica.exit_code, replica.pid, replica.restarts) == ("c1", 0, None, 0)
    assert described.ports == []


def test_first_failure_is_explained_by_its_error(engine):
    printed = {"c1": b"ValueError: later", "c2": b"ValueError: first", "out": b"OSError: of the output"}

    def logs(name, stdout, stderr, tail):
        assert tail > 100
        text = printed["out"] * stdout + printed[name] * stderr
        return b'Traceback (most recent call last):\n  File "a.py", line 1, in f\n' + text + b"\n"

    def inspected(name):
        found = CannedEngine.inspected(engine, name)
        found["State"] |= {"ExitCode": int(name[1]), "FinishedAt": f"2026-01-01T00:00:0{4 - int(name[1])}Z"}
        return {**found, "RestartCount": int(name[1])}

    def listed(**options):
        return [
            {**one, "Status": f"Exited ({one['Id'][1]}) 1 hour ago"} for one in CannedEngine.listed(engine, **options)
        ]

    engine.api.logs, engine.api.inspect_container, engine.api.containers = logs, inspected, listed
    for k in (1, 2):
        engine.put(f"c{k}", good("app-1") | {labels.REPLICA_ID: str(k), labels.REPLICAS: "2"})
    described = described_app(engine, "app-1")
    assert described.msg == "ValueError: first, exit 2: worker/2"
    assert described.structured_error_msg.endswith("ValueError: first")
    first, second = described.roles_statuses[0].replicas
    assert (first.structured_error_msg, second.structured_error_msg) == ("<NONE>", described.structured_error_msg)
    assert (first.reason, second.reason) == ("exit 1", "exit 2")
    assert (described.num_restarts, first.restarts, second.restarts) == (2, 1, 2)


def test_a_container_that_has_ended_since_it_was_listed(engine):
    def inspected(name):
        found = CannedEngine.inspected(engine, name)
        found["State"]["ExitCode"] = 3
        return found

    def listed(**options):
        return [{**one, "State": "running", "Status": "Up 1 second"} for one in CannedEngine.listed(engine, **options)]

    engine.api.inspect_container, engine.api.containers = inspected, listed
    engine.put("c1", good("app-1"))
    described = described_app(engine, "app-1")
    assert (described.state, described.roles_statuses[0].replicas[0].exit_code) == (AppState.FAILED, 3)
    engine.api.inspect_container = lambda name: {**inspected(name), "State": {"Status": "paused"}}
    described = described_app(engine, "app-1")
    assert (described.state, described.finished_at) == (AppState.PENDING, None)


def test_labels_that_cannot_be_are_left_out():
    most = str(MAX_REPLICAS)
    given = {labels.REPLICA_ID: "007", labels.REPLICAS: most, labels.ROLE_INDEX: most + "0", labels.APP_NAME: "fine"}
    odd = {labels.USER: "a\nb", labels.SUBMITTED_AT: "soon", labels.ROLE_NAME: 5, labels.APP_ID: ""}
    kept = {labels.REPLICA_ID: "007", labels.REPLICAS: most, labels.APP_NAME: "fine", "mine": "a\nb"}
    assert labels.checked_labels({**given, **odd, "mine": "a\nb", "number": 1}) == kept
    for text in ("-1", "1 ", "", "x", "1" * 10, "\u0661"):
        assert labels.checked_labels({labels.REPLICA_ID: text}) == {}
    assert labels.checked_labels({labels.SUBMITTED_AT: "7.5"}) == {labels.SUBMITTED_AT: "7.5"}
    assert labels.checked_labels(None) == labels.checked_labels([]) == {}
    assert (labels.replica_number(kept), labels.replica_number({})) == (7, 0)
    assert (labels.submitted_at({labels.SUBMITTED_AT: "7.5"}), labels.submitted_at({})) == (7.5, None)
