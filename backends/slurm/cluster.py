"""The cluster: its version and its partitions, as sinfo says them."""

from __future__ import annotations

import logging
import threading
import time
from typing import NamedTuple

from ...base.errors import TorchXTuiError
from ...logs.text.sanitize import plain
from ...specs.errors import SchedulerError
from ..types import Finding
from .commands import FIELD, RECORD, Asking
from .jobs import parse_count, parse_duration

logger = logging.getLogger(__name__)

# sinfo(1), --format: partition with * for the default, state, nodes, memory of a node (MB), time limit.
_FORMAT = f"{RECORD}%P{FIELD}%a{FIELD}%D{FIELD}%m{FIELD}%l"
# Nodes that do not say how much memory they have say 1; TorchX asks for none up to here, too.
_UNKNOWN_MB = 1000
_KEPT_S = 300.0


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


class Cluster:
    """What seldom changes; it is asked for again after five minutes. Every method may be called from any thread.

    Args:
        asking: how Slurm is asked.
    """

    def __init__(self, asking: Asking) -> None:
        self._ask = asking.ask
        self._lock = threading.Lock()
        self._kept: tuple[float, list[Partition]] = (0.0, [])

    def partitions(self) -> list[Partition]:
        """Return the partitions that this user sees, the default first.

        Raises:
            SchedulerError: Slurm did not answer.
        """
        with self._lock:
            at, found = self._kept
            if not at or time.monotonic() - at > _KEPT_S:
                found = parse_partitions(self._ask(["sinfo", "--noheader", "--noconvert", "--format", _FORMAT]))
                self._kept = time.monotonic(), found
            return found

    def partition_names(self) -> list[str]:
        """Return the names of the partitions, none where Slurm cannot be asked."""
        try:
            return [partition.name for partition in self.partitions()]
        except TorchXTuiError as error:
            logger.warning("the partitions are not known: %s", error)
            return []

    def tracks_memory(self, partition: str | None) -> bool:
        """Tell whether nodes of a partition, the default one if None, say how much memory they have."""
        try:
            found = self.partitions()
        except SchedulerError:
            return True
        named = (partition or "").split(",")
        chosen = [each for each in found if each.name in named or (not partition and each.is_default)]
        return all(each.memory > _UNKNOWN_MB for each in chosen)

    def findings(self, asks_per_minute: float) -> list[Finding]:
        """Return the version, the partitions, and how often the controller is asked; or why it cannot be."""
        try:
            version = plain(self._ask(["sinfo", "--version"])).strip()
            partitions = parse_partitions(self._ask(["sinfo", "--noheader", "--noconvert", "--format", _FORMAT]))
            # Without a partition in its format sinfo has each node once.
            nodes = sum(map(parse_count, self._ask(["sinfo", "--noheader", "--format", "%D"]).split()))
        except SchedulerError as error:
            return [Finding("error", str(error), "check with `scontrol ping`, or set SLURM_CONF")]
        names = ", ".join(plain(partition.name) for partition in partitions)
        found = [Finding("ok", f"{version}: {nodes} nodes in the partitions {names}")]
        if not partitions:
            found = [Finding("warning", f"{version}: it shows you no partition", "ask an administrator for access")]
        return [*found, Finding("ok", f"the queue was asked for {asks_per_minute:.0f} times in the last minute")]


def parse_partitions(text: str) -> list[Partition]:
    """Return the partitions of an answer of sinfo, the default first; one has a record for each kind of its nodes."""
    found: dict[str, Partition] = {}
    for record in text.split(RECORD)[1:]:
        values = record.rstrip("\n").split(FIELD)
        if len(values) != 5:
            continue
        name = values[0].rstrip("*")
        memory, nodes = parse_count(values[3]), parse_count(values[2])
        if name in found:
            before = found[name]
            found[name] = before._replace(nodes=before.nodes + nodes, memory=min(before.memory, memory))
        else:
            up = values[1] == "up"
            found[name] = Partition(name, values[0].endswith("*"), up, nodes, memory, parse_duration(values[4]))
    return sorted(found.values(), key=lambda partition: not partition.is_default)
