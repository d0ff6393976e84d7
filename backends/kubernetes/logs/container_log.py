"""The log of one container of one pod: the runs that its node still has, and those that follow."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from typing import Any, NamedTuple

from ....logs.source.log_place import LogPlace
from ....logs.source.log_times import LogClock
from ....logs.source.stream import Part, Record
from ....logs.text.sanitize import plain
from ....specs import BackendUnavailableError
from ..api_server import ApiError
from ..causes import pod_reason
from ..jobs import Object, pods_path
from ..phases import Run, main_container, run_of
from .log_reading import Item, LogReading, Patience
from .replica_pods import uid_of

# Runtimes log a longer line in pieces of this size; older servers put a time in front of each.
_PIECE = 16_384
_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|[+-]\d\d:\d\d) ")
# Of a line that is longer than this, what is here is given (bytes).
_LONGEST = 1 << 20
UNKNOWN = -1
"""The time of what has none: it is not the container's, but the words of the node that cannot give its log."""


class Message(NamedTuple):
    """What a container printed at once: a line, or a piece of one that is longer than 16 KiB.

    Attributes:
        nanoseconds: when, since the epoch; `UNKNOWN` of what is not the container's.
        data: the bytes, with the end of the line where it has one.
    """

    nanoseconds: int
    data: bytes


