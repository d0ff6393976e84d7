"""Recorded answers of real clusters: Kubernetes 1.36 with Volcano, and an older Volcano."""

from __future__ import annotations

import copy
import time

import pytest
from backend.kubernetes.tables import documents, table
from support.scripted_server import scripted_server

from torchx_tui.backends.kube.objects import events_path, pods_path
from torchx_tui.backends.kube.pods import MAIN, seconds_of
from torchx_tui.backends.kubernetes.describe import describe, read_facts
from torchx_tui.backends.kubernetes.job_kind import JobFacts
from torchx_tui.backends.kubernetes.jobs import Jobs
from torchx_tui.backends.kubernetes.listing import Known, row_of
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO
from torchx_tui.backends.types import StateChange
from torchx_tui.specs.status import NONE, AppState

JOBS, PODS, EVENTS = (documents(f"volcano/real_{kind}.yaml") for kind in ("jobs", "pods", "events"))


def job_of(name):
    return copy.deepcopy(next(job for job in JOBS if job["metadata"]["name"].startswith(f"{name}-")))


def described(name, more_events=()):
    """Describe a job on a server that has all pods and events of its namespace."""
    job = job_of(name)
    namespace, job_name = job["metadata"]["namespace"], job["metadata"]["name"]
    events = [one for one in EVENTS if one["metadata"]["namespace"] == namespace] + list(more_events)

    def list_pods(asked):
        label, _, value = asked.params["labelSelector"].partition("=")
        return 200, {"items": [pod for pod in PODS if pod["metadata"]["labels"].get(label) == value]}

    def list_events(asked):
        found = events
        for part in filter(None, asked.params.get("fieldSelector", "").split(",")):
            field, _, value = part.partition("=")
            *path, last = field.split(".")
            found = [event for event in found if (event[path[0]] if path else event).get(last) == value]
        # In the order of their keys, as a server has them.
        in_order = sorted(found, key=lambda event: event["metadata"]["name"])
        return 200, {"items": in_order[: int(asked.params.get("limit", len(in_order)))]}

    with scripted_server() as server:
        server.answers["GET", VOLCANO.path(namespace, job_name)] = 200, job
        server.answers["GET", pods_path(namespace)] = list_pods
        server.answers["GET", events_path(namespace)] = list_events
        now = time.time()
        facts = read_facts(Jobs(server.api(), VOLCANO), f"{namespace}:{job_name}", now)
        assert len(server.asked) <= 4
    assert facts is not None
    return describe(VOLCANO, facts, now)


@table("recorded.yaml", "jobs", "state message")
def test_state_and_message(state, message, request):
    response = described(request.node.callspec.id)
    assert (response.state.name, response.msg) == (state, message)


def test_times_restarts_and_exit_code():
    fits = described("fits")
    assert fits.finished_at is not None
    assert 3 <= fits.finished_at - (fits.started_at or 0) <= 4
    failed = described("exit3")
    assert (failed.num_restarts, failed.roles_statuses[0].replicas[0].exit_code) == (2, 3)
    # Its pod was told to end 25 s after the job had started: the time of its deletion less its grace period.
    cancelled = described("cancelled")
    assert cancelled.started_at == seconds_of("2026-11-22T15:10:01Z")
    assert cancelled.finished_at == seconds_of("2026-11-22T15:10:26Z")
    assert cancelled.timeline[-1] == StateChange(AppState.CANCELLED, cancelled.finished_at or 0)


def test_end_in_the_row_of_a_cancelled_job():
    job = job_of("cancelled")
    assert row_of(VOLCANO, job).finished_at is None
    # Known once its pods were read.
    assert Known(AppState.CANCELLED, "", 1.0).put_into(row_of(VOLCANO, job)).finished_at == 1.0
    # The time of the entry that wrote the phase.
    entry = {"time": "2026-11-22T15:10:26Z", "fieldsV1": {"f:status": {"f:state": {"f:phase": {}}}}}
    job["metadata"]["managedFields"] = [{"time": "2026-11-22T15:10:01Z", "fieldsV1": {"f:status": {}}}, entry]
    assert row_of(VOLCANO, job).finished_at == seconds_of("2026-11-22T15:10:26Z")
    # A time that was written with the phase.
    del job["metadata"]["managedFields"]
    job["status"]["state"]["lastTransitionTime"] = "2026-11-22T15:10:25Z"
    assert row_of(VOLCANO, job).finished_at == seconds_of("2026-11-22T15:10:25Z")


