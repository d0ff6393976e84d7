"""Optional abilities of schedulers; ``isinstance(scheduler, HasActions)`` is whether a scheduler has one.

A subclass of `Scheduler` has an ability by defining its methods; it need not derive from the class here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ..logs.source.stream import Cursor, LogStream
    from ..specs.roles import AppDef
    from .shared.bounded_command import CommandOutput
    from .types import (
        Alternative,
        ClusterStatus,
        Finding,
        JobAction,
        NameFault,
        PartitionStatus,
        ReplicaUsage,
        StartEstimate,
        Stream,
    )


@runtime_checkable
class ChecksBackend(Protocol):
    """Checks its backend for ``torchx-tui doctor`` and the status line."""

    def check(self) -> list[Finding]:
        """Return the backend's version and size, or why it cannot be used."""
        ...


@runtime_checkable
class KnowsValues(Protocol):
    """Knows the values of run options, such as the queues that exist."""

    def known_values(self) -> dict[str, list[str]]:
        """Return the values by option; it may ask the backend. An option that is left out takes any value."""
        ...


@runtime_checkable
class ChecksNames(Protocol):
    """Checks the names of an app and its roles."""

    def check_names(self, app: AppDef, cfg: Mapping[str, Any]) -> list[NameFault]:
        """Return the names that `Scheduler.schedule` would refuse or change. Called at each key: it asks no backend."""
        ...


@runtime_checkable
class ChecksLaunches(Protocol):
    """Gives advice before a launch."""

    def preflight(self, app: AppDef, cfg: Mapping[str, Any]) -> list[Finding]:
        """Find what would go wrong with a launch that `Scheduler.schedule` would accept."""
        ...


@runtime_checkable
class SuggestsPartitions(Protocol):
    """Knows which partitions have room."""

    def partitions(self, app: AppDef, cfg: Mapping[str, Any]) -> list[PartitionStatus]:
        """Return the partitions, and when an app would start in each; it may take seconds.

        Raises:
            SchedulerError: the backend cannot be asked.
        """
        ...


@runtime_checkable
class DescribesCluster(Protocol):
    """Knows what of its backend is free, and the limits of this user."""

    def cluster(self) -> ClusterStatus:
        """Return pools, nodes and limits. It may take seconds; it sends no more requests than the list of jobs.

        Raises:
            SchedulerError: the backend cannot be asked.
        """
        ...


@runtime_checkable
class EstimatesStarts(Protocol):
    """Estimates when a small job would start in a pool of `DescribesCluster`."""

    def estimate_start(self, pool: str) -> StartEstimate:
        """Return when a job with the backend's defaults would start; nothing is launched. Each pool is a request.

        Raises:
            SchedulerError: the backend cannot be asked.
        """
        ...


@runtime_checkable
class SuggestsAlternatives(Protocol):
    """Knows how a waiting job could start sooner."""

    def alternatives(self, app_id: str) -> list[Alternative]:
        """Return the unchanged request and other requests for a job, the soonest first.

        Raises:
            JobNotFoundError: there is no such job.
            SchedulerError: the backend cannot be asked, or does not know how the job was launched.
        """
        ...


@runtime_checkable
class WatchesChanges(Protocol):
    """Reports changes, so that its list is polled less often."""

    def subscribe(self, on_change: Callable[[], object]) -> Callable[[], object]:
        """Call ``on_change`` when the list has changed, from any thread; return a function that ends it."""
        ...


@runtime_checkable
class ListsAllUsers(Protocol):
    """Can list the jobs of all users."""

    def set_all_users(self, all_users: bool) -> None:
        """Choose whether `Scheduler.list` returns the jobs of all users; it asks no backend."""
        ...


@runtime_checkable
class DescribesNatively(Protocol):
    """Describes jobs in the backend's own form."""

    def describe_native(self, app_id: str) -> str:
        """Return the backend's description of a job as text, secret values masked.

        Raises:
            JobNotFoundError: there is no such job.
        """
        ...


@runtime_checkable
class MeasuresUsage(Protocol):
    """Measures what replicas use."""

    def usage(self, app_id: str) -> list[ReplicaUsage]:
        """Measure what each running replica of a job uses now.

        Raises:
            JobNotFoundError: there is no such job.
        """
        ...


