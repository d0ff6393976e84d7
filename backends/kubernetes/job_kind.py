"""What the scheduler has to know of a kind of jobs, such as Volcano's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...specs.roles import Role
from ...specs.status import AppState, ReplicaStatus, is_terminal
from ..kube.api_server import ApiServer
from ..kube.objects import KubernetesObject, uid_of
from ..types import Finding, JobAction, StateChange
from .launching.form import LaunchForm

CHILDREN = "jobs made for it"
"""A key that this program adds to a job: the jobs of ``batch/v1`` that it owns, the oldest first."""
MAX_REPLICAS = 10_000
"""Further replicas of a job are not shown: a mistyped number must not fill the memory."""


class Replica(NamedTuple):
    """A replica of a job."""

    role: str
    number: int

    def __str__(self) -> str:
        return f"{self.role}/{self.number}"


class JobFacts(NamedTuple):
    """What the server says of one job.

    Attributes:
        job: the job.
        pods: the pod of each replica that has one.
        events: events by the uid, and by the name, of the objects that they are about.
        more: what `JobKind.read_more` returned.
        refusal: why the pods are not known; empty if they are.
    """

    job: KubernetesObject
    pods: Mapping[Replica, KubernetesObject]
    events: Mapping[str, list[KubernetesObject]]
    more: Any = None
    refusal: str = ""


class JobStatus(NamedTuple):
    """How a job is doing.

    Attributes:
        state: its state.
        makes_pods: whether pods may still be made for it.
        may_restart: whether a pod that has ended may be replaced.
        timeline: the states that it went through.
        finished_at: when it ended, in seconds since the epoch; None if it has not, or if that is unknown.
        message: its controller's own message on the state; empty if there is none.
        places: where it is, by names for people.
        wanted: the replicas that it asks for.
        running: those that run.
        succeeded: those that succeeded.
        restarts: how often it was restarted.
    """

    state: AppState
    makes_pods: bool
    may_restart: bool
    timeline: list[StateChange]
    finished_at: float | None
    message: str
    places: dict[str, str]
    wanted: int
    running: int
    succeeded: int
    restarts: int

    @property
    def started_at(self) -> float | None:
        """When the job first ran, in seconds since the epoch."""
        return next((change.at for change in self.timeline if change.state is AppState.RUNNING), None)


def joined_state(states: Collection[AppState]) -> AppState:
    """Return the state of what has parts in these states."""
    if all(map(is_terminal, states)):
        return next((one for one in (AppState.FAILED, AppState.CANCELLED) if one in states), AppState.SUCCEEDED)
    for state in (AppState.RUNNING, AppState.UNKNOWN, AppState.PENDING):
        if state in states:
            return AppState.RUNNING if any(map(is_terminal, states)) else state
    return AppState.RUNNING if any(map(is_terminal, states)) else AppState.SUBMITTED


def with_field(item: KubernetesObject, path: Sequence[str], value: Any) -> KubernetesObject:
    """Return a copy of an object in which the field of this path has another value."""
    name, *rest = path
    return {**item, name: with_field(item.get(name) or {}, rest, value) if rest else value}


class JobKind(LaunchForm):
    """A kind of jobs on an API server: where they are, and what their fields mean.

    Attributes:
        word: what people call it, such as ``JobSet``.
        shows_newest_child: whether its row is that of the newest job that it made.
        joins_children: whether the jobs that it owns are further parts of it.
        moves_start: whether its controller writes the time of a start anew while a job runs.
        suspend: the action that suspends a job; None if there is none.
        suspend_at: the path of the field that suspends a job.
    """

    word: str
    shows_newest_child = False
    joins_children = False
    moves_start = False
    suspend: JobAction | None = None
    suspend_at: tuple[str, ...] = ("spec", "suspend")

    # On the server

    @abstractmethod
    def checked(self, item: Any) -> KubernetesObject | None:
        """Return a job; None if it does not have the shape of one."""

    def with_children(self, server: ApiServer, job: KubernetesObject) -> KubernetesObject:
        """Return a job with the jobs that were made for it, where its kind needs them to be described."""
        return job

    @abstractmethod
    def pods_selector(self, job: KubernetesObject) -> str:
        """Return the label selector of a job's pods."""

    def owners_of_pods(self, job: KubernetesObject) -> frozenset[str]:
        """Return the uids of the objects that own a job's pods."""
        return frozenset({uid_of(job)} - {""})

    # A job

    def is_queued(self, job: KubernetesObject) -> bool:
        """Return whether a queue, not a person, decides when a job runs."""
        return False

    @abstractmethod
    def state(self, job: KubernetesObject) -> AppState:
        """Return a job's state; SUBMITTED until its controller has picked it up."""

    def needs_pods(self, job: KubernetesObject) -> bool:
        """Return whether only pods tell if a job runs."""
        return False

    @abstractmethod
    def status(self, job: KubernetesObject, pods: Iterable[KubernetesObject] = ()) -> JobStatus:
        """Return how a job is doing.

        Args:
            job: the job.
            pods: its pods, as far as they are known.
        """

    @abstractmethod
    def cfg(self, job: KubernetesObject) -> dict[str, Any]:
        """Return the run options that launch the same again, as far as the job shows them."""

    # Replicas

    @abstractmethod
    def replicas(self, job: KubernetesObject) -> Iterator[tuple[Replica, KubernetesObject]]:
        """Yield the replicas that a job asks for, each with its pod template; at most `MAX_REPLICAS`."""

    @abstractmethod
    def replica_of(self, pod: KubernetesObject) -> Replica:
        """Return which replica a pod is, by its labels."""

    def by_replica(self, job: KubernetesObject, pods: Iterable[KubernetesObject]) -> dict[Replica, KubernetesObject]:
        """Return the newest pod of each replica of a job."""
        in_order = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or ""))
        return {self.replica_of(pod): pod for pod in in_order}

    def without_pod(self, job: KubernetesObject, replica: Replica) -> tuple[AppState, str] | None:
        """Return the state of a replica that has no pod, and why; None if the job does not tell."""
        return None

    @abstractmethod
    def main_container(self, pod: KubernetesObject) -> str:
        """Return the name of the container that the replica runs in, by the pod's labels."""

    @abstractmethod
    def roles(self, job: KubernetesObject, notes: list[str]) -> list[Role]:
        """Return the roles of a job whose AppDef is not kept; ``notes`` gets what a role cannot repeat."""

    # Why

    @abstractmethod
    def event_selectors(self, job: KubernetesObject, pods: Mapping[Replica, KubernetesObject]) -> list[str]:
        """Return the field selectors of the events that may say what a job and its pods do not."""

    @abstractmethod
    def read_more(self, server: ApiServer, job: KubernetesObject, now: float) -> Any:
        """Ask the server for what else explains a job's state; see `JobFacts.more`."""

    @abstractmethod
    def reason(self, facts: JobFacts, replicas: Sequence[ReplicaStatus], now: float) -> str:
        """Explain a job's state, the cause first; empty if there is nothing to say."""

    @abstractmethod
    def pod_reason(self, pod: KubernetesObject, events: Iterable[KubernetesObject] = (), now: float = 0.0) -> str:
        """Explain a pod's state; empty if there is nothing to say.

        Args:
            pod: the pod.
            events: those about it.
            now: the time, in seconds since the epoch, where a scheduler that has said nothing is named after a while.
        """

    @abstractmethod
    def not_looked_at(self, job: KubernetesObject) -> str:
        """Return who should look at a new job and has not."""

    # Cancel

    def parts(self, job: KubernetesObject) -> list[KubernetesObject]:
        """Return the objects of a job; each is cancelled and changed on its own."""
        return [job]

    cancel_at = "/status"
    """Where a job that is cancelled is written, below its own path."""

    @abstractmethod
    def cancelled(self, job: KubernetesObject) -> KubernetesObject:
        """Return a job that asks its controller to end it and keep it.

        Raises:
            SchedulerError: jobs of this kind cannot be cancelled; the message says what to do.
        """

    def command(self, job: KubernetesObject, action: str) -> KubernetesObject | None:
        """Return the object that asks a job's controller for an action; None if a field does, or it is not possible."""
        return None

    def scale(self, job: KubernetesObject) -> JobAction | None:
        """Return the action that changes how many pods run; None if that cannot be changed."""
        return None

    def scaled(self, job: KubernetesObject, value: str) -> KubernetesObject:
        """Return a job with another number of pods.

        Raises:
            SchedulerError: the value, as a person typed it, is malformed.
        """
        raise NotImplementedError

    @abstractmethod
    def findings(self, server: ApiServer) -> list[Finding]:
        """Check whether a server runs jobs of this kind."""
