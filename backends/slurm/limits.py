"""Limits of the partition, the account and the QOS before a launch: sbatch accepts jobs that never start."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...logs.text.sanitize import plain
from ...specs import AppDef
from ...specs.batch_script import script_of
from ...specs.errors import join_names
from ...specs.files import user_name
from ..types import Finding
from .facts import Facts, limit_and_use
from .jobs import format_duration, parse_count, parse_duration
from .options import SlurmOpts

_PENDS = "sbatch would accept it, but it would never start"


class Asked(NamedTuple):
    """The totals that a launch asks for; None and 0 if not given.

    Attributes:
        partition: the partition, or several with commas between them; empty for the default one.
        account: the account, empty for the user's own.
        qos: the QOS, empty for the usual one.
        time: the time limit in seconds.
        nodes: how many nodes at least.
        cpus: how many CPUs.
    """

    partition: str
    account: str
    qos: str
    time: int | None
    nodes: int
    cpus: int


def asked_for(app: AppDef, opts: SlurmOpts) -> Asked:
    """Return the resources that a launch asks for: run options win over the options of a user's script."""
    own = script_of(app.roles)
    settings = own.settings if own is not None else {}

    def value(name: str) -> str:
        return getattr(opts, name) or settings.get(name, "")

    nodes = parse_count(value("nodes"))
    if own is None:
        cpus = sum(role.num_replicas * max(1, role.resource.cpu) for role in app.roles)
    else:
        tasks = parse_count(settings.get("ntasks", "")) or nodes * parse_count(settings.get("ntasks-per-node", ""))
        cpus = max(1, tasks) * max(1, parse_count(settings.get("cpus-per-task", "")))
    return Asked(value("partition"), value("account"), value("qos"), parse_duration(value("time")), nodes, cpus)


def limit_findings(asked: Asked, facts: Facts, default_partition: str) -> Iterator[Finding]:
    """Yield a warning for each limit that a launch is over, as far as Slurm tells them.

    Args:
        asked: what it asks for.
        facts: what is asked.
        default_partition: the partition of jobs that name none, empty where it is not known.
    """
    partition = asked.partition or default_partition
    # Of several partitions it is enough that one fits.
    if partition and "," not in partition:
        yield from _of_partition(partition, facts.partition(partition), asked)
    user = user_name()
    account = asked.account or facts.default_account(user)
    if account:
        yield from _of_job(f"the account {plain(account)}", facts.association(account, user), asked)
    if asked.qos:
        yield from _of_job(f"the QOS {plain(asked.qos)}", facts.qos(asked.qos, os.getuid()), asked)


def _of_partition(name: str, told: Mapping[str, str], asked: Asked) -> Iterator[Finding]:
    name = plain(name)
    if (state := told.get("State", "UP")) != "UP":
        yield Finding("warning", f"the partition {name} is {plain(state)}", "it starts no jobs now: choose another one")
    most = parse_duration(told.get("MaxTime", ""))
    if most is not None and asked.time is not None and asked.time > most:
        what = f"it asks for {format_duration(asked.time)}, and the partition {name} allows {format_duration(most)}"
        yield Finding("warning", what, f"{_PENDS}: set time to at most {format_duration(most)}")
    nodes = min((count for key in ("MaxNodes", "TotalNodes") if (count := parse_count(told.get(key, "")))), default=0)
    if nodes and asked.nodes > nodes:
        what = f"it asks for {asked.nodes} nodes, and the partition {name} allows at most {nodes}"
        yield Finding("warning", what, f"{_PENDS}: ask for fewer nodes")
    cpus = parse_count(told.get("TotalCPUs", ""))
    if cpus and asked.cpus > cpus:
        what = f"it asks for {asked.cpus} CPUs, and the partition {name} has {cpus}"
        yield Finding("warning", what, f"{_PENDS}: ask for fewer replicas or less cpu")
    for key, option, value in (("AllowAccounts", "account", asked.account), ("AllowQos", "qos", asked.qos)):
        allowed = told.get(key, "ALL") or "ALL"
        if value and allowed != "ALL" and value not in allowed.split(","):
            what = f"the partition {name} does not allow the {option} {plain(value)}"
            yield Finding("warning", what, f"{_PENDS}: choose {join_names(map(plain, allowed.split(',')))}")


def _of_job(whose: str, told: Mapping[str, str], asked: Asked) -> Iterator[Finding]:
    """Yield a warning for each limit of a single job that is exceeded."""
    wall = limit_and_use(told.get("MaxWallPJ", ""))
    if wall is not None and asked.time is not None and asked.time > 60 * parse_count(wall.limit):
        most = format_duration(60 * parse_count(wall.limit))
        what = f"it asks for {format_duration(asked.time)}, and {whose} allows {most}"
        yield Finding("warning", what, f"{_PENDS}: set time to at most {most}")
    for key in ("MaxTRESPJ", "GrpTRES", "MaxTRESPU"):
        cpus = limit_and_use(told.get(key, ""), "cpu")
        if cpus is not None and asked.cpus > parse_count(cpus.limit):
            what = f"it asks for {asked.cpus} CPUs, and {whose} allows {parse_count(cpus.limit)} ({key})"
            yield Finding("warning", what, f"{_PENDS}: ask for fewer replicas or less cpu")
            return
