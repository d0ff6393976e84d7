"""What is told of jobs, pods and events as a server gives them. No cluster is needed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import pytest
from backend.kubernetes.apps import resource, role
from support.scripted_server import scripted_server, status

from torchx_tui.backends.kubernetes import labels
from torchx_tui.backends.kubernetes.causes import exit_code, job_message, not_picked_up, pod_reason, summarize_events
from torchx_tui.backends.kubernetes.describe import (
    JobFacts,
    by_object,
    cfg_of,
    describe,
    forwarded_ports,
    group_name,
    is_overdue,
    look,
    port_forward_line,
)
from torchx_tui.backends.kubernetes.listing import Known, KnownReasons, row_of
from torchx_tui.backends.kubernetes.phases import (
    ContainerRun,
    before_others,
    finished_at,
    main_container,
    run_of,
    side_by_side,
    submitted_at,
    timeline,
)
from torchx_tui.backends.types import StateChange
from torchx_tui.specs import AppState

CREATED = 1_800_000_000.0


def at(seconds: float) -> str:
    """Return a time after the job was made as a server writes it."""
    return datetime.fromtimestamp(CREATED + seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def job(phase: str = "Running", *conditions: tuple[str, float], since: float = 5, **changes: Any) -> dict[str, Any]:
    """Return a job of two replicas as a server gives it back."""
    made = resource(role(num_replicas=2, env={"A": "1"}))
    metadata = {"name": "job-x", "namespace": "space", "uid": "u1", "creationTimestamp": at(0)}
    made["metadata"] = {**made["metadata"], **metadata, **changes.pop("metadata", {})}
    state = {"phase": phase, "lastTransitionTime": at(since)} if phase else {}
    entered = [{"status": name, "lastTransitionTime": at(when)} for name, when in conditions]
    made["status"] = {"state": state, "conditions": entered, **changes.pop("status", {})}
    made["spec"].update(changes)
    return made


def pod(k: int = 0, phase: str = "Running", state: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a pod of the job as a server gives it."""
    name = f"worker-{k}"
    own = {"name": name, "image": "i", "restartCount": 0, "state": state or {"running": {"startedAt": at(6)}}}
    return {
        "metadata": {"name": f"job-x-{name}-0", "uid": f"p{k}", **changes.pop("metadata", {})},
        "spec": {"containers": [{"name": name}], "nodeName": "n1", **changes.pop("spec", {})},
        "status": {"phase": phase, "podIP": "10.0.0.1", "containerStatuses": [own], **changes},
    }


def facts(made: dict[str, Any], *pods: dict[str, Any], events: Any = (), queue: bool | None = None) -> JobFacts:
    return JobFacts(made, {one["metadata"]["name"]: one for one in pods}, by_object(events), queue)


def ended(code: int, when: float = 9, **more: Any) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "startedAt": at(6), "finishedAt": at(when), **more}}


# A whole job


def test_a_job_that_runs():
    made = job(metadata={"annotations": {labels.USER: "alice"}}, status={"retryCount": 2}, priorityClassName="high")
    told = describe(facts(made, pod(0), pod(1, restartCount=3)), CREATED + 60)
    assert (told.app_id, told.state, told.name, told.user) == ("space:job-x", AppState.RUNNING, "job", "alice")
    assert (told.num_restarts, told.msg, told.image) == (2, "<NONE>", "busybox:local")
    assert (told.submitted_at, told.started_at, told.finished_at) == (CREATED, CREATED + 5, None)
    assert told.metadata == {"namespace": "space", "queue": "default", "priority class": "high"}
    (of_role,) = told.roles_statuses
    first, second = of_role.replicas
    assert (of_role.role, first.id, second.id) == ("worker", 0, 1)
    assert (first.hostname, first.hostaddr, first.node) == ("job-x-worker-0-0", "10.0.0.1", "n1")
    assert (first.state, first.started_at, first.finished_at) == (AppState.RUNNING, CREATED + 6, None)
    assert (first.exit_code, first.signal, first.reason, first.restarts) == (None, "", "", 0)
    assert describe(facts(job(status={"retryCount": "x"})), CREATED).num_restarts == 0


