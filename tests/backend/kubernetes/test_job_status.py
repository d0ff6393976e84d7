"""Jobs and pods as a scripted server gives them: their description, row, ports and run options."""

from datetime import datetime, timezone

import pytest
from backend.kubernetes.apps import resource, role
from backend.kubernetes.tables import table
from support.scripted_server import scripted_server, status

from torchx_tui.backends.kube.pods import ContainerRun, before_others, main_container, run_of
from torchx_tui.backends.kubernetes import labels
from torchx_tui.backends.kubernetes.describe import by_object, describe, forwarded_ports, port_forward_line, read_facts
from torchx_tui.backends.kubernetes.job_kind import JobFacts, Replica
from torchx_tui.backends.kubernetes.jobs import Jobs
from torchx_tui.backends.kubernetes.listing import Known, row_of
from torchx_tui.backends.kubernetes.times import submitted_at
from torchx_tui.backends.kubernetes.volcano.causes import not_picked_up
from torchx_tui.backends.kubernetes.volcano.kind import VOLCANO, group_name
from torchx_tui.backends.kubernetes.volcano.phases import timeline
from torchx_tui.backends.types import ListAppResponse, PublishedPort, StateChange
from torchx_tui.specs.status import AppState, ReplicaStatus

CREATED = 1_800_000_000.0
NOW = CREATED + 60


