"""What of a cluster is free: queues of Kueue as recorded, of Volcano, nodes less requests, quotas, refusals."""

from types import SimpleNamespace

import pytest
from backend.kubernetes.tables import documents
from support.scripted_server import status

from torchx_tui.backends.kubernetes import cluster
from torchx_tui.backends.kubernetes.cluster import ClusterReader
from torchx_tui.specs.errors import BackendUnavailableError

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
LOCAL_QUEUES = f"{KUEUE}/namespaces/kq/localqueues"
QUOTAS = "/api/v1/namespaces/kq/resourcequotas"
GPU = "nvidia.com/gpu"


def read(server):
    return ClusterReader(server.api(), "kq").read()


def forbidden(resource):
    text = (
        f'{resource} is forbidden: User "alice" cannot list resource "{resource}" in API group "" at the cluster scope'
    )
    return status(403, "Forbidden", text)


def node(name, *, ready="True", labels=None, **spec):
    allocatable = {"cpu": "63500m", "memory": "500Gi", GPU: "8", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]},
    }


def container(cpu, gpu=0, **more):
    return {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi", GPU: str(gpu)}}, **more}


def pod(name, node_name, *containers, **spec):
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"nodeName": node_name, "containers": [*containers], **spec},
    }


def test_queues_of_kueue_as_recorded(server):
    recorded = documents("kueue_queues.yaml")
    for path, kind in ((LOCAL_QUEUES, "LocalQueue"), (f"{KUEUE}/clusterqueues", "ClusterQueue")):
        server.lists(path, *(each for each in recorded if each["kind"] == kind))
    pools = {pool.name: pool for pool in read(server).pools}
    gibibytes, mebibytes = 1 << 30, 1 << 20
    assert {name: (pool.cfg, pool.waiting, pool.is_open, pool.note) for name, pool in pools.items()} == {
        "dangling": ({"queue": "dangling"}, 1, False, "Can't submit new workloads to clusterQueue"),
        "held": ({"queue": "held"}, 0, False, "LocalQueue is stopped"),
        "second": ({"queue": "second"}, 0, True, ""),
        "user-queue": ({"queue": "user-queue"}, 5, True, ""),
    }
    queue = pools["user-queue"]
    assert (queue.memory_free, queue.memory) == (8 * gibibytes - 8 * mebibytes, 8 * gibibytes)


def test_queues_of_volcano(server):
    spec = {"capability": {"cpu": "100", GPU: "16"}}
    server.lists(
        QUEUES,
        {"metadata": {"name": "gpu"}, "spec": spec, "status": {"allocated": {"cpu": "30m", GPU: "4"}, "pending": 2}},
        {"metadata": {"name": "old"}, "status": {"state": "Closed"}},
        {"metadata": {"name": "no\nname"}},
    )
    gpu, old = read(server).pools
    assert (gpu.cpus_free, gpu.cpus, gpu.gpus, gpu.waiting) == (99, 100, {"gpu": (12, 16)}, 2)
    assert (old.is_open, old.note, old.cpus) == (False, "closed", 0)


def test_nodes_less_what_their_pods_request(server):
    labels = {"karpenter.sh/nodepool": "h200", f"{GPU}.product": "NVIDIA-H200"}
    taint = {"key": GPU, "effect": "NoSchedule"}
    server.lists(
        NODES, node("n1", labels=labels, taints=[taint]), node("n2", ready="Unknown"), node("n3", unschedulable=True)
    )

    def pages(asked):
        if "continue" not in asked.params:
            first = pod("a", "n1", container("1500m", 2), container("500m"))
            return 200, {"items": [first], "metadata": {"continue": "next"}}
        second = pod(
            "b", "n1", container("1"), initContainers=[container("4", 1), container("1", restartPolicy="Always")]
        )
        return 200, {"items": [second, pod("c", "", container("9")), {"metadata": 3}]}

    server.answers["GET", PODS] = pages
    status = read(server)
    n1, n2, n3 = status.nodes
    # 2 CPUs of the first pod; of the second its init container's 4, which are more than 1 and the sidecar's 1.
    assert (n1.cpus_free, n1.cpus, n1.gpus) == (57, 63, {"NVIDIA-H200": (5, 8)})
    assert (n1.state, n1.reason, n1.users, n1.pools) == ("ready", f"taint {GPU}", ("team",), ("h200",))
    assert [(each.state, each.is_usable, each.gpus) for each in (n2, n3)] == [
        ("not ready", False, {"gpu": (0, 8)}),
        ("cordoned", False, {"gpu": (0, 8)}),
    ]
    assert [(pool.name, pool.kind, pool.nodes, pool.nodes_down) for pool in status.pools] == [
        ("h200", "pool", 1, 0),
        ("nodes", "pool", 2, 2),
    ]


@pytest.mark.parametrize(("path", "resource"), [(NODES, "nodes"), (PODS, "pods")])
def test_what_is_not_allowed_is_said_once(server, path, resource):
    server.lists(NODES, node("n1"))
    server.lists(PODS)
    server.answers["GET", path] = forbidden(resource)
    hard, used = {"requests.nvidia.com/gpu": "8"}, {"requests.nvidia.com/gpu": "3"}
    server.lists(QUOTAS, {"metadata": {"name": "team"}, "status": {"hard": hard, "used": used}})
    status = read(server)
    assert (status.nodes, status.pools) == ([], [])
    assert [f"may not list {resource}" in note for note in status.notes] == [True]
    assert status.limits == ["quota team: requests.nvidia.com/gpu: 3 of 8 used"]


@pytest.mark.parametrize(("has_kueue", "pages", "a_minute"), [(True, 1, 36), (False, 1, 36), (True, 3, 48)])
def test_requests_of_a_minute_with_the_screen_open(server, monkeypatch, has_kueue, pages, a_minute):
    """However often a person asks, six questions every 10 s, and one for each further page of pods."""
    now = 1_000.0
    monkeypatch.setattr(cluster, "time", SimpleNamespace(monotonic=lambda: now))
    server.lists(NODES, node("n1"))
    server.lists(QUEUES)
    server.lists(QUOTAS)
    if has_kueue:
        server.lists(LOCAL_QUEUES, {"metadata": {"name": "q"}, "spec": {"clusterQueue": "c"}})

    def pods(asked):
        page = int(asked.params.get("continue") or 1)
        return 200, {"items": [], "metadata": {"continue": str(page + 1) if page < pages else ""}}

    server.answers["GET", PODS] = pods
    reader = ClusterReader(server.api(), "kq")
    for _ in range(30):
        assert reader.read().nodes
        now += 2
    assert len(server.asked) == a_minute
    assert reader.read().refresh_s == 30


def test_a_server_that_is_away_is_an_error(server):
    server.answers["GET", NODES] = lambda asked: None
    with pytest.raises(BackendUnavailableError):
        read(server)
