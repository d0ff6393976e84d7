"""A snapshot of all ranks of a job: their stacks and flight recorders at one time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ..frames import Thread
from ..recorder.dump import Dump

Pace = Literal["hangs", "waits", "moves", ""]
"""The comparison of two snapshots: a job ``waits`` if it made no progress for no longer than usual."""


@dataclass(frozen=True)
class ProcessStack:
    """The stack of a process: of a rank, or of its child such as a loader worker.

    Attributes:
        rank: the rank that it is or belongs to.
        replica: the number of its replica in the role.
        host: the host name.
        is_main: whether it is the rank itself.
        state: the kernel's letter for its state.
        waits_for: the kernel function in which it waits; empty if unknown.
        cpu: its CPU time in ticks.
        way: how its stack was read; empty if it was not read.
        tried: the ways that failed before, and why.
    """

    rank: int
    replica: int
    host: str
    pid: int
    is_main: bool
    name: str
    state: str
    waits_for: str
    cpu: int
    way: str
    tried: tuple[tuple[str, str], ...]
    threads: tuple[Thread, ...]


@dataclass(frozen=True)
class ReplicaReply:
    """The answer of one replica.

    Attributes:
        replica: its number in the role.
        lines: the objects that the probe printed.
        error: why the probe did not run, or did not finish.
        has_ended: whether the replica has ended.
        exit_code: its exit code; None if unknown.
        signal: the signal that killed it.
        ended_at: when it ended, in seconds since the epoch.
    """

    replica: int
    lines: tuple[dict[str, Any], ...] = ()
    error: str = ""
    has_ended: bool = False
    exit_code: int | None = None
    signal: str = ""
    ended_at: float | None = None


@dataclass(frozen=True, kw_only=True)
class SnapshotRecord:
    """What is stored of a snapshot.

    Attributes:
        replies: the answers of the replicas, which everything else is parsed from.
        at: its start, in seconds since the epoch.
        seconds: how long it took.
        other_roles: the other roles of the job.
        pace: the comparison with an earlier snapshot that was not kept.
        pauses: the seconds between the last steps in the job's log, oldest first.
        moved_at: time of the last logged step, in seconds since the epoch; None if unknown.
    """

    handle: str
    role: str
    replies: tuple[ReplicaReply, ...]
    at: float = 0.0
    seconds: float = 0.0
    other_roles: tuple[str, ...] = ()
    pace: Pace = ""
    pauses: tuple[float, ...] = ()
    moved_at: float | None = None


@dataclass(frozen=True, kw_only=True)
class StackSnapshot(SnapshotRecord):
    """The stacks and flight recorders of all ranks of one role at one time.

    Attributes:
        world_size: the number of ranks.
        processes: all processes, by rank, the rank itself first.
        dumps: the flight recorder of each rank that has a readable one.
        recorded_at: when the recorder of each rank was read, by the rank's own clock, in seconds since the epoch.
        sources: the source lines around the user's frames, by file and number.
        faults: why the flight recorders of other ranks are not readable.
    """

    world_size: int
    processes: tuple[ProcessStack, ...]
    dumps: dict[int, Dump]
    recorded_at: dict[int, float]
    sources: dict[str, dict[int, str]]
    faults: dict[int, str]

    @cached_property
    def ranks(self) -> dict[int, ProcessStack]:
        """The process of each running rank."""
        return {stack.rank: stack for stack in reversed(self.processes) if stack.is_main}

    @cached_property
    def exited(self) -> dict[int, ReplicaReply | None]:
        """The ranks that have ended; with the end of their replica if each replica is one rank."""
        found: dict[int, ReplicaReply | None] = {}
        if len(self.replies) >= self.world_size:
            ended = (reply for reply in self.replies if reply.has_ended and reply.replica not in self.ranks)
            found.update((reply.replica, reply) for reply in ended)
        # If all replicas answered, a missing rank has ended.
        if self.ranks and not any(reply.error for reply in self.replies):
            missing = (rank for rank in range(self.world_size) if rank not in self.ranks and rank not in found)
            found.update(dict.fromkeys(missing))
        return found

    @property
    def ends(self) -> dict[int, ReplicaReply]:
        """The ends of replicas that are one rank."""
        return {rank: reply for rank, reply in self.exited.items() if reply is not None}

    @property
    def ways(self) -> dict[str, int]:
        """The number of ranks that were read in each way."""
        return Counter(stack.way for stack in self.ranks.values() if stack.threads)
