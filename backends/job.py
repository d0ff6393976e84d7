"""A job and its scheduler: what can be asked of it, done with it, and read of its logs."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..specs.errors import JobNotFoundError, SchedulerError, UnknownAppException
from ..specs.handles import make_app_handle, parse_app_handle
from .abilities import (
    DescribesNatively,
    HasActions,
    KeepsLogFiles,
    MeasuresUsage,
    OpensShell,
    RunsCommands,
    StreamsLogs,
)
from .shared.outage import OnLost, ignore, until_answered, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from ..logs.source.replica_log import ReplicaLog
    from ..logs.source.stream import Cursor, LogStream
    from ..logs.spool.spools import LogSpools
    from ..specs.status import AppState, AppStatus
    from .api import Scheduler, Stream
    from .history.cancellations import Cancellations
    from .history.journal import Journal
    from .log_records import LogRecords
    from .shared.bounded_command import CommandOutput
    from .types import DescribeAppResponse, JobAction, LogQuery, ReplicaUsage

T = TypeVar("T")


class JobRunner(Protocol):
    """What a job needs of its `Runner`."""

    session_name: str

    @property
    def journal(self) -> Journal: ...
    @property
    def cancellations(self) -> Cancellations: ...
    def scheduler(self, name: str) -> Scheduler[Any]: ...
    def is_set_up(self, name: str) -> bool: ...
    def remember(self, handle: str, state: AppState, message: str) -> None: ...
    def refuse_if_read_only(self, what: str) -> None: ...
    def log_spools(self) -> LogSpools: ...
    def complete_spools(self, handle: str) -> None: ...


class Job:
    """A job, bound to its scheduler; `Runner.job` makes it, and asks nothing for that.

    Every method may be called from any thread. Methods raise UnknownSchedulerException if there is no such scheduler,
    and `SchedulerError` if it cannot do what is asked.

    Args:
        runner: its runner; it launches, and keeps the journal.
        handle: its handle, of any session: every session sees the same jobs.

    Raises:
        MalformedAppHandleException: it is not a handle.
    """

    def __init__(self, runner: JobRunner, handle: str) -> None:
        self._runner, self.handle = runner, handle
        self.scheduler_name, _, self.app_id = parse_app_handle(handle)
        self._own_handle = make_app_handle(self.scheduler_name, runner.session_name, self.app_id)

    @property
    def scheduler(self) -> Scheduler[Any]:
        """Its scheduler; made at the first use."""
        return self._runner.scheduler(self.scheduler_name)

    # Watching

    def describe(self) -> DescribeAppResponse | None:
        """Describe the job; None if its backend does not know it. The journal keeps its state."""
        from .types import check_times

        scheduler = self.scheduler
        if (described := scheduler.describe(self.app_id)) is not None:
            check_times(described)
            if not scheduler.capabilities.remembers_cancel:
                self._runner.cancellations.correct(described, self._own_handle)
            # The message of a running job may be another each time.
            message = described.msg.replace("<NONE>", "") if described.has_ended else ""
            self.remember(described.state, message)
        return described

    def status(self) -> AppStatus | None:
        """Return the job's status; None if its backend does not know it."""
        described = self.describe()
        return None if described is None else described.status()

    def wait(
        self, wait_interval: float = 10, *, timeout: float | None = None, on_lost: OnLost = ignore
    ) -> AppStatus | None:
        """Wait for the job's end and return its status; None if its backend does not know it.

        The state is UNKNOWN if the job ended and its backend does not know how. A backend that cannot be reached is
        asked again, see `until_answered`.

        Args:
            wait_interval: the longest interval in seconds; a short job is asked for more often.
            timeout: how long to wait, in seconds.
            on_lost: called at each outage with the error.

        Raises:
            TimeoutError: the job has not ended in time; the message has its last known state.
        """

        def ask(deadline: float | None) -> DescribeAppResponse | None:
            return self.until_answered(self.describe, on_lost=on_lost, deadline=deadline)

        return wait_for_end(ask, self.handle, wait_interval, timeout)

    def until_answered(self, ask: Callable[[], T], *, on_lost: OnLost = ignore, deadline: float | None = None) -> T:
        """Return the answer of the job's backend, which is asked again while it cannot be reached.

        A scheduler that is not set up here, or cannot be loaded, is asked once; see `outage.until_answered`.
        """
        _ = self.scheduler
        if not self._runner.is_set_up(self.scheduler_name):
            return ask()
        return until_answered(ask, threading.Event(), on_lost=on_lost, deadline=deadline)

    def remember(self, state: AppState, message: str) -> None:
        """Keep the job's last known state in the journal, for when its backend no longer knows the job."""
        self._runner.remember(self._own_handle, state, message)

    def describe_native(self) -> str:
        """Return the backend's own description of the job as text."""
        scheduler = self._able(DescribesNatively, "has no description of its own of")
        return scheduler.describe_native(self.app_id)

    def usage(self) -> list[ReplicaUsage]:
        """Measure what each running replica uses now; empty if its scheduler cannot."""
        scheduler = self.scheduler
        return scheduler.usage(self.app_id) if isinstance(scheduler, MeasuresUsage) else []

    # Acting

    def cancel(self) -> None:
        """Ask the backend to end the job; one that is final or unknown is left alone.

        If its logs are lost with it, those that were read are completed first, see `LogSpools.complete`.

        Raises:
            ReadOnlyError: the runner may not change anything.
        """
        self._runner.refuse_if_read_only("Cancelling a job")
        if self.scheduler.capabilities.logs_after_cancel:
            self._runner.complete_spools(self.handle)
        self._runner.cancellations.cancel(self.scheduler, self.app_id, self._own_handle)

    def delete(self) -> None:
        """Cancel the job if it runs, and remove what the backend and the journal keep of it.

        Raises:
            ReadOnlyError: the runner may not change anything.
        """
        self._runner.refuse_if_read_only("Deleting a job")
        self.scheduler.delete(self.app_id)
        self._runner.cancellations.forget(self._own_handle)
        journal = self._runner.journal
        if (record := journal.find(self.handle)) is not None:
            journal.forget(record)

    def actions(self) -> list[JobAction]:
        """Return what can be done with the job besides cancelling and deleting it."""
        scheduler = self.scheduler
        return scheduler.actions(self.app_id) if isinstance(scheduler, HasActions) else []

    def act(self, action: str, value: str = "") -> None:
        """Do one of the `actions`, see `HasActions.act`.

        Raises:
            ReadOnlyError: the runner may not change anything.
        """
        self._runner.refuse_if_read_only(f"The action {action}")
        self._able(HasActions, f"cannot {action}").act(self.app_id, action, value)

    def shell_command(self, role_name: str, k: int) -> list[str]:
        """Return the command that opens a shell in a replica, see `OpensShell`.

        Raises:
            ReadOnlyError: the runner may not change anything, and a shell can.
        """
        self._runner.refuse_if_read_only("A shell")
        return self._able(OpensShell, "opens no shell in").shell_command(self.app_id, role_name, k)

    def run_beside(self, role_name: str, k: int, argv: Sequence[str], timeout_s: float) -> CommandOutput:
        """Run a command that changes nothing beside a replica, see `RunsCommands`."""
        scheduler = self._able(RunsCommands, "runs no commands beside")
        return scheduler.run_beside(self.app_id, role_name, k, argv, timeout_s)

    def _able(self, ability: type[T], otherwise: str) -> T:
        """Return the scheduler if it has an ability; ``otherwise`` is what it lacks, before the job's id."""
        scheduler = self.scheduler
        if not isinstance(scheduler, ability):
            raise SchedulerError(f"{scheduler.backend} {otherwise} {self.app_id}")
        return scheduler

    # Logs

    def log_lines(
        self,
        role_name: str,
        k: int = 0,
        regex: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        should_tail: bool = False,
        streams: Stream | None = None,
    ) -> Iterable[str]:
        """Return the log lines of one replica, see `Scheduler.log_iter`.

        Raises:
            UnknownAppException: the backend does not know the job.
            ValueError: there is no such role, replica or stream, or the expression is malformed.
        """
        try:
            return self.scheduler.log_iter(self.app_id, role_name, k, regex, since, until, should_tail, streams=streams)
        except JobNotFoundError as error:
            raise UnknownAppException(self.handle) from error

    def log_records(self, query: LogQuery, last: int | None = None) -> LogRecords:
        """Return the bytes of one replica's log as they arrive, see `open_records`.

        Raises:
            UnknownAppException: the backend does not know the job.
        """
        from .log_records import open_records

        try:
            return open_records(self.scheduler, query, last)
        except JobNotFoundError as error:
            raise UnknownAppException(self.handle) from error

    def replica_log(self, role_name: str, k: int) -> ReplicaLog:
        """Return where a replica's log is kept: in files, or in a spool that is filled while somebody reads it."""
        from .log_records import replica_files

        scheduler = self.scheduler
        if isinstance(scheduler, KeepsLogFiles):
            # The stream below raises the reason where it is read.
            with suppress(SchedulerError, ValueError):
                return replica_files(role_name, k, scheduler.log_files(self.app_id, role_name, k))
        from ..logs.source.replica_log import ReplicaLog
        from ..logs.spool.reader import SpooledLog
        from .types import Stream

        spool = SpooledLog(
            self._runner.log_spools(),
            self.handle,
            role_name,
            k,
            lambda stream: _ReplicaStream(self, role_name, k, Stream(stream)),
            parted=not isinstance(scheduler, StreamsLogs),
            streams={Stream.STDOUT, Stream.STDERR} <= set(scheduler.capabilities.log_streams),
        )
        return ReplicaLog(role_name, k, spool=spool)

    def log_targets(self, described: DescribeAppResponse) -> list[tuple[str, int]]:
        """Return the replicas of the job that have a log, by role and number.

        They are the replicas of its roles. A backend may report others, such as the tasks of an array or the steps of a
        batch script: then these, up to the first without a log file.

        Args:
            described: the backend's description of the job.
        """
        asked = [(role.name, k) for role in described.roles for k in range(role.num_replicas)]
        told = [(status.role, replica.id) for status in described.roles_statuses for replica in status.replicas]
        if {*told} <= {*asked}:
            return asked
        return [
            *itertools.takewhile(lambda target: target in asked or self.replica_log(*target).spool is None, told)
        ] or asked

    def replica_logs(self, described: DescribeAppResponse) -> list[ReplicaLog]:
        """Return the log of each of the `log_targets`, in the order of the roles."""
        return [self.replica_log(*target) for target in self.log_targets(described)]


class _ReplicaStream:
    """Fills a spool with one replica's log, see `Feed`."""

    def __init__(self, job: Job, role_name: str, k: int, stream: Stream) -> None:
        self._job, self._role_name, self._k, self._stream = job, role_name, k, stream

    def connect(self, cursor: Cursor | None) -> LogStream:
        """Read on after a cursor."""
        from .log_records import open_stream

        return open_stream(self._job.scheduler, self._job.app_id, self._role_name, self._k, self._stream, cursor)

    def is_final(self) -> bool:
        """Return whether the job has ended; one that its scheduler no longer knows has."""
        return self._job.scheduler.has_ended(self._job.app_id)
