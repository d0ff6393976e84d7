"""The log of one container: the runs that its node still has, and those that follow."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from ...logs.source.log_place import LogPlace
from ...logs.source.stream import Part, Record, TimeCursor
from ...logs.text.sanitize import plain
from ...specs.errors import BackendUnavailableError, SchedulerError
from ..shared.stamped_log import TOGETHER_NS, UNKNOWN, LookWaits, Message, StampedLines, join_messages
from .api_server import ApiError, describe_unavailable
from .causes import pod_reason
from .objects import KubernetesObject, dig, name_of, pods_path, uid_of
from .pods import ContainerRun, main_container, run_of

if TYPE_CHECKING:
    from ..shared.streaming_response import StreamingResponse
    from .api_server import ApiServer


_NOT_YET = -1
# In the server's error for a node that does not answer: the path that was asked for there.
_OF_NODE = "/containerLogs/"
# Short states that need no notice.
_MOMENTS = ("its container is being created", "waits for a node")


class Item(NamedTuple):
    """A record of a log.

    Attributes:
        record: the record.
        part: the position after it; None for a notice of this program.
    """

    record: Record
    part: Part | None


@dataclass
class LogReading:
    """One reading of one replica's log.

    Args:
        server: the server.
        look: returns the replica's pod as of a time (monotonic clock) or later; None once it is gone.
        name: the replica's, such as ``trainer/0``.
        parts: the positions to resume from, by the names of the parts.
        since: without a position, only lines from this time on (ns since the epoch).
        follow: wait for more; else end at the present end.
        says: add notices, such as of a restart.
        within_line: whether what was read last ends within a line.
    """

    server: ApiServer
    look: Callable[[float], KubernetesObject | None]
    name: str
    parts: Mapping[str, Part]
    since: int | None
    follow: bool
    says: bool
    within_line: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)
    _answer: StreamingResponse | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    def stop(self) -> None:
        """End the answer that is read at once; may be called from any thread."""
        self._stop.set()
        if (answer := self._answer) is not None:
            answer.shut()

    def wait(self, seconds: float) -> None:
        """Wait, at most until `stop`."""
        self._stop.wait(seconds)

    @contextmanager
    def opened(self, path: str, params: Mapping[str, Any]) -> Iterator[StreamingResponse]:
        """Open a streaming answer that `stop` ends.

        Raises:
            SchedulerError: the server refused, or went away.
        """
        answer = self._answer = self.server.open(path, params, accept="*/*")
        try:
            if self.is_stopped:
                answer.shut()
            yield answer
        except SchedulerError:
            raise
        except Exception as error:  # whatever the socket and TLS raise
            reason = describe_unavailable(error, self.server.host, self.server.context)
            raise BackendUnavailableError(reason) from error
        finally:
            self._answer = None
            answer.close()

    def own_record(self, text: str, nanoseconds: int | None = None) -> Item:
        """Return a notice about the replica as a record."""
        at = time.time() if nanoseconds is None else nanoseconds / 1e9
        # A node that drops a log may leave half a line: a notice begins on a line of its own.
        before, self.within_line = "\n" if self.within_line else "", False
        return Item(Record(f"{before}-- {self.name} {text} --\n".encode(), at, "c"), None)


class ContainerLog:
    """The records of one container until it has ended for good, or its pod is gone.

    Args:
        reading: what is wanted, and which server to ask.
        pod: the pod as it was looked at last.
        container: which of its containers.
    """

    def __init__(self, reading: LogReading, pod: KubernetesObject, container: str) -> None:
        self._reading = reading
        self._pod = pod
        self._container = container
        own = main_container(pod)
        # Lines of init containers begin with the container's name.
        self._prefix = b"" if container == own else f"{container} ".encode()
        self._at_start = True
        self._key = f"{uid_of(pod)}/{container}/"
        self._parts = {name: part for name, part in reading.parts.items() if name.startswith(self._key)}
        self._said: set[str] = set()
        self._waiting_for = ""

    def items(self) -> Iterator[Item]:
        """Yield its records.

        Raises:
            SchedulerError: the server, or the node, went away.
        """
        reading = self._reading
        begun = max((int(name.rpartition("/")[2]) for name in self._parts), default=_NOT_YET)
        whole = _NOT_YET
        waits = LookWaits()
        while not reading.is_stopped:
            run = run_of(self._pod, self._container)
            if run.number > begun:
                yield from self._begin(run.number)
                begun, waits = run.number, LookWaits()
            if run.number > whole:
                yield from self._read(run.number, follow=reading.follow and run.is_running)
                if not run.is_running:
                    whole = run.number
            if not reading.follow or (run.is_over and whole == run.number):
                return
            if not run.is_running:
                yield from self._why_not(run)
            asked = time.monotonic()
            reading.wait(waits.next())
            pod = None if reading.is_stopped else reading.look(asked)
            if pod is None or uid_of(pod) != uid_of(self._pod):
                return
            self._pod = pod

    # Notices

    def _begin(self, number: int) -> Iterator[Item]:
        """Read the rest of the previous run, and give notice of the next one."""
        if number <= 0:
            return
        # The node keeps one run before the present one.
        yield from self._read(number - 1, follow=False, previous=True)
        if self._reading.says:
            yield self._reading.own_record(f"was restarted (restart {number}): its log continues")

    def _why_not(self, run: ContainerRun) -> Iterator[Item]:
        """Give the reason why a container does not run once, if it holds for two looks."""
        reason = pod_reason(self._pod)
        if not self._reading.says or run.is_over or reason in ("", *_MOMENTS):
            return
        if reason == self._waiting_for and reason not in self._said:
            self._said.add(reason)
            yield self._reading.own_record(f"waits: {reason}")
        self._waiting_for = reason

    def _unreadable(self, reason: str) -> Iterator[Item]:
        if reason not in self._said:
            self._said.add(reason)
            yield self._reading.own_record(f"has a log that cannot be read: {plain(reason)}")

    # Reading

    def _read(self, number: int, *, follow: bool, previous: bool = False) -> Iterator[Item]:
        """Yield the records of one run, from where the last reading ended."""
        name = f"{self._key}{number}"
        part = self._parts.get(name)
        place, parser = LogPlace(part.place if part else None), StampedLines()
        path = f"{pods_path(self._pod['metadata']['namespace'], name_of(self._pod))}/log"
        try:
            with self._reading.opened(path, self._params(part, follow, previous)) as answer:
                while data := answer.read():
                    yield from self._take(parser.feed(data), name, place, part)
                yield from self._take(parser.rest(), name, place, part)
        except BackendUnavailableError as error:
            if _OF_NODE not in str(error):
                raise
            raise BackendUnavailableError(self._no_node()) from error
        except ApiError as error:
            if error.status not in (400, 404):
                raise
            # It has only just ended or not begun, which the next look shows; or the node has dropped its log.
            if not (previous or "waiting to start" in str(error) or error.status == 404):
                yield from self._unreadable(str(error))

    def _no_node(self) -> str:
        node = plain(dig(self._pod, "spec", "nodeName") or "")
        return f"the node {node} of {self._reading.name} does not give its log: is the node, and its kubelet, running?"

    def _params(self, part: Part | None, follow: bool, previous: bool) -> dict[str, Any]:
        params: dict[str, Any] = {"container": self._container, "timestamps": "true"}
        if follow:
            params["follow"] = "true"
        if previous:
            params["previous"] = "true"
        since = part.place.nanoseconds if part else self._reading.since
        if since:
            # Servers take whole seconds only; what was seen before is passed over.
            whole = datetime.fromtimestamp(since // 10**9, timezone.utc)
            params["sinceTime"] = whole.strftime("%Y-%m-%dT%H:%M:%SZ")
        return params

    def _take(self, messages: list[Message], name: str, place: LogPlace, part: Part | None) -> Iterator[Item]:
        reading = self._reading
        first = reading.since if part is None and reading.since else 0
        latest = part.latest if part else 0
        unreadable = [message.data for message in messages if message.nanoseconds == UNKNOWN]
        if unreadable or first or self._prefix:
            messages = [
                message._replace(data=self._marked(message.data))
                for message in messages
                if message.nanoseconds != UNKNOWN and message.nanoseconds >= first
            ]

        def announce_lost(at: int) -> Record | None:
            if not place.left or at <= latest:
                return None
            place.skip_missing()
            if not reading.says:
                return None
            return reading.own_record("lost lines here: its node had dropped them before they were read", at).record

        for record, cursor in join_messages(messages, place, TOGETHER_NS, announce_lost if place.left else None):
            yield self._item(record, cursor, name, place, latest)
        # Of a pod that was deleted under a tail the log goes first.
        if name not in self._parts and "deletionTimestamp" not in self._pod["metadata"]:
            for words in unreadable:
                yield from self._unreadable(words.decode("utf-8", "replace").strip())

    def _marked(self, data: bytes) -> bytes:
        if not self._prefix:
            return data
        marked = self._prefix + data if self._at_start else data
        self._at_start = data.endswith(b"\n")
        return marked

    def _item(self, record: Record, cursor: TimeCursor | None, name: str, place: LogPlace, latest: int) -> Item:
        if cursor is None:
            return Item(record, None)
        part = Part(name, cursor, max(latest, place.latest))
        self._parts[name] = part
        self._reading.within_line = not record.data.endswith(b"\n")
        return Item(record, part)