class StampedLog:
    """Makes messages of the bytes of a log with timestamps, however they were cut."""

    def __init__(self) -> None:
        self._rest = b""
        self._clock = LogClock()

    def feed(self, data: bytes) -> list[Message]:
        """Return the lines that are whole with the next bytes; of a very long one, the pieces that are there."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        messages: list[Message] = []
        for line in lines:
            if len(line) <= _PIECE:
                messages.append(self._message(line + b"\n"))
            else:
                messages += self._pieces(line + b"\n")
        if len(self._rest) > _LONGEST:
            *pieces, last = _split_pieces(self._rest)
            messages += [self._message(piece) for piece in pieces]
            self._rest = last
        return messages

    def rest(self) -> list[Message]:
        """Return the last line, which has no end."""
        rest, self._rest = self._rest, b""
        return self._pieces(rest) if rest else []

    def _pieces(self, line: bytes) -> list[Message]:
        return [self._message(piece) for piece in _split_pieces(line)]

    def _message(self, line: bytes) -> Message:
        nanoseconds, start = self._clock.read(line, 0)
        return Message(nanoseconds, line[start:]) if start else Message(UNKNOWN, line)


def _split_pieces(line: bytes) -> list[bytes]:
    """Return the pieces of a long line, each with its time in front; of one that has none within, the line."""
    pieces: list[bytes] = []
    at = 0
    while found := _STAMP.match(line, at):
        end = found.end() + _PIECE
        if not _STAMP.match(line, end):
            break
        pieces.append(line[at:end])
        at = end
    return [*pieces, line[at:]]


_NOT_YET = -1
# In what a server says whose node does not answer: the path that it asked there.
_OF_NODE = "/containerLogs/"
# Nothing to tell of: it takes a moment.
_MOMENTS = ("its container is being made", "waits for a node")


class ContainerLog:
    """The records of one container until it has ended for good, or its pod is gone.

    Args:
        reading: what is wanted, and of whom.
        pod: the pod as it was looked at last.
        container: which of its containers.
    """

    def __init__(self, reading: LogReading, pod: Object, container: str) -> None:
        self._reading = reading
        self._pod = pod
        self._container = container
        own = main_container(pod)
        # Of containers beside the replica's own, each line says whose it is.
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
        patience = Patience()
        while not reading.is_stopped:
            run = run_of(self._pod, self._container)
            if run.number > begun:
                yield from self._begin(run.number, begun)
                begun, patience = run.number, Patience()
            asked = time.monotonic()
            if run.number > whole:
                yield from self._read(run.number, follow=reading.follow and run.is_running)
                if not run.is_running:
                    whole = run.number
            if not reading.follow or (run.is_over and whole == run.number):
                return
            if not run.is_running:
                yield from self._why_not(run)
            # An answer that lasted has ended because the container has: that is looked at now.
            lasted = run.is_running and time.monotonic() - asked >= patience.seconds
            asked = time.monotonic()
            if lasted:
                patience = Patience()
            else:
                reading.wait(patience.next())
            if reading.is_stopped or not self._look(asked):
                return

    def _look(self, not_before: float) -> bool:
        """Look at the pod again; return whether it is still there."""
        pod = self._reading.look(not_before).pods.get(self._pod["metadata"]["name"])
        if pod is None or uid_of(pod) != uid_of(self._pod):
            return False
        self._pod = pod
        return True

    # What is said

    def _begin(self, number: int, before: int) -> Iterator[Item]:
        """Read what is left of the run before, and say that another one begins."""
        if number <= 0:
            return
        if self._reading.tail is None or before >= 0:
            # The node keeps one run before the present one.
            yield from self._read(number - 1, follow=False, previous=True)
        if self._reading.says:
            yield self._reading.words(f"was started again (restart {number}): its log goes on")

    def _why_not(self, run: Run) -> Iterator[Item]:
        """Say once why a container does not run; what has passed by the next look is not worth a word."""
        reason = pod_reason(self._pod)
        if not self._reading.says or run.is_over or reason in ("", *_MOMENTS):
            return
        if reason == self._waiting_for and reason not in self._said:
            self._said.add(reason)
            yield self._reading.words(f"waits: {reason}")
        self._waiting_for = reason

    def _unreadable(self, reason: str) -> Iterator[Item]:
        if reason not in self._said:
            self._said.add(reason)
            yield self._reading.words(f"has a log that cannot be read: {plain(reason)}")

    # What is read

    def _read(self, number: int, *, follow: bool, previous: bool = False) -> Iterator[Item]:
        """Yield the records of one run, from where the last reading ended."""
        name = f"{self._key}{number}"
        part = self._parts.get(name)
        place, parser = LogPlace(part.place if part else None), StampedLog()
        path = f"{pods_path(self._pod['metadata']['namespace'], self._pod['metadata']['name'])}/log"
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
        node = plain(str((self._pod.get("spec") or {}).get("nodeName") or ""))
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
        elif self._reading.tail is not None:
            params["tailLines"] = self._reading.tail
        return params

    def _take(self, messages: Iterable[Message], name: str, place: LogPlace, part: Part | None) -> Iterator[Item]:
        """Make records of messages: few, as each costs more than the lines in it."""
        reading = self._reading
        first = reading.since if part is None and reading.since else 0
        latest = part.latest if part else 0
        pieces: list[bytes] = []
        began = 0
        for message in messages:
            at = message.nanoseconds
            if at == UNKNOWN:
                # Of a pod that was deleted under a tail the log goes first.
                if name not in self._parts and "deletionTimestamp" not in self._pod["metadata"]:
                    yield from self._unreadable(message.data.decode("utf-8", "replace").strip())
                continue
            if at < first:
                continue
            if pieces and not 0 <= at - began < reading.together:
                # Before the next one is counted: the place is that after these.
                yield self._item(pieces, began, name, place, latest)
                pieces = []
            if place.left and at > latest:
                place.skip_missing()
                if reading.says:
                    yield reading.words("lost lines here: its node had dropped them before they were read", at)
            if not place.is_new(at):
                continue
            if not pieces:
                began = at
            pieces.append(self._marked(message.data))
        if pieces:
            yield self._item(pieces, began, name, place, latest)

    def _marked(self, data: bytes) -> bytes:
        if not self._prefix:
            return data
        marked = self._prefix + data if self._at_start else data
        self._at_start = data.endswith(b"\n")
        return marked

    def _item(self, pieces: list[bytes], began: int, name: str, place: LogPlace, latest: int) -> Item:
        cursor = place.cursor
        assert cursor is not None
        part = Part(name, cursor, max(latest, place.latest))
        self._parts[name] = part
        data = b"".join(pieces)
        self._reading.within_line = not data.endswith(b"\n")
        return Item(Record(data, began / 1e9, "c"), part)
