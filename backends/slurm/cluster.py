"""The cluster: its partitions, nodes, limits, reservations and licences.

Only `partitions` raises. Any other question that fails, or is hidden from this user (slurm.conf(5): PrivateData), has
an empty answer: it is only evidence.
"""

from __future__ import annotations

import logging
import pwd
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

from ...logs.text.sanitize import plain
from ...specs.errors import SchedulerError
from ..types import ClusterNode, Finding
from .client import Client
from .commands import FIELD, RECORD
from .shared_answer import Intervals, SharedAnswer, answers_folder
from .values import gpus_by_type, parse_count, parse_duration, parse_tres, text_or_nothing

logger = logging.getLogger(__name__)

# sinfo(1), --format: partition with * for the default, state, nodes, memory of a node (MB), time limit.
_PARTITIONS = f"{RECORD}%P{FIELD}%a{FIELD}%D{FIELD}%m{FIELD}%l"
_PARTITION_FIELDS = ("name", "state", "nodes", "memory", "limit")
# Nodes that do not say how much memory they have say 1; TorchX asks for none up to here, too.
_UNKNOWN_MB = 1000
KEPT_S, PARTITIONS_KEPT_S = 60.0, 300.0
"""Seconds for which answers are kept."""
NODE_FIELDS = ("NodeList", "Partition", "StateLong", "CPUsState", "Gres", "GresUsed", "Memory", "AllocMem", "Reason")
"""The fields of sinfo(1) for each node, for ``--Format``."""
_NODE_FORMAT = ",".join(f"{name}:{FIELD}" for name in NODE_FIELDS[:-1]) + f",{NODE_FIELDS[-1]}:{RECORD}"
_ASK_NODES = ("sinfo", "--noheader", "--Node", "--Format", _NODE_FORMAT)
# squeue(1), --format: state, partition, user, nodes. Active jobs of all users.
ACTIVE_FORMAT = f"%T{FIELD}%P{FIELD}%u{FIELD}%N{RECORD}"
_ASK_ACTIVE = ("squeue", "--noheader", "--local", "--format", ACTIVE_FORMAT)
# The formats of sprio(1), and what each prints. A nice value is taken off.
_FACTORS = {
    "%A": "age",
    "%F": "fair share",
    "%J": "size",
    "%P": "partition",
    "%Q": "QOS",
    "%B": "association",
    "%S": "site",
    "%T": "resources",
    "%N": "nice",
}
# Flags behind a state: a node that does not respond, is powered down, reserved, and so on.
_STATE_FLAGS = "*~#!%$@^-+"
# sinfo(1), NODE STATE CODES: a node with these flags does not respond, or is in a maintenance reservation.
_UNUSABLE_FLAGS = frozenset("*$")
# These beginnings of a state mean that no job can start there.
_UNUSABLE = ("down", "drain", "fail", "error", "unknown", "maint", "reserved", "inval")
_PAIR = re.compile(r"(?:^|\s)(?P<name>[A-Z]\w*(?:/\w+)*)=(?P<value>.*?)(?=\s+[A-Z]\w*(?:/\w+)*=|\s*$)", re.DOTALL)
# A limit with its use: `cpu=4(3)`, `3(1)`; N is none.
_USED = re.compile(r"(?P<limit>N|[\d.]+)\((?P<used>[\d.]+)\)")


class Partition(NamedTuple):
    """A partition.

    Attributes:
        name: its name.
        is_default: whether jobs go there that name none.
        is_up: whether it starts jobs.
        nodes: how many nodes it has.
        memory: the least memory of its nodes, in MB.
        max_time: the longest time limit in seconds, None for none.
    """

    name: str
    is_default: bool
    is_up: bool
    nodes: int
    memory: int
    max_time: int | None


class Usage(NamedTuple):
    """A limit with its use, as Slurm prints both."""

    limit: str
    used: str


