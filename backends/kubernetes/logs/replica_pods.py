"""The pods of jobs, looked at by the logs of their replicas: once, however many want to know at a time."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from ....specs.errors import JobNotFoundError
from ...shared.replicas import pick_replica
from ..jobs import Replica, find_job, pods_of, replicas_of
from ..phases import phase_of
from ..shapes import KubernetesObject

if TYPE_CHECKING:
    from ..api_server import ApiServer

# Of so many jobs the last look is remembered.
_MOST_REMEMBERED = 64
_ENDED = ("Completed", "Failed", "Aborted", "Terminated")
# From these no pod is made any more.
_ENDING = ("Completing", "Aborting", "Terminating")


class JobSnapshot(NamedTuple):
    """A job and its pods at a time.

    Attributes:
        began: when they were asked for, by the monotonic clock.
        job: the job, None once it is gone.
        pods: its pods by name.
    """

    began: float
    job: KubernetesObject | None
    pods: dict[str, KubernetesObject]

    @property
    def is_over(self) -> bool:
        """Whether no pod will be made any more."""
        return self.job is None or phase_of(self.job) in (*_ENDED, *_ENDING)

    @property
    def has_ended(self) -> bool:
        """Whether the job is final, or gone."""
        return self.job is None or phase_of(self.job) in _ENDED

    @property
    def may_restart(self) -> bool:
        """Whether a pod that has ended may be made anew: the job's policies, or a task's, start something again."""
        if self.is_over or self.job is None:
            return False
        spec = self.job.get("spec") or {}
        policies = [*(spec.get("policies") or [])]
        for task in spec.get("tasks") or []:
            policies += task.get("policies") or []
        return any(str(policy.get("action") or "").startswith("Restart") for policy in policies)


class ReplicaPods:
    """Looks at jobs and their pods on one server; every method may be called from any thread."""

    def __init__(self) -> None:
        self._looks: dict[str, JobSnapshot] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def look(self, server: ApiServer, app_id: str, not_before: float) -> JobSnapshot:
        """Return a job and its pods as they were at a time or later.

        Args:
            server: the server.
            app_id: which job.
            not_before: by the monotonic clock; who asks for what another asks for now gets the same answer.

        Raises:
            SchedulerError: the server did not answer, or may not tell.
        """
        with self._lock:
            lock = self._locks.setdefault(app_id, threading.Lock())
        with lock:
            look = self._looks.get(app_id)
            if look is not None and look.began >= not_before:
                return look
            began = time.monotonic()
            job = find_job(server, app_id)
            pods: list[KubernetesObject] = []
            if job is not None:
                metadata = job["metadata"]
                pods = pods_of(server, metadata["namespace"], metadata["name"], metadata.get("uid", ""))
            look = JobSnapshot(began, job, {pod["metadata"]["name"]: pod for pod in pods})
        with self._lock:
            self._looks.pop(app_id, None)
            self._looks[app_id] = look
            while len(self._looks) > _MOST_REMEMBERED:
                oldest = next(iter(self._looks))
                del self._looks[oldest]
                self._locks.pop(oldest, None)
        return look


_of_servers: WeakKeyDictionary[ApiServer, ReplicaPods] = WeakKeyDictionary()
_of_servers_lock = threading.Lock()


def replica_pods(server: ApiServer) -> ReplicaPods:
    """Return the snapshots that all logs of a server share."""
    with _of_servers_lock:
        return _of_servers.setdefault(server, ReplicaPods())


def find_pod_name(look: JobSnapshot, app_id: str, role: str, k: int) -> str:
    """Return the name of the pod that is a replica, whether it is there or not.

    Raises:
        JobNotFoundError: there is no such job.
        ValueError: it has no such role or replica; the message lists those that it has.
    """
    if look.job is None:
        raise JobNotFoundError(app_id, "kubernetes")
    roles: dict[str, dict[int, str]] = {}
    for replica, _, pod_name in replicas_of(look.job):
        roles.setdefault(replica.role, {})[replica.number] = pod_name
    return pick_replica(app_id, roles, role, k)


def uid_of(pod: KubernetesObject) -> str:
    """Return the id of a pod, which another of the same name does not have."""
    return str(pod["metadata"].get("uid") or "")


def name_of(role: str, k: int) -> str:
    """Return a replica's name, such as ``trainer/0``."""
    return str(Replica(role, k))
