"""The limit of an account or a QOS that holds a waiting job back, with its use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...logs.text.sanitize import plain
from .cluster import Cluster, Usage, limit_and_use
from .jobs import Job
from .reasons import Limit
from .values import parse_size, parse_tres

# The words for one and several of a trackable resource.
_WORDS = {
    "cpu": ("CPU", "CPUs"), "mem": ("MB", "MB of memory"), "node": ("node", "nodes"),
    "billing": ("billing", "billing units"), "gres/gpu": ("GPU", "GPUs"),
}  # fmt: skip
# The resources that a limit's name means, where they are called otherwise.
_MEANT = {"memory": "mem", "nodes": "node", "gres": "gres/", "license": "license/", "bb": "bb/"}
_PER = {"PerJob": "PJ", "PerUser": "PU", "PerAccount": "PA", "PerNode": "PN", "": ""}


class LimitUse(NamedTuple):
    """A limit that holds a job back.

    Attributes:
        text: the limit with its use, and what the job asks for.
        is_alone: whether the job exceeds it by itself, so that it never starts.
    """

    text: str
    is_alone: bool


def find_limit(job: Job, cluster: Cluster, limit: Limit) -> LimitUse | None:
    """Return the limit that a reason names, of the account or QOS that has it; None if Slurm does not show it.

    Of several the first one that the job reaches: those of parent accounts and of the partition's QOS count, too.
    """
    first: LimitUse | None = None
    for whose, fields in _limited(job, cluster, limit):
        for name in _names(limit):
            usage, tres = _usage(fields.get(name, ""), limit)
            if usage is None:
                continue
            asked = _asked(job, limit, tres)
            found = _describe(job, name, whose, usage, limit, tres, asked)
            if found.is_alone or _number(usage.used) + asked > _number(usage.limit):
                return found
            first = first or found
            break
    return first


def _limited(job: Job, cluster: Cluster, limit: Limit) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the owners of limits that a reason may name, with these; those further up are asked for when needed."""
    if limit.of == "Assoc":
        for account, fields in cluster.associations(job.account, job.user):
            yield f"the account {plain(account)}", fields
        return
    yield f"the QOS {plain(job.qos)}", cluster.qos(job.qos, job.user, job.account)
    name = cluster.partition(job.partition).get("QoS", "")
    if name and name != job.qos:
        yield f"the QOS {plain(name)} of the partition", cluster.qos(name, job.user, job.account)


def _describe(job: Job, name: str, whose: str, usage: Usage, limit: Limit, tres: str, asked: float) -> LimitUse:
    most, used, unit = _number(usage.limit), _number(usage.used), "minutes" if "wall" in limit.what else "jobs"
    if tres:
        one, many = _WORDS.get(tres, (plain(tres), plain(tres)))
        unit = f"{one} minutes" if "Mins" in name else many
    shown = f"{name} of {whose}: {most:,.0f} {unit}"
    if limit.is_of_one_job:
        # What a job has on each node is not known.
        is_known = limit.per != "PerNode" and (job.tres or not tres)
        is_over = asked < most if limit.kind == "Min" else asked > most
        return LimitUse(f"{shown}, and it asks for {asked:,.0f}" if is_known and is_over else shown, is_alone=True)
    if asked > most and "job" not in limit.what:
        return LimitUse(f"{shown}, and it alone asks for {asked:,.0f}: it never starts as it is", is_alone=True)
    if usage.used:
        is_budget = name == "GrpWall" or name.endswith("TRESMins")
        shown = f"{name} of {whose}: {used:,.0f} of {most:,.0f} {unit} {'used' if is_budget else 'in use'}"
    return LimitUse(shown, is_alone=False)


def _asked(job: Job, limit: Limit, tres: str) -> float:
    """Return what a job asks for in the unit of a limit; squeue has its resources while it waits."""
    minutes = (job.limit or 0) / 60
    if not tres:
        return minutes if "wall" in limit.what else 1
    size = parse_tres(job.tres).get(tres)
    amount = {"cpu": job.cpus, "node": job.nodes}.get(tres, 0) if size is None else _number(size)
    return amount * minutes if limit.time else amount


def _number(text: str) -> float:
    """Return a limit's number: Slurm prints limits of memory in MB, and sizes with their unit."""
    return (parse_size(text, "M") or 0) / (1 << 20)


def _usage(value: str, limit: Limit) -> tuple[Usage | None, str]:
    """Return the limit in a value with its use, and its trackable resource; empty for jobs and time."""
    if any(word in limit.what for word in ("wall", "job", "time")):
        return limit_and_use(value), ""
    is_any = limit.what in ("unknown", "resource")
    meant = _MEANT.get(limit.what, limit.what)
    for name in parse_tres(value):
        is_meant = is_any or (name.startswith(meant) if meant.endswith("/") else name == meant)
        if is_meant and (usage := limit_and_use(value, name)):
            return usage, name
    return None, ""


def _names(limit: Limit) -> list[str]:
    """Return the names that `scontrol show assoc_mgr` may have for a limit."""
    end = _PER[limit.per]
    if "job" in limit.what:
        name = f"{limit.kind}{'Submit' if limit.what.startswith('submit') else ''}Jobs"
        return [f"{name}{end}"] if end else [name, f"{name}PU", f"{name}PA"]
    if "wall" in limit.what or limit.what == "time":
        return ["GrpWall" if limit.kind == "Grp" else "MaxWallPJ"]
    if limit.kind == "Min":
        return ["MinTRESPJ"]
    name = f"{limit.kind}TRES{limit.time.replace('Minutes', 'Mins')}"
    if limit.kind == "Grp":
        return [name]
    return [f"{name}{end}"] if end else [f"{name}PJ", f"{name}PU"]
