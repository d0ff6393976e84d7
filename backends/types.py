"""What a scheduler says about apps, about itself, and before a launch."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Literal

from ..base.errors import join_names
from ..base.validation import MAX_EPOCH_S, epoch_seconds
from ..specs.roles import Role
from ..specs.status import NONE, AppState, AppStatus, RoleStatus, is_terminal

logger = logging.getLogger(__name__)

BY_TORCHX = "launched by torchx"
"""What is noted of jobs whose logs are in a folder of TorchX's: to delete the job leaves that as it is."""


class Stream(str, Enum):
    """Which output of a replica."""

    STDOUT = "stdout"
    STDERR = "stderr"
    COMBINED = "combined"


def parse_stream(streams: Stream | str | None) -> Stream:
    """Parse the name of a stream; None is both together.

    Raises:
        ValueError: there is none of that name; the message lists the valid ones.
    """
    try:
        return Stream.COMBINED if streams is None else Stream(streams)
    except ValueError:
        raise ValueError(f"there is no stream {streams}. Valid: {join_names(item.value for item in Stream)}") from None


def line_pattern(regex: str | None) -> re.Pattern[str] | None:
    """Return the expression that `Scheduler.log_iter` was given, compiled; None where it was given none.

    Raises:
        ValueError: it is malformed.
    """
    try:
        return re.compile(regex) if regex else None
    except (re.error, RecursionError, OverflowError) as error:  # nested too deeply; repeated too often
        raise ValueError(f"not a regular expression: {regex:.200}: {error}") from error


@dataclass(frozen=True)
class LogQuery:
    """Which lines of one replica's log are asked for; made of the arguments of `Scheduler.log_iter`.

    Args:
        app_id: the app.
        role_name: the role.
        k: the replica's number in the role.
        pattern: only lines in which this is found.
        since: only lines from this time on, in seconds since the epoch.
        until: only lines up to this time, in seconds since the epoch.
        follow: wait for more until the app is final.
        stream: which output.
    """

    app_id: str
    role_name: str
    k: int = 0
    pattern: re.Pattern[str] | None = None
    since: float | None = None
    until: float | None = None
    follow: bool = False
    stream: Stream = Stream.COMBINED

    @classmethod
    def parse(
        cls,
        app_id: str,
        role_name: str,
        k: int = 0,
        regex: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        should_tail: bool = False,
        streams: Stream | str | None = None,
    ) -> LogQuery:
        """Parse the arguments of `Scheduler.log_iter`.

        Raises:
            ValueError: the expression is malformed, or there is no such stream.
        """
        return cls(
            app_id,
            role_name,
            k,
            line_pattern(regex),
            None if since is None else since.timestamp(),
            None if until is None else until.timestamp(),
            should_tail,
            parse_stream(streams),
        )


@dataclass(frozen=True)
class StateChange:
    """An app entered a state, at a time in seconds since the epoch."""

    state: AppState
    at: float


@dataclass(frozen=True)
class PublishedPort:
    """A port of a replica that can be reached from outside of it.

    Args:
        role: the role's name.
        replica: the replica's number in its role.
        name: what the role's `port_map` calls it.
        container_port: the port within the replica.
        host: the machine that publishes it, empty where that is this one.
        host_port: the port there, on its loopback address.
        command: what makes it reachable as `host_port` where the command runs, if ssh to this machine does not.
    """

    role: str
    replica: int
    name: str
    container_port: int
    host: str
    host_port: int
    command: str = ""


