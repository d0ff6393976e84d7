"""What of a cluster is free: queues of Volcano and Kueue, nodes less what their pods request, and quotas."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...logs.text.sanitize import plain
from ..kube.api_server import ApiError, ApiServer
from ..kube.objects import METADATA, KubernetesObject, Shape, checked, checked_pod, dig, items_of, name_of, shape
from ..kube.pod_template import GPU, cores
from ..types import ClusterNode, ClusterPool, ClusterStatus, pool_of

# Lists of pods are large: the server is asked less often than a screen of jobs asks it (s).
_REFRESH_S = 30.0
# No more often than this either, whatever a person opens and presses (s).
_LEAST_S = 10.0
_TIMEOUT_S = 5.0
# Pods of one answer, and answers: of more pods it is not known what is free.
_PAGE, _MAX_PAGES = 500, 40
_SYSTEM = "kube-system"
# Labels by which clouds and Karpenter group nodes.
_GROUPS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
)
_CONDITIONS = [shape(type=str, status=str, message=str)]
_NODE = shape(
    "metadata",
    metadata=METADATA,
    spec=shape(unschedulable=bool, taints=[shape(key=str, value=str, effect=str)]),
    status=shape(allocatable=dict, conditions=_CONDITIONS),
)
_AMOUNTS = [shape(resources=[shape(name=str, nominalQuota=Any, total=Any)])]
# Of Volcano's queues, Kueue's queues and quotas.
_QUEUE = shape(
    "metadata",
    metadata=METADATA,
    spec=shape(capability=dict, clusterQueue=str, hard=dict, resourceGroups=[shape(flavors=_AMOUNTS)]),
    status=shape(
        allocated=dict, state=str, pending=int, pendingWorkloads=int, used=dict, hard=dict, conditions=_CONDITIONS,
        flavorsReservation=_AMOUNTS,
    ),
)  # fmt: skip
Amounts = Mapping[str, float]


class ClusterReader:
    """Reads the cluster at most every 10 seconds; concurrent callers share one reading.

    Args:
        server: the server.
        namespace: the namespace of queues and quotas.
    """

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server, self._namespace = server, namespace
        self._notes: dict[str, None] = {}
        self._lock = threading.Lock()
        self._kept: tuple[float, ClusterStatus] | None = None

    def read(self) -> ClusterStatus:
        """Return queues, pools of nodes, nodes and quotas; what is not allowed is a note.

        Raises:
            BackendUnavailableError: the server cannot be reached.
        """
        with self._lock:
            if self._kept is None or time.monotonic() - self._kept[0] >= _LEAST_S:
                self._notes = {}
                self._kept = time.monotonic(), self._read()
            return self._kept[1]

    def _read(self) -> ClusterStatus:
        nodes = [*self._nodes()]
        groups: dict[str, list[ClusterNode]] = {}
        for node in nodes:
            groups.setdefault(node.pools[0], []).append(node)
        pools = [pool_of(name, members, kind="pool") for name, members in groups.items()]
        return ClusterStatus(
            [*self._volcano(), *self._kueue(), *pools], nodes, [*self._quotas()], [*self._notes], _REFRESH_S
        )

    def _list(self, path: str, kind: Shape) -> list[KubernetesObject]:
        """Return the objects that this user may list; none if the server does not know their kind."""
        try:
            answer = self._server.request("GET", path, timeout=_TIMEOUT_S)
        except ApiError as error:
            self._note(error)
            return []
        return [item for each in items_of(answer) if (item := checked(each, kind)) is not None]

    def _note(self, error: ApiError) -> None:
        if error.status != 404:
            self._notes[str(error)] = None

    # Nodes

    def _nodes(self) -> Iterator[ClusterNode]:
        items = self._list("/api/v1/nodes", _NODE)
        requested = self._requested() if items else None
        for item in items if requested is not None else ():
            name, spec = name_of(item), item.get("spec") or {}
            amounts, namespaces = (requested or {}).get(name, (Counter(), {}))
            conditions = {each.get("type"): each.get("status") for each in dig(item, "status", "conditions") or ()}
            is_ready, is_cordoned = conditions.get("Ready") == "True", bool(spec.get("unschedulable"))
            taints = [taint for taint in spec.get("taints") or () if taint.get("effect") != "PreferNoSchedule"]
            labels = item["metadata"].get("labels") or {}
            yield ClusterNode(
                name,
                (next((labels[key] for key in _GROUPS if key in labels), "nodes"),),
                "cordoned" if is_cordoned else "ready" if is_ready else "not ready",
                ", ".join(f"taint {taint.get('key')}" for taint in taints),
                is_ready and not is_cordoned,
                users=(*(each for each in namespaces if each != _SYSTEM),),
                **_sizes(
                    _parsed(dig(item, "status", "allocatable")),
                    amounts,
                    labels.get(f"{GPU}.product", "gpu"),
                    is_usable=is_ready and not is_cordoned,
                ),
            )

    def _requested(self) -> dict[str, tuple[Counter[str], dict[str, None]]] | None:
        """Return what the pods of each node request, and their namespaces; None if they cannot be listed."""
        found: dict[str, tuple[Counter[str], dict[str, None]]] = {}
        params = {"limit": _PAGE, "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
        for _ in range(_MAX_PAGES):
            try:
                answer = self._server.request("GET", "/api/v1/pods", params=params, timeout=_TIMEOUT_S)
            except ApiError as error:
                self._note(error)
                return None
            for pod in filter(None, map(checked_pod, items_of(answer))):
                if node := dig(pod, "spec", "nodeName"):
                    amounts, namespaces = found.setdefault(node, (Counter(), {}))
                    amounts.update(_pod_requests(pod["spec"]))
                    namespaces[pod["metadata"].get("namespace") or ""] = None
            params["continue"] = dig(answer, "metadata", "continue") or ""
            if not params["continue"]:
                return found
        self._notes[f"there are more than {_PAGE * _MAX_PAGES:,} pods: what is free on nodes is not known"] = None
        return None

    # Queues and quotas

    def _volcano(self) -> Iterator[ClusterPool]:
        for item in self._list("/apis/scheduling.volcano.sh/v1beta1/queues", _QUEUE):
            state = dig(item, "status", "state") or "Open"
            sizes = _sizes(_parsed(dig(item, "spec", "capability")), _parsed(dig(item, "status", "allocated")))
            yield _queue(item, "" if state == "Open" else state.lower(), dig(item, "status", "pending"), sizes)

    def _kueue(self) -> Iterator[ClusterPool]:
        # Recorded with v1beta2; earlier releases have v1beta1 alone.
        versions = ("v1beta2", "v1beta1")
        paths = [f"/apis/kueue.x-k8s.io/{version}" for version in versions]
        for path in paths:
            queues = self._list(f"{path}/namespaces/{self._namespace}/localqueues", _QUEUE)
            if queues:
                break
        else:
            return
        quotas = {name_of(item): item for item in self._list(f"{path}/clusterqueues", _QUEUE)}
        for item in queues:
            quota = quotas.get(dig(item, "spec", "clusterQueue") or "")
            groups = dig(quota, "spec", "resourceGroups") or ()
            total = _summed((flavor for group in groups for flavor in group.get("flavors") or ()), "nominalQuota")
            used = _summed(dig(quota, "status", "flavorsReservation") or (), "total")
            faults = [
                each.get("message") or "inactive"
                for each in dig(item, "status", "conditions") or ()
                if each.get("type") == "Active" and each.get("status") == "False"
            ]
            yield _queue(item, ", ".join(faults), dig(item, "status", "pendingWorkloads"), _sizes(total, used))

    def _quotas(self) -> Iterator[str]:
        for item in self._list(f"/api/v1/namespaces/{self._namespace}/resourcequotas", _QUEUE):
            hard, used = (dig(item, "status", key) or {} for key in ("hard", "used"))
            for name, most in hard.items():
                yield plain(f"quota {name_of(item)}: {name}: {used.get(name, 0)} of {most} used")


def _queue(item: KubernetesObject, fault: str, waiting: int | None, sizes: Mapping[str, Any]) -> ClusterPool:
    name = name_of(item)
    return ClusterPool(
        name, "queue", cfg={"queue": name}, waiting=waiting or 0, note=fault, is_open=not fault, **sizes
    )  # fmt: skip


def _sizes(total: Amounts, used: Amounts, product: str = "gpu", *, is_usable: bool = True) -> dict[str, Any]:
    """Return the fields of a pool or node that are amounts."""

    def share(name: str) -> tuple[int, int]:
        amount = total.get(name, 0)
        return int(max(0, amount - used.get(name, 0)) if is_usable else 0), int(amount)

    fields: dict[str, Any] = {"gpus": {}}
    for field, name in (("cpus", "cpu"), ("memory", "memory")):
        fields[f"{field}_free"], fields[field] = share(name)
    for name in total:
        # nvidia.com/gpu, amd.com/gpu, nvidia.com/mig-1g.5gb
        kind = name.rpartition("/")[2]
        if "/" in name and (kind == "gpu" or kind.startswith("mig-")):
            fields["gpus"][product if kind == "gpu" else kind] = share(name)
    return fields


def _parsed(resources: Any) -> dict[str, float]:
    """Return quantities as numbers: CPUs, bytes, GPUs."""
    found = resources if isinstance(resources, Mapping) else {}
    return {str(name): cores(quantity) or 0.0 for name, quantity in found.items()}


def _summed(flavors: Iterable[Any], key: str) -> Counter[str]:
    amounts: Counter[str] = Counter()
    for flavor in flavors:
        amounts.update(_parsed({each.get("name"): each.get(key) for each in flavor.get("resources") or ()}))
    return amounts


def _pod_requests(spec: Mapping[str, Any]) -> Counter[str]:
    """Return what the scheduler reserves for a pod: its containers together, or a larger init container."""

    def requests(container: Mapping[str, Any]) -> dict[str, float]:
        return _parsed(dig(container, "resources", "requests"))

    first = spec.get("initContainers") or []
    # A sidecar is an init container that goes on (KEP-753).
    sidecars = [each for each in first if each.get("restartPolicy") == "Always"]
    amounts: Counter[str] = Counter(_parsed(spec.get("overhead")))
    for container in [*(spec.get("containers") or ()), *sidecars]:
        amounts.update(requests(container))
    for container in first:
        amounts |= Counter(requests(container))
    return amounts