def test_a_job_of_which_a_replica_failed_first():
    made = job("Failed", ("Running", 5), since=20)
    first, second = pod(0, "Failed", ended(1, 12)), pod(1, "Failed", ended(137, 11))
    told = describe(facts(made, first, second), CREATED + 60)
    assert (told.state, told.msg) == (AppState.FAILED, "exit 137 (SIGKILL): worker/1")
    assert told.finished_at == CREATED + 20
    assert [(one.exit_code, one.signal) for one in told.roles_statuses[0].replicas] == [(1, ""), (137, "SIGKILL")]
    assert [one.finished_at for one in told.roles_statuses[0].replicas] == [CREATED + 12, CREATED + 11]


@pytest.mark.parametrize(
    ("phase", "state", "reason"),
    [
        ("Pending", AppState.PENDING, "has no pod yet"),
        ("Running", AppState.PENDING, "has no pod: it is being restarted, or was removed"),
        ("Completed", AppState.SUCCEEDED, "its pod was deleted"),
        ("Failed", AppState.UNKNOWN, "its pod was deleted: how it ended is not known"),
        ("Aborted", AppState.CANCELLED, "its pod was ended"),
    ],
)
def test_a_replica_without_a_pod(phase, state, reason):
    told = describe(facts(job(phase)), CREATED + 60)
    for one in told.roles_statuses[0].replicas:
        assert (one.state, one.reason, one.role) == (state, reason, "worker")


def test_a_pod_that_was_killed_with_its_job_was_cancelled():
    told = describe(facts(job("Aborted"), pod(0, "Failed", ended(137)), pod(1, "Succeeded", ended(0))), CREATED)
    states = [one.state for one in told.roles_statuses[0].replicas]
    assert states == [AppState.CANCELLED, AppState.SUCCEEDED]


def test_a_job_of_which_only_some_run_says_why():
    waits = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}}
    told = describe(facts(job(), pod(0), pod(1, "Pending", waits)), CREATED + 60)
    assert told.msg == "image i cannot be pulled: Back-off (ImagePullBackOff): worker/1; 1 of 2 run"


def test_the_cause_of_a_group_tells_more_than_that_its_pods_wait_for_it():
    gang = [{"type": "PodScheduled", "status": "False", "message": "pod group is not ready, 2 Pending"}]
    waiting = [pod(k, "Pending", {"waiting": {}}, conditions=gang) for k in (0, 1)]
    made = job("Pending")
    event = {"reason": "Unschedulable", "message": "Insufficient cpu", "lastTimestamp": at(7)}
    about = {"involvedObject": {"name": group_name(made)}}
    told = describe(facts(made, *waiting, events=[{**event, **about}]), CREATED + 60)
    assert told.msg == "Unschedulable: Insufficient cpu"
    told = describe(facts(made, *waiting), CREATED + 60)
    assert told.msg == "cannot be scheduled: pod group is not ready, 2 Pending: worker/0 and 1 more"


def test_a_job_that_volcano_leaves_alone():
    made = job("")
    assert not is_overdue(made, CREATED + 10)
    assert is_overdue(made, CREATED + 11)
    assert not is_overdue(job("Pending"), CREATED + 11)
    assert describe(facts(made), CREATED + 9).msg == "<NONE>"
    told = describe(facts(made, queue=False), CREATED + 120)
    assert told.msg.startswith("the queue default does not exist")
    assert describe(facts(made, queue=True), CREATED + 120).msg.startswith("Volcano has not picked the job up for 2m")
    assert not_picked_up({}, None, 7200).startswith("Volcano has not picked the job up for 2h")


# What is asked of a server


