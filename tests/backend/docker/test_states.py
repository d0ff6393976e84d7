"""What the list of containers tells: states, how they fold, and times."""

import time

import pytest
from support.scripted_engine import listed
from support.tables import tables

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
from torchx_tui.backends.types import ListAppResponse, PublishedPort
from torchx_tui.specs.roles import Role
from torchx_tui.specs.status import AppState

table = tables(__file__)


@table("folded", "states folded")
def test_states_fold_by_the_rules(states, folded):
    given = [AppState[name] for name in states.split()]
    assert state_of(given) is state_of(given[::-1]) is AppState[folded]


@table("replicas", "state status expected code")
def test_the_state_of_a_replica(state, status, expected, code):
    assert replica_state(listed(0, state, status)) == (AppState[expected], code)


@table("ages", "status seconds")
def test_how_long_ago_it_ended(status, seconds):
    assert seconds_since_exit(listed(0, "exited", status)) == seconds


def test_an_end_that_was_heard_of_early_stays_exact():
    times = KnownTimes()

    def end(status, now, k=0):
        return times.finished_at(listed(k, "exited", status), now)

    assert end("Exited (0) 2 seconds ago", 1000.0) == 998.0
    assert end("Exited (0) 3 hours ago", 1000.0 + 4 * 3600) == 998.0
    times.learn("c0", 997.25)
    assert end("Exited (0) 3 hours ago", 1000.0 + 4 * 3600) == 997.25
    assert times.finished_at(listed(0, "running", "Up 1 second"), 2000.0) is None
    assert end("Exited (0) 1 second ago", 3000.0) == 2999.0
    # A clock may say that it ended before it was made.
    assert end("Exited (0) 3 hours ago", 1000.0, k=1) == 100.0
    assert end("Exited (0)", 1000.0, k=2) is None


def test_the_end_of_a_container_that_is_no_more_is_forgotten():
    times = KnownTimes()
    one = listed(0, "exited", "Exited (0) 1 second ago")
    times.learn("c0", 997.25)
    times.keep_only([one])
    assert times.finished_at(one, 3000.0) == 997.25
    times.keep_only([listed(1, "exited")])
    assert times.finished_at(one, 3000.0) == 2999.0


def row(app_id, state, **fields):
    name = app_id.rpartition("-")[0]
    return ListAppResponse(app_id, state, name=name, image="busybox", host="here", **fields)


def test_the_rows_of_apps(scripted, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 10 * 86400.0)
    statuses = ["Up 3 hours", "Exited (3) 1 hours ago", "Exited (4) 2 hours ago", "Exited (0) 2 hours ago"]
    own = [listed(k, "exited" if k else "running", status) for k, status in enumerate(statuses)]
    for one in own:
        one["Labels"] |= {labels.USER: "alice", labels.SUBMITTED_AT: "99.5"}
    later = listed(0, "created", Created=300)
    later["Labels"][labels.APP_ID] = "later-y"
    ended = [listed(k, "exited", f"Exited (0) {9 - k} hours ago", Created=7 * 86400) for k in (0, 1)]
    for one in ended:
        one["Id"] = f"of ended, {one['Id']}"
        one["Labels"][labels.APP_ID] = "ended-z"
    scripted.has(*own, later, *ended)
    begun = {"submitted_at": 7 * 86400.0, "started_at": 7 * 86400.0}
    never = "never started, 9d after it was created: worker/0: its launch failed or died; cancel it"
    counts = {"replicas_running": 1, "replicas_wanted": 4, "replicas_succeeded": 1}
    assert list_rows(scripted.engine(), KnownTimes(), "here") == [
        # The last of its replicas ended eight hours ago.
        row("ended-z", AppState.SUCCEEDED, **begun, finished_at=10 * 86400.0 - 8 * 3600, replicas_wanted=2,
            replicas_succeeded=2),
        row("later-y", AppState.SUBMITTED, submitted_at=300.0, replicas_wanted=1, msg=never),
        row("app-x", AppState.RUNNING, submitted_at=99.5, started_at=100.0, user="alice", **counts,
            msg="exit 4: worker/2; 1 of 4 still run"),
    ]  # fmt: skip
    assert [asked.params["all"] for asked in scripted.requests(path="/containers/json")] == ["1"]
    scripted.has(listed(Created=None))
    (without_times,) = list_rows(scripted.engine(), KnownTimes(), "here")
    assert (without_times.submitted_at, without_times.started_at) == (0.0, 0.0)


def test_missing_replicas_were_removed():
    running, created = listed(), listed(0, "created")
    for one in (running, created):
        one["Labels"][labels.REPLICAS] = "3"
    assert summarize("app-x", [running]).missing == 2
    app = summarize("app-x", [created])
    assert (app.missing, app.state) == (0, AppState.SUBMITTED)


def test_a_foreign_app_lacks_labels_and_is_read_all_the_same():
    app = summarize("sh-abc-x1y2z3", [listed(Labels={labels.APP_ID: "sh-abc-x1y2z3"})])
    assert (app.name, app.submitted_at, app.state, app.where(0)) == ("sh-abc", 100.0, AppState.RUNNING, "/0")


def test_a_container_without_a_name_is_called_by_its_id():
    assert container_name({"Id": "0123456789abcdef", "Names": ["/job-worker-0"]}) == "job-worker-0"
    assert container_name({"Id": "0123456789abcdef", "Names": None}) == "0123456789ab"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("Up 3 seconds (health: starting)", "starting"),
        ("Up 3 seconds (unhealthy)", "unhealthy"),
        ("Up 3 seconds", ""),
    ],
)
def test_health(status, expected):
    assert health(listed(0, "running", status)) == expected


@table("reasons", "state words")
def test_a_replicas_reason(state, words):
    assert replica_reason({"State": state, "HostConfig": {"Memory": 64 << 20}}) == words
    assert replica_reason({"State": state}) == words.replace(" at its limit of 64 MB", "")


def test_a_port_on_two_addresses_is_one():
    ports = [
        {"IP": "::1", "PrivatePort": 6006, "PublicPort": 40001, "Type": "tcp"},
        {"IP": "127.0.0.1", "PrivatePort": 6006, "PublicPort": 40000, "Type": "tcp"},
        {"PrivatePort": 9, "Type": "tcp"},
    ]
    found = published_ports([listed(Ports=ports)], [Role("worker", "i", port_map={"tb": 6006})], "")
    assert found == [PublishedPort("worker", 0, "tb", 6006, "", 40000)]
