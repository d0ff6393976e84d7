"""What a real Volcano answered, and what is made of it."""

from __future__ import annotations

import copy
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from torchx_tui.backends.kubernetes.describe import JobFacts, describe
from torchx_tui.backends.kubernetes.listing import KnownReasons, row_of
from torchx_tui.backends.kubernetes.phases import app_state
from torchx_tui.specs import NONE, AppState, may_follow

FOLDER = Path(__file__).parent / "volcano"
NOW = 1_795_300_000.0


def recorded(file, kind):
    documents = yaml.safe_load_all((FOLDER / file).read_text())
    return {one["metadata"]["name"]: one for one in documents if one["kind"] == kind}


def described(file, job, pods="", without_pods=False):
    found = {} if without_pods else recorded(pods or file, "Pod")
    owned = {name: pod for name, pod in found.items() if pod["metadata"]["labels"]["volcano.sh/job-name"] == job}
    return describe(JobFacts(recorded(file, "Job")[job], owned, {}, None), NOW)


def replicas(response):
    return [(one.role, one.id, one.state, one.reason) for role in response.roles_statuses for one in role.replicas]


def test_a_job_that_runs():
    response = described("job_running.yaml", "two-roles", "pods_running.yaml")
    assert response.state is AppState.RUNNING
    assert response.msg == NONE
    assert replicas(response) == [
        ("trainer-0", 0, AppState.RUNNING, ""),
        ("trainer-0", 1, AppState.RUNNING, ""),
        ("reader", 0, AppState.RUNNING, ""),
    ]
    first = response.roles_statuses[0].replicas[0]
    assert (first.hostname, first.node) == ("two-roles-trainer-0-0", "vm")
    assert first.hostaddr is not None
    assert first.hostaddr.startswith("10.244.")
    assert first.started_at is not None
    assert first.finished_at is None
    row = row_of(recorded("job_running.yaml", "Job")["two-roles"], KnownReasons())
    assert (row.app_id, row.replicas_running, row.replicas_wanted, row.foreign) == ("default:two-roles", 3, 3, True)


def test_a_job_that_was_started_anew_until_it_failed():
    job = recorded("jobs_ended.yaml", "Job")["fails"]
    row = row_of(job, KnownReasons())
    assert (row.state, row.replicas_running, row.replicas_wanted) == (AppState.FAILED, 0, 1)
    response = described("jobs_ended.yaml", "fails", without_pods=True)
    assert response.num_restarts == 2
    assert [change.state for change in response.timeline] == [
        AppState.SUBMITTED,
        AppState.PENDING,
        AppState.RUNNING,
        AppState.FAILED,
    ]
    assert response.started_at is not None
    assert response.finished_at is not None
    assert response.submitted_at < response.started_at < response.finished_at  # type: ignore[operator]
    # Volcano has removed its pod: nobody knows how it ended.
    assert [state for _, _, state, _ in replicas(response)] == [AppState.UNKNOWN]


def test_a_job_whose_pods_end_still_runs():
    response = described("jobs_ended.yaml", "two-roles", "pods_running.yaml")
    assert response.state is AppState.RUNNING
    assert response.finished_at is None


def test_a_finished_torchx_job_keeps_roles_and_replicas():
    """Volcano drops the counts that TorchX reads roles from."""
    response = described("torchx_job.yaml", "sh-bm1hn3lw9vp0sc", "torchx_pods.yaml")
    assert response.state is AppState.SUCCEEDED
    assert response.name == "sh"
    assert replicas(response) == [("sh", 0, AppState.SUCCEEDED, ""), ("sh", 1, AppState.SUCCEEDED, "")]
    assert [one.exit_code for one in response.roles_statuses[0].replicas] == [0, 0]
    (role,) = response.roles
    assert (role.name, role.num_replicas, role.image) == ("sh", 2, "busybox:local")
    row = row_of(recorded("torchx_job.yaml", "Job")["sh-bm1hn3lw9vp0sc"], KnownReasons())
    assert (row.replicas_succeeded, row.replicas_wanted, row.foreign, row.name) == (2, 2, False, "sh")


