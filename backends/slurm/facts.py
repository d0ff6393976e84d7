"""Partitions, nodes, limits, reservations and licences of the cluster.

Every answer is kept for a minute. A question that fails, or is hidden from this user (slurm.conf(5): PrivateData),
gives an empty answer: facts are only evidence.
"""

from __future__ import annotations

import logging
import pwd
import re
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...specs.errors import BackendUnavailableError, SchedulerError
from .commands import FIELD, RECORD, Asking
from .jobs import parse_count, parse_tres, text_or_nothing

logger = logging.getLogger(__name__)

_KEPT_S = 60.0
_MOST_KEPT = 200
NODE_FIELDS = ("NodeList", "Partition", "StateLong", "CPUsState", "Gres", "GresUsed", "Memory", "AllocMem", "Reason")
"""The fields of sinfo(1) for each node, for ``--Format``."""
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
_UNUSABLE = (
    "down",
    "drained",
    "draining",
    "drain",
    "fail",
    "failing",
    "error",
    "unknown",
    "maint",
    "reserved",
    "inval",
)
_PAIR = re.compile(r"(?:^|\s)(?P<name>[A-Z]\w*(?:/\w+)*)=(?P<value>.*?)(?=\s+[A-Z]\w*(?:/\w+)*=|\s*$)", re.DOTALL)
# A limit with what is in use: `cpu=4(3)`, `3(1)`; N is none.
_USED = re.compile(r"(?P<limit>N|[\d.]+)\((?P<used>[\d.]+)\)")
_LIMIT_BLOCKS = ("Account Limits", "User Limits")


class Node(NamedTuple):
    """A node.

    Attributes:
        name: its name.
        state: Slurm's word, without flags.
        idle: how many of its CPUs nobody has.
        cpus: how many it has.
        gpus: how many GPUs it has.
        gpus_used: how many of these somebody has.
        reason: why it is down or drained, in the words of an administrator or of Slurm.
    """

    name: str
    state: str
    idle: int
    cpus: int
    gpus: int
    gpus_used: int
    reason: str

    @property
    def is_usable(self) -> bool:
        """Whether jobs can start there."""
        return not self.state.startswith(_UNUSABLE)


class Usage(NamedTuple):
    """A limit with what is in use of it, as Slurm prints both."""

    limit: str
    used: str


class Facts:
    """Asks, and keeps the answers for a minute. Every method may be called from any thread.

    Args:
        asking: how Slurm is asked.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, ...], tuple[float, str]] = {}

    def partition(self, name: str) -> dict[str, str]:
        """Return the fields of a partition (`scontrol show partition`)."""
        return parse_pairs(self._ask("scontrol", "--oneliner", "show", "partition", name)) if name else {}

    def reservation(self, name: str) -> dict[str, str]:
        """Return the fields of a reservation (`scontrol show reservation`)."""
        return parse_pairs(self._ask("scontrol", "--oneliner", "show", "reservation", name)) if name else {}

    def licence(self, name: str) -> dict[str, str]:
        """Return the fields of a licence (`scontrol show licenses`): Total, Used, Free."""
        for line in self._ask("scontrol", "--oneliner", "show", "licenses").splitlines():
            pairs = parse_pairs(line)
            if pairs.get("LicenseName") == name:
                return pairs
        return {}

    def nodes(self, partition: str) -> list[Node]:
        """Return the nodes of a partition."""
        fields = ",".join(f"{name}:{FIELD}" for name in NODE_FIELDS[:-1]) + f",{NODE_FIELDS[-1]}:{RECORD}"
        text = self._ask("sinfo", "--noheader", "--Node", "--partition", partition, "--Format", fields)
        return parse_nodes(text)

    def default_account(self, user: str) -> str:
        """Return the account of a user's jobs that name none; accounting is asked, not the controller."""
        command = ("sacctmgr", "--noheader", "--parsable2", "show", "user", user, "format=defaultaccount")
        return self._ask(*command).strip().partition("\n")[0]

    def job(self, job_id: str) -> dict[str, str]:
        """Return the fields of a job that squeue does not have (`scontrol show job`)."""
        for line in self._ask("scontrol", "--oneliner", "show", "job", job_id).splitlines():
            pairs = parse_pairs(line)
            if pairs.get("JobId") == job_id:
                return pairs
        return {}

    def association(self, account: str, user: str) -> dict[str, str]:
        """Return the limits of a user in an account, and of the account, with what is in use of them."""
        text = self._ask("scontrol", "--oneliner", "show", "assoc_mgr", f"accounts={account}", "flags=assoc")
        found: dict[str, str] = {}
        for line in text.splitlines():
            pairs = parse_pairs(line)
            if pairs.get("Account") != account or pairs.get("UserName", "").partition("(")[0] not in ("", user):
                continue
            # The user's own limits count before those of the account.
            for name, value in pairs.items():
                if name not in found or _has_limit(value):
                    found[name] = value
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

    def qos(self, name: str, user: str, account: str = "") -> dict[str, str]:
        """Return the limits of a QOS, with what is in use of them by all, by a user and by an account."""
        return parse_qos(self._ask("scontrol", "show", "assoc_mgr", f"qos={name}", "flags=qos"), name, user, account)

    def pending_before(self, partition: str, job_id: str) -> tuple[int, int] | None:
        """Return how many jobs of a partition wait before a job, and how many wait in all; None where it does not."""
        text = self._ask(
            "squeue",
            "--noheader",
            "--local",
            "--states=PENDING",
            "--partition",
            partition,
            "--sort=-p",
            "--format",
            "%A",
        )
        ids = text.split()
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

    def _ask(self, *command: str) -> str:
        now = time.monotonic()
        with self._lock:
            at, text = self._kept.get(command, (0.0, ""))
            if at and now - at < _KEPT_S:
                return text
        try:
            text = self._asking.ask(command)
        except BackendUnavailableError as error:
            logger.info("%s is not answered: %s", " ".join(command), error)
            return ""
        except SchedulerError as error:
            logger.info("%s says nothing: %s", " ".join(command), error)
            text = ""
        with self._lock:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[command] = time.monotonic(), text
        return text


