"""Why a job waits in a queue of Kueue, by its Workload (``kueue.x-k8s.io``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ....logs.text.sanitize import plain
from ...kube.api_server import ApiError, ApiServer
from ...kube.objects import METADATA, KubernetesObject, Time, checked, dig, items_of, shape, uid_of

QUEUE = "kueue.x-k8s.io/queue-name"
_JOB_UID = "kueue.x-k8s.io/job-uid"
_VERSIONS = ("v1beta2", "v1beta1")
_WORKLOAD = shape(
    "metadata",
    metadata=METADATA,
    spec=shape(queueName=str, active=bool),
    status=shape(
        conditions=[shape(type=str, status=str, reason=str, message=str, lastTransitionTime=Time)],
        admission=shape(clusterQueue=str),
        admissionChecks=[shape(name=str, state=str, message=str)],
    ),
)
# Messages of the condition QuotaReserved, and the text shown instead, with the groups of the pattern.
_MESSAGES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"(?:couldn't assign flavors to pod set \S+: )?{pattern}.*", re.DOTALL), text)
    for pattern, text in (
        (
            r"insufficient unused quota for (\S+) in flavor \S+, (\S+) more needed",
            "{1} more {0} is needed than is free",
        ),
        (
            r"insufficient quota for (\S+) in flavor \S+, .* request \((\S+)\) > maximum capacity \((\S+)\)",
            "it will never start: it asks for {1} of {0}, the queue has {2} at most",
        ),
        (r"resource (\S+) unavailable in ClusterQueue", "it will never start: the queue has no {0}"),
        (r"LocalQueue (\S+) doesn't exist", "it will never start: there is no LocalQueue {0}"),
        (
            r"ClusterQueue (\S+) doesn't exist",
            "it will never start: there is no ClusterQueue {0}, which its LocalQueue names",
        ),
        (r"LocalQueue (\S+) is inactive", "the LocalQueue {0} is stopped"),
        (r"ClusterQueue (\S+) is inactive", "the ClusterQueue {0} is inactive: its own conditions say why"),
        (r"The workload is deactivated", "its Workload was deactivated (spec.active false)"),
    )
)


def queue_of(job: KubernetesObject) -> str:
    """Return the LocalQueue of a job; empty if Kueue does not manage it."""
    metadata = job["metadata"]
    return plain(str(dig(metadata, "labels", QUEUE) or dig(metadata, "annotations", QUEUE) or ""))


def read_workload(server: ApiServer, job: KubernetesObject) -> KubernetesObject | None:
    """Return the Workload of a job; None where there is none, or it may not be read."""
    for version in _VERSIONS:
        path = f"/apis/kueue.x-k8s.io/{version}/namespaces/{job['metadata'].get('namespace')}/workloads"
        try:
            found = items_of(server.request("GET", path, params={"labelSelector": f"{_JOB_UID}={uid_of(job)}"}))
        except ApiError as error:
            if error.status == 404:
                continue
            return None
        return next((one for item in found if (one := checked(item, _WORKLOAD)) is not None), None)
    return None


def queue_reason(job: KubernetesObject, workload: KubernetesObject | None) -> str:
    """Return why a job that is suspended waits in its queue; empty if no queue holds it."""
    queue = queue_of(job)
    if not queue or workload is None:
        return f"queued in {queue}" if queue else ""
    conditions = {one.get("type"): one for one in dig(workload, "status", "conditions") or []}
    reserved = conditions.get("QuotaReserved")
    if reserved is None:
        return f"queued in {queue}: Kueue has not looked at it yet"
    if reserved.get("status") == "True":
        checks = dig(workload, "status", "admissionChecks") or []
        waits = [str(one.get("name")) for one in checks if one.get("state") != "Ready"]
        words = f"waits for the admission check {', '.join(waits)}" if waits else "waits for its admission"
        return plain(f"queued in {queue}: quota is reserved; {words}")
    text = _explain(str(reserved.get("message") or ""))
    return plain(f"queued in {queue}: {text}{_evicted(conditions)}")


def admitted_by(workload: KubernetesObject | None) -> str:
    """Return that a queue lets a job run; empty if it does not, or that is unknown."""
    queue = dig(workload, "status", "admission", "clusterQueue")
    return plain(f"admitted by the ClusterQueue {queue}") if queue else ""


def _explain(message: str) -> str:
    for pattern, text in _MESSAGES:
        if match := pattern.fullmatch(message):
            return text.format(*match.groups())
    return message


def _evicted(conditions: Mapping[Any, Mapping[str, Any]]) -> str:
    evicted = conditions.get("Evicted") or {}
    if evicted.get("status") == "True" and evicted.get("reason") == "Preempted":
        return "; it ran before, and was preempted by a job of higher priority"
    return ""
