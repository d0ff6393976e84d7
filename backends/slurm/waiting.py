"""Why a job waits: the reason in a sentence, with the evidence that Slurm has for it, and when it may start."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...base.errors import join_names
from ...logs.text.sanitize import plain
from ..shared.exit_reasons import some_of
from .cluster import Cluster, Usage, limit_and_use
from .jobs import MOST_AHEAD_S, App, Job
from .reasons import Limit, Reason, code_of, limit_of, reason
from .values import expand_nodes, format_duration, parse_duration, parse_size, parse_tres

_DEPENDENCY = re.compile(r"(?P<kind>[a-z]+):(?P<id>\d+)(?:_(?:\d+|\*))?(?:\+\d+)?(?:\((?P<state>\w+)\))?")
_UNAVAILABLE = re.compile(r"UnavailableNodes:(?P<nodes>\S+)")
_KINDS = {
    "after": "has begun", "afterany": "has ended", "afterok": "has succeeded", "afternotok": "has failed",
    "aftercorr": "has succeeded, task by task", "afterburstbuffer": "has copied its data",
}  # fmt: skip
# The words of limits in `scontrol show assoc_mgr`, by kind and whom they are for.
_TRES_NAMES = {"cpu": "cpu", "mem": "mem", "memory": "mem", "node": "node", "nodes": "node", "billing": "billing"}
# What one and several of a resource are called.
_TRES_WORDS = {
    "cpu": ("CPU", "CPUs"), "mem": ("MB", "MB of memory"), "node": ("node", "nodes"),
    "billing": ("billing", "billing units"), "gres/gpu": ("GPU", "GPUs"),
}  # fmt: skip


class Exceeded(NamedTuple):
    """A limit that holds a job back.

    Attributes:
        text: the limit with what is in use of it, and what the job asks for.
        is_alone: whether the job exceeds it by itself, so that it never starts.
    """

    text: str
    is_alone: bool


def evidence(job: Job, cluster: Cluster, known: Mapping[str, App]) -> list[str]:
    """Return the evidence for the reason why a job waits: limits with their use, nodes, dependencies, an estimate.

    Args:
        job: the record of a job that waits.
        cluster: what else is asked.
        known: the jobs that are known, for the names and states of dependencies.
    """
    code = code_of(with_true_reason(job, cluster).reason)
    found: Iterator[str]
    if code in _EVIDENCE:
        found = _EVIDENCE[code](job, cluster)
    elif code in ("Dependency", "DependencyNeverSatisfied"):
        found = _dependencies(job, known)
    elif limit := limit_of(code_of(job.reason)):
        exceeded = _exceeded(job, cluster, limit)
        found = iter([exceeded.text] if exceeded else [])
    else:
        found = iter(())
    return [*found, *_estimate(job, code)]


def why_waits(job: Job) -> Reason:
    """Return why a job waits."""
    if code_of(job.reason) == "BeginTime" and job.restarts:
        at = next((f" at {clock(at)}" for at in (job.eligible_at, job.started_at) if at and at > time.time()), " soon")
        return Reason(f"it was requeued, and starts again{at}")
    return reason(job.reason)


def with_true_reason(job: Job, cluster: Cluster) -> Job:
    """Return a job that waits with the reason that cluster show where Slurm's own is another.

    Until it has looked at a job, Slurm says that nodes are down where the account or the QOS may not use the
    partition. Of a limit of a group it does not say that the job exceeds it by itself.
    """
    code = code_of(job.reason)
    if job.state != "PENDING":
        return job
    if code == "NodesDown":
        refused = (("AccountNotAllowed", _accounts), ("QOSNotAllowed", _qos_names))
        code = next((name for name, why in refused if next(why(job, cluster), "")), code)
    elif (limit := limit_of(code)) and not limit.is_of_one_job:
        exceeded = _exceeded(job, cluster, limit)
        if exceeded is not None and exceeded.is_alone:
            code = "WallDuration" if "wall" in limit.what else f"{limit.what.upper()}{limit.time}"
            code = f"{limit.of}Max{code}PerJob"
    return job if code == code_of(job.reason) else replace(job, reason=code)


def _estimate(job: Job, code: str) -> Iterator[str]:
    """Yield Slurm's own estimate of the start; for a job with a begin time it would only repeat that."""
    at = expected_start(job)
    if at is not None and code != "BeginTime" and not reason(code).never:
        on = f" on {plain(job.scheduled_nodes)}" if job.scheduled_nodes else ""
        yield f"Slurm expects to start it at {clock(at)}{on}"