class Cluster:
    """Asks about the cluster. Every method may be called from any thread.

    Args:
        client: keeps the answers for a minute, and the partitions for five.
        interval: seconds between two questions about all nodes, or all jobs, of all sessions on this host together.
    """

    def __init__(self, client: Client, interval: float = Intervals().usual) -> None:
        self._client = client
        self._intervals = Intervals(interval, interval)
        # The nodes of the last answer, with its time.
        self._parsed: tuple[float, Sequence[ClusterNode]] = (0.0, ())

    def partitions(self) -> list[Partition]:
        """Return the partitions that this user sees, the default first.

        Raises:
            SchedulerError: Slurm did not answer.
        """
        command = ["sinfo", "--noheader", "--noconvert", "--format", _PARTITIONS]
        return parse_partitions(self._client.ask(command, keep_s=PARTITIONS_KEPT_S))

    def partition_names(self) -> list[str]:
        """Return the names of the partitions, the default first; none if Slurm cannot be asked."""
        try:
            return [partition.name for partition in self.partitions()]
        except SchedulerError as error:
            logger.warning("the partitions are not known: %s", error)
            return []

    def tracks_memory(self, partition: str | None) -> bool:
        """Return whether the nodes of a partition, the default one if None, have a known size of memory."""
        named = (partition or "").split(",")
        with suppress(SchedulerError):
            return all(
                each.memory > _UNKNOWN_MB
                for each in self.partitions()
                if each.name in named or (not partition and each.is_default)
            )
        return True

    def findings(self) -> list[Finding]:
        """Return the version and the partitions, or why the controller cannot be asked."""
        try:
            version = plain(self._client.ask(["sinfo", "--version"])).strip()
            # Without a partition in its format sinfo has each node once.
            nodes = sum(map(parse_count, self._client.ask(["sinfo", "--noheader", "--format", "%D"]).split()))
            partitions = self.partitions()
        except SchedulerError as error:
            return [Finding("error", str(error), "check with `scontrol ping`, or set SLURM_CONF")]
        names = ", ".join(plain(partition.name) for partition in partitions)
        if not partitions:
            return [Finding("warning", f"{version}: it shows you no partition", "ask an administrator for access")]
        return [Finding("ok", f"{version}: {nodes} nodes in the partitions {names}")]

    def show(self, kind: str, name: str) -> dict[str, str]:
        """Return the fields of a partition or reservation, as `scontrol show` prints them."""
        return next(self._rows(kind, name), {}) if name else {}

    def licence(self, name: str) -> dict[str, str]:
        """Return the fields of a licence (`scontrol show licenses`): Total, Used, Free."""
        return next((row for row in self._rows("licenses") if row.get("LicenseName") == name), {})

    # Objects with files are made at first use.

    @cached_property
    def _node_answer(self) -> SharedAnswer:
        return SharedAnswer(answers_folder() / "nodes", partial(self._client.ask, _ASK_NODES), self._intervals)

    @cached_property
    def _active_answer(self) -> SharedAnswer:
        return SharedAnswer(answers_folder() / "active", partial(self._client.ask, _ASK_ACTIVE), self._intervals)

    def all_nodes(self, kept_s: float = 0.0) -> Sequence[ClusterNode]:
        """Return the nodes of all partitions that this user sees.

        Args:
            kept_s: an answer of this age in seconds is used without asking.

        Raises:
            BackendUnavailableError: Slurm did not answer.
        """
        answer = self._node_answer.kept()
        if not 0 <= time.time() - answer.answered_at < kept_s:
            answer = self._node_answer.get()
        if self._parsed[0] != answer.answered_at:
            self._parsed = answer.answered_at, parse_nodes(answer.text)
        return self._parsed[1]

    def nodes(self, partition: str) -> list[ClusterNode]:
        """Return the nodes of a partition, or of several ones parted by commas."""
        names = {*partition.split(",")}
        try:
            found = [node for node in self.all_nodes(KEPT_S) if not names.isdisjoint(node.pools)]
        except SchedulerError as error:
            logger.info("the nodes are not known: %s", error)
            return []
        # A hidden partition is listed only by its name.
        return found or parse_nodes(self._ask(*_ASK_NODES[:3], "--partition", partition, *_ASK_NODES[3:]))

    def active_jobs(self) -> list[dict[str, str]]:
        """Return state, partition, user and nodes of all users' jobs that wait or have nodes, if this user sees them.

        Raises:
            BackendUnavailableError: Slurm did not answer.
        """
        return [*_parse_records(self._active_answer.get().text, ("state", "partition", "user", "nodes"))]

    def accounts(self, user: str) -> dict[str, list[str]]:
        """Return the accounts of a user, the default one first, with the QOS that each allows; accounting is asked.

        Raises:
            SchedulerError: accounting did not answer.
        """
        command = ["sacctmgr", "--noheader", "--parsable2", "show", "assoc", "where", f"user={user}"]
        text = self._client.ask([*command, "format=account,qos"], keep_s=PARTITIONS_KEPT_S)
        rows = (line.partition("|") for line in text.splitlines())
        found = {account: [*filter(None, qos.split(","))] for account, _, qos in rows if account}
        default = self.default_account(user)
        return dict(sorted(found.items(), key=lambda item: item[0] != default))

    def restrictions(self) -> dict[str, dict[str, str]]:
        """Return the fields of each partition (`scontrol show partition`) by its name."""
        return {row["PartitionName"]: row for row in self._rows("partition") if row.get("PartitionName")}

    def default_account(self, user: str) -> str:
        """Return the account of a user's jobs that name none; accounting is asked, not the controller."""
        command = ("sacctmgr", "--noheader", "--parsable2", "show", "user", user, "format=defaultaccount")
        return self._ask(*command, keep_s=PARTITIONS_KEPT_S).strip().partition("\n")[0]

    def association(self, account: str, user: str) -> dict[str, str]:
        """Return the limits of a user in an account, and of the account, with their use."""
        found: dict[str, str] = {}
        for row in self._rows("assoc_mgr", f"accounts={account}", "flags=assoc"):
            if row.get("Account") == account and row.get("UserName", "").partition("(")[0] in ("", user):
                # The user's own limits count before those of the account.
                found |= {name: value for name, value in row.items() if name not in found or limits_in(value)}
        return found

    def associations(self, account: str, user: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the accounts whose limits a job has, with these limits: its own account, then those above it.

        Each is asked for when it is needed.
        """
        seen: set[str] = set()
        while account and account not in seen:
            seen.add(account)
            found = self.association(account, user)
            yield account, found
            account, user = found.get("ParentAccount", "").partition("(")[0], ""

    def qos(self, names: Sequence[str], user: str, account: str) -> dict[str, dict[str, str]]:
        """Return the limits of several QOS by name, with their use by all, by a user and by an account."""
        text = self._ask("scontrol", "show", "assoc_mgr", f"qos={','.join(names)}", "flags=qos")
        return {name: parse_qos(text, name, user, account) for name in names}

    def pending_before(self, partition: str, job_id: str) -> tuple[int, int] | None:
        """Return how many jobs of a partition wait before a job, and how many wait in all; None where it does not."""
        options = ["--noheader", "--local", "--states=PENDING", "--sort=-p", "--format", "%A", "--partition"]
        ids = self._ask("squeue", *options, partition).split()
        return (ids.index(job_id), len(ids)) if job_id in ids else None

    def priority(self, job_id: str) -> dict[str, int]:
        """Return the weighted factors of a waiting job's priority that are not 0, as sprio(1) names them.

        Empty where priorities have no factors (slurm.conf(5): PriorityType).
        """
        text = self._ask("sprio", "--noheader", "--jobs", job_id, "--format", "|".join(_FACTORS))
        values = text.partition("\n")[0].split("|")
        if len(values) != len(_FACTORS):
            return {}
        # Trackable resources are printed one by one: cpu=10,gres/gpu=20.
        parts = (parse_tres(value).values() if "=" in value else [value] for value in values)
        sums = (sum(map(_whole, part)) for part in parts)
        return {name: value for name, value in zip(_FACTORS.values(), sums, strict=True) if value}

    def _rows(self, *what: str) -> Iterator[dict[str, str]]:
        return map(parse_pairs, self._ask("scontrol", "--oneliner", "show", *what).splitlines())

    def _ask(self, *command: str, keep_s: float = KEPT_S) -> str:
        return self._client.ask_or_empty(command, keep_s=keep_s)


def parse_partitions(text: str) -> list[Partition]:
    """Parse an answer of sinfo, which has a record for each kind of a partition's nodes; the default comes first."""
    found: dict[str, Partition] = {}
    for row in _parse_records(text, _PARTITION_FIELDS):
        name, memory, nodes = row["name"].rstrip("*"), parse_count(row["memory"]), parse_count(row["nodes"])
        if name in found:
            nodes, memory = nodes + found[name].nodes, min(memory, found[name].memory)
        is_default, limit = row["name"].endswith("*"), parse_duration(row["limit"])
        found[name] = Partition(name, is_default, row["state"] == "up", nodes, memory, limit)
    return sorted(found.values(), key=lambda partition: not partition.is_default)


def _parse_records(text: str, names: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the fields of each record of sinfo; an incomplete record is skipped."""
    for record in text.split(RECORD):
        values = record.split(FIELD)
        if len(values) == len(names):
            yield dict(zip(names, map(str.strip, values), strict=True))


def parse_pairs(text: str) -> dict[str, str]:
    """Return the pairs of a record of scontrol: ``Name=value`` with blanks between them, and in values."""
    return {found["name"]: text_or_nothing(found["value"].strip()) for found in _PAIR.finditer(text)}


def parse_nodes(text: str) -> list[ClusterNode]:
    """Parse an answer of sinfo, which repeats a node for each of its partitions; of a node without use nothing is free.

    A node's users are not in it.
    """
    nodes: dict[str, ClusterNode] = {}
    for row in _parse_records(text, NODE_FIELDS):
        name, pool = row["NodeList"], row["Partition"].rstrip("*")
        if (known := nodes.get(name)) is not None:
            nodes[name] = replace(known, pools=(*known.pools, pool))
            continue
        _, idle, _, cpus = [*map(parse_count, row["CPUsState"].split("/")), 0, 0, 0, 0][:4]
        state = row["StateLong"].lower().rstrip(_STATE_FLAGS)
        flags = _UNUSABLE_FLAGS.intersection(row["StateLong"][len(state) :])
        is_usable = not state.startswith(_UNUSABLE) and not flags
        memory, used = (parse_count(row[key]) << 20 for key in ("Memory", "AllocMem"))
        gpus, busy = gpus_by_type(row["Gres"]), gpus_by_type(row["GresUsed"])
        nodes[name] = ClusterNode(
            name,
            (pool,),
            state,
            row["Reason"] if row["Reason"] != "none" else "",
            is_usable,
            cpus_free=idle if is_usable else 0,
            cpus=cpus,
            memory_free=max(0, memory - used) if is_usable else 0,
            memory=memory,
            gpus={kind: (max(0, n - busy.get(kind, 0)) if is_usable else 0, n) for kind, n in gpus.items()},
        )
    return [*nodes.values()]


def parse_qos(text: str, name: str, user: str, account: str) -> dict[str, str]:
    """Return the limits of a QOS in an answer of `scontrol show assoc_mgr`: its own, a user's and an account's.

    Below ``User Limits`` stands the line ``alice(1000)``, before 23.02 the number alone.
    """
    owners = {"Account Limits": {account}, "User Limits": {user, _uid(user)}}
    found: dict[str, str] = {}
    names: set[str] = set()
    is_wanted = is_ours = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("QOS="):
            names, is_wanted = set(), line[4:].partition("(")[0] == name
            is_ours = is_wanted
        elif line in owners:
            names, is_ours = owners[line], False
        elif names and "=" not in line:
            is_ours = is_wanted and line.partition("(")[0] in names - {""}
        elif is_ours:
            found.update(parse_pairs(line))
    return found


def _uid(user: str) -> str:
    try:
        return str(pwd.getpwnam(user).pw_uid)
    except (KeyError, ValueError):
        return ""


def limits_in(value: str) -> dict[str, Usage]:
    """Return the limits with their use in a value, such as ``cpu=4(3),mem=N(0)``, by trackable resource.

    The name is empty for a value that has none, such as ``3(1)``.
    """
    found = {}
    for name, text in (parse_tres(value) or {"": value}).items():
        used = _USED.fullmatch(text)
        usage = Usage(used["limit"], used["used"]) if used else Usage(text, "")
        if usage.limit not in ("", "N"):
            found[name] = usage
    return found


def _whole(text: str) -> int:
    try:
        return round(float(text))
    except (ValueError, OverflowError):
        return 0
