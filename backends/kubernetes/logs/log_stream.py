"""The log of one replica as it comes: of all containers of its pod, and on in a pod that was made anew."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING

from ....logs.source.stream import Part, PartsCursor, Record
from ....specs.errors import LogUnreadableError
from ...shared.stamped_log import TOGETHER_NS, LookWaits
from .. import labels
from ..phases import before_others, side_by_side
from ..shapes import KubernetesObject
from .container_log import ContainerLog, Item, LogReading
from .replica_pods import JobSnapshot, find_pod_name, name_of, uid_of

if TYPE_CHECKING:
    from ..api_server import ApiServer


# Records that wait to be taken, of all logs together.
_MOST_WAITING = 256
# How often (s) it is looked whether anything is still wanted.
_LOOK_S = 0.2
# A look at the job that is not older (s) is good enough to begin with: that of another replica's log.
_FRESH_S = 1.0


def read_side_by_side(reading: LogReading, logs: Sequence[Callable[[], Iterator[Item]]]) -> Iterator[Item]:
    """Yield the records of several logs as they come, until all have ended.

    Raises:
        Exception: whatever the first one raised that failed.
    """
    waiting: queue.Queue[Item | Exception | None] = queue.Queue(_MOST_WAITING)

    def put(item: Item | Exception | None) -> None:
        while not reading.is_stopped:
            try:
                waiting.put(item, timeout=_LOOK_S)
            except queue.Full:
                continue
            return

    def read(items: Callable[[], Iterator[Item]]) -> None:
        try:
            for item in items():
                put(item)
            put(None)
        except Exception as error:  # raised where the records are taken
            put(error)

    for number, items in enumerate(logs):
        threading.Thread(target=read, args=(items,), name=f"log-{reading.name}-{number}", daemon=True).start()
    left = len(logs)
    while left and not reading.is_stopped:
        try:
            item = waiting.get(timeout=_LOOK_S)
        except queue.Empty:
            continue
        if item is None:
            left -= 1
        elif isinstance(item, Exception):
            raise item
        else:
            yield item


class KubernetesLogStream:
    """The records of one replica until its pod has ended for good.

    A pod that is not there yet, or waits, is waited for while its job goes on. A pod that is made anew goes on in the
    same log; a record says so.

    Args:
        server: the server.
        app_id: the app.
        role: the role's name.
        k: the replica's number in the role.
        cursor: where to go on.
        since: without a cursor, only lines from this time on, in nanoseconds since the epoch.
        follow: wait for more; else end at the present end.
        says: add records of ours.
        together: lines that were printed within so many nanoseconds may be one record.
    """

    def __init__(
        self,
        server: ApiServer,
        app_id: str,
        role: str,
        k: int,
        cursor: PartsCursor | None = None,
        *,
        since: int | None = None,
        follow: bool = True,
        says: bool = True,
        together: int = TOGETHER_NS,
    ) -> None:
        self._names = (app_id, role, k)
        self._parts: dict[str, Part] = {part.name: part for part in cursor.parts} if cursor else {}
        self._reading = LogReading(
            server, app_id, name_of(role, k), dict(self._parts), None, since, follow, says,
            together,
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
            except StopIteration:
                raise
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
        # Whoever reads now ends by itself.
        if self._iterating.acquire(blocking=False):
            try:
                self._items.close()
            finally:
                self._iterating.release()

    def _note(self, part: Part) -> None:
        """Remember a place, and forget those in runs and pods of before."""
        pod, container, _ = part.name.split("/")
        kept = {
            name: known
            for name, known in self._parts.items()
            if name.split("/")[0] == pod and name.split("/")[1] != container
        }
        kept[part.name] = part
        self._parts = kept
        self._cursor = PartsCursor(tuple(kept.values()))

    def _all_items(self) -> Generator[Item, None, None]:
        reading = self._reading
        look = reading.look(time.monotonic() - _FRESH_S)
        pod_name = find_pod_name(look, *self._names)
        last = next((name.split("/")[0] for name in self._parts), "")
        whole: str | None = None
        waits = LookWaits()
        while not reading.is_stopped:
            pod = look.pods.get(pod_name)
            if pod is not None and uid_of(pod) != whole:
                if last not in ("", uid_of(pod)) and reading.says:
                    yield self._made_anew(pod)
                last = whole = uid_of(pod)
                yield from self._pod_items(pod)
                waits = LookWaits()
                look = reading.look() if reading.follow else look
                continue
            if not self._may_come(look, pod):
                break
            began = time.monotonic()
            reading.wait(waits.next())
            look = reading.look(began)
        if not last and not reading.is_stopped and look.has_ended:
            raise self._gone()
        self.is_complete = not reading.is_stopped

    def _may_come(self, look: JobSnapshot, pod: KubernetesObject | None) -> bool:
        """Tell whether a pod may be made yet: the first one, or one in place of the one that ended."""
        if not self._reading.follow or look.is_over:
            return False
        # A pod that somebody deleted is made anew while its job goes on.
        return pod is None or "deletionTimestamp" in pod["metadata"] or look.may_restart

    def _pod_items(self, pod: KubernetesObject) -> Iterator[Item]:
        reading = self._reading
        for container in before_others(pod):
            yield from ContainerLog(reading, pod, container).items()
        logs = [ContainerLog(reading, pod, container) for container in side_by_side(pod)]
        if reading.follow and len(logs) > 1:
            yield from read_side_by_side(reading, [log.items for log in logs])
            return
        for log in logs:
            yield from log.items()

    def _made_anew(self, pod: KubernetesObject) -> Item:
        retry = labels.number(pod["metadata"].get("annotations") or {}, labels.RETRY_COUNT)
        which = f" (retry {retry})" if retry else ""
        return self._reading.own_record(f"was restarted in a new pod{which}: its log continues")

    def _gone(self) -> LogUnreadableError:
        app_id, role, k = self._names
        return LogUnreadableError(
            f"the pod of {role}/{k} of {app_id} was deleted, and its log with it: Kubernetes keeps no logs of pods "
            "that were deleted; a log collector of the cluster may have it"
        )
