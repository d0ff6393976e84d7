"""Limits of the partition, the account and the QOS: those that hold a job back, and those that a launch exceeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...base.errors import join_names
from ...base.files import user_name
from ...logs.text.sanitize import plain
from ...specs.batch_script import script_of
from ...specs.roles import AppDef
from .cluster import Cluster, Usage, limits_in
from .jobs import Job
from .options import SlurmOpts
from .reasons import Limit
from .values import count_gpus, format_duration, parse_count, parse_duration, parse_size, parse_tres

REFUSED = "sbatch refuses it"
# More accounts of a user are not asked about: each has limits of its own, and of its parents.
_MAX_ACCOUNTS = 5
# The fields of an association's shares; the last one is the fair-share factor.
_SHARES = "SharesRaw/Norm/Level/Factor"
# The words for one and several of a trackable resource.
_WORDS = {
    "cpu": ("CPU", "CPUs"), "mem": ("MB", "MB of memory"), "node": ("node", "nodes"),
    "billing": ("billing", "billing units"), "gres/gpu": ("GPU", "GPUs"),
}  # fmt: skip
# The resources that a limit's name means, where they are called otherwise.
_MEANT = {"memory": "mem", "nodes": "node", "gres": "gres/", "license": "license/", "bb": "bb/"}
_PER = {"PerJob": "PJ", "PerUser": "PU", "PerAccount": "PA", "PerNode": "PN"}
# Limits that one launch can exceed.
_CHECKED = [Limit("", "Max", "wall", "", "PerJob")] + [
    Limit("", kind, what, time, per)
    for (kind, time, per), what in itertools.product(
        [
            ("Max", "", "PerJob"), ("Grp", "", ""), ("Max", "", "PerUser"), ("Max", "", "PerAccount"),
            ("Max", "Minutes", "PerJob"), ("Grp", "RunMinutes", ""),
        ],
        ("cpu", "node", "gres"),
    )
]  # fmt: skip


class Exceeded(NamedTuple):
    """A limit that a job exceeds.

    Attributes:
        what: the limit and what is asked for.
        advice: what to do.
        verdict: what sbatch does, if that is known without asking it.
        code: the reason for which the job would wait, if it is a limit of the partition.
    """

    what: str
    advice: str
    verdict: str = ""
    code: str = ""


class LimitUse(NamedTuple):
    """A limit that holds a job back.

    Attributes:
        text: the limit with its use, and what the job asks for.
        is_alone: whether the job exceeds it by itself, so that it never starts.
    """

    text: str
    is_alone: bool


def asked_for(app: AppDef, opts: SlurmOpts) -> Job:
    """Return the job of a launch: run options win over the options of a user's script."""
    own = script_of(app.roles)
    settings = own.settings if own is not None else {}
    names = ("partition", "account", "qos", "nodes", "time")
    partition, account, qos, nodes_text, time = (getattr(opts, name) or settings.get(name, "") for name in names)
    nodes = parse_count(nodes_text)
    if own is None:
        cpus = sum(role.num_replicas * max(1, role.resource.cpu) for role in app.roles)
        gpus = sum(role.num_replicas * max(0, role.resource.gpu) for role in app.roles)
    else:
        tasks = parse_count(settings.get("ntasks", "")) or nodes * parse_count(settings.get("ntasks-per-node", ""))
        cpus = max(1, tasks) * max(1, parse_count(settings.get("cpus-per-task", "")))
        times = {"gpus": 1, "gpus-per-node": nodes, "gres": nodes, "gpus-per-task": tasks}
        name = next(filter(settings.get, times), "gpus")
        gpus = max(1, times[name]) * count_gpus(f"{'' if name == 'gres' else 'gpu:'}{settings.get(name, '')}")
    job = Job("", user=user_name(), partition=partition, account=account, qos=qos, limit=parse_duration(time))
    return with_size(job, nodes, cpus, gpus)


def with_size(job: Job, nodes: int, cpus: int, gpus: int) -> Job:
    """Return a job that asks for other nodes, CPUs and GPUs."""
    return replace(job, nodes=nodes, cpus=cpus, tres=f"cpu={cpus},node={nodes},gres/gpu={gpus}")


def exceeded_limits(job: Job, cluster: Cluster) -> Iterator[Exceeded]:
    """Yield the limits that a job exceeds by itself, as far as Slurm shows them.

    Args:
        job: the job, in its partition even where that is the default one.
        cluster: knows the limits.
    """
    job = job if job.account else replace(job, account=cluster.default_account(job.user))
    yield from partition_faults(job, cluster)
    for of, limit in itertools.product(("Assoc", "QOS"), _CHECKED):
        use = find_limit(job, cluster, limit._replace(of=of))
        if use is not None and use.is_alone:
            yield Exceeded(use.text, "ask for less time" if limit.time or limit.what == "wall" else "ask for less")


