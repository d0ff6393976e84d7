"""Why a job waits: the reason in a sentence, with the evidence that Slurm has for it, and when it may start."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping

from ...logs.text.sanitize import plain
from ...specs.errors import join_names
from ..shared.exit_reasons import some_of
from .facts import Facts, Usage, limit_and_use, unusable
from .jobs import MOST_AHEAD_S, App, Job, format_duration, parse_duration
from .layout import expand_nodes
from .reasons import Limit, code_of, limit_of, reason

_DEPENDENCY = re.compile(r"(?P<kind>[a-z]+):(?P<id>\d+)(?:_(?:\d+|\*))?(?:\+\d+)?(?:\((?P<state>\w+)\))?")
_UNAVAILABLE = re.compile(r"UnavailableNodes:(?P<nodes>\S+)")
_KINDS = {
    "after": "has begun", "afterany": "has ended", "afterok": "has succeeded", "afternotok": "has failed",
    "aftercorr": "has succeeded, task by task", "afterburstbuffer": "has copied its data",
}  # fmt: skip
# The words of limits in `scontrol show assoc_mgr`, by kind and whom they are for.
_TRES_NAMES = {"cpu": "cpu", "mem": "mem", "memory": "mem", "node": "node", "nodes": "node", "billing": "billing"}
_TRES_WORDS = {"cpu": "CPUs", "mem": "memory (MB)", "node": "nodes", "billing": "billing units", "gres/gpu": "GPUs"}


def evidence(job: Job, facts: Facts, known: Mapping[str, App]) -> list[str]:
    """Return the evidence for the reason why a job waits: limits with their use, nodes, dependencies, an estimate.

    Args:
        job: the record of a job that waits.
        facts: what else is asked.
        known: the jobs that are known, for the names and states of dependencies.
    """
    code = code_of(job.reason)
    found: Iterator[str]
    if code in _EVIDENCE:
        found = _EVIDENCE[code](job, facts)
    elif code in ("Dependency", "DependencyNeverSatisfied"):
        found = _dependencies(job, known)
    elif limit := limit_of(code):
        found = _limits(job, facts, limit)
    else:
        found = iter(())
    return [*found, *_estimate(job, code)]


def _estimate(job: Job, code: str) -> Iterator[str]:
    """Yield Slurm's own estimate of the start; for a job with a begin time it would only repeat that."""
    at = expected_start(job)
    if at is not None and code != "BeginTime" and not reason(code).never:
        on = f" on {plain(job.scheduled_nodes)}" if job.scheduled_nodes else ""
        yield f"Slurm expects to start it at {clock(at)}{on}"


def expected_start(job: Job) -> float | None:
    """Return Slurm's own estimate of the start of a job that waits, in seconds since the epoch; None for none."""
    at, now = job.started_at, time.time()
    return at if at is not None and now < at < now + MOST_AHEAD_S else None


def clock(at: float) -> str:
    """Return a time of today as ``18:00``, of another day with its date."""
    then, now = time.localtime(at), time.localtime(time.time())
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)


def _resources(job: Job, facts: Facts) -> Iterator[str]:
    nodes = facts.nodes(job.partition)
    usable = [node for node in nodes if node.is_usable]
    if nodes:
        idle, cpus = sum(node.idle for node in usable), sum(node.cpus for node in usable)
        yield f"{idle} of {cpus} CPUs of {plain(job.partition)} are free, and it asks for {job.cpus}"
        gpus = sum(node.gpus for node in usable)
        if gpus and "gpu" in job.tres_per_node:
            yield f"{gpus - sum(node.gpus_used for node in usable)} of {gpus} GPUs are free"
        yield from _down_nodes(job, facts)


def _down_nodes(job: Job, facts: Facts) -> Iterator[str]:
    found = _UNAVAILABLE.search(job.reason)
    names = expand_nodes(found["nodes"]) if found else ()
    nodes = facts.nodes(job.partition)
    lost = unusable(nodes, names)
    if lost:
        told = [
            f"{plain(node.name)} is {node.state}" + (f" ({plain(node.reason)})" if node.reason else "") for node in lost
        ]
        yield some_of(told)


def _priority(job: Job, facts: Facts) -> Iterator[str]:
    rank = facts.pending_before(job.partition, job.job_id)
    if rank is not None:
        before, waiting = rank
        yield f"{before} of the {waiting} jobs that wait in {plain(job.partition)} are ahead of it"
    factors = facts.priority(job.job_id)
    if factors and job.priority.isdecimal():
        parts = ", ".join(f"{name} {value:,}" for name, value in factors.items())
        yield f"its priority is {int(job.priority):,}: {parts}"


def _begin(job: Job, _facts: Facts) -> Iterator[str]:
    if job.eligible_at is not None and job.eligible_at > time.time():
        yield f"it may start at {clock(job.eligible_at)}"


def _array(job: Job, _facts: Facts) -> Iterator[str]:
    _, percent, most = job.tasks.partition("%")
    if percent:
        yield f"{most} at once"


def _licences(job: Job, facts: Facts) -> Iterator[str]:
    for part in job.licenses.replace("|", ",").split(","):
        name, _, wanted = part.partition(":")
        told = facts.licence(name)
        if told:
            yield (
                f"{told.get('Free', '?')} of {told.get('Total', '?')} licences {plain(name)} are free, "
                f"and it asks for {plain(wanted) or 1}"
            )