def test_looking_at_a_job_asks_for_no_more_than_it_needs():
    with scripted_server() as made:
        server = made.api()
        jobs = "/apis/batch.volcano.sh/v1alpha1/namespaces/space/jobs/job-x"
        pods, events = "/api/v1/namespaces/space/pods", "/api/v1/namespaces/space/events"
        queue = "/apis/scheduling.volcano.sh/v1beta1/queues/default"
        owned = [
            {**pod(k), "metadata": {**pod(k)["metadata"], "ownerReferences": [{"uid": u}]}}
            for k, u in enumerate(("u1", "u0"))
        ]
        made.answers["GET", jobs] = 200, job()
        made.answers["GET", pods] = 200, {"items": owned, "metadata": {"resourceVersion": "7"}}
        made.answers["GET", events] = 200, {"items": [], "metadata": {"resourceVersion": "9"}}

        def selectors():
            found = [one.params["fieldSelector"] for one in made.asked if one.path == events]
            made.asked.clear()
            return found

        def asked(app_id="space:job-x", now=CREATED + 60, **known):
            found = look(server, app_id, now, **known)
            assert found is not None
            return found

        found = asked()
        # The pod of an earlier job of the name is left out; while one is missing, the job's own events are asked for.
        assert (list(found.pods), found.pods_version, found.events_version) == (["job-x-worker-0-0"], "7", "9")
        assert [one.params.get("labelSelector") for one in made.asked if one.path == pods] == [
            "volcano.sh/job-name=job-x"
        ]
        group = ["involvedObject.uid=u1", "involvedObject.name=job-x-u1"]
        assert selectors() == group
        assert asked(known=[]).events_version == ""
        assert selectors() == []
        for phase in ("Completing", "Aborting", "Terminating", "Restarting", "Completed", "Failed"):
            made.answers["GET", jobs] = 200, job(phase)
            asked()
            assert selectors() == []
        made.answers["GET", pods] = 200, {"items": []}
        asked()
        assert selectors() == group  # it failed, and no pod says why
        made.answers["GET", jobs] = 200, job("", queue=None)
        for answer, there in (
            ((200, {}), True),
            (status(404, "NotFound", "no"), False),
            (status(403, "Forbidden", "no"), None),
        ):
            made.answers["GET", queue] = answer
            assert asked().queue_exists is there
            assert selectors() == []
        assert look(server, "space:other", CREATED) is None
        server.close()


def test_events_that_may_not_be_read_are_none():
    with scripted_server() as made:
        server = made.api()
        made.answers["GET", "/apis/batch.volcano.sh/v1alpha1/namespaces/space/jobs/job-x"] = 200, job("Pending")

        def answer(asked):
            return status(403, "Forbidden", "no") if asked.path.endswith("events") else (200, {"items": []})

        for kind in ("pods", "events"):
            made.answers["GET", f"/api/v1/namespaces/space/{kind}"] = answer
        found = look(server, "space:job-x", CREATED + 60)
        assert found is not None
        assert (dict(found.events), found.events_version) == ({}, "")
        server.close()


# Ports and run options


def test_ports_of_replicas_that_run():
    ports = [
        {"containerPort": 6006, "name": "tb"},
        {"containerPort": 80},
        {"containerPort": 53, "protocol": "UDP"},
        {"containerPort": 0},
    ]
    made = job()
    runs = pod(0, spec={"containers": [{"name": "worker-0", "ports": ports}]})
    waits = pod(1, "Pending", {"waiting": {}}, spec={"containers": [{"name": "worker-1", "ports": ports}]})
    found = forwarded_ports("prod", made, facts(made, runs, waits).pods)
    assert [(one.role, one.replica, one.name, one.container_port, one.host_port) for one in found] == [
        ("worker", 0, "tb", 6006, 6006),
        ("worker", 0, "", 80, 8080),
    ]
    assert found[1].command == "kubectl --context prod --namespace space port-forward pod/job-x-worker-0-0 8080:80"
    assert port_forward_line("", "s", "p", 1024) == "kubectl --namespace s port-forward pod/p 1024:1024"
    assert port_forward_line("", "s", "p", 1023).endswith(" 9023:1023")


