"""What sbatch would accept and Slurm never start: limits of the partition, the account and the QOS, before a launch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from ...logs.text.sanitize import plain
from ...specs import AppDef
from ...specs.errors import join_names
from ...specs.files import user_name
from ..types import Finding
from .facts import Facts, limit_and_use
from .jobs import format_duration, parse_count, parse_duration
from .options import SlurmOpts

_PENDS = "sbatch would accept it, and it would wait for ever"


def limit_findings(app: AppDef, opts: SlurmOpts, facts: Facts, default_partition: str) -> Iterator[Finding]:
    """Yield a warning for each limit that an app is over, as far as Slurm tells them.

    Args:
        app: the app.
        opts: the run options.
        facts: what is asked.
        default_partition: the partition of jobs that name none, empty where it is not known.
    """
    asked = _Asked(app, opts)
    partition = opts.partition or default_partition
    # Of several partitions one that fits is enough.
    if partition and "," not in partition:
        yield from _of_partition(partition, facts.partition(partition), opts, asked)
    user = user_name()
    account = opts.account or facts.default_account(user)
    if account:
        yield from _of_job(f"the account {plain(account)}", facts.association(account, user), asked)
    if opts.qos:
        yield from _of_job(f"the QOS {plain(opts.qos)}", facts.qos(opts.qos, os.getuid()), asked)


class _Asked:
    """What an app asks for in all; None where it does not say."""

    def __init__(self, app: AppDef, opts: SlurmOpts) -> None:
        self.time = parse_duration(opts.time or "")
        self.nodes = parse_count(opts.nodes or "")
        self.cpus = sum(role.num_replicas * max(1, role.resource.cpu) for role in app.roles)


def _of_partition(name: str, told: Mapping[str, str], opts: SlurmOpts, asked: _Asked) -> Iterator[Finding]:
    name = plain(name)
    if (state := told.get("State", "UP")) != "UP":
        yield Finding("warning", f"the partition {name} is {plain(state)}", "it starts no jobs now: take another one")
    most = parse_duration(told.get("MaxTime", ""))
    if most is not None and asked.time is not None and asked.time > most:
        what = f"it asks for {format_duration(asked.time)}, and the partition {name} allows {format_duration(most)}"
        yield Finding("warning", what, f"{_PENDS}: set time to at most {format_duration(most)}")
    nodes = min((count for key in ("MaxNodes", "TotalNodes") if (count := parse_count(told.get(key, "")))), default=0)
    if nodes and asked.nodes > nodes:
        what = f"it asks for {asked.nodes} nodes, and the partition {name} gives at most {nodes}"
        yield Finding("warning", what, f"{_PENDS}: ask for fewer nodes")
    cpus = parse_count(told.get("TotalCPUs", ""))
    if cpus and asked.cpus > cpus:
        what = f"it asks for {asked.cpus} CPUs, and the partition {name} has {cpus}"
        yield Finding("warning", what, f"{_PENDS}: ask for fewer replicas or less cpu")
    for key, option, value in (("AllowAccounts", "account", opts.account), ("AllowQos", "qos", opts.qos)):
        allowed = told.get(key, "ALL") or "ALL"
        if value and allowed != "ALL" and value not in allowed.split(","):
            what = f"the partition {name} does not allow the {option} {plain(value)}"
            yield Finding("warning", what, f"{_PENDS}: take {join_names(map(plain, allowed.split(',')))}")


def _of_job(whose: str, told: Mapping[str, str], asked: _Asked) -> Iterator[Finding]:
    """Yield what is over the limits that one job has, whatever else runs."""
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