@dataclass
class DescribeAppResponse:
    """Everything that a scheduler knows of one app.

    Args:
        app_id: the app's id.
        state: its state.
        num_restarts: how often it was started again, -1 where that is not known.
        msg: why it is in its state, in words, the cause first.
        structured_error_msg: the JSON that its first failing replica wrote, or that replica's traceback.
        ui_url: where else it can be looked at.
        metadata: what the scheduler adds, by its own keys.
        roles_statuses: how its replicas are doing.
        roles: its roles, as far as the scheduler keeps them.
        name: the name that it was launched under.
        submitted_at: when it was submitted, in seconds since the epoch.
        started_at: when its first replica started, in seconds since the epoch.
        finished_at: when it ended, in seconds since the epoch; set as well for an end whose outcome is not known.
        timeline: its states in order.
        user: who launched it.
        host: the machine that it runs on, where it runs on one.
        reasons: the sentences of `msg`, the cause first, then its evidence; none where it is one sentence.
        notes: what else should be known of it, such as "on node7, heard of 40 s ago".
        image: the image of its first role.
        log_dir: the folder of its logs, where there is one.
        insight_dir: the folder in which ranks leave what tells why they hang, by role; empty where there is none.
        ports: the ports of its replicas that can be reached.
        cfg: the run options that it was launched with, as far as its backend tells.
        not_known: unknown parts of its launch, with the values that a relaunch uses instead. If there are any, the
            dashboard asks before a relaunch.
    """

    app_id: str = "<NOT_SET>"
    state: AppState = AppState.UNSUBMITTED
    num_restarts: int = -1
    msg: str = NONE
    structured_error_msg: str = NONE
    ui_url: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    roles_statuses: list[RoleStatus] = field(default_factory=list)
    roles: list[Role] = field(default_factory=list)
    name: str = field(default="", kw_only=True)
    submitted_at: float | None = field(default=None, kw_only=True)
    started_at: float | None = field(default=None, kw_only=True)
    finished_at: float | None = field(default=None, kw_only=True)
    timeline: list[StateChange] = field(default_factory=list, kw_only=True)
    user: str = field(default="", kw_only=True)
    host: str = field(default="", kw_only=True)
    reasons: list[str] = field(default_factory=list, kw_only=True)
    notes: list[str] = field(default_factory=list, kw_only=True)
    image: str = field(default="", kw_only=True)
    log_dir: str = field(default="", kw_only=True)
    insight_dir: str = field(default="", kw_only=True)
    ports: list[PublishedPort] = field(default_factory=list, kw_only=True)
    cfg: dict[str, Any] = field(default_factory=dict, kw_only=True)
    not_known: dict[str, str] = field(default_factory=dict, kw_only=True)

    @property
    def replica_counts(self) -> dict[str, int]:
        """How many replicas each role has; only the backend knows an array's tasks and a batch script's steps."""
        told = {status.role: len(status.replicas) for status in self.roles_statuses}
        wanted = {role.name: max(role.num_replicas, told.get(role.name, 0)) for role in self.roles}
        return wanted if told.keys() <= wanted.keys() else told

    @property
    def has_ended(self) -> bool:
        """Whether nothing will change any more; an end whose outcome nobody saw counts, its state is UNKNOWN."""
        return is_terminal(self.state) or (self.state is AppState.UNKNOWN and self.finished_at is not None)

    @property
    def reason(self) -> str:
        """Why it is in its state, without further evidence; empty where there is nothing to say."""
        return next(iter(self.reasons), "" if self.msg == NONE else self.msg)

    def status(self) -> AppStatus:
        """Return how the app is doing, as `torchx status` prints it."""
        return AppStatus(
            self.state, self.num_restarts, self.msg, self.structured_error_msg, self.ui_url, self.roles_statuses
        )