def test_the_run_options_of_a_job():
    made = job(queue="fast", priorityClassName="high")
    spec = made["spec"]["tasks"][0]["template"]["spec"]
    spec["serviceAccountName"] = "trainer"
    spec["containers"] = [
        {"name": "side"},
        {
            "name": "own",
            "resources": {"limits": {"cpu": "2", "memory": "3000M"}, "requests": {"cpu": "1900m", "memory": "2000M"}},
        },
    ]
    assert cfg_of(made) == {
        "queue": "fast",
        "namespace": "space",
        "priority_class": "high",
        "service_account": "trainer",
        "reserved_millicpu": 100,
        "reserved_memmb": 1000,
    }
    spec.update(serviceAccountName="default", containers=[])
    made["spec"].update(queue=None, priorityClassName=None)
    assert cfg_of(made) == {"queue": "default", "namespace": "space"}


# Phases


@pytest.mark.parametrize(
    ("phase", "state"),
    [
        ("", AppState.SUBMITTED),
        ("Pending", AppState.PENDING),
        *((phase, AppState.RUNNING) for phase in ("Running", "Restarting", "Completing", "Aborting", "Terminating")),
        ("Completed", AppState.SUCCEEDED),
        ("Aborted", AppState.CANCELLED),
        ("Terminated", AppState.FAILED),
        ("Failed", AppState.FAILED),
        ("Odd", AppState.UNKNOWN),
    ],
)
def test_the_row_of_a_job(phase, state):
    made = job(phase, ("Running", 5), since=20, status={"running": 1, "succeeded": 1})
    row = row_of(made, KnownReasons())
    over = state in (AppState.SUCCEEDED, AppState.CANCELLED, AppState.FAILED)
    assert (row.state, row.replicas_wanted, row.replicas_running) == (state, 2, 0 if over else 1)
    assert row.replicas_succeeded == (2 if state is AppState.SUCCEEDED else 1)
    assert (row.submitted_at, row.finished_at) == (CREATED, CREATED + 20 if over else None)
    assert (row.name, row.image, row.foreign, row.user) == ("job", "busybox:local", False, "")


def test_what_was_found_out_of_a_job_holds_in_its_state():
    reasons = KnownReasons()
    reasons.learn("u1", Known(AppState.RUNNING, "why", 7.0))
    assert (row_of(job(), reasons).msg, row_of(job("Pending"), reasons).msg) == ("why", "")
    reasons.forget("u1")
    reasons.forget("u1")
    assert row_of(job(), reasons).msg == ""
    said = {"state": {"phase": "Failed", "reason": "R", "message": "m"}}
    assert job_message({"status": said}) == "R: m"
    assert job_message({}) == ""


def test_our_time_is_more_exact_unless_a_clock_is_wrong():
    for ours, told in ((CREATED + 0.25, CREATED + 0.25), (CREATED - 59, CREATED - 59), (CREATED + 61, CREATED)):
        assert submitted_at(job(metadata={"annotations": {labels.SUBMITTED_AT: str(ours)}})) == told
    assert submitted_at(job(metadata={"annotations": {labels.SUBMITTED_AT: "soon"}})) == CREATED
    assert submitted_at({"metadata": {}}) == 0.0


def test_the_states_that_a_job_went_through():
    made = job("Completed", ("Pending", 1), ("Running", 4), ("Completing", 8), since=9)
    assert timeline(made) == [
        StateChange(AppState.SUBMITTED, CREATED),
        StateChange(AppState.PENDING, CREATED + 1),
        StateChange(AppState.RUNNING, CREATED + 4),
        StateChange(AppState.SUCCEEDED, CREATED + 9),
    ]
    # Times never go back.
    assert timeline(job("Running", ("Pending", 6), since=2))[-1] == StateChange(AppState.RUNNING, CREATED + 6)


