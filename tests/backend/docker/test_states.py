"""What the list of containers tells: states, how they fold, and times."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from support.scripted_engine import listed
from support.tables import toml_table

from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker.containers import container_name
from torchx_tui.backends.docker.describe import published_ports
from torchx_tui.backends.docker.listing import KnownTimes, list_rows
from torchx_tui.backends.docker.states import (
    health,
    replica_reason,
    replica_state,
    seconds_since_exit,
    state_of,
    summarize,
)
from torchx_tui.backends.types import PublishedPort
from torchx_tui.specs.roles import Role
from torchx_tui.specs.status import AppState

ROWS = toml_table(Path(__file__).with_name("states.toml"))

S, P, R, OK, BAD, U = (
    AppState.SUBMITTED,
    AppState.PENDING,
    AppState.RUNNING,
    AppState.SUCCEEDED,
    AppState.FAILED,
    AppState.UNKNOWN,
)


def container(state: str, status: str = "", k: int = 0, **changes: Any) -> dict[str, Any]:
    marks = {labels.APP_ID: "app-x", labels.ROLE_NAME: "worker", labels.REPLICA_ID: str(k)}
    return {"Id": f"id{k}", "State": state, "Status": status, "Labels": marks, "Created": 100, **changes}


@pytest.mark.parametrize(
    ("states", "folded"),
    [
        ([S, S], S),
        ([S, R], R),
        ([S, OK], P),
        ([P, OK], P),
        ([P, R], R),
        ([R, BAD, OK], R),
        ([OK, OK], OK),
        ([OK, BAD], BAD),
        ([OK, U], U),
        ([BAD, U], BAD),
        ([R, U], R),
    ],
)
def test_states_fold_by_the_rules(states, folded):
    assert state_of(states) == folded
    assert state_of(states[::-1]) == folded


@pytest.mark.parametrize(
    ("state", "status", "expected"),
    [
        ("created", "Created", (S, None)),
        ("running", "Up 3 seconds", (R, None)),
        ("restarting", "Restarting (1) 2 seconds ago", (P, None)),
        ("paused", "Up 4 hours (Paused)", (P, None)),
        ("removing", "Removal In Progress", (P, None)),
        ("dead", "Dead", (BAD, None)),
        ("exited", "Exited (0) 5 minutes ago", (OK, 0)),
        ("exited", "Exited (137) About an hour ago", (BAD, 137)),
        ("exited", "garbage", (BAD, None)),
        ("new word", "", (U, None)),
    ],
)
def test_the_state_of_a_replica(state, status, expected):
    assert replica_state(container(state, status)) == expected


@pytest.mark.parametrize(
    ("status", "seconds"),
    [
        ("Exited (0) Less than a second ago", 0),
        ("Exited (0) 1 second ago", 1),
        ("Exited (0) About a minute ago", 60),
        ("Exited (0) 45 minutes ago", 2700),
        ("Exited (0) About an hour ago", 3600),
        ("Exited (0) 2 days ago", 172_800),
        ("Up 5 seconds", None),
        ("Exited (0)", None),
    ],
)
def test_how_long_ago_it_ended(status, seconds):
    assert seconds_since_exit(container("exited", status)) == seconds


def test_an_end_that_was_heard_of_early_stays_exact():
    times = KnownTimes()
    assert times.finished_at(container("exited", "Exited (0) 2 seconds ago"), 1000.0) == 998.0
    assert times.finished_at(container("exited", "Exited (0) 3 hours ago"), 1000.0 + 4 * 3600) == 998.0
    times.learn("id0", 997.25)
    assert times.finished_at(container("exited", "Exited (0) 3 hours ago"), 1000.0 + 4 * 3600) == 997.25
    assert times.finished_at(container("running", "Up 1 second"), 2000.0) is None
    assert times.finished_at(container("exited", "Exited (0) 1 second ago"), 3000.0) == 2999.0
    # A clock may say that it ended before it was made.
    assert times.finished_at(container("exited", "Exited (0) 3 hours ago", k=1), 1000.0) == 100.0
    assert times.finished_at(container("exited", "Exited (0)", k=2), 1000.0) is None


def test_the_end_of_a_container_that_is_no_more_is_forgotten():
    times = KnownTimes()
    one = container("exited", "Exited (0) 1 second ago")
    times.learn("id0", 997.25)
    times.keep_only([one])
    assert times.finished_at(one, 3000.0) == 997.25
    times.keep_only([container("exited", k=1)])
    assert times.finished_at(one, 3000.0) == 2999.0


def test_the_rows_of_apps(scripted):
    of_user = {labels.USER: "alice", labels.SUBMITTED_AT: "99.5"}
    own = [
        listed(0, "running", Status="Up 3 hours"),
        listed(1, "exited", Status="Exited (3) 1 hours ago"),
        listed(2, "exited", Status="Exited (4) 2 hours ago"),
        listed(3, "exited", Status="Exited (0) 2 hours ago"),
    ]
    for one in own:
        one["Labels"] |= of_user
    later = listed(0, "created", Created=300)
    later["Labels"][labels.APP_ID] = "later-y"
    ended = [listed(k, "exited", Status=f"Exited (0) {9 - k} hours ago", Created=7 * 86400) for k in (0, 1)]
    for one in ended:
        one["Id"] = f"of ended, {one['Id']}"
        one["Labels"][labels.APP_ID] = "ended-z"
    scripted.has(*own, later, *ended)
    first, second, third = list_rows(scripted.engine(), KnownTimes(), "here")
    assert [asked.params["all"] for asked in scripted.asked if asked.path.startswith("/containers/")] == ["1"]
    assert (first.app_id, first.state, first.name, first.replicas_succeeded) == ("ended-z", OK, "ended", 2)
    # The last of them ended eight hours ago.
    assert first.finished_at is not None
    assert abs(first.finished_at - (time.time() - 8 * 3600)) < 600
    assert (second.app_id, second.state, second.started_at, second.finished_at) == ("later-y", S, None, None)
    assert (third.app_id, third.state, third.user, third.image, third.host) == ("app-x", R, "alice", "busybox", "here")
    assert (third.submitted_at, third.started_at, third.finished_at) == (99.5, 100.0, None)
    assert (third.replicas_running, third.replicas_wanted, third.replicas_succeeded) == (1, 4, 1)
    assert third.msg == "exit 4: worker/2; 1 of 4 still run"
    scripted.has(listed(0, "running", Created=None))
    (without_times,) = list_rows(scripted.engine(), KnownTimes(), "here")
    assert (without_times.submitted_at, without_times.started_at) == (0.0, 0.0)


def test_missing_replicas_were_removed():
    running, created = container("running"), container("created")
    for one in (running, created):
        one["Labels"][labels.REPLICAS] = "3"
    assert summarize("app-x", [running]).missing == 2
    assert summarize("app-x", [created]).missing == 0
    assert summarize("app-x", [created]).state == S


def test_a_foreign_app_lacks_labels_and_is_read_all_the_same():
    one = container("running")
    one["Labels"] = {labels.APP_ID: "sh-abc-x1y2z3"}
    app = summarize("sh-abc-x1y2z3", [one])
    assert (app.name, app.submitted_at, app.state) == ("sh-abc", 100.0, R)
    assert app.where(0) == "/0"


def test_a_container_without_a_name_is_called_by_its_id():
    assert container_name({"Id": "0123456789abcdef", "Names": ["/job-worker-0"]}) == "job-worker-0"
    assert container_name({"Id": "0123456789abcdef", "Names": None}) == "0123456789ab"


def test_health():
    assert health(container("running", "Up 3 seconds (health: starting)")) == "starting"
    assert health(container("running", "Up 3 seconds (unhealthy)")) == "unhealthy"
    assert health(container("running", "Up 3 seconds")) == ""


@pytest.mark.parametrize(("state", "words"), ROWS["reasons"])
def test_a_replicas_reason(state, words):
    assert replica_reason({"State": state, "HostConfig": {"Memory": 64 << 20}}) == words
    assert replica_reason({"State": state}) == words.replace(" at its limit of 64 MB", "")


def test_a_port_on_two_addresses_is_one():
    ports = [
        {"IP": "::1", "PrivatePort": 6006, "PublicPort": 40001, "Type": "tcp"},
        {"IP": "127.0.0.1", "PrivatePort": 6006, "PublicPort": 40000, "Type": "tcp"},
        {"PrivatePort": 9, "Type": "tcp"},
    ]
    found = published_ports([container("running", Ports=ports)], [Role("worker", "i", port_map={"tb": 6006})], "")
    assert found == [PublishedPort("worker", 0, "tb", 6006, "", 40000)]