def expected_start(job: Job) -> float | None:
    """Return Slurm's own estimate of the start of a job that waits, in seconds since the epoch; None for none.

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


def _resources(job: Job, cluster: Cluster) -> Iterator[str]:
    asked = cluster.job(job.job_id)
    excluded = expand_nodes(asked.get("ExcNodeList", ""))
    nodes = [node for node in cluster.nodes(job.partition) if node.name not in excluded]
    usable = [node for node in nodes if node.is_usable]
    if not nodes:
        return
    if _is_exclusive(asked):
        free = sum(node.idle == node.cpus for node in usable)
        asks = f"it asks for {job.nodes} as a whole"
        yield f"{free} of {len(usable)} nodes of {plain(job.partition)} are free, and {asks}"
    else:
        idle, cpus = sum(node.idle for node in usable), sum(node.cpus for node in usable)
        yield f"{idle} of {cpus} CPUs of {plain(job.partition)} are free, and it asks for {job.cpus}"
    named = expand_nodes(asked.get("ReqNodeList", ""))
    if busy := [node for node in usable if node.name in named and node.idle < node.cpus]:
        told = some_of([f"{plain(node.name)} with {node.idle} of {node.cpus} CPUs free" for node in busy])
        yield f"it asks for {plain(asked['ReqNodeList'])}: {told}"
    gpus = sum(node.gpus for node in usable)
    if gpus and "gpu" in job.tres_per_node:
        yield f"{gpus - sum(node.gpus_used for node in usable)} of {gpus} GPUs are free"
    if excluded:
        yield f"it excludes {plain(asked['ExcNodeList'])}"
    yield from _down_nodes(job, cluster, named)


def _is_exclusive(asked: Mapping[str, str]) -> bool:
    """Tell whether a job asks for whole nodes; newer versions have a field of its own for that."""
    if "Exclusive" in asked:
        return asked["Exclusive"] == "NODE"
    return asked.get("OverSubscribe") == "NO"


def _down_nodes(job: Job, cluster: Cluster, named: Sequence[str] = ()) -> Iterator[str]:
    found = _UNAVAILABLE.search(job.reason)
    names = expand_nodes(found["nodes"]) if found else named
    nodes = cluster.nodes(job.partition)
    lost = [node for node in nodes if not node.is_usable and (not names or node.name in names)]
    if lost:
        told = [
            f"{plain(node.name)} is {node.state}" + (f" ({plain(node.reason)})" if node.reason else "") for node in lost
        ]
        yield some_of(told)


def _named_down_nodes(job: Job, cluster: Cluster) -> Iterator[str]:
    is_told = _UNAVAILABLE.search(job.reason)
    named = () if is_told else expand_nodes(cluster.job(job.job_id).get("ReqNodeList", ""))
    return _down_nodes(job, cluster, named)


def _priority(job: Job, cluster: Cluster) -> Iterator[str]:
    rank = cluster.pending_before(job.partition, job.job_id)
    if rank is not None:
        before, waiting = rank
        yield f"{before} of the {waiting} jobs that wait in {plain(job.partition)} are ahead of it"
    factors = cluster.priority(job.job_id)
    if factors and job.priority.isdecimal():
        parts = ", ".join(f"{name} {value:,}" for name, value in factors.items())
        yield f"its priority is {int(job.priority):,}: {parts}"


def _begin(job: Job, _facts: Cluster) -> Iterator[str]:
    if job.eligible_at is not None and job.eligible_at > time.time() and not job.restarts:
        yield f"it may start at {clock(job.eligible_at)}"


def _array(job: Job, _facts: Cluster) -> Iterator[str]:
    _, percent, most = job.tasks.partition("%")
    if percent:
        yield f"{most} at once"


def _licences(job: Job, cluster: Cluster) -> Iterator[str]:
    for part in job.licenses.replace("|", ",").split(","):
        name, _, wanted = part.partition(":")
        told = cluster.licence(name)
        if told:
            yield (
                f"{told.get('Free', '?')} of {told.get('Total', '?')} licences {plain(name)} are free, "
                f"and it asks for {plain(wanted) or 1}"
            )


def _reservation(job: Job, cluster: Cluster) -> Iterator[str]:
    told = cluster.reservation(job.reservation)
    start = told.get("StartTime", "")
    if start.isdecimal():
        yield f"the reservation {plain(job.reservation)} begins at {clock(float(start))}"


def _partition_state(job: Job, cluster: Cluster) -> Iterator[str]:
    if state := cluster.partition(job.partition).get("State"):
        yield f"the partition {plain(job.partition)} is {plain(state)}"


def _partition_time(job: Job, cluster: Cluster) -> Iterator[str]:
    most = parse_duration(cluster.partition(job.partition).get("MaxTime", ""))
    if most is not None:
        asked = f"it asks for {format_duration(job.limit)}, " if job.limit else ""
        yield f"{asked}and {plain(job.partition)} allows {format_duration(most)}"


def _partition_nodes(job: Job, cluster: Cluster) -> Iterator[str]:
    told = cluster.partition(job.partition)
    if told:
        least, most, there = told.get("MinNodes", "0"), told.get("MaxNodes", ""), told.get("TotalNodes", "?")
        bound = there if most == "UNLIMITED" else most
        allowed = f"{plain(least)} to {plain(bound)} of its {plain(there)}"
        yield f"it asks for {job.nodes} nodes, and {plain(job.partition)} allows {allowed}"


def _partition_size(job: Job, cluster: Cluster) -> Iterator[str]:
    told = cluster.partition(job.partition)
    if told:
        yield (
            f"it asks for {job.cpus} CPUs on {job.nodes} nodes, and {plain(job.partition)} has "
            f"{plain(told.get('TotalCPUs', '?'))} on {plain(told.get('TotalNodes', '?'))}"
        )


def _accounts(job: Job, cluster: Cluster) -> Iterator[str]:
    told = cluster.partition(job.partition)
    if (allowed := told.get("AllowAccounts", "")) not in ("", "ALL") and job.account not in ("", *allowed.split(",")):
        yield f"{plain(job.partition)} allows {join_names(map(plain, allowed.split(',')))}, not {plain(job.account)}"
    elif job.account in (denied := [*filter(None, told.get("DenyAccounts", "").split(","))]):
        yield f"{plain(job.partition)} does not allow {join_names(map(plain, denied))}"


def _qos_names(job: Job, cluster: Cluster) -> Iterator[str]:
    told = cluster.partition(job.partition)
    if (allowed := told.get("AllowQos", "")) not in ("", "ALL") and job.qos not in ("", *allowed.split(",")):
        yield f"{plain(job.partition)} allows {join_names(map(plain, allowed.split(',')))}, not {plain(job.qos)}"
    elif job.qos in (denied := [*filter(None, told.get("DenyQos", "").split(","))]):
        yield f"{plain(job.partition)} does not allow {join_names(map(plain, denied))}"


def _features(job: Job, _facts: Cluster) -> Iterator[str]:
    if job.features:
        yield f"it asks for {plain(job.features)}"


_EVIDENCE: dict[str, Callable[[Job, Cluster], Iterator[str]]] = {
    "Resources": _resources,
    "NodesDown": _resources,
    "ReqNodeNotAvail": _named_down_nodes,
    "NodeDown": _named_down_nodes,
    "Priority": _priority,
    "BeginTime": _begin,
    "JobArrayTaskLimit": _array,
    "Licenses": _licences,
    "Reservation": _reservation,
    "PartitionDown": _partition_state,
    "PartitionInactive": _partition_state,
    "PartitionTimeLimit": _partition_time,
    "PartitionNodeLimit": _partition_nodes,
    "PartitionConfig": _partition_size,
    "AccountNotAllowed": _accounts,
    "QOSNotAllowed": _qos_names,
    "BadConstraints": _features,
}


def dependency_ids(text: str) -> list[str]:
    """Return the ids of the jobs that a dependency names, such as ``afterok:3(unfulfilled)``."""
    return [found["id"] for found in _DEPENDENCY.finditer(text)]


def _dependencies(job: Job, known: Mapping[str, App]) -> Iterator[str]:
    told = []
    for found in _DEPENDENCY.finditer(job.dependency):
        app = known.get(found["id"])
        name = f"{plain(app.first.name)} ({found['id']}), which is {app.state.name}," if app else f"job {found['id']}"
        told.append(f"{name} {_KINDS.get(found['kind'], found['kind'])}")
    if "singleton" in job.dependency:
        told.append(f"its other jobs named {plain(job.name)} have ended")
    if told:
        yield f"until {' and '.join(told)}"


def _exceeded(job: Job, cluster: Cluster, limit: Limit) -> Exceeded | None:
    """Return the limit that a reason names, of the account or QOS that has it; None where Slurm does not show it.

    Of several the first counts that the job reaches: the limits of parent accounts and of the partition's QOS hold it
    back, too.
    """
    first: Exceeded | None = None
    for whose, told in _limited(job, cluster, limit):
        for name in _limit_names(limit):
            found, tres = _limit_in(told.get(name, ""), limit)
            if found is None:
                continue
            exceeded = _compared(job, name, whose, found, limit, tres)
            if exceeded.is_alone or _number(found.used) + _asked(job, limit, tres) > _number(found.limit):
                return exceeded
            first = first or exceeded
            break
    return first


def _limited(job: Job, cluster: Cluster, limit: Limit) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield whose limits a job has that a reason may name: what is further up is asked for when it is needed."""
    if limit.of == "Assoc":
        for account, told in cluster.associations(job.account, job.user):
            yield f"the account {plain(account)}", told
        return
    yield f"the QOS {plain(job.qos)}", cluster.qos(job.qos, job.user, job.account)
    name = cluster.partition(job.partition).get("QoS", "")
    if name and name != job.qos:
        yield f"the QOS {plain(name)} of the partition", cluster.qos(name, job.user, job.account)