@dataclass
class ListAppResponse:
    """One app in a scheduler's list.

    Args:
        app_id: the app's id.
        state: its state.
        app_handle: its handle, filled in by the Runner.
        name: the name that it was launched under.
        submitted_at: when it was submitted, in seconds since the epoch.
        started_at: when its first replica started, in seconds since the epoch.
        finished_at: when it ended, in seconds since the epoch.
        replicas_running: how many replicas run.
        replicas_wanted: how many were asked for.
        replicas_succeeded: how many succeeded.
        user: who launched it.
        image: the image of its first role.
        msg: why it is in its state, in words, the cause first.
        host: the machine that it runs on, where it runs on one.
        notes: what else should be known of it.
        limit_at: when it reaches its time limit, in seconds since the epoch; None where it has none, or does not run.
        foreign: neither TorchX nor this program launched it; a batch script of this user's own is not foreign.
        after: the ids of jobs of the same user that it was queued behind, also when it waits no longer.
        kind: what kind of job it is, such as ``JobSet``, where the scheduler has several.
    """

    app_id: str
    state: AppState
    app_handle: str = "<NOT_SET>"
    name: str = ""
    submitted_at: float | None = field(default=None, kw_only=True)
    started_at: float | None = field(default=None, kw_only=True)
    finished_at: float | None = field(default=None, kw_only=True)
    replicas_running: int = field(default=0, kw_only=True)
    replicas_wanted: int = field(default=0, kw_only=True)
    replicas_succeeded: int = field(default=0, kw_only=True)
    user: str = field(default="", kw_only=True)
    image: str = field(default="", kw_only=True)
    msg: str = field(default="", kw_only=True)
    host: str = field(default="", kw_only=True)
    notes: list[str] = field(default_factory=list, kw_only=True)
    limit_at: float | None = field(default=None, kw_only=True)
    foreign: bool = field(default=False, kw_only=True)
    after: list[str] = field(default_factory=list, kw_only=True)
    kind: str = field(default="", kw_only=True)

    # Responses of one list can be kept in sets.
    def __hash__(self) -> int:
        return hash((self.app_id, self.app_handle, self.state))


def is_usable(row: ListAppResponse) -> bool:
    """Tell whether a row can be shown: its id can stand in a handle. Its times are corrected as `check_times` does."""
    if not isinstance(row.app_id, str) or not row.app_id or "\n" in row.app_id:
        logger.warning("a job whose id is %.60r is left out of the list", row.app_id)
        return False
    for at in (row.submitted_at, row.started_at, row.finished_at, row.limit_at):
        if at is not None and not (type(at) is float and 0.0 <= at < MAX_EPOCH_S):
            check_times(row)
    return True


def check_times(app: ListAppResponse | DescribeAppResponse) -> None:
    """Replace the times of an answer that are no times, such as nan, by None."""
    for name in {"submitted_at", "started_at", "finished_at", "limit_at"}.intersection(vars(app)):
        setattr(app, name, epoch_seconds(getattr(app, name)))
    if isinstance(app, DescribeAppResponse):
        app.timeline = [change for change in app.timeline if epoch_seconds(change.at) is not None]


@dataclass(frozen=True)
class ReplicaUsage:
    """What one running replica uses now; None where that is not known.

    Args:
        role: the role's name.
        replica: the replica's number in its role.
        cpu: cores in use, of its whole process tree, since the last time.
        cpu_total: cores that there are.
        memory: resident bytes of its process tree.
        memory_total: bytes that there are.
        gpus: how many GPUs its processes use.
        gpu: how busy these are together, in GPUs.
        gpu_memory: bytes of GPU memory that its processes use.
        gpu_memory_total: bytes of memory that these GPUs have.
    """

    role: str
    replica: int
    cpu: float | None = field(default=None, kw_only=True)
    cpu_total: float | None = field(default=None, kw_only=True)
    memory: int | None = field(default=None, kw_only=True)
    memory_total: int | None = field(default=None, kw_only=True)
    gpus: int = field(default=0, kw_only=True)
    gpu: float | None = field(default=None, kw_only=True)
    gpu_memory: int | None = field(default=None, kw_only=True)
    gpu_memory_total: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class JobAction:
    """Something that can be done with a job beside cancelling and deleting it, see `HasActions.act`.

    Args:
        name: what `HasActions.act` calls it.
        what: what it does, as the sentence of a dialog.
        value: what has to be given with it, with an example; empty for nothing.
        ends_job: whether what runs is ended, so that it is asked about first.
    """

    name: str
    what: str
    value: str = ""
    ends_job: bool = False


