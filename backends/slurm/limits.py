"""Limits of the partition, the account and the QOS before a launch: sbatch accepts jobs that never start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...base.errors import join_names
from ...base.files import user_name
from ...logs.text.sanitize import plain
from ...specs.batch_script import script_of
from ...specs.roles import AppDef
from .cluster import Cluster, limit_and_use
from .options import SlurmOpts
from .values import count_gpus, format_duration, parse_count, parse_duration

PENDS = "sbatch would accept it, but it would never start"
REFUSED = "sbatch refuses it"


class Asked(NamedTuple):
    """The totals that a launch asks for; None and 0 if not given.

    Attributes:
        partition: the partition, or several with commas between them; empty for the default one.
        account: the account, empty for the user's own.
        qos: the QOS, empty for the usual one.
        time: the time limit in seconds.
        nodes: minimum number of nodes.
        cpus: number of CPUs.
        gpus: number of GPUs.
    """

    partition: str
    account: str
    qos: str
    time: int | None
    nodes: int
    cpus: int
    gpus: int = 0


class Exceeded(NamedTuple):
    """A limit that a launch exceeds.

    Attributes:
        what: the limit and what is asked for.
        advice: what to do.
        verdict: what sbatch does, if that is known without asking it.
    """

    what: str
    advice: str
    verdict: str = ""


def asked_for(app: AppDef, opts: SlurmOpts) -> Asked:
    """Return the resources that a launch asks for: run options win over the options of a user's script."""
    own = script_of(app.roles)
    settings = own.settings if own is not None else {}

    def value(name: str) -> str:
        return getattr(opts, name) or settings.get(name, "")

    nodes = parse_count(value("nodes"))
    if own is None:
        cpus = sum(role.num_replicas * max(1, role.resource.cpu) for role in app.roles)
        gpus = sum(role.num_replicas * max(0, role.resource.gpu) for role in app.roles)
    else:
        tasks = parse_count(settings.get("ntasks", "")) or nodes * parse_count(settings.get("ntasks-per-node", ""))
        cpus = max(1, tasks) * max(1, parse_count(settings.get("cpus-per-task", "")))
        times = {"gpus": 1, "gpus-per-node": nodes, "gres": nodes, "gpus-per-task": tasks}
        gpus = 0
        for name in times:
            text = settings.get(name, "")
            if name == "gres":
                text = next((part[4:] or "1" for part in text.split(",") if part.partition(":")[0] == "gpu"), "")
            if text:
                gpus = (count_gpus(f"gpu:{text}") or 1) * max(1, times[name])
                break
    names = value("partition"), value("account"), value("qos")
    return Asked(*names, parse_duration(value("time")), nodes, cpus, gpus)


def exceeded_limits(asked: Asked, cluster: Cluster, default_partition: str) -> Iterator[Exceeded]:
    """Yield the limits that a launch exceeds, as far as Slurm shows them.

    Args:
        asked: what it asks for.
        cluster: knows the limits.
        default_partition: the partition of jobs that name none, empty if unknown.
    """
    partition = asked.partition or default_partition
    user = user_name()
    account = asked.account or cluster.default_account(user)
    # Of several partitions it is enough that one fits.
    if partition and "," not in partition:
        fields = cluster.partition(partition)
        yield from _of_partition(plain(partition), fields, asked)
        if (name := fields.get("QoS", "")) and name != asked.qos:
            whose = f"the QOS {plain(name)} of the partition {plain(partition)}"
            yield from _of_job(whose, cluster.qos(name, user, account), asked)
    if account:
        yield from _of_job(f"the account {plain(account)}", cluster.association(account, user), asked)
    if asked.qos:
        yield from _of_job(f"the QOS {plain(asked.qos)}", cluster.qos(asked.qos, user, account), asked)


def _of_partition(name: str, fields: Mapping[str, str], asked: Asked) -> Iterator[Exceeded]:
    if (state := fields.get("State", "UP")) != "UP":
        verdict = "it accepts jobs and starts none" if state == "DOWN" else f"{REFUSED}: it accepts no jobs"
        yield Exceeded(f"the partition {name} is {plain(state)}", "choose another one", verdict)
    yield from _time(f"the partition {name}", parse_duration(fields.get("MaxTime", "")), asked)
    counts = [parse_count(fields.get(key, "")) for key in ("MaxNodes", "TotalNodes")]
    nodes, cpus = min(filter(None, counts), default=0), parse_count(fields.get("TotalCPUs", ""))
    if nodes and asked.nodes > nodes:
        what = f"it asks for {asked.nodes} nodes, and the partition {name} allows at most {nodes}"
        yield Exceeded(what, "ask for fewer nodes")
    if cpus and asked.cpus > cpus:
        what = f"it asks for {asked.cpus} CPUs, and the partition {name} has {cpus}"
        yield Exceeded(what, "ask for fewer replicas or less cpu")
    for key, option, value in (("AllowAccounts", "account", asked.account), ("AllowQos", "qos", asked.qos)):
        allowed = (fields.get(key) or "ALL").split(",")
        if value and allowed != ["ALL"] and value not in allowed:
            what = f"the partition {name} does not allow the {option} {plain(value)}"
            yield Exceeded(what, f"choose {join_names(map(plain, allowed))}")


def _time(whose: str, limit: int | None, asked: Asked) -> Iterator[Exceeded]:
    if limit is not None and asked.time is not None and asked.time > limit:
        most = format_duration(limit)
        what = f"it asks for {format_duration(asked.time)}, and {whose} allows {most}"
        yield Exceeded(what, f"set time to at most {most}")


def _of_job(whose: str, fields: Mapping[str, str], asked: Asked) -> Iterator[Exceeded]:
    """Yield the time limit of a single job, and the first limit of its size, if they are exceeded."""
    wall = limit_and_use(fields.get("MaxWallPJ", ""))
    yield from _time(whose, None if wall is None else 60 * parse_count(wall.limit), asked)
    minutes = (asked.time or 0) / 60
    amounts = {"cpu": (asked.cpus, "CPU"), "node": (asked.nodes, "node"), "gres/gpu": (asked.gpus, "GPU")}
    for key in ("MaxTRESPJ", "GrpTRES", "MaxTRESPU", "MaxTRESPA", "MaxTRESMinsPJ", "GrpTRESRunMins"):
        for tres, (count, word) in amounts.items():
            most = limit_and_use(fields.get(key, ""), tres)
            amount, unit, time = count, f"{word}s", ""
            if "Mins" in key:
                amount, unit, time = count * minutes, f"{word} minutes", " time"
            if most is not None and amount > parse_count(most.limit):
                what = f"it asks for {amount:g} {unit}, and {whose} allows {parse_count(most.limit)} ({key})"
                yield Exceeded(what, f"ask for less{time}")
                return