def _compared(job: Job, name: str, whose: str, found: Usage, limit: Limit, tres: str) -> Exceeded:
    unit, asked = _unit(name, limit, tres), _asked(job, limit, tres)
    most, used = _number(found.limit), _number(found.used)
    shown, asks = f"{name} of {whose}: ", f"{asked:,.0f}"
    if limit.is_of_one_job:
        # What a job has on each node is not known.
        is_known = limit.per != "PerNode" and (job.tres or not tres)
        also = (
            f", and it asks for {asks}" if is_known and (asked < most if limit.kind == "Min" else asked > most) else ""
        )
        return Exceeded(f"{shown}{most:,.0f} {unit}{also}", is_alone=True)
    if asked > most and "job" not in limit.what:
        text = f"{shown}{most:,.0f} {unit}, and it alone asks for {asks}: it never starts as it is"
        return Exceeded(text, is_alone=True)
    is_budget = name == "GrpWall" or name.endswith("TRESMins")
    use = f"{used:,.0f} of {most:,.0f} {unit} {'used' if is_budget else 'in use'}"
    return Exceeded(shown + (use if found.used else f"{most:,.0f} {unit}"), is_alone=False)


def _unit(name: str, limit: Limit, tres: str) -> str:
    if not tres:
        return "minutes" if "wall" in limit.what else "jobs"
    one, several = _TRES_WORDS.get(tres, (plain(tres), plain(tres)))
    return f"{one} minutes" if "Mins" in name else several