def partition_faults(job: Job, cluster: Cluster) -> Iterator[Exceeded]:
    """Yield why the partition of a job never starts it; of several partitions it is enough that one fits."""
    fields = cluster.show("partition", job.partition) if "," not in job.partition else {}
    name = f"the partition {plain(job.partition)}"
    if (state := fields.get("State", "UP")) != "UP":
        verdict = "it accepts jobs and starts none" if state == "DOWN" else f"{REFUSED}: it accepts no jobs"
        yield Exceeded(f"{name} is {plain(state)}", "choose another one", verdict, "PartitionDown")
    time = parse_duration(fields.get("MaxTime", ""))
    if time is not None and job.limit is not None and job.limit > time:
        most = format_duration(time)
        what = f"it asks for {format_duration(job.limit)}, and {name} allows {most}"
        yield Exceeded(what, f"set time to at most {most}", code="PartitionTimeLimit")
    least, *counts = (parse_count(fields.get(key, "")) for key in ("MinNodes", "MaxNodes", "TotalNodes"))
    nodes, cpus = min(filter(None, counts), default=0), parse_count(fields.get("TotalCPUs", ""))
    if nodes and job.nodes and not least <= job.nodes <= nodes:
        what = f"it asks for {job.nodes} nodes, and {name} allows {least or 1} to {nodes}"
        yield Exceeded(what, "ask for another number of nodes", code="PartitionNodeLimit")
    if cpus and job.cpus > cpus:
        what = f"it asks for {job.cpus} CPUs, and {name} has {cpus}"
        yield Exceeded(what, "ask for fewer replicas or less cpu", code="PartitionConfig")
    for key, option, value, code in (
        ("Accounts", "account", job.account, "AccountNotAllowed"), ("Qos", "QOS", job.qos, "QOSNotAllowed"),
    ):  # fmt: skip
        allowed, denied = (fields.get(f"{verb}{key}", "").split(",") for verb in ("Allow", "Deny"))
        is_listed = allowed not in ([""], ["ALL"])
        if value and ((is_listed and value not in allowed) or value in denied):
            only = f", only {join_names(map(plain, allowed))}" if is_listed else ""
            what = f"{name} does not allow the {option} {plain(value)}{only}"
            yield Exceeded(what, f"choose another {option} or partition", code=code)


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
    if job.qos:
        yield f"the QOS {plain(job.qos)}", cluster.qos([job.qos], job.user, job.account)[job.qos]
    name = cluster.show("partition", job.partition).get("QoS", "") if "," not in job.partition else ""
    if name and name != job.qos:
        yield f"the QOS {plain(name)} of the partition", cluster.qos([name], job.user, job.account)[name]


def _describe(job: Job, name: str, whose: str, usage: Usage, limit: Limit, tres: str, asked: float) -> LimitUse:
    most, shown = _number(usage.limit), _limit_text(name, whose, usage._replace(used=""), tres)
    if limit.is_of_one_job:
        # What a job has on each node is not known.
        is_known = limit.per != "PerNode" and bool(job.tres or not tres)
        is_over = is_known and (asked < most if limit.kind == "Min" else asked > most)
        return LimitUse(f"{shown}, and it asks for {asked:,.0f}" if is_over else shown, is_over)
    if asked > most and "job" not in limit.what:
        return LimitUse(f"{shown}, and it alone asks for {asked:,.0f}: it can never start", is_alone=True)
    return LimitUse(_limit_text(name, whose, usage, tres), is_alone=False)


def _limit_text(name: str, whose: str, usage: Usage, tres: str) -> str:
    """Return a limit, with its use where Slurm prints one."""
    most, unit = _number(usage.limit), "minutes" if "Wall" in name else "jobs"
    if tres:
        one, many = _WORDS.get(tres, (plain(tres), plain(tres)))
        unit = f"{one} minutes" if "Mins" in name else many
    if not usage.used:
        return f"{name} of {whose}: {most:,.0f} {unit}"
    is_budget = name == "GrpWall" or name.endswith("TRESMins")
    return f"{name} of {whose}: {_number(usage.used):,.0f} of {most:,.0f} {unit} {'used' if is_budget else 'in use'}"


def limit_sentences(cluster: Cluster, user: str, accounts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the limits of a user with their use, and the share of each account, as far as Slurm shows them.

    Args:
        cluster: knows the limits.
        user: the user.
        accounts: the accounts of the user, the default one first, with the QOS of each.
    """
    owners: dict[str, Mapping[str, str]] = {}
    for account, names in [*accounts.items()][:_MAX_ACCOUNTS]:
        qos = f", QOS {join_names(map(plain, names))}" if names else ""
        yield f"account {plain(account)}{' (default)' if not owners else ''}{qos}"
        for name, fields in cluster.associations(account, user):
            owners.setdefault(f"the account {plain(name)}", fields)
            if name == account and (factor := fields.get(_SHARES, "").rpartition("/")[2]):
                yield f"fair share of the account {plain(account)}: {plain(factor)} of 1; a higher one starts sooner"
        if names:
            found = cluster.qos(names, user, account)
            owners.update((f"the QOS {plain(name)}", fields) for name, fields in found.items())
    for whose, fields in owners.items():
        for name, value in fields.items():
            if name.startswith(("Grp", "Max")):
                yield from (_limit_text(name, whose, usage, tres) for tres, usage in limits_in(value).items())


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
        return limits_in(value).get(""), ""
    is_any = limit.what in ("unknown", "resource")
    meant = _MEANT.get(limit.what, limit.what)
    for name, usage in limits_in(value).items():
        if is_any or (name.startswith(meant) if meant.endswith("/") else name == meant):
            return usage, name
    return None, ""


def _names(limit: Limit) -> list[str]:
    """Return the names that `scontrol show assoc_mgr` may have for a limit."""
    if "job" in limit.what:
        name, ends = "SubmitJobs" if limit.what.startswith("submit") else "Jobs", ["", "PU", "PA"]
    elif "wall" in limit.what or limit.what == "time":
        name, ends = "Wall", ["PJ"]
    else:
        name, ends = f"TRES{limit.time.replace('Minutes', 'Mins')}", ["PJ", "PU"]
    if limit.kind == "Grp":
        ends = [""]
    elif limit.per:
        ends = [_PER[limit.per]]
    return [f"{limit.kind}{name}{end}" for end in ends]
