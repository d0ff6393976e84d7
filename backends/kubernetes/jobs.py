"""Jobs of one kind on a server, with their pods."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cachetools import LRUCache

from ...specs.errors import JobNotFoundError, NotAllowedError, SchedulerError
from ...specs.status import is_terminal
from ..kube.api_server import ApiServer
from ..kube.objects import KubernetesObject, checked_pod, items_of, owners_of, pods_path
from ..kube.pods import MAIN
from ..shared.replicas import pick_replica
from .job_kind import JobKind, JobStatus, Replica

Watched = Callable[[str], tuple[KubernetesObject, Mapping[Replica, KubernetesObject]] | None]
"""Returns a job and its pods by the app's id, where watches keep both up to date; None where they do not."""
# Jobs whose latest snapshot is kept.
_MAX_SNAPSHOTS = 64


def split_app_id(app_id: str) -> tuple[str, str]:
    """Return the namespace and the job's name of an app id, ``NAMESPACE:NAME``; empty namespace where it has none."""
    namespace, colon, name = app_id.partition(":")
    return (namespace, name) if colon else ("", namespace)


class JobSnapshot(NamedTuple):
    """A job and its pods at a time.

    Attributes:
        began: when they were asked for, by the monotonic clock.
        job: the job; None once it is gone.
        pods: its pods by replica.
        status: how the job is doing; None once it is gone.
        replicas: the replicas that the job asks for.
        refusal: why the pods are not known.
    """

    began: float
    job: KubernetesObject | None
    pods: Mapping[Replica, KubernetesObject]
    status: JobStatus | None
    replicas: list[Replica]
    refusal: NotAllowedError | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended or was deleted."""
        return self.status is None or is_terminal(self.status.state)

    def existing(self, app_id: str) -> KubernetesObject:
        """Return the job.

        Raises:
            JobNotFoundError: there is no such job.
        """
        if self.job is None:
            raise JobNotFoundError(app_id, "kubernetes")
        return self.job

    def pick(self, app_id: str, role: str, k: int) -> Replica:
        """Return a replica.

        Raises:
            JobNotFoundError: there is no such job.
            NotAllowedError: its pods may not be read.
            ValueError: it has no such role or replica; the message lists those that it has.
        """
        self.existing(app_id)
        if self.refusal is not None:
            raise self.refusal
        roles: dict[str, dict[int, Replica]] = {}
        for replica in self.replicas:
            roles.setdefault(replica.role, {})[replica.number] = replica
        return pick_replica(app_id, roles, role, k)


@dataclass
class _Snapshots:
    """The latest snapshot of a job; its lock is held while another is taken."""

    lock: threading.Lock
    latest: JobSnapshot | None = None


class Jobs:
    """The jobs of one kind on a server; every method may be called from any thread.

    Args:
        server: the server.
        kind: their kind.
    """

    def __init__(self, server: ApiServer, kind: JobKind) -> None:
        self.server = server
        self.kind = kind
        self.watched: Watched = lambda _: None
        self._snapshots: LRUCache[str, _Snapshots] = LRUCache(_MAX_SNAPSHOTS)
        self._lock = threading.Lock()

    def find(self, app_id: str) -> KubernetesObject | None:
        """Return a job; None if there is none.

        Raises:
            SchedulerError: the server did not answer, or may not tell, or answered with something else.
        """
        namespace, name = split_app_id(app_id)
        namespace = namespace or self.server.namespace
        name = name.removeprefix(f"{self.kind.prefix}:")
        answer = self.server.find(self.kind.path(namespace, name))
        job = None if answer is None else self.kind.checked(answer)
        if job is None and answer is not None:
            raise SchedulerError(
                f"{app_id}: the server answered with something that is not a job: is there a proxy in between?"
            )
        if job is None:
            return None
        job["metadata"].setdefault("namespace", namespace)
        return self.kind.with_children(self.server, job)

    def pods(self, job: KubernetesObject) -> list[KubernetesObject]:
        """Return the pods of a job, in one request; not those of an earlier job of its name."""
        owners, selector = self.kind.owners_of_pods(job), self.kind.pods_selector(job)
        answer = self.server.request("GET", pods_path(job["metadata"]["namespace"]), params={"labelSelector": selector})
        return [pod for item in items_of(answer) if (pod := self.read_pod(item, owners)) is not None]

    def read_pod(self, item: object, owners: Collection[str]) -> KubernetesObject | None:
        """Return a pod with its main container; None if it has no name, or belongs to another job."""
        pod = checked_pod(item)
        if pod is None or (owners and not {*owners} & {*owners_of(pod)}):
            return None
        pod[MAIN] = self.kind.main_container(pod)
        return pod

    def snapshot(self, app_id: str, not_before: float) -> JobSnapshot:
        """Return a job and its pods as they were at a time or later; concurrent callers share one request.

        Args:
            app_id: the job.
            not_before: the time, by the monotonic clock.

        Raises:
            SchedulerError: the server did not answer, or may not tell.
        """
        with self._lock:
            taken = self._snapshots.setdefault(app_id, _Snapshots(threading.Lock()))
        with taken.lock:
            if taken.latest is None or taken.latest.began < not_before:
                taken.latest = self._take_snapshot(app_id)
            return taken.latest

    def _take_snapshot(self, app_id: str) -> JobSnapshot:
        began, kind, refusal = time.monotonic(), self.kind, None
        watched = self.watched(app_id)
        job, pods = watched or (self.find(app_id), {})
        if job is None:
            return JobSnapshot(began, None, {}, None, [])
        replicas = [replica for replica, _ in kind.replicas(job)]
        status = kind.status(job)
        try:
            pods = pods if watched else kind.by_replica(job, self.pods(job))
        except NotAllowedError as error:
            refusal = error
        return JobSnapshot(began, job, pods, status, replicas, refusal)