@runtime_checkable
class RunsCommands(Protocol):
    """Runs commands where replicas run; see `Scheduler.runs_once_per_node`."""

    def run_beside(
        self, app_id: str, role_name: str, k: int, argv: Sequence[str], timeout_s: float = ...
    ) -> CommandOutput:
        """Run a command beside a running replica, without input; end it after ``timeout_s``.

        Where the replica shares its machine with others, ``TORCHX_TUI_REPLICA_PID`` in the command's environment is
        the number of the replica's first process.

        Raises:
            UnknownReplicaError: there is no such role or replica.
            SchedulerError: the replica does not run, or there is no such program.
        """
        ...


@runtime_checkable
class OpensShell(Protocol):
    """Opens a shell in a replica."""

    def shell_command(self, app_id: str, role_name: str, k: int) -> list[str]:
        """Return the argument list of a program that opens a shell in a replica on its own terminal.

        Raises:
            SchedulerError: the replica does not run, or has no shell.
        """
        ...


@runtime_checkable
class HasActions(Protocol):
    """Does more with a job than cancelling and deleting it."""

    def actions(self, app_id: str) -> list[JobAction]:
        """Return what can be done with a job now.

        Raises:
            JobNotFoundError: there is no such job.
        """
        ...

    def act(self, app_id: str, action: str, value: str = "") -> None:
        """Do one of the `actions`.

        Args:
            app_id: the job.
            action: the action's name.
            value: what the action asks for.

        Raises:
            NotAllowedError: the backend does not allow it to this user.
            SchedulerError: it could not be done, or there is no such action.
        """
        ...


@runtime_checkable
class OwnsJobs(Protocol):
    """Runs jobs that end with the process that launched them, unless they are detached."""

    def own_app_ids(self) -> list[str]:
        """Return the running jobs that this object launched and that were not detached."""
        ...

    def detach(self, app_id: str) -> None:
        """Let a job continue when this process ends."""
        ...

    def end_own(self) -> None:
        """Cancel the jobs of `own_app_ids`, without waiting."""
        ...


@runtime_checkable
class PrunesJobs(Protocol):
    """Keeps finished jobs on this machine."""

    def prune(self, *, dryrun: bool = False) -> list[str]:
        """Remove finished jobs beyond the limits of the settings, or with ``dryrun`` none; return their ids."""
        ...


@runtime_checkable
class KeepsLogFiles(Protocol):
    """Keeps logs in files of this machine."""

    def log_files(self, app_id: str, role_name: str, k: int) -> dict[Stream, Path]:
        """Return the files with the output of a replica; they need not exist yet.

        Raises:
            JobNotFoundError, UnknownReplicaError: there is no such job, role or replica.
            SchedulerError: there is no log; the message says why.
        """
        ...


@runtime_checkable
class StreamsLogs(Protocol):
    """Streams logs, from any place in them."""

    def log_stream(
        self,
        app_id: str,
        role_name: str,
        k: int,
        stream: Stream,
        cursor: Cursor | None = None,
        *,
        since: float | None = None,
        follow: bool = True,
        notices: bool = True,
    ) -> LogStream:
        """Return the log of one replica as it arrives.

        Args:
            app_id: the job.
            role_name: the role.
            k: the replica's number in the role.
            stream: which output.
            cursor: the `LogStream.cursor` of a stream that broke off: begin after it.
            since: without a cursor, begin at this time (s since the epoch).
            follow: continue until the job has ended, not only to the present end.
            notices: add lines about restarts and outages.

        Raises:
            JobNotFoundError, UnknownReplicaError: there is no such job, role, replica or stream; here or at the first
                record.
            SchedulerError: the log cannot be read; the caller may try again.
        """
        ...


ABILITIES: tuple[type, ...] = (
    ChecksBackend,
    KnowsValues,
    ChecksNames,
    ChecksLaunches,
    SuggestsPartitions,
    DescribesCluster,
    EstimatesStarts,
    SuggestsAlternatives,
    WatchesChanges,
    ListsAllUsers,
    DescribesNatively,
    MeasuresUsage,
    RunsCommands,
    OpensShell,
    HasActions,
    OwnsJobs,
    PrunesJobs,
    KeepsLogFiles,
    StreamsLogs,
)
