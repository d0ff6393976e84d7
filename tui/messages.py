"""What the threads tell the app: one message a tick, with the changes only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from typing import Any

    from ..backends.api import DescribeAppResponse, Finding, ReplicaUsage, Scheduler
    from ..backends.shared.progress import Progress
    from ..diagnosis.failure.explain import Explanation
    from ..diagnosis.stacks.conclusion import Conclusion
    from ..logs.source.replica_log import ReplicaLog
    from .rows import JobRow, RowProgress


@dataclass(eq=False)
class JobsChanged(Message):
    """A backend answered; these rows are new or differ, these handles are gone.

    Attributes:
        missing: why the answer may lack jobs; empty if it is complete.
    """

    scheduler: str
    changed: dict[str, JobRow]
    removed: set[str]
    missing: str = ""


@dataclass(eq=False)
class BackendFailed(Message):
    """A backend did not answer; its rows stay as they are.

    Attributes:
        reason: what happened, in one sentence.
        since: when it last answered, or first failed; seconds since the epoch.
        next_try: when it is asked again; 0 while its answer is still waited for.
    """

    scheduler: str
    reason: str
    since: float
    next_try: float


@dataclass(eq=False)
class SchedulerMade(Message):
    """A scheduler was made, so that its abilities are known."""

    name: str
    scheduler: Scheduler[Any]


@dataclass(eq=False)
class BackendChecked(Message):
    """What a backend found on its side."""

    scheduler: str
    findings: list[Finding]


@dataclass(eq=False)
class JobDescribed(Message):
    """The job that is looked at, as its backend describes it; ``described`` is None if it knows nothing of it."""

    handle: str
    described: DescribeAppResponse | None
    logs: list[ReplicaLog] = field(default_factory=list)
    error: str = ""


@dataclass(eq=False)
class UsageSampled(Message):
    """What the replicas of the job that is looked at use now."""

    handle: str
    usages: list[ReplicaUsage]


@dataclass(eq=False)
class ProgressRead(Message):
    """How far running jobs are, by their handles."""

    progress: dict[str, RowProgress]


@dataclass(eq=False)
class ActivityRead(Message):
    """A job that is followed was read again, see `Activities.latest`."""

    handle: str


@dataclass(eq=False)
class FailureExplained(Message):
    """It was found out why a job failed; replicas are numbered as its logs were."""

    handle: str
    explanation: Explanation


@dataclass(eq=False)
class StacksTaken(Message):
    """The stacks of a running job were taken.

    Attributes:
        handle: the job.
        at: when (seconds since the epoch).
        how: how many of its ranks were read in which ways.
        found: the conclusion.
    """

    handle: str
    at: float
    how: str
    found: Conclusion


@dataclass(eq=False)
class LaunchProgressed(Message):
    """A launch has something to say before anything runs.

    Attributes:
        progress: the launch's.
        what: is launched.
        text: how far it is, in words of its scheduler.
    """

    progress: Progress
    what: str
    text: str

    def can_replace(self, message: Message) -> bool:
        """Only the last word of a launch counts."""
        return isinstance(message, LaunchProgressed) and message.progress is self.progress


@dataclass(eq=False)
class ActionDone(Message):
    """An action on jobs ended.

    Attributes:
        text: what happened, in one sentence.
        failed: it did not work.
        handles: the jobs that came of it, such as those launched.
        gone: those that are no more.
        progress: of the launch that it was, if it was one.
        results: of several jobs, of which some failed, each with why it failed, empty where it did not.
        is_cancel: the jobs were asked to end.
    """

    text: str
    failed: bool = False
    handles: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    results: tuple[tuple[str, str], ...] = ()
    progress: Progress | None = None
    is_cancel: bool = False


@dataclass(eq=False)
class Told(Message):
    """Something for the status line."""

    text: str
    failed: bool = False