def event(about, reason, message, time, kind="Normal", **involved):
    name = about["metadata"]["name"]
    return {
        "metadata": {"namespace": about["metadata"]["namespace"], "name": f"{name}.{time}", "uid": f"uid {time}"},
        "involvedObject": {"kind": "Job", "name": name, "uid": about["metadata"]["uid"], **involved},
        "type": kind, "reason": reason, "message": message, "lastTimestamp": f"2026-11-22T{time}:00Z",
    }  # fmt: skip


def test_thousand_events_of_other_jobs_hide_no_reason():
    words = "0/0 tasks in gang unschedulable: pod group is not ready, 1 minAvailable"
    about = {"metadata": {"namespace": "rec", "name": "a", "uid": ""}}
    others = [
        event(about, "Unschedulable", words, f"15:{number}", "Warning", name=f"other-{number}", uid=f"other-{number}")
        for number in range(1000)
    ]
    assert described("toobig", others).msg == "Unschedulable: resource in cluster is overused: overused cpu"


@table("recorded.yaml", "events", "job events message")
def test_later_events(job, events, message):
    assert described(job, [event(job_of(job), *one) for one in events]).msg == message


# An older Volcano


def older(file, kind):
    return {one["metadata"]["name"]: one for one in documents(f"volcano/{file}") if one["kind"] == kind}


def described_older(name, files):
    pods = older(files[-1], "Pod").items()
    owned = {key: pod for key, pod in pods if pod["metadata"]["labels"]["volcano.sh/job-name"] == name}
    pods = {VOLCANO.replica_of(pod): {**pod, MAIN: VOLCANO.main_container(pod)} for pod in owned.values()}
    return describe(VOLCANO, JobFacts(older(files[0], "Job")[name], pods, {}, None), 1_795_300_000.0)


@table("recorded.yaml", "older", "files state message replicas")
def test_older_jobs(files, state, message, replicas, request):
    response = described_older(request.node.callspec.id.split(",")[0], files)
    assert (response.state.name, response.msg) == (state, message)
    assert [
        [one.role, one.id, one.state.name, one.exit_code, one.signal]
        for role in response.roles_statuses
        for one in role.replicas
    ] == replicas


@pytest.mark.parametrize(
    ("file", "job", "state", "counts", "foreign"),
    [
        ("job_running.yaml", "two-roles", AppState.RUNNING, (3, 0, 3), True),
        ("jobs_ended.yaml", "fails", AppState.FAILED, (0, 0, 1), True),
        ("torchx_job.yaml", "sh-bm1hn3lw9vp0sc", AppState.SUCCEEDED, (0, 2, 2), False),
    ],
)
def test_rows_of_older_jobs(file, job, state, counts, foreign):
    row = row_of(VOLCANO, older(file, "Job")[job])
    assert (row.app_id, row.state, row.foreign) == (f"default:{job}", state, foreign)
    assert (row.replicas_running, row.replicas_succeeded, row.replicas_wanted) == counts


def test_timeline_of_a_job_that_was_restarted():
    response = described_older("fails", ["jobs_ended.yaml"])
    assert response.num_restarts == 2
    assert [change.state.name for change in response.timeline] == ["SUBMITTED", "PENDING", "RUNNING", "FAILED"]
    times = (response.submitted_at, response.started_at, response.finished_at)
    assert list(times) == sorted({time for time in times if time})


def test_role_of_a_finished_torchx_job():
    response = described_older("sh-bm1hn3lw9vp0sc", ["torchx_job.yaml", "torchx_pods.yaml"])
    (role,) = response.roles
    assert (response.name, role.name, role.num_replicas, role.image) == ("sh", "sh", 2, "busybox:local")


def test_group_explains_a_job_without_pods():
    job = older("stuck_and_failed.yaml", "Job")["toobig"]
    name = f"toobig-{job['metadata']['uid']}"
    condition = older("stuck_and_failed.yaml", "PodGroup")[name]["status"]["conditions"][0]
    warning = {"reason": "Unschedulable", "message": condition["message"]}
    words = "Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending"
    for events, message in (({name: [warning]}, words), ({}, "has no pod yet: main/0")):
        assert describe(VOLCANO, JobFacts(job, {}, events, None), 1_795_300_000.0).msg.startswith(message)


def test_job_without_a_status():
    job = {**older("job_running.yaml", "Job")["two-roles"]}
    del job["status"]
    row = row_of(VOLCANO, job)
    assert (row.state, row.replicas_running, row.replicas_wanted, row.replicas_succeeded) == (
        AppState.SUBMITTED, 0, 3, 0,
    )  # fmt: skip
    young = describe(VOLCANO, JobFacts(job, {}, {}, None), (row.submitted_at or 0) + 1)
    assert (young.state, young.msg) == (AppState.SUBMITTED, NONE)
