"""Jobs that others made, launched again: what runs is the same, and what is not is said."""

from typing import Any

import pytest
from backend.kubernetes.tables import table
from support.scripted_server import NOT_FOUND

from torchx_tui.backends.kube.objects import events_path, pods_path
from torchx_tui.backends.kubernetes.kinds.batch import BATCH
from torchx_tui.backends.kubernetes.kinds.cron import CRON
from torchx_tui.backends.kubernetes.kinds.jobset import JOBSET
from torchx_tui.backends.kubernetes.kinds.training import TRAINING
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.specs.roles import AppDef
from torchx_tui.tui.launch.work import request_diff

TRAIN = TRAINING[0]
CONTAINER = {
    "name": "main",
    "image": "registry.io/train:v3",
    "command": ["torchrun", "--nnodes=2"],
    "args": ["train.py", "--lr", "3e-4", "cost: $5"],
    "env": [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
    "resources": {"limits": {"nvidia.com/gpu": "8", "cpu": "4", "memory": "8G"}},
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
}
POD_SPEC = {
    "restartPolicy": "Never",
    "nodeSelector": {"cloud.io/accelerator": "h100"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    "serviceAccountName": "trainer",
    "priorityClassName": "high",
}


def spec(name="main", count=2, **fields):
    pod = {**POD_SPEC, "containers": [{**CONTAINER, "name": name}]}
    indexed = {"completionMode": "Indexed", "completions": count, "parallelism": count}
    return {**indexed, "template": {"spec": pod}, **fields}


def made(name="job", **fields) -> Any:
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": "2026-11-26T14:00:00Z"}
    return {"metadata": metadata, "status": {}, **fields}


def jobset(*parts, owner=None, **fields):
    jobs = [{"name": name, "replicas": 1, "template": {"spec": one}} for name, one in parts]
    found = made(spec={"replicatedJobs": jobs, **fields})
    if owner:
        found["metadata"]["ownerReferences"] = [{"kind": "TrainJob", "name": "job", "uid": owner}]
    return found


class Server:
    """A server with one job that somebody else made."""

    def __init__(self, server):
        self.server = server
        self.scheduler = KubernetesScheduler("test", server.client(), namespace="ns")
        groups = [f"{kind.group}/{kind.version}" for kind in (BATCH, JOBSET)]
        server.serves(*groups)
        for path in (pods_path("ns"), events_path("ns"), BATCH.path("ns")):
            server.lists(path)
        # A service account, a priority class and a claim that its pods name are there.
        for path in ("/api/v1/namespaces/ns/serviceaccounts/trainer", "/apis/scheduling.k8s.io/v1/priorityclasses/high",
                     "/api/v1/namespaces/ns/persistentvolumeclaims/data"):  # fmt: skip
            server.gives(path, {"metadata": {"name": "x"}})

    def has(self, kind, job):
        self.server.gives(kind.path("ns", job["metadata"]["name"]), job)
        return f"ns:{kind.prefix}:job"

    def relaunched(self, app_id):
        """Return the description of a job, and the first object of the request that launches it again."""
        found: Any = self.scheduler.describe(app_id)
        info = self.scheduler.submit_dryrun(AppDef(found.name, found.roles), found.cfg)
        return found, info.request.resource


@pytest.fixture
def server(server):
    found = Server(server)
    yield found
    found.scheduler.close()


def pod_of(spec):
    """Return of a Job's spec what a person compares."""
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    own = {variable["name"] for variable in CONTAINER["env"]}
    return {
        "count": (spec["completions"], spec["parallelism"]),
        "command": [*container["command"], *container.get("args", [])],
        "image": container["image"],
        "env": [one for one in container["env"] if one["name"] in own],
        "limits": container["resources"]["limits"],
        "mounts": [one for one in container["volumeMounts"] if one["mountPath"] == "/data"],
        **{name: pod.get(name) for name in POD_SPEC if name != "volumes"},
        "claims": [one["persistentVolumeClaim"] for one in pod["volumes"] if "persistentVolumeClaim" in one],
    }


def wanted(one):
    """Return `pod_of` of a Job that somebody made, as a request writes the same."""
    found = pod_of(one)
    found["limits"] = {"nvidia.com/gpu": "8", "cpu": "4000m", "memory": "8000M"}
    found["mounts"] = [{"name": "mount-0", "mountPath": "/data", "readOnly": False}]
    found["claims"] = [{"claimName": "data"}]
    return found


def test_plain_job(server):
    app_id = server.has(BATCH, made(spec=spec(backoffLimit=3, activeDeadlineSeconds=60)))
    found, again = server.relaunched(app_id)
    assert pod_of(again["spec"]) == wanted(spec())
    assert (again["kind"], again["spec"]["backoffLimit"]) == ("Job", 3)
    assert found.notes == ["main: activeDeadlineSeconds is not launched again"]


@table("relaunch.yaml", "lost fields", "container pod note")
def test_what_no_role_has_is_named(server, container, pod, note):
    job = made(spec=spec())
    job["spec"]["template"]["spec"].update(pod)
    job["spec"]["template"]["spec"]["containers"][0].update(container)
    notes = server.scheduler.describe(server.has(BATCH, job)).notes
    assert [one.endswith(note) for one in notes] == ([True] if note else [])


def test_retries_of_each_index_are_those_of_a_replica(server):
    _, again = server.relaunched(server.has(BATCH, made(spec=spec(backoffLimitPerIndex=2))))
    assert (again["spec"]["backoffLimitPerIndex"], "backoffLimit" in again["spec"]) == (2, False)


def test_cron_job_is_launched_once(server):
    app_id = server.has(CRON, made(spec={"schedule": "* * * * *", "jobTemplate": {"spec": spec(backoffLimit=2)}}))
    found, again = server.relaunched(app_id)
    assert (again["kind"], again["spec"]["backoffLimit"]) == ("Job", 2)
    assert found.notes == ["it is launched again once, without its schedule"]


def test_jobset(server):
    parts = ("leader", spec("leader", 1, backoffLimit=0)), ("workers", spec("workers", backoffLimit=0))
    found, again = server.relaunched(server.has(JOBSET, jobset(*parts, failurePolicy={"maxRestarts": 4})))
    jobs = again["spec"]["replicatedJobs"]
    assert [(one["name"], pod_of(one["template"]["spec"])) for one in jobs] == [
        (name, wanted(one)) for name, one in parts
    ]
    assert (again["kind"], again["spec"]["failurePolicy"], found.notes) == ("JobSet", {"maxRestarts": 4}, [])


def test_retries_of_one_job_of_a_jobset_are_named(server):
    found, again = server.relaunched(server.has(JOBSET, jobset(("workers", spec("workers", backoffLimit=6)))))
    assert "failurePolicy" not in again["spec"]
    assert found.notes == ["workers: backoffLimit is not launched again"]


def test_train_job_is_what_its_jobset_is(server):
    job = made(spec={"trainer": {"numNodes": 2}, "runtimeRef": {"name": "torch-distributed"}})
    app_id = server.has(TRAIN, job)
    server.has(JOBSET, jobset(("node", spec("node", backoffLimit=0)), owner="uid-job"))
    found, again = server.relaunched(app_id)
    assert [(role.name, role.num_replicas) for role in found.roles] == [("node", 2)]
    (part,) = again["spec"]["replicatedJobs"]
    assert pod_of(part["template"]["spec"]) == wanted(spec("node"))
    assert found.notes == ["it is launched again as a job of the run option kind, not as a TrainJob"]


@pytest.mark.parametrize("answer", [NOT_FOUND, (200, jobset(("node", spec("node"))))], ids=["none", "of another"])
def test_train_job_without_its_jobset_needs_an_image(server, answer):
    app_id = server.has(TRAIN, made(spec={"trainer": {"numNodes": 2}}))
    server.server.answers["GET", JOBSET.path("ns", "job")] = answer
    (role,) = server.scheduler.describe(app_id).roles
    assert (role.name, role.num_replicas, role.image) == ("node", 2, "")


def put_train_job(server):
    server.has(JOBSET, jobset(("node", spec("node")), owner="uid-job"))
    return server.has(TRAIN, made(spec={"trainer": {"numNodes": 2}}))


@pytest.mark.parametrize(
    "put",
    [
        lambda server: server.has(BATCH, made(spec=spec())),
        lambda server: server.has(JOBSET, jobset(("leader", spec("leader", 1)), ("workers", spec("workers")))),
        put_train_job,
    ],
    ids=["Job", "JobSet", "TrainJob"],
)
def test_changed_argument_is_the_only_difference_of_requests(server, put):
    found = server.scheduler.describe(put(server))

    def request():
        return str(server.scheduler.submit_dryrun(AppDef(found.name, found.roles), found.cfg).request)

    first = request()
    assert request_diff(first, request(), found.name) == []
    role = found.roles[-1]
    role.args[role.args.index("3e-4")] = "1e-3"
    assert [line.split("- ")[-1] for line in request_diff(first, request(), found.name)] == ["3e-4", "1e-3"]