def _reservation(job: Job, facts: Facts) -> Iterator[str]:
    told = facts.reservation(job.reservation)
    start = told.get("StartTime", "")
    if start.isdecimal():
        yield f"the reservation {plain(job.reservation)} begins at {clock(float(start))}"


def _partition_state(job: Job, facts: Facts) -> Iterator[str]:
    if state := facts.partition(job.partition).get("State"):
        yield f"the partition {plain(job.partition)} is {plain(state)}"


def _partition_time(job: Job, facts: Facts) -> Iterator[str]:
    most = parse_duration(facts.partition(job.partition).get("MaxTime", ""))
    if most is not None:
        asked = f"it asks for {format_duration(job.limit)}, " if job.limit else ""
        yield f"{asked}and {plain(job.partition)} allows {format_duration(most)}"


def _partition_nodes(job: Job, facts: Facts) -> Iterator[str]:
    told = facts.partition(job.partition)
    if told:
        least, most, there = told.get("MinNodes", "0"), told.get("MaxNodes", ""), told.get("TotalNodes", "?")
        bound = there if most == "UNLIMITED" else most
        allowed = f"{plain(least)} to {plain(bound)} of its {plain(there)}"
        yield f"it asks for {job.nodes} nodes, and {plain(job.partition)} allows {allowed}"


def _partition_size(job: Job, facts: Facts) -> Iterator[str]:
    told = facts.partition(job.partition)
    if told:
        yield (
            f"it asks for {job.cpus} CPUs on {job.nodes} nodes, and {plain(job.partition)} has "
            f"{plain(told.get('TotalCPUs', '?'))} on {plain(told.get('TotalNodes', '?'))}"
        )


def _accounts(job: Job, facts: Facts) -> Iterator[str]:
    told = facts.partition(job.partition)
    if (allowed := told.get("AllowAccounts", "")) not in ("", "ALL"):
        yield f"{plain(job.partition)} allows {join_names(map(plain, allowed.split(',')))}, not {plain(job.account)}"
    elif denied := told.get("DenyAccounts"):
        yield f"{plain(job.partition)} does not allow {join_names(map(plain, denied.split(',')))}"


def _qos_names(job: Job, facts: Facts) -> Iterator[str]:
    told = facts.partition(job.partition)
    if (allowed := told.get("AllowQos", "")) not in ("", "ALL"):
        yield f"{plain(job.partition)} allows {join_names(map(plain, allowed.split(',')))}, not {plain(job.qos)}"


def _features(job: Job, _facts: Facts) -> Iterator[str]:
    if job.features:
        yield f"it asks for {plain(job.features)}"


_EVIDENCE: dict[str, Callable[[Job, Facts], Iterator[str]]] = {
    "Resources": _resources,
    "NodesDown": _resources,
    "ReqNodeNotAvail": _down_nodes,
    "NodeDown": _down_nodes,
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


def _limits(job: Job, facts: Facts, limit: Limit) -> Iterator[str]:
    """Yield a limit of the account or the QOS with what is in use of it."""
    told = facts.association(job.account, job.user) if limit.of == "Assoc" else facts.qos(job.qos, os.getuid())
    whose = f"the account {plain(job.account)}" if limit.of == "Assoc" else f"the QOS {plain(job.qos)}"
    for name in _limit_names(limit):
        found, what = _limit_in(told.get(name, ""), limit)
        if found is not None:
            used = f"{found.used} of {found.limit}" if found.used else found.limit
            unit = " minutes" if limit.time or name == "MaxWallPJ" else ""
            yield f"{name} of {whose}: {used} {what}{unit}".replace("  ", " ") + (" in use" if found.used else "")
            return


def _limit_in(value: str, limit: Limit) -> tuple[Usage | None, str]:
    if limit.what in ("gres", "license", "bb", "energy", "unknown"):
        for name, _ in (part.split("=", 1) for part in value.split(",") if "=" in part):
            if name.startswith(("gres/", "license/", "bb/")) and (found := limit_and_use(value, name)):
                return found, _TRES_WORDS.get(name, plain(name))
        return None, ""
    if tres := _TRES_NAMES.get(limit.what):
        return limit_and_use(value, tres), _TRES_WORDS[tres]
    return limit_and_use(value), "" if "wall" in limit.what else "jobs"


def _limit_names(limit: Limit) -> list[str]:
    """Return the names that `scontrol show assoc_mgr` may have for a limit."""
    if limit.what in ("job", "jobs"):
        return [f"{limit.kind}Jobs", "MaxJobsPU", "MaxJobsPA"]
    if limit.what.startswith("submit"):
        return [f"{limit.kind}SubmitJobs", "MaxSubmitJobsPU", "MaxSubmitJobsPA"]
    if "wall" in limit.what:
        return ["GrpWall"] if limit.kind == "Grp" else ["MaxWallPJ"]
    if limit.kind == "Grp":
        return [f"GrpTRES{ {'Minutes': 'Mins', 'RunMinutes': 'RunMins'}.get(limit.time, '') }"]
    if limit.kind == "Min":
        return ["MinTRESPJ"]
    if limit.time:
        return ["MaxTRESMinsPJ"]
    return {"PerUser": ["MaxTRESPU"], "PerNode": ["MaxTRESPN"], "PerAccount": ["MaxTRESPA"]}.get(
        limit.per, ["MaxTRESPJ", "MaxTRESPU"]
    )