def at(seconds):
    """Format a time after the job's creation as a server does."""
    return datetime.fromtimestamp(CREATED + seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def job(phase="Running", *conditions, since=5, metadata=(), status=(), **spec):
    """Return a job of two replicas."""
    made = resource(role(num_replicas=2, env={"A": "1"}))
    made["metadata"] |= {
        "name": "job-x",
        "namespace": "space",
        "uid": "u1",
        "creationTimestamp": at(0),
        **dict(metadata),
    }
    state = {"phase": phase, "lastTransitionTime": at(since)} if phase else {}
    entered = [{"status": name, "lastTransitionTime": at(when)} for name, when in conditions]
    made["status"] = {"state": state, "conditions": entered, **dict(status)}
    made["spec"].update(spec)
    return made


LABELS = {"torchx.pytorch.org/role-name": "worker", "torchx.pytorch.org/replica-id": "0"}


def pod(k=0, phase="Running", state=None, metadata=(), spec=(), **status):
    name = f"worker-{k}"
    labels = {**LABELS, "torchx.pytorch.org/replica-id": str(k)}
    own = {"name": name, "image": "i", "restartCount": 0, "state": state or {"running": {"startedAt": at(6)}}}
    return {
        "metadata": {"name": f"job-x-{name}-0", "uid": f"p{k}", "labels": labels, **dict(metadata)},
        "spec": {"containers": [{"name": name}], "nodeName": "n1", **dict(spec)},
        "status": {"phase": phase, "podIP": "10.0.0.1", "containerStatuses": [own], **status},
    }


def described(made, *pods, events=(), queue=None, now=NOW):
    return describe(VOLCANO, JobFacts(made, by_replica(*pods), by_object(events), queue), now)


def by_replica(*pods):
    with scripted_server() as server:
        jobs = Jobs(server.api(), VOLCANO)
        read = [jobs.read_pod(one, "") for one in pods]
    return VOLCANO.by_replica({}, filter(None, read))


def replicas(*facts):
    return described(*facts).roles_statuses[0].replicas


def ended(code, when=9, **more):
    return {"terminated": {"exitCode": code, "startedAt": at(6), "finishedAt": at(when), **more}}


# Descriptions


def test_running_job():
    made = job(metadata={"annotations": {labels.USER: "alice"}}, status={"retryCount": 2}, priorityClassName="high")
    found = described(made, pod(0), pod(1, restartCount=3))
    assert (found.app_id, found.state, found.name, found.user) == ("space:job-x", AppState.RUNNING, "job", "alice")
    assert (found.num_restarts, found.msg, found.image) == (2, "<NONE>", "busybox:local")
    assert (found.submitted_at, found.started_at, found.finished_at) == (CREATED, CREATED + 5, None)
    assert found.metadata == {"namespace": "space", "queue": "default", "priority class": "high"}
    (of_role,) = found.roles_statuses
    common = {"hostaddr": "10.0.0.1", "node": "n1", "started_at": CREATED + 6}
    assert of_role.role == "worker"
    assert of_role.replicas == [
        ReplicaStatus(k, AppState.RUNNING, "worker", f"job-x-worker-{k}-0", **common) for k in (0, 1)
    ]


def test_failed_job_names_the_first_failure():
    found = described(
        job("Failed", ("Running", 5), since=20), pod(0, "Failed", ended(1, 12)), pod(1, "Failed", ended(137, 11))
    )
    assert (found.state, found.msg) == (AppState.FAILED, "exit 137 (SIGKILL): worker/1")
    assert found.finished_at == CREATED + 20
    assert [(one.exit_code, one.signal, one.finished_at) for one in found.roles_statuses[0].replicas] == [
        (1, "", CREATED + 12),
        (137, "SIGKILL", CREATED + 11),
    ]


@table("job_status.yaml", "without a pod", "phase state reason")
def test_replica_without_a_pod(phase, state, reason):
    assert replicas(job(phase)) == [ReplicaStatus(k, AppState[state], "worker", "", reason=reason) for k in (0, 1)]


def test_pod_killed_with_its_job_is_cancelled():
    found = replicas(job("Aborted"), pod(0, "Failed", ended(137)), pod(1, "Succeeded", ended(0)))
    assert [one.state for one in found] == [AppState.CANCELLED, AppState.SUCCEEDED]


def test_partly_running_job_says_why():
    waits = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off"}}
    found = described(job(), pod(0), pod(1, "Pending", waits))
    assert found.msg == "image i cannot be pulled: Back-off (ImagePullBackOff): worker/1; 1 of 2 run"


def test_cause_of_a_group_replaces_gang_messages():
    gang = [{"type": "PodScheduled", "status": "False", "message": "pod group is not ready, 2 Pending"}]
    waiting = [pod(k, "Pending", {"waiting": {}}, conditions=gang) for k in (0, 1)]
    made = job("Pending")
    about = {"involvedObject": {"name": group_name(made)}, "lastTimestamp": at(7)}
    event = {"reason": "Unschedulable", "message": "Insufficient cpu", **about}
    assert described(made, *waiting, events=[event]).msg == "Unschedulable: Insufficient cpu"
    assert described(made, *waiting).msg == (
        "cannot be scheduled: pod group is not ready, 2 Pending: worker/0 and 1 more"
    )


def test_job_that_volcano_ignores():
    made = job("")
    assert described(made, now=CREATED + 9).msg == "<NONE>"
    late = CREATED + 120
    assert described(made, queue=False, now=late).msg.startswith("the queue default does not exist")
    assert described(made, queue=True, now=late).msg.startswith("Volcano has not picked the job up for 2m")
    assert not_picked_up({}, None, 7200).startswith("Volcano has not picked the job up for 2h")


# Requests

JOB = "/apis/batch.volcano.sh/v1alpha1/namespaces/space/jobs/job-x"
PODS, EVENTS = (f"/api/v1/namespaces/space/{kind}" for kind in ("pods", "events"))
QUEUE = "/apis/scheduling.volcano.sh/v1beta1/queues/default"


@pytest.fixture
def server(server):
    server.gives(JOB, job())
    server.lists(PODS)
    return server


def look_at(server):
    """Look at the job; return what was found, and the selectors of the events that were asked for."""
    server.asked.clear()
    found = read_facts(Jobs(server.api(), VOLCANO), "space:job-x", NOW)
    assert found is not None
    return found, [one.params["fieldSelector"] for one in server.requests(path=EVENTS)]


def test_look_sends_only_needed_requests(server):
    # The second pod is of an earlier job of the same name.
    owned = [pod(k, metadata={"ownerReferences": [{"uid": uid}]}) for k, uid in enumerate(("u1", "u0"))]
    server.gives(PODS, {"items": owned, "metadata": {"resourceVersion": "7"}})
    server.gives(EVENTS, {"items": [], "metadata": {"resourceVersion": "9"}})
    group = ["involvedObject.uid=u1", "involvedObject.name=job-x-u1"]
    found, selectors = look_at(server)
    # While a pod is missing, the job's own events are needed.
    assert list(found.pods) == [Replica("worker", 0)]
    assert selectors == group
    assert [one.params["labelSelector"] for one in server.requests(path=PODS)] == ["volcano.sh/job-name=job-x"]
    for phase in ("Completing", "Aborting", "Terminating", "Restarting", "Completed", "Failed"):
        server.gives(JOB, job(phase))
        assert look_at(server)[1] == []
    # It failed, and no pod says why.
    server.lists(PODS)
    assert look_at(server)[1] == group


def test_look_checks_the_queue_of_an_ignored_job(server):
    server.gives(JOB, job(""))
    for answer, exists in (
        ((200, {}), True),
        (status(404, "NotFound", "no"), False),
        (status(403, "Forbidden", "no"), None),
    ):
        server.answers["GET", QUEUE] = answer
        found, selectors = look_at(server)
        assert (found.more, selectors) == (exists, [])
    assert read_facts(Jobs(server.api(), VOLCANO), "space:other", CREATED) is None


def test_forbidden_events_are_skipped(server):
    server.gives(JOB, job("Pending"))
    server.answers["GET", EVENTS] = status(403, "Forbidden", "no")
    found, selectors = look_at(server)
    assert (found.events, len(selectors)) == ({}, 2)


# Ports and run options


def test_ports_of_running_replicas():
    ports = [
        {"containerPort": 6006, "name": "tb"},
        {"containerPort": 80},
        {"containerPort": 53, "protocol": "UDP"},
        {"containerPort": 0},
    ]
    runs = pod(0, spec={"containers": [{"name": "worker-0", "ports": ports}]})
    waits = pod(1, "Pending", {"waiting": {}}, spec={"containers": [{"name": "worker-1", "ports": ports}]})
    line = "kubectl --context prod --namespace space port-forward pod/job-x-worker-0-0"
    assert forwarded_ports("prod", "space", by_replica(runs, waits)) == [
        PublishedPort("worker", 0, "tb", 6006, "", 6006, f"{line} 6006:6006"),
        PublishedPort("worker", 0, "", 80, "", 8080, f"{line} 8080:80"),
    ]


@pytest.mark.parametrize(
    ("context", "line"),
    [
        ("", "kubectl --namespace s port-forward pod/p 9023:1023"),
        ("a b", "kubectl --context 'a b' --namespace s port-forward pod/p 9023:1023"),
    ],
)
def test_port_forward_line(context, line):
    assert port_forward_line(context, "s", "p", 1023, 9023) == line


def test_local_ports_differ():
    def at_work(k, *numbers):
        own = {"name": f"worker-{k}", "ports": [{"containerPort": number} for number in numbers]}
        return pod(k, spec={"containers": [own]})

    found = forwarded_ports("", "space", by_replica(*(at_work(k, 80, 8080, 1023, 1024) for k in (0, 1))))
    assert [one.host_port for one in found] == [8080, 8081, 9023, 1024, 8082, 8083, 9024, 1025]
    assert found[5].command.endswith("pod/job-x-worker-1-0 8083:8080")


def test_task_without_replicas_has_none():
    made = job()
    made["spec"]["tasks"][0]["replicas"] = 0
    assert row_of(VOLCANO, made).replicas_wanted == 1
    assert [(one.role, one.id) for one in replicas(made)] == [("worker", 1)]


def test_run_options_of_a_job():
    made = job(queue="fast", priorityClassName="high")
    spec = made["spec"]["tasks"][0]["template"]["spec"]
    resources = {"limits": {"cpu": "2", "memory": "3000M"}, "requests": {"cpu": "1900m", "memory": "2000M"}}
    spec.update(serviceAccountName="trainer", containers=[{"name": "side"}, {"name": "own", "resources": resources}])
    assert VOLCANO.cfg(made) == {
        "queue": "fast",
        "namespace": "space",
        "priority_class": "high",
        "service_account": "trainer",
        "reserved_millicpu": 100,
        "reserved_memmb": 1000,
    }
    spec.update(serviceAccountName="default", containers=[])
    made["spec"].update(queue=None, priorityClassName=None)
    assert VOLCANO.cfg(made) == {"queue": "default", "namespace": "space"}


# Rows and phases


@table("job_status.yaml", "rows", "phase state running succeeded")
def test_row(phase, state, running, succeeded):
    found = row_of(VOLCANO, job(phase, ("Running", 5), since=20, status={"running": 1, "succeeded": 1}))
    assert found == ListAppResponse(
        "space:job-x", AppState[state], name="job", image="busybox:local", submitted_at=CREATED,
        started_at=found.started_at, finished_at=None if running else CREATED + 20,
        replicas_wanted=2, replicas_running=running, replicas_succeeded=succeeded, kind="Volcano job",
    )  # fmt: skip


def test_known_reason_is_valid_in_its_state():
    known = Known(AppState.RUNNING, "why", 7.0)
    assert [known.put_into(row_of(VOLCANO, one)).msg for one in (job(), job("Pending"))] == ["why", ""]


@pytest.mark.parametrize(("after", "expected"), [(0.25, 0.25), (-59, -59), (61, 0)])
def test_own_submission_time_is_used_if_plausible(after, expected):
    assert (
        submitted_at(job(metadata={"annotations": {labels.SUBMITTED_AT: str(CREATED + after)}})) == CREATED + expected
    )


def test_own_submission_time_that_is_none():
    assert submitted_at(job(metadata={"annotations": {labels.SUBMITTED_AT: "soon"}})) == CREATED
    assert submitted_at({"metadata": {}}) == 0.0


def test_timeline():
    made = job("Completed", ("Pending", 1), ("Running", 4), ("Completing", 8), since=9)
    assert timeline(made) == [
        StateChange(AppState.SUBMITTED, CREATED),
        StateChange(AppState.PENDING, CREATED + 1),
        StateChange(AppState.RUNNING, CREATED + 4),
        StateChange(AppState.SUCCEEDED, CREATED + 9),
    ]
    # Times never go back.
    assert timeline(job("Running", ("Pending", 6), since=2))[-1] == StateChange(AppState.RUNNING, CREATED + 6)


def test_main_container():
    containers = {"containers": [{"name": "a"}, {"name": "b"}]}
    assert main_container(pod(spec=containers)) == "a"
    named = {"annotations": {"kubectl.kubernetes.io/default-container": "b"}}
    first = {"initContainers": [{"name": "first"}, {"name": "side", "restartPolicy": "Always"}]}
    made = pod(spec={**containers, **first}, metadata=named)
    assert (main_container(made), before_others(made)) == ("b", ["first"])
    named["annotations"]["kubectl.kubernetes.io/default-container"] = "gone"
    assert main_container(pod(metadata=named)) == "worker-0"
    assert main_container({"metadata": {}, "spec": {}}) == ""


def test_injected_proxy_is_not_the_main_container():
    proxy = {"name": "proxy", "state": {"running": {}}}
    own = {"name": "worker-0", "state": ended(3)}
    made = pod(
        phase="Running",
        metadata={"labels": {**LABELS, "volcano.sh/task-spec": "worker-0"}},
        spec={"containers": [{"name": "proxy"}, {"name": "worker-0"}]},
        containerStatuses=[proxy, own],
    )
    (first, _) = replicas(job(), made)
    assert (first.exit_code, first.state) == (3, AppState.RUNNING)


@table("runs.yaml", "runs", "own policy phase deleted run")
def test_container_run(own, policy, phase, deleted, run):
    status = {"phase": phase or "Running", "containerStatuses": [{"name": "c", **own}]}
    made = {"metadata": deleted or {}, "spec": {"restartPolicy": policy or "Always"}, "status": status}
    assert run_of(made, "c") == ContainerRun(*run)