def test_the_end_of_a_job_whose_phase_was_written_without_a_time():
    made = job("Aborted", ("Running", 4), since=4)
    assert finished_at(made) is None
    assert timeline(made)[-1].state is AppState.RUNNING
    assert timeline(made, CREATED + 7)[-1] == StateChange(AppState.CANCELLED, CREATED + 7)
    leaving = pod(1, metadata={"deletionTimestamp": at(40), "deletionGracePeriodSeconds": 30})
    first = pod(0, "Failed", ended(1, 9))
    assert [finished_at(made, pods) for pods in ([first], [leaving, first])] == [CREATED + 9, CREATED + 10]
    fields = [
        {"time": at(11), "fieldsV1": {"f:spec": {}}},
        {"time": at(12), "fieldsV1": {"f:status": {"f:state": {"f:message": {}}}}},
        {"time": at(13), "fieldsV1": {"f:status": {"f:state": {"f:phase": {}}}}},
    ]
    assert finished_at(job("Aborted", ("Running", 4), since=4, metadata={"managedFields": fields})) == CREATED + 13
    whole = [{"time": at(14), "fieldsV1": {"f:status": {"f:state": {}}}}]
    assert finished_at(job("Aborted", ("Running", 4), since=4, metadata={"managedFields": whole})) == CREATED + 14
    assert finished_at(job()) is None


def test_which_container_is_the_replica():
    made = pod(spec={"containers": [{"name": "a"}, {"name": "b"}]})
    assert main_container(made) == "a"
    named = {"annotations": {"kubectl.kubernetes.io/default-container": "b"}}
    made = pod(spec={"containers": [{"name": "a"}, {"name": "b"}]}, metadata=named)
    made["spec"]["initContainers"] = [{"name": "first"}, {"name": "side", "restartPolicy": "Always"}]
    assert (main_container(made), side_by_side(made), before_others(made)) == ("b", ["b", "a", "side"], ["first"])
    named["annotations"]["kubectl.kubernetes.io/default-container"] = "gone"
    assert main_container(pod(metadata=named)) == "worker-0"
    assert main_container({"metadata": {}, "spec": {}}) == ""


@pytest.mark.parametrize(
    ("state", "changes", "run"),
    [
        ({"running": {}}, {"restartCount": 2}, ContainerRun(2, True, False)),
        (ended(0), {}, ContainerRun(0, False, False)),
        (ended(0), {"policy": "Never"}, ContainerRun(0, False, True)),
        (ended(0), {"policy": "OnFailure"}, ContainerRun(0, False, True)),
        (ended(1), {"policy": "OnFailure"}, ContainerRun(0, False, False)),
        (ended(1), {"phase": "Failed"}, ContainerRun(0, False, True)),
        (ended(0), {"phase": "Succeeded"}, ContainerRun(0, False, True)),
        (ended(1), {"leaves": True}, ContainerRun(0, False, True)),
        ({"waiting": {}}, {}, ContainerRun(-1, False, False)),
        ({"waiting": {}}, {"restartCount": 1}, ContainerRun(1, False, False)),
        ({"waiting": {}}, {"lastState": ended(1)}, ContainerRun(0, False, False)),
        ({"waiting": {}}, {"phase": "Failed"}, ContainerRun(-1, False, True)),
    ],
)
def test_how_a_container_is_doing(state, changes, run):
    made = pod(0, changes.pop("phase", "Running"), state)
    if "policy" in changes:
        made["spec"]["restartPolicy"] = changes.pop("policy")
    if changes.pop("leaves", False):
        made["metadata"]["deletionTimestamp"] = at(9)
    made["status"]["containerStatuses"][0].update(changes)
    assert run_of(made, "worker-0") == run


# Reasons


@pytest.mark.parametrize(
    ("status_of", "words"),
    [
        ({"reason": "Evicted", "message": "low on memory"}, "evicted from its node: low on memory"),
        ({"reason": "DeadlineExceeded", "message": "m"}, "ran longer than it may (DeadlineExceeded): m"),
        ({"reason": "NodeShutdown", "message": "m"}, "NodeShutdown: m"),
        ({"message": "m"}, "m"),
        ({"of": ended(3)}, "exit 3"),
        ({"of": ended(3, message=" why \n")}, "exit 3: why"),
        ({"of": ended(137, reason="OOMKilled")}, "out of memory: killed at its limit of 1G (exit 137)"),
        (
            {"of": ended(128, reason="StartError", message='exec: "no": executable file not found in $PATH')},
            "cannot be run: no such command: no: the image does not have it",
        ),
        ({"of": ended(128, reason="ContainerCannotRun", message="Error: odd")}, "cannot be run: odd"),
    ],
)
def test_why_a_pod_failed(status_of, words):
    state = status_of.pop("of", {"waiting": {}})
    limits = {"resources": {"limits": {"memory": "1G"}}}
    made = pod(0, "Failed", state, spec={"containers": [{"name": "worker-0", **limits}]}, **status_of)
    assert pod_reason(made) == words


