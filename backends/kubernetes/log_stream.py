"""The log of one replica: its init containers, its main container, and the pod that replaces it."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator

from ...logs.source.stream import Part, PartsCursor, Record
from ...specs.errors import LogUnreadableError
from ..kube.objects import KubernetesObject, uid_of
from ..kube.pod_log import ContainerLog, Item, LogReading
from ..kube.pods import before_others, main_container
from ..shared.stamped_log import LookWaits
from .job_kind import Replica
from .jobs import Jobs, JobSnapshot

# Largest age (s) of another replica's snapshot that a stream may begin with.
_FRESH_S = 1.0


class KubernetesLogStream:
    """The records of one replica until its pod has ended for good.

    A pod that does not exist yet or waits is waited for while its job runs. A pod that replaces another continues the
    log, after a notice.

    Args:
        jobs: the server and the kind of the jobs.
        app_id: the app.
        role: the role's name.
        k: the replica's number in the role.
        cursor: where to go on.
        since: without a cursor, only lines from this time on, in nanoseconds since the epoch.
        follow: wait for more; else end at the present end.
        says: add notices.
    """

    def __init__(
        self,
        jobs: Jobs,
        app_id: str,
        role: str,
        k: int,
        cursor: PartsCursor | None = None,
        *,
        since: int | None = None,
        follow: bool = True,
        says: bool = True,
    ) -> None:
        self._jobs = jobs
        self._app_id = app_id
        self._replica = Replica(role, k)
        self._parts: dict[str, Part] = {part.name: part for part in cursor.parts} if cursor else {}
        self._reading = LogReading(
            jobs.server, self._look, str(self._replica), dict(self._parts), since,
            follow, says,
        )  # fmt: skip
        self._cursor = cursor
        self._items = self._all_items()
        self._iterating = threading.Lock()
        self.is_complete = False
        """Whether the pod has ended for good, and all of its log was read."""

    @property
    def cursor(self) -> PartsCursor | None:
        """The place after the last record."""
        return self._cursor

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        """Return the next record.

        Raises:
            JobNotFoundError, UnknownReplicaError: there is no such app, role or replica.
            LogUnreadableError: the pod is gone, and its log with it.
            SchedulerError: the server, or the pod's node, went away.
        """
        with self._iterating:
            try:
                item = next(self._items)
            except Exception:
                if self._reading.is_stopped:
                    raise StopIteration from None
                raise
        if self._reading.is_stopped:
            raise StopIteration
        if item.part is not None:
            self._note(item.part)
        return item.record

    def close(self) -> None:
        """End the iteration at once, a blocked read too; may be called again, from any thread."""
        self._reading.stop()
        # A reader in another thread ends by itself.
        if self._iterating.acquire(blocking=False):
            try:
                self._items.close()
            finally:
                self._iterating.release()

    def _note(self, part: Part) -> None:
        """Remember a position, and forget those in earlier runs and pods."""
        container, pod = part.name.rsplit("/", 1)[0], part.name.split("/")[0]
        kept = {name: known for name, known in self._parts.items() if name.startswith(f"{pod}/")}
        kept = {name: known for name, known in kept.items() if not name.startswith(f"{container}/")}
        kept[part.name] = part
        self._parts = kept
        self._cursor = PartsCursor(tuple(kept.values()))

    def _all_items(self) -> Generator[Item, None, None]:
        reading = self._reading
        look = self._jobs.snapshot(self._app_id, time.monotonic() - _FRESH_S)
        look.pick(self._app_id, *self._replica)
        last = next((name.split("/")[0] for name in self._parts), "")
        whole: str | None = None
        waits = LookWaits()
        while not reading.is_stopped:
            pod = look.pods.get(self._replica)
            if pod is not None and uid_of(pod) != whole:
                if last not in ("", uid_of(pod)) and reading.says:
                    yield reading.own_record("was restarted in a new pod: its log continues")
                last = whole = uid_of(pod)
                yield from self._pod_items(pod)
                waits = LookWaits()
                look = self._jobs.snapshot(self._app_id, time.monotonic()) if reading.follow else look
                continue
            if not self._may_come(look, pod):
                break
            began = time.monotonic()
            reading.wait(waits.next())
            look = self._jobs.snapshot(self._app_id, began)
        if not last and not reading.is_stopped and look.has_ended:
            raise self._gone()
        self.is_complete = not reading.is_stopped

    def _look(self, not_before: float) -> KubernetesObject | None:
        return self._jobs.snapshot(self._app_id, not_before).pods.get(self._replica)

    def _may_come(self, look: JobSnapshot, pod: KubernetesObject | None) -> bool:
        """Return whether a pod may still be made: the first one, or a replacement."""
        if not self._reading.follow or look.status is None or not look.status.makes_pods:
            return False
        # A deleted pod is replaced while its job runs.
        return pod is None or "deletionTimestamp" in pod["metadata"] or look.status.may_restart

    def _pod_items(self, pod: KubernetesObject) -> Iterator[Item]:
        for container in (*before_others(pod), main_container(pod)):
            yield from ContainerLog(self._reading, pod, container).items()

    def _gone(self) -> LogUnreadableError:
        return LogUnreadableError(
            f"the pod of {self._replica} of {self._app_id} was deleted, and its log with it: Kubernetes keeps no logs "
            "of pods that were deleted; a log collector of the cluster may have it"
        )