@dataclass(frozen=True)
class PartitionStatus:
    """A part of a backend that jobs can be sent to.

    Attributes:
        cfg: the run options that send a job there.
        name: its name.
        free: how many of its ``nodes`` are idle.
        gpus_free: how many of its ``gpus`` are idle.
        limit: the longest time that a job may take, in seconds; None for no limit.
        start: when a job would start there, by the backend's estimate, in seconds since the epoch; None if unknown.
        fault: why a job would not start there; empty if it would.
    """

    cfg: Mapping[str, str]
    name: str
    free: int = 0
    nodes: int = 0
    gpus_free: int = 0
    gpus: int = 0
    limit: int | None = None
    start: float | None = None
    fault: str = ""


@dataclass(frozen=True)
class StartEstimate:
    """When a small job would start in a pool, as its backend estimates.

    Attributes:
        start: in seconds since the epoch; None if it would not start.
        fault: why it would not, in the backend's words.
    """

    start: float | None = None
    fault: str = ""


@dataclass(frozen=True)
class ClusterPool:
    """A part of a backend that jobs can be sent to, with what is free in it now.

    Attributes:
        name: its name.
        kind: the backend's word for it.
        cfg: the run options that send a job there.
        nodes: number of nodes; of these ``nodes_free`` are idle, ``nodes_mixed`` partly in use, and ``nodes_down``
            start no jobs.
        memory: bytes.
        gpus: the free ones and all, by type.
        limit: the longest time that a job may take, in seconds; None for no limit.
        waiting: number of jobs that wait for it.
        note: what restricts its use.
        is_open: whether it starts jobs of this user.
        estimate: when a small job would start; None if the backend was not asked.
    """

    name: str
    kind: Literal["partition", "queue", "pool", "machine"] = "partition"
    cfg: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    nodes_free: int = field(default=0, kw_only=True)
    nodes_mixed: int = field(default=0, kw_only=True)
    nodes_down: int = field(default=0, kw_only=True)
    nodes: int = field(default=0, kw_only=True)
    cpus_free: int = field(default=0, kw_only=True)
    cpus: int = field(default=0, kw_only=True)
    memory_free: int = field(default=0, kw_only=True)
    memory: int = field(default=0, kw_only=True)
    gpus: Mapping[str, tuple[int, int]] = field(default_factory=dict, kw_only=True)
    limit: int | None = field(default=None, kw_only=True)
    waiting: int = field(default=0, kw_only=True)
    note: str = field(default="", kw_only=True)
    is_open: bool = field(default=True, kw_only=True)
    estimate: StartEstimate | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ClusterNode:
    """A machine of a backend.

    Attributes:
        name: its name.
        pools: the names of its pools.
        state: the backend's word.
        reason: why it cannot be used, in the words of an administrator or of the backend.
        is_usable: whether jobs can start there; nothing of it is free otherwise.
        memory: bytes.
        gpus: the free ones and all, by type.
        users: who runs there.
    """

    name: str
    pools: tuple[str, ...] = ()
    state: str = ""
    reason: str = ""
    is_usable: bool = True
    users: tuple[str, ...] = ()
    cpus_free: int = field(default=0, kw_only=True)
    cpus: int = field(default=0, kw_only=True)
    memory_free: int = field(default=0, kw_only=True)
    memory: int = field(default=0, kw_only=True)
    gpus: Mapping[str, tuple[int, int]] = field(default_factory=dict, kw_only=True)


@dataclass(frozen=True)
class ClusterStatus:
    """What a backend has, and what of it is free.

    Attributes:
        pools: its pools, the default one first.
        nodes: its nodes.
        limits: limits of this user with their use, a sentence each.
        notes: what could not be read, a sentence each.
        refresh_s: seconds after which asking again is of use.
    """

    pools: Sequence[ClusterPool] = ()
    nodes: Sequence[ClusterNode] = ()
    limits: Sequence[str] = ()
    notes: Sequence[str] = ()
    refresh_s: float = 10.0


