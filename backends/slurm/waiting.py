"""Why a job waits: the reason in a sentence, with the evidence that Slurm has for it, and when it may start."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ...logs.text.sanitize import plain
from ..shared.exit_reasons import some_of
from ..types import sum_gpus
from .cluster import Cluster
from .jobs import MOST_AHEAD_S, App, Job
from .limits import find_limit, partition_faults
from .reasons import Reason, code_of, limit_of, reason
from .values import count_whole, expand_nodes

_DEPENDENCY = re.compile(r"(?P<kind>[a-z]+):(?P<id>\d+)(?:_(?:\d+|\*))?(?:\+\d+)?(?:\((?P<state>\w+)\))?")
_UNAVAILABLE = re.compile(r"UnavailableNodes:(?P<nodes>\S+)")
_KINDS = {
    "after": "has begun", "afterany": "has ended", "afterok": "has succeeded", "afternotok": "has failed",
    "aftercorr": "has succeeded, task by task", "afterburstbuffer": "has copied its data",
}  # fmt: skip
# The reasons for which the partition is asked; `PartitionConfig` may mean any of its limits.
_ACCESS = ("AccountNotAllowed", "QOSNotAllowed")
_OF_PARTITION = (*_ACCESS, "PartitionDown", "PartitionInactive", "PartitionTimeLimit", "PartitionNodeLimit")


def evidence(job: Job, cluster: Cluster, known: Mapping[str, App]) -> list[str]:
    """Return the evidence for the reason why a job waits: limits with their use, nodes, dependencies, an estimate.

    Args:
        job: the record of a job that waits.
        cluster: knows the partitions, nodes and limits.
        known: the known jobs, for the names and states of dependencies.
    """
    code, limit = code_of(with_true_reason(job, cluster).reason), limit_of(code_of(job.reason))
    found: list[str] = []
    if code in _EVIDENCE:
        found = [*_EVIDENCE[code](job, cluster)]
    elif code in (*_OF_PARTITION, "PartitionConfig"):
        named = _OF_PARTITION if code == "PartitionConfig" else (code.replace("Inactive", "Down"),)
        found = [fault.what for fault in partition_faults(job, cluster) if fault.code in (code, *named)]
    elif code.startswith("Dependency"):
        found = [*_dependencies(job, known)]
    elif limit and (use := find_limit(job, cluster, limit)):
        found = [use.text]
    # For a job with a begin time, Slurm's estimate would only repeat that.
    at = expected_start(job)
    if at is not None and code != "BeginTime" and not reason(code).never:
        on = f" on {plain(job.scheduled_nodes)}" if job.scheduled_nodes else ""
        found.append(f"Slurm expects to start it at {clock(at)}{on}")
    return found


def why_waits(job: Job) -> Reason:
    """Return why a job waits."""
    if code_of(job.reason) == "BeginTime" and job.restarts:
        at = next((f" at {clock(at)}" for at in (job.eligible_at, job.started_at) if at and at > time.time()), " soon")
        return Reason(f"it was requeued, and starts again{at}")
    return reason(job.reason)


def with_true_reason(job: Job, cluster: Cluster) -> Job:
    """Return a waiting job with the reason that the cluster shows where Slurm's own is another.

    Until it has considered a job, Slurm says that nodes are down where the account or the QOS may not use the
    partition. For a limit of a group it does not say that the job exceeds it by itself.
    """
    code = code_of(job.reason)
    if job.state != "PENDING":
        return job
    if code == "NodesDown":
        code = next((fault.code for fault in partition_faults(job, cluster) if fault.code in _ACCESS), code)
    elif (limit := limit_of(code)) and not limit.is_of_one_job:
        use = find_limit(job, cluster, limit)
        if use is not None and use.is_alone:
            what = "WallDuration" if "wall" in limit.what else f"{limit.what.upper()}{limit.time}"
            code = f"{limit.of}Max{what}PerJob"
    return job if code == code_of(job.reason) else replace(job, reason=code)


def expected_start(job: Job) -> float | None:
    """Return Slurm's own estimate of the start of a waiting job, in seconds since the epoch; None for none.

    Slurm plans no job that a limit holds back, or that never starts: an estimate there is of an earlier reason.
    """
    at, now = job.started_at, time.time()
    if at is None or not now < at < now + MOST_AHEAD_S or reason(job.reason).never or limit_of(code_of(job.reason)):
        return None
    return at


def clock(at: float) -> str:
    """Return a time of today as ``18:00``, of another day with its date."""
    then, now = time.localtime(at), time.localtime(time.time())
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)


def dependency_ids(text: str) -> list[str]:
    """Return the ids of the jobs that a dependency names, such as ``afterok:3(unfulfilled)``."""
    return [found["id"] for found in _DEPENDENCY.finditer(text)]


def _resources(job: Job, cluster: Cluster) -> Iterator[str]:
    usable = [node for node in cluster.nodes(job.partition) if node.is_usable]
    if usable:
        free, idle = sum(node.cpus_free == node.cpus for node in usable), sum(node.cpus_free for node in usable)
        cpus, asked = sum(node.cpus for node in usable), f"{job.nodes} node{'s' if job.nodes != 1 else ''}"
        yield (
            f"{idle} of {cpus} CPUs of {plain(job.partition)} are free, and {free} of {len(usable)} whole nodes; "
            f"it asks for {job.cpus} CPUs on {asked}"
        )
    free_gpus, gpus = count_whole(sum_gpus(usable))
    if gpus and "gpu" in job.tres_per_node:
        yield f"{free_gpus} of {gpus} GPUs are free"
    yield from _down_nodes(job, cluster)


def _down_nodes(job: Job, cluster: Cluster) -> Iterator[str]:
    """Yield the nodes that cannot be used: those that the reason names, or all of the partition."""
    found = _UNAVAILABLE.search(job.reason)
    names = expand_nodes(found["nodes"]) if found else []
    lost = [
        f"{plain(node.name)} is {node.state}" + (f" ({plain(node.reason)})" if node.reason else "")
        for node in cluster.nodes(job.partition)
        if not node.is_usable and (not names or node.name in names)
    ]
    if lost:
        yield some_of(lost)


def _priority(job: Job, cluster: Cluster) -> Iterator[str]:
    rank = cluster.pending_before(job.partition, job.job_id)
    if rank is not None:
        before, waiting = rank
        yield f"{before} of the {waiting} jobs that wait in {plain(job.partition)} are ahead of it"
    factors = cluster.priority(job.job_id)
    if factors and job.priority.isdecimal():
        parts = ", ".join(f"{name} {value:,}" for name, value in factors.items())
        yield f"its priority is {int(job.priority):,}: {parts}"


def _begin(job: Job, _cluster: Cluster) -> Iterator[str]:
    if job.eligible_at is not None and job.eligible_at > time.time() and not job.restarts:
        yield f"it may start at {clock(job.eligible_at)}"


def _array(job: Job, _cluster: Cluster) -> Iterator[str]:
    _, percent, most = job.tasks.partition("%")
    if percent:
        yield f"{most} at once"


def _licences(job: Job, cluster: Cluster) -> Iterator[str]:
    for part in job.licenses.replace("|", ",").split(","):
        name, _, wanted = part.partition(":")
        if fields := cluster.licence(name):
            free = f"{fields.get('Free', '?')} of {fields.get('Total', '?')} licences {plain(name)} are free"
            yield f"{free}, and it asks for {plain(wanted) or 1}"


def _reservation(job: Job, cluster: Cluster) -> Iterator[str]:
    start = cluster.show("reservation", job.reservation).get("StartTime", "")
    if start.isdecimal():
        yield f"the reservation {plain(job.reservation)} begins at {clock(float(start))}"


def _features(job: Job, _cluster: Cluster) -> Iterator[str]:
    if job.features:
        yield f"it asks for {plain(job.features)}"


def _dependencies(job: Job, known: Mapping[str, App]) -> Iterator[str]:
    conditions = []
    for found in _DEPENDENCY.finditer(job.dependency):
        app = known.get(found["id"])
        name = f"{plain(app.first.name)} ({found['id']}), which is {app.state.name}," if app else f"job {found['id']}"
        conditions.append(f"{name} {_KINDS.get(found['kind'], found['kind'])}")
    if "singleton" in job.dependency:
        conditions.append(f"its other jobs named {plain(job.name)} have ended")
    if conditions:
        yield f"until {' and '.join(conditions)}"


_EVIDENCE: dict[str, Callable[[Job, Cluster], Iterator[str]]] = {
    **dict.fromkeys(("Resources", "NodesDown"), _resources),
    **dict.fromkeys(("ReqNodeNotAvail", "NodeDown"), _down_nodes),
    "Priority": _priority,
    "BeginTime": _begin,
    "JobArrayTaskLimit": _array,
    "Licenses": _licences,
    "Reservation": _reservation,
    "BadConstraints": _features,
}
