"""What a real Kubernetes 1.36 with a real Volcano answered for nine jobs, and what a user reads of each."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.scripted_server import scripted_server

from torchx_tui.backends.kubernetes.describe import described_now
from torchx_tui.backends.kubernetes.jobs import events_path, jobs_path, pods_path
from torchx_tui.backends.kubernetes.listing import Known, KnownReasons, row_of
from torchx_tui.backends.kubernetes.phases import seconds_of
from torchx_tui.specs import NONE, AppState

Object = dict[str, Any]
FOLDER = Path(__file__).parent / "volcano"


def recorded(kind):
    documents = yaml.safe_load_all((FOLDER / f"real_{kind}.yaml").read_text())
    return [copy.deepcopy(one) for one in documents if one]


JOBS, PODS, EVENTS = recorded("jobs"), recorded("pods"), recorded("events")


def job_of(name):
    return copy.deepcopy(next(job for job in JOBS if job["metadata"]["name"].startswith(f"{name}-")))


def cluster_with(server, job, pods, events):
    """Let a server have a job, and all pods and events of its namespace; return the job's app id."""
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]

    def list_pods(asked):
        label, _, value = asked.params["labelSelector"].partition("=")
        return 200, {"items": [pod for pod in pods if pod["metadata"]["labels"].get(label) == value]}

    def list_events(asked):
        found = events
        for part in filter(None, asked.params.get("fieldSelector", "").split(",")):
            field, _, value = part.partition("=")
            *path, last = field.split(".")
            found = [event for event in found if (event[path[0]] if path else event).get(last) == value]
        # In the order of their keys, as a server has them.
        in_order = sorted(found, key=lambda event: event["metadata"]["name"])
        return 200, {"items": in_order[: int(asked.params.get("limit", len(in_order)))]}

    server.answers["GET", jobs_path(namespace, name)] = (200, job)
    server.answers["GET", pods_path(namespace)] = list_pods
    server.answers["GET", events_path(namespace)] = list_events
    return f"{namespace}:{name}"


def described(name, *, more_events=None):
    job = job_of(name)
    namespace = job["metadata"]["namespace"]
    events = [event for event in EVENTS if event["metadata"]["namespace"] == namespace] + (more_events or [])
    with scripted_server() as server:
        app_id = cluster_with(server, job, PODS, events)
        api = server.api()
        found = described_now(api, app_id)
        api.close()
        assert len(server.asked) <= 4
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("name", "state", "message"),
    [
        ("fits", AppState.SUCCEEDED, NONE),
        ("toobig", AppState.PENDING, "Unschedulable: resource in cluster is overused: overused cpu"),
        ("overqueue", AppState.PENDING, "Unschedulable: queue resource quota insufficient: insufficient cpu"),
        (
            "noimage",
            AppState.PENDING,
            "image registry.invalid/none:1 cannot be pulled: proxyconnect tcp: dial tcp 127.0.0.1:9: connect: "
            "connection refused (ErrImagePull): main/0",
        ),
        (
            "nosa",
            AppState.PENDING,
            'pods cannot be created: error looking up service account rec/missing: serviceaccount "missing" not found',
        ),
        (
            "quota",
            AppState.PENDING,
            "pods cannot be created: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1",
        ),
        ("exit3", AppState.FAILED, "exit 3: main/0"),
        ("cancelled", AppState.CANCELLED, NONE),
        ("oom", AppState.FAILED, "out of memory: killed at its limit of 20M (exit 137): main/0"),
    ],
)
def test_what_a_user_reads(name, state, message):
    response = described(name)
    assert (response.state, response.msg) == (state, message)


def test_a_job_that_ran_three_seconds_says_so():
    response = described("fits")
    assert response.started_at is not None
    assert response.finished_at is not None
    assert 3 <= response.finished_at - response.started_at <= 4


def test_restarts_and_exit_code():
    response = described("exit3")
    (replica,) = response.roles_statuses[0].replicas
    assert (response.num_restarts, replica.exit_code) == (2, 3)