def sum_gpus(nodes: Iterable[ClusterNode]) -> dict[str, tuple[int, int]]:
    """Return the free GPUs and all GPUs of nodes, by type."""
    found: dict[str, tuple[int, int]] = {}
    for node in nodes:
        for kind, (free, total) in node.gpus.items():
            before = found.get(kind, (0, 0))
            found[kind] = before[0] + free, before[1] + total
    return found


def pool_of(name: str, nodes: Sequence[ClusterNode], **more: Any) -> ClusterPool:
    """Return a pool with the sums of its nodes; ``more`` are its other attributes."""
    usable = [node for node in nodes if node.is_usable]
    summed = ("cpus_free", "cpus", "memory_free", "memory")
    sums: dict[str, Any] = {key: sum(getattr(node, key) for node in nodes) for key in summed}
    return ClusterPool(
        name,
        nodes=len(nodes),
        nodes_free=sum(node.cpus_free == node.cpus for node in usable),
        nodes_mixed=sum(0 < node.cpus_free < node.cpus for node in usable),
        nodes_down=len(nodes) - len(usable),
        gpus=sum_gpus(nodes),
        **sums,
        **more,
    )


@dataclass(frozen=True)
class Alternative:
    """Another request for a job that waits.

    Args:
        changes: the run options that differ, by name; empty for the job as it is.
        start: when it would start, by the backend's estimate, in seconds since the epoch; None for never.
        fault: why it would not start, empty if it would.
    """

    changes: Mapping[str, str]
    start: float | None
    fault: str = ""


@dataclass(frozen=True)
class Capabilities:
    """Facts about a scheduler that the launcher and the screens need; what it can do is in `abilities`.

    Attributes:
        shell: whether this user may open a shell in a replica.
        log_streams: the outputs that can be read.
        retries: `max_retries` of a role is honoured.
        dependencies: the run option `dependency` lets an app wait for another.
        working_folder: apps run in the folder that they are launched from.
        batch_scripts: a user's own batch script can be launched, see `specs.batch_script`.
        remembers_cancel: a cancelled app is CANCELLED; if not, the Runner remembers it.
        logs_after_cancel: a sentence about an app's logs after it is cancelled; empty if they are kept.
    """

    shell: bool = True
    log_streams: tuple[Stream, ...] = (Stream.COMBINED,)
    retries: bool = False
    dependencies: bool = False
    working_folder: bool = False
    batch_scripts: bool = False
    remembers_cancel: bool = True
    logs_after_cancel: str = ""


@dataclass(frozen=True)
class Finding:
    """One thing that was found out about a scheduler, or about an app before its launch.

    Args:
        level: "error" where the launch, or the scheduler, cannot work.
        what: what was found.
        hint: what to do about it.
    """

    level: Literal["ok", "warning", "error"]
    what: str
    hint: str = ""


@dataclass(frozen=True)
class NameFault:
    """A name that a scheduler refuses, or that it changes.

    Args:
        role: the role whose name it is, empty for the app's.
        name: the name.
        reason: what is wrong with it, or what becomes of it.
        allowed: what the name can be.
        refused: whether the launch is refused; if not, this is only worth knowing.
    """

    role: str
    name: str
    reason: str
    allowed: str
    refused: bool = True

    @property
    def words(self) -> str:
        """Reason and what is allowed, as a sentence about the name."""
        return f"{self.reason}, so {self.allowed}" if self.refused else f"{self.reason}: {self.allowed}"

    @property
    def what(self) -> str:
        """Whose name it is, as the beginning of a sentence."""
        return "The role's name" if self.role else "The app's name"


@dataclass
class WorkspaceListing:
    """What a workspace holds.

    Attributes:
        files: path in the job's working folder and size in bytes of what is shipped.
        left: how many files and folders stay at home, by ignore file and rule.
        rules: the ignore files that were read.
        is_whole: whether everything was looked at.
    """

    files: list[tuple[str, int]] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)
    is_whole: bool = True

    @property
    def total(self) -> int:
        """The bytes that are shipped."""
        return sum(size for _, size in self.files)
