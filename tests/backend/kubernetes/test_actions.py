"""What else can be done with a job: suspend, resume, scale."""

from __future__ import annotations

import json
from typing import Any

import pytest
from backend.kubernetes.samples import FOLDER, sample, serve
from support.scripted_server import scripted_server, status

from torchx_tui.backends.kubernetes.kinds.batch import BATCH
from torchx_tui.backends.kubernetes.kinds.cron import CRON
from torchx_tui.backends.kubernetes.kinds.jobset import JOBSET
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.specs.errors import JobNotFoundError, SchedulerError

KINDS = {"plain": BATCH, "kueue": BATCH, "jobset": JOBSET, "cron": CRON, "volcano": VOLCANO}


@pytest.fixture
def server():
    with scripted_server() as made:
        yield made


@pytest.fixture
def scheduler(server):
    made = KubernetesScheduler("test", server.client(), namespace="jobs")
    yield made
    made.close()


def cron_job(name: str) -> dict[str, Any]:
    found = json.loads((FOLDER / "cron.jsonl").read_text())
    return {**found, "job": next(one for one in found["crons"] if one["metadata"]["name"] == name)}


def put_job(server, group: str, name: str) -> str:
    """Put a recorded job on a server that keeps what is written to it; return its app id."""
    found = cron_job(name) if group == "cron" else sample(group, name)
    kind, app_id = KINDS[group], serve(server, KINDS[group], found)
    path = kind.path(found["job"]["metadata"]["namespace"], name)
    server.answers["GET", path] = lambda _: (200, found["job"])

    def write(asked):
        found["job"] = asked.body
        return 200, found["job"]

    server.answers["PUT", path] = write
    server.written = lambda: found["job"]["spec"]
    return app_id


@pytest.mark.parametrize(
    ("group", "name", "expected"),
    [
        ("plain", "indexed-running", ["suspend", "scale"]),
        ("plain", "suspended", ["resume"]),
        ("plain", "indexed-done", []),
        ("kueue", "kq-running", []),
        ("kueue", "kq-waiting", []),
        ("jobset", "js-running", ["suspend"]),
        ("jobset", "js-suspended", ["resume"]),
        ("jobset", "js-done", []),
        ("cron", "cron-ok", ["suspend"]),
        ("cron", "cron-suspended", ["resume"]),
        ("volcano", "poddel", []),
    ],
)
def test_actions_fit_the_state(server, scheduler, group, name, expected):
    app_id = put_job(server, group, name)
    assert [action.name for action in scheduler.actions(app_id)] == expected


@pytest.mark.parametrize(
    ("group", "name"), [("plain", "indexed-running"), ("jobset", "js-running"), ("cron", "cron-ok")]
)
def test_suspended_and_resumed(server, scheduler, group, name):
    app_id = put_job(server, group, name)
    before = {**server.written(), "suspend": False}
    scheduler.act(app_id, "suspend")
    assert server.written() == {**before, "suspend": True}
    scheduler.act(app_id, "resume")
    assert server.written() == before


def test_pods_of_an_indexed_job_are_its_completions(server, scheduler):
    app_id = put_job(server, "plain", "indexed-running")
    scheduler.act(app_id, "scale", "2")
    assert (server.written()["parallelism"], server.written()["completions"]) == (2, 2)


def test_completions_stay_where_pods_take_turns(server, scheduler):
    app_id = put_job(server, "plain", "unsched-hostport")
    server.written()["completions"] = 8
    scheduler.act(app_id, "scale", "4")
    assert (server.written()["parallelism"], server.written()["completions"]) == (4, 8)


@pytest.mark.parametrize("value", ["", "0", "-1", "two", "1.5", "10001", "٣" * 9])
def test_malformed_number_changes_nothing(server, scheduler, value):
    app_id = put_job(server, "plain", "indexed-running")
    with pytest.raises(SchedulerError, match="is not a number of pods: write it as 4, at most 10000"):
        scheduler.act(app_id, "scale", value)
    assert not [one for one in server.asked if one.method == "PUT"]


def test_action_that_is_not_offered_is_refused(server, scheduler):
    app_id = put_job(server, "plain", "indexed-running")
    with pytest.raises(SchedulerError, match=r"resume is not possible now\. Possible: suspend, scale"):
        scheduler.act(app_id, "resume")


def test_job_that_somebody_else_writes_is_read_again(server, scheduler):
    app_id = put_job(server, "plain", "indexed-running")
    path = BATCH.path("jobs", "indexed-running")
    write, conflicts = server.answers["PUT", path], [status(409, "Conflict", "it has changed")]
    server.answers["PUT", path] = lambda asked: conflicts.pop() if conflicts else write(asked)
    scheduler.act(app_id, "suspend")
    assert server.written()["suspend"] is True


def test_unknown_job_has_no_actions(server, scheduler):
    server.answers["GET", BATCH.path("jobs", "gone")] = status(404, "NotFound", "gone")
    with pytest.raises(JobNotFoundError):
        scheduler.actions("jobs:job:gone")