def test_the_end_of_a_cancelled_job_is_not_when_it_started():
    response = described("cancelled")
    # Its pod was told to end 25 s after the job had started: its deletion's time less its grace.
    assert response.finished_at == seconds_of("2026-11-22T15:10:26Z")
    assert response.started_at == seconds_of("2026-11-22T15:10:01Z")
    assert [(change.state, change.at) for change in response.timeline[-1:]] == [
        (AppState.CANCELLED, response.finished_at)
    ]


def test_the_row_of_a_cancelled_job_has_no_false_end():
    job = job_of("cancelled")
    reasons = KnownReasons()
    assert row_of(job, reasons).finished_at is None
    # Once its pods were looked at, the row knows it as well.
    reasons.learn(job["metadata"]["uid"], Known(AppState.CANCELLED, "", 1.0))
    assert row_of(job, reasons).finished_at == 1.0
    # Whoever wrote the phase did it when the server says so.
    entry = {"time": "2026-11-22T15:10:26Z", "fieldsV1": {"f:status": {"f:state": {"f:phase": {}}}}}
    job["metadata"]["managedFields"] = [{"time": "2026-11-22T15:10:01Z", "fieldsV1": {"f:status": {}}}, entry]
    assert row_of(job, KnownReasons()).finished_at == seconds_of("2026-11-22T15:10:26Z")
    # Where a time was written with it, that is the end.
    del job["metadata"]["managedFields"]
    job["status"]["state"]["lastTransitionTime"] = "2026-11-22T15:10:25Z"
    assert row_of(job, KnownReasons()).finished_at == seconds_of("2026-11-22T15:10:25Z")


def test_a_thousand_warnings_of_other_jobs_do_not_hide_the_reason():
    others = [
        {
            "metadata": {"namespace": "rec", "name": f"a{number:04}", "uid": f"uid-{number}"},
            "involvedObject": {"kind": "PodGroup", "name": f"other-{number}", "uid": f"other-{number}"},
            "type": "Warning",
            "reason": "Unschedulable",
            "message": "0/0 tasks in gang unschedulable: pod group is not ready, 1 minAvailable",
            "lastTimestamp": "2026-11-22T15:10:40Z",
        }
        for number in range(1000)
    ]
    assert described("toobig", more_events=others).msg == "Unschedulable: resource in cluster is overused: overused cpu"


def event(about, reason, message, at, kind="Normal"):
    metadata = about["metadata"]
    return {
        "metadata": {"namespace": metadata["namespace"], "name": f"{metadata['name']}.{at}", "uid": f"uid {at}"},
        "involvedObject": {"kind": "Job", "name": metadata["name"], "uid": metadata["uid"]},
        "type": kind, "reason": reason, "message": message, "lastTimestamp": at,
    }  # fmt: skip


def test_volcano_gave_up():
    words = "Job failed on action SyncJob for retry limit reached"
    said = event(job_of("nosa"), "ExecuteAction", words, "2026-11-22T15:20:00Z")
    assert described("nosa", more_events=[said]).msg == (
        'pods cannot be created: error looking up service account rec/missing: serviceaccount "missing" not found; '
        "Volcano has given it up"
    )
    other = event(job_of("toobig"), "ExecuteAction", words, "2026-11-22T15:20:00Z")
    assert described("toobig", more_events=[other]).msg.endswith("overused cpu; Volcano has given it up")


def test_the_newest_of_events_that_tell_as_much_wins():
    job = job_of("toobig")
    words = "queue resource quota insufficient: insufficient memory"
    later = event(job, "Unschedulable", words, "2026-11-22T15:30:00Z")
    assert described("toobig", more_events=[later]).msg == f"Unschedulable: {words}"
    # What was said before a group was placed is over.
    placed = event(job, "Scheduled", "pod group is ready", "2026-11-22T15:40:00Z")
    assert described("toobig", more_events=[later, placed]).msg == "has no pod yet: main/0 and 2 more"


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        ("PluginError", "Execute plugin when job add failed, err: boom", "PluginError: Execute plugin"),
        ("PVCError", "Failed to create PVC, err: no class", "PVCError: Failed to create PVC"),
        ("ExecuteAction", "Start to execute action SyncJob", "Unschedulable: resource in cluster is overused"),
    ],
)
def test_reasons_of_the_controller(reason, message, words):
    said = event(job_of("toobig"), reason, message, "2026-11-22T15:30:00Z")
    assert described("toobig", more_events=[said]).msg.startswith(words)
