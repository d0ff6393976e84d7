"""Recorded answers of real clusters: Kubernetes 1.36 with Volcano, and an older Volcano."""

import copy
import time
from functools import partial
from typing import Any

from backend.kubernetes.samples import chosen
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
from torchx_tui.specs.status import AppState

JOBS, PODS, EVENTS = (documents(f"volcano/real_{kind}.yaml") for kind in ("jobs", "pods", "events"))


def job_of(name):
    return copy.deepcopy(next(job for job in JOBS if job["metadata"]["name"].startswith(f"{name}-")))


def list_chosen(items, asked):
    found = chosen(items, asked)
    return 200, {"items": found[: int(asked.params.get("limit", len(found)))]}


def described(name, more_events=()):
    """Describe a job on a server that has all pods and events of its namespace."""
    job = job_of(name)
    namespace = job["metadata"]["namespace"]
    # Events in the order of their keys, as a server has them.
    events = sorted([*EVENTS, *more_events], key=lambda one: one["metadata"]["name"])
    lists = {pods_path: PODS, events_path: [one for one in events if one["metadata"]["namespace"] == namespace]}
    with scripted_server() as server:
        server.gives(VOLCANO.path(namespace, job["metadata"]["name"]), job)
        for path, items in lists.items():
            server.answers["GET", path(namespace)] = partial(list_chosen, items)
        now = time.time()
        facts: Any = read_facts(Jobs(server.api(), VOLCANO), f"{namespace}:{job['metadata']['name']}", now)
        assert len(server.asked) <= 4
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


@table("recorded.yaml", "older rows", "file state counts foreign")
def test_rows_of_older_jobs(file, state, counts, foreign, request):
    job = request.node.callspec.id
    row = row_of(VOLCANO, older(file, "Job")[job])
    assert (row.app_id, row.state.name, row.foreign) == (f"default:{job}", state, foreign)
    assert [row.replicas_running, row.replicas_succeeded, row.replicas_wanted] == counts


def test_role_of_a_finished_torchx_job():
    response = described_older("sh-bm1hn3lw9vp0sc", ["torchx_job.yaml", "torchx_pods.yaml"])
    (role,) = response.roles
    assert (response.name, role.name, role.num_replicas, role.image) == ("sh", "sh", 2, "busybox:local")