@pytest.mark.parametrize(
    ("job", "state", "message", "replica"),
    [
        (
            "noimage",
            AppState.PENDING,
            "image nosuch:1 cannot be pulled: it is not on the node, and its pull policy is Never (ErrImageNeverPull): "
            "main/0",
            AppState.PENDING,
        ),
        (
            "toobig",
            AppState.PENDING,
            "cannot be scheduled: 0/3 nodes are unavailable: 3 Insufficient cpu.: main/0",
            AppState.PENDING,
        ),
        ("oom", AppState.FAILED, "out of memory: killed at its limit of 32Mi (exit 137): main/0", AppState.FAILED),
        ("long", AppState.CANCELLED, NONE, AppState.CANCELLED),
    ],
)
def test_what_is_stuck_or_ended_says_why(job, state, message, replica):
    response = described("stuck_and_failed.yaml", job)
    assert (response.state, response.msg) == (state, message)
    assert [one for _, _, one, _ in replicas(response)] == [replica]


def test_a_process_killed_for_its_memory_has_exit_code_and_signal():
    response = described("stuck_and_failed.yaml", "oom")
    one = response.roles_statuses[0].replicas[0]
    assert (one.exit_code, one.signal) == (137, "SIGKILL")


def test_the_group_says_why_where_no_pod_does():
    job = recorded("stuck_and_failed.yaml", "Job")["toobig"]
    group = recorded("stuck_and_failed.yaml", "PodGroup")[f"toobig-{job['metadata']['uid']}"]
    warning = {"reason": "Unschedulable", "message": group["status"]["conditions"][0]["message"]}
    response = describe(JobFacts(job, {}, {f"toobig-{job['metadata']['uid']}": [warning]}, None), NOW)
    assert response.msg.startswith("Unschedulable: 1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending")
    silent = describe(JobFacts(job, {}, {}, None), NOW)
    assert silent.msg == "has no pod yet: main/0"


# Which states a job went through, by what was seen of it every half second.
@pytest.mark.parametrize(
    ("phases", "states"),
    [
        (
            ["", "Pending", "Running", "Restarting", "Pending", "Running", "Restarting", "Failed"],
            ["SUBMITTED", "PENDING", "RUNNING", "RUNNING", "PENDING", "RUNNING", "RUNNING", "FAILED"],
        ),
        (
            ["", "Pending", "Running", "Completing", "Completed"],
            ["SUBMITTED", "PENDING", "RUNNING", "RUNNING", "SUCCEEDED"],
        ),
        (["Running", "Aborting", "Aborted"], ["RUNNING", "RUNNING", "CANCELLED"]),
        (["Running", "Terminating", "Terminated"], ["RUNNING", "RUNNING", "FAILED"]),
        (["Pending", "SomethingNew"], ["PENDING", "UNKNOWN"]),
    ],
)
def test_phases(phases, states):
    job = copy.deepcopy(recorded("job_running.yaml", "Job")["two-roles"])
    seen = []
    for phase in phases:
        job["status"] = {"state": {"phase": phase}} if phase else {}
        seen.append(app_state(job))
    assert [state.name for state in seen] == states
    assert all(may_follow(before, after) for before, after in pairwise(seen) if before is not after)


def test_a_job_without_a_status():
    job = recorded("job_running.yaml", "Job")["two-roles"]
    del job["status"]
    row = row_of(job, KnownReasons())
    assert (row.state, row.replicas_running, row.replicas_wanted) == (AppState.SUBMITTED, 0, 3)
    assert row.replicas_succeeded == 0
    young = describe(JobFacts(job, {}, {}, None), row.submitted_at + 1)  # type: ignore[operator]
    assert (young.state, young.msg) == (AppState.SUBMITTED, NONE)
    old = describe(JobFacts(job, {}, {}, None), row.submitted_at + 120)  # type: ignore[operator]
    assert "Volcano has not picked the job up for 2m" in old.msg
    lost = describe(JobFacts(job, {}, {}, False), row.submitted_at + 120)  # type: ignore[operator]
    assert "the queue default does not exist" in lost.msg
