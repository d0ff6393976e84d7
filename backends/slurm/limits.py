"""Limits of the partition, the account and the QOS before a launch: sbatch accepts jobs that never start."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...base.errors import join_names
from ...base.files import user_name
from ...logs.text.sanitize import plain
from ...specs.batch_script import script_of
from ...specs.roles import AppDef
from ..types import Finding
from .facts import Facts, limit_and_use
from .jobs import format_duration, parse_count, parse_duration
from .options import SlurmOpts

PENDS = "sbatch would accept it, but it would never start"
REFUSED = "sbatch refuses it"
# The number at the end of `gpu:a100:4`.
_COUNT = re.compile(r"(?:^|[:=])(\d{1,6})$")


class Asked(NamedTuple):
    """The totals that a launch asks for; None and 0 if not given.

    Attributes:
        partition: the partition, or several with commas between them; empty for the default one.
        account: the account, empty for the user's own.
        qos: the QOS, empty for the usual one.
        time: the time limit in seconds.
        nodes: how many nodes at least.
        cpus: how many CPUs.
        gpus: how many GPUs.
    """

    partition: str
    account: str
    qos: str
    time: int | None
    nodes: int
    cpus: int
    gpus: int = 0

    def amounts(self) -> dict[str, tuple[int, str]]:
        """Return how much it asks for by trackable resource, with the words for it."""
        return {"cpu": (self.cpus, "CPUs"), "node": (self.nodes, "nodes"), "gres/gpu": (self.gpus, "GPUs")}


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
        gpus = _gpus(settings, nodes, tasks)
    names = value("partition"), value("account"), value("qos")
    return Asked(*names, parse_duration(value("time")), nodes, cpus, gpus)


def _gpus(settings: Mapping[str, str], nodes: int, tasks: int) -> int:
    """Return how many GPUs the options of a script ask for."""
    gres = next((part for part in settings.get("gres", "").split(",") if part.split(":")[0] == "gpu"), "")
    asked = (
        (settings.get("gpus", ""), 1), (settings.get("gpus-per-node", ""), nodes), (gres, nodes),
        (settings.get("gpus-per-task", ""), tasks),
    )  # fmt: skip
    return next((_last_count(text) * max(1, times) for text, times in asked if text), 0)


def _last_count(text: str) -> int:
    found = _COUNT.search(text)
    return int(found[1]) if found else 1


def limit_findings(asked: Asked, facts: Facts, default_partition: str) -> Iterator[Finding]:
    """Yield a warning for each limit that a launch is over, as far as Slurm tells them.

    Its hint begins with `PENDS`: what sbatch says itself is not asked here.

    Args:
        asked: what it asks for.
        facts: what is asked.
        default_partition: the partition of jobs that name none, empty where it is not known.
    """
    partition = asked.partition or default_partition
    # Of several partitions it is enough that one fits.
    user = user_name()
    account = asked.account or facts.default_account(user)
    if partition and "," not in partition:
        told = facts.partition(partition)
        yield from _of_partition(partition, told, asked)
        if (name := told.get("QoS", "")) and name != asked.qos:
            whose = f"the QOS {plain(name)} of the partition {plain(partition)}"
            yield from _of_job(whose, facts.qos(name, user, account), asked)
    if account:
        yield from _of_job(f"the account {plain(account)}", facts.association(account, user), asked)
    if asked.qos:
        yield from _of_job(f"the QOS {plain(asked.qos)}", facts.qos(asked.qos, user, account), asked)


def _of_partition(name: str, told: Mapping[str, str], asked: Asked) -> Iterator[Finding]:
    name = plain(name)
    if (state := told.get("State", "UP")) != "UP":
        hint = "it accepts jobs and starts none" if state == "DOWN" else f"{REFUSED}: it accepts no jobs"
        yield Finding("warning", f"the partition {name} is {plain(state)}", f"{hint}: choose another one")
    most = parse_duration(told.get("MaxTime", ""))
    if most is not None and asked.time is not None and asked.time > most:
        what = f"it asks for {format_duration(asked.time)}, and the partition {name} allows {format_duration(most)}"
        yield Finding("warning", what, f"{PENDS}: set time to at most {format_duration(most)}")
    nodes = min((count for key in ("MaxNodes", "TotalNodes") if (count := parse_count(told.get(key, "")))), default=0)
    if nodes and asked.nodes > nodes:
        what = f"it asks for {asked.nodes} nodes, and the partition {name} allows at most {nodes}"
        yield Finding("warning", what, f"{PENDS}: ask for fewer nodes")
    cpus = parse_count(told.get("TotalCPUs", ""))
    if cpus and asked.cpus > cpus:
        what = f"it asks for {asked.cpus} CPUs, and the partition {name} has {cpus}"
        yield Finding("warning", what, f"{PENDS}: ask for fewer replicas or less cpu")
    for key, option, value in (("AllowAccounts", "account", asked.account), ("AllowQos", "qos", asked.qos)):
        allowed = told.get(key, "ALL") or "ALL"
        if value and allowed != "ALL" and value not in allowed.split(","):
            what = f"the partition {name} does not allow the {option} {plain(value)}"
            yield Finding("warning", what, f"{PENDS}: choose {join_names(map(plain, allowed.split(',')))}")


def _of_job(whose: str, told: Mapping[str, str], asked: Asked) -> Iterator[Finding]:
    """Yield a warning for each limit of a single job that is exceeded."""
    wall = limit_and_use(told.get("MaxWallPJ", ""))
    if wall is not None and asked.time is not None and asked.time > 60 * parse_count(wall.limit):
        most = format_duration(60 * parse_count(wall.limit))
        what = f"it asks for {format_duration(asked.time)}, and {whose} allows {most}"
        yield Finding("warning", what, f"{PENDS}: set time to at most {most}")
    minutes = (asked.time or 0) / 60
    for key in ("MaxTRESPJ", "GrpTRES", "MaxTRESPU", "MaxTRESPA", "MaxTRESMinsPJ", "GrpTRESRunMins"):
        for tres, (count, words) in asked.amounts().items():
            most = limit_and_use(told.get(key, ""), tres)
            if most is None:
                continue
            amount, unit = (count * minutes, f"{words[:-1]} minutes") if "Mins" in key else (count, words)
            if amount > parse_count(most.limit):
                what = f"it asks for {amount:g} {unit}, and {whose} allows {parse_count(most.limit)} ({key})"
                yield Finding("warning", what, f"{PENDS}: ask for less{' time' if 'Mins' in key else ''}")
                return