def _asked(job: Job, limit: Limit, tres: str) -> float:
    """Return what a job asks for of what is limited, in the unit of the limit; squeue has its resources as it waits."""
    minutes = (job.limit or 0) / 60
    if not tres:
        return minutes if "wall" in limit.what else 1
    size = parse_tres(job.tres).get(tres)
    amount = {"cpu": job.cpus, "node": job.nodes}.get(tres, 0) if size is None else _number(size)
    return amount * minutes if limit.time else amount


def _number(text: str) -> float:
    """Return a limit's number: Slurm prints limits of memory in MB, and sizes with their unit."""
    return (parse_size(text, "M") or 0) / (1 << 20)


def _limit_in(value: str, limit: Limit) -> tuple[Usage | None, str]:
    """Return the limit in a value, and the resource that it is of; empty for jobs and time."""
    if any(word in limit.what for word in ("wall", "job", "time")):
        return limit_and_use(value), ""
    if tres := _TRES_NAMES.get(limit.what):
        return limit_and_use(value, tres), tres
    kinds = {"gres": "gres/", "license": "license/", "bb": "bb/"}
    for name in parse_tres(value):
        is_meant = name.startswith(kinds.get(limit.what, limit.what)) or limit.what in ("unknown", "resource")
        if is_meant and (found := limit_and_use(value, name)):
            return found, name
    return None, ""


def _limit_names(limit: Limit) -> list[str]:
    """Return the names that `scontrol show assoc_mgr` may have for a limit."""
    end = {"PerJob": "PJ", "PerUser": "PU", "PerAccount": "PA", "PerNode": "PN"}.get(limit.per, "")
    if "job" in limit.what:
        name = f"{limit.kind}{'Submit' if limit.what.startswith('submit') else ''}Jobs"
        return [f"{name}{end}"] if end else [name, f"{name}PU", f"{name}PA"]
    if "wall" in limit.what or limit.what == "time":
        return ["GrpWall"] if limit.kind == "Grp" else ["MaxWallPJ"]
    if limit.kind == "Min":
        return ["MinTRESPJ"]
    time = {"Minutes": "Mins", "RunMinutes": "RunMins"}.get(limit.time, "")
    if limit.kind == "Grp":
        return [f"GrpTRES{time}"]
    return [f"MaxTRES{time}{end}"] if end else [f"MaxTRES{time}PJ", f"MaxTRES{time}PU"]