def parse_pairs(text: str) -> dict[str, str]:
    """Return the pairs of a record of scontrol: ``Name=value`` with blanks between them, and in values."""
    return {found["name"]: text_or_nothing(found["value"].strip()) for found in _PAIR.finditer(text)}


def parse_nodes(text: str) -> list[Node]:
    """Return the nodes of an answer of sinfo, which has one of several partitions once for each.

    A record that is not whole is passed over.
    """
    nodes: dict[str, Node] = {}
    for record in text.split(RECORD):
        values = record.lstrip("\n").split(FIELD)
        if len(values) != len(NODE_FIELDS):
            continue
        row = dict(zip(NODE_FIELDS, (value.strip() for value in values), strict=True))
        _, idle, _, cpus = [*map(parse_count, row["CPUsState"].split("/")), 0, 0, 0, 0][:4]
        reason = row["Reason"] if row["Reason"] != "none" else ""
        state = row["StateLong"].lower().rstrip(_STATE_FLAGS)
        name, gpus, used = row["NodeList"], _gpus(row["Gres"]), _gpus(row["GresUsed"])
        nodes[name] = Node(name, state, idle, cpus, gpus, used, reason)
    return [*nodes.values()]


def parse_qos(text: str, name: str, user: str, account: str = "") -> dict[str, str]:
    """Return the limits of a QOS in an answer of `scontrol show assoc_mgr`: its own, a user's and an account's.

    Below ``User Limits`` stands the line ``alice(1000)``, before 23.02 the number alone.
    """
    names = {_LIMIT_BLOCKS[0]: (account,), _LIMIT_BLOCKS[1]: (user, _uid(user))}
    found: dict[str, str] = {}
    block, is_wanted, is_ours = "", False, False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("QOS="):
            block, is_wanted = "QOS", line[4:].partition("(")[0] == name
            is_ours = is_wanted
        elif line in _LIMIT_BLOCKS:
            block, is_ours = line, False
        elif block in _LIMIT_BLOCKS and "=" not in line:
            is_ours = is_wanted and line.partition("(")[0] in filter(None, names[block])
        elif block and is_ours:
            found.update(parse_pairs(line))
    return found


def _uid(user: str) -> str:
    try:
        return str(pwd.getpwnam(user).pw_uid)
    except (KeyError, ValueError):
        return ""


def limit_and_use(value: str, what: str = "") -> Usage | None:
    """Return a limit and what is in use of it, such as of ``cpu=4(3),mem=N(0)``; None where there is no limit.

    Args:
        value: what Slurm prints.
        what: the name of the trackable resource, empty for a value that has none.
    """
    text = parse_tres(value).get(what, "") if what else value
    found = _USED.fullmatch(text)
    if found is not None:
        return None if found["limit"] == "N" else Usage(found["limit"], found["used"])
    return Usage(text, "") if text and text != "N" else None


def unusable(nodes: Sequence[Node], names: Sequence[str] = ()) -> list[Node]:
    """Return the nodes on which no job can start; of these names only, where some are given."""
    return [node for node in nodes if not node.is_usable and (not names or node.name in names)]


def _has_limit(value: str) -> bool:
    names = parse_tres(value) or ("",)
    return any(limit_and_use(value, name) is not None for name in names)


def _whole(text: str) -> int:
    try:
        return round(float(text))
    except (ValueError, OverflowError):
        return 0


def _gpus(text: str) -> int:
    """Return how many GPUs ``gpu:a100:4(S:0-1),gpu:v100:2`` are; ``gpu:a100:1(IDX:0)`` is of those in use."""
    return sum(int(count) for count in re.findall(r"(?:^|,)gpu(?::[^,:()]+)?:(\d{1,6})(?=[(,]|$)", text))