@pytest.mark.parametrize(
    ("state", "last", "phase", "words"),
    [
        ({"waiting": {"reason": "CrashLoopBackOff"}}, ended(3), "Running", "starts again after exit 3"),
        ({"waiting": {"reason": "CrashLoopBackOff"}}, {}, "Running", "starts again"),
        (
            {"waiting": {"reason": "RunContainerError", "message": "m"}},
            {},
            "Running",
            "its container cannot be started: m",
        ),
        ({"waiting": {"reason": "CreateContainerConfigError"}}, {}, "Pending", "its container cannot be set up"),
        (
            {"waiting": {"reason": "ErrImageNeverPull"}},
            {},
            "Pending",
            "image i cannot be pulled: it is not on the node, and its pull policy is Never (ErrImageNeverPull)",
        ),
        ({"running": {}}, {}, "Unknown", "its node does not answer: its state is unknown"),
        ({"running": {}}, {}, "Running", ""),
    ],
)  # fmt: skip
def test_why_a_pod_is_as_it_is(state, last, phase, words):
    made = pod(0, phase, state)
    made["status"]["containerStatuses"][0]["lastState"] = last
    assert pod_reason(made) == words
    assert exit_code(made) is None
    assert exit_code(pod(0, "Failed", ended(4))) == 4


def test_the_last_try_to_pull_an_image_is_told():
    made = pod(0, "Pending", {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}})
    events = [
        {"reason": "Failed", "message": f'Failed to pull image "i": {words}', "lastTimestamp": at(when)}
        for when, words in ((9, "denied"), (5, "before"))
    ]
    events.append({"reason": "Failed", "message": "Error: ImagePullBackOff", "lastTimestamp": at(10)})
    events.append({"reason": "Pulling", "message": "Failed to pull nothing", "lastTimestamp": at(11)})
    assert pod_reason(made, events) == "image i cannot be pulled: denied (ImagePullBackOff)"


def event(reason: str, message: str, when: float) -> dict[str, Any]:
    return {"reason": reason, "message": message, "lastTimestamp": at(when)}


@pytest.mark.parametrize(
    ("events", "text", "is_cause"),
    [
        ([], "", False),
        ([event("Pulled", "m", 1)], "", False),
        ([event("FailedMount", "m", 1), event("Unschedulable", "n", 0)], "FailedMount: m", True),
        ([event("Unschedulable", "a", 1), event("FailedCreate", "b", 0)], "FailedCreate: b", True),
        ([event("Unschedulable", "new", 2), event("Unschedulable", "old", 1)], "Unschedulable: new", True),
        ([event("Unschedulable", "pod group is not ready", 1)], "Unschedulable: pod group is not ready", False),
        ([event("Unschedulable", "pod group is ready", 1)], "", False),
        ([event("Unschedulable", "before", 1), event("Scheduled", "placed", 2)], "", False),
        (
            [event("Unschedulable", "a", 1), event("ExecuteAction", "x for retry limit reached", 2)],
            "Unschedulable: a; Volcano has given it up",
            True,
        ),
        ([event("ExecuteAction", "x for retry limit reached", 2)], "ExecuteAction: x for retry limit reached", True),
        ([event("ExecuteAction", "x", 2)], "", False),
        (
            [event("FailedCreate", 'Error creating pods: [failed to create pod a, err: pods "a" is forbidden: no '
                   "quota failed to create pod b, err: x]", 1)],
            "pods cannot be created: no quota",
            True,
        ),
    ],
)  # fmt: skip
def test_the_event_that_explains_most(events, text, is_cause):
    assert summarize_events(events) == (text, is_cause)
