"""The log of one replica as it comes: taken up after a cut, and on when the engine starts the container again."""

from __future__ import annotations

import struct
import threading
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ...base.files import SOURCE
from ...logs.source.log_place import LogPlace
from ...logs.source.log_times import LogClock, nanoseconds_of
from ...logs.source.stream import Record, TimeCursor
from ...specs.errors import LogUnreadableError, SchedulerError
from ..docker_engine.client import Engine
from ..docker_engine.streams import ask
from ..shared.stamped_log import TOGETHER_NS, LookWaits, Message, StampedLines, join_messages
from ..shared.streaming_response import StreamingResponse
from ..types import Stream
from .containers import find_replica

if TYPE_CHECKING:
    import docker
    import docker.errors


_HEADER = struct.Struct(">BxxxL")
# Log drivers cut messages at 16 KB to 1 MB.
_LONGEST_FRAME = SOURCE
# On any other stream the engine says why it cannot go on.
_STREAMS = {0: "o", 1: "o", 2: "e"}


_OVER = ("exited", "dead")
# When a container was started that never was.
_NEVER = 0
# Between two runs of a container the engine waits for so long at least (ns).
_REST_NS = 100_000_000
# On a busy machine an engine notes a start after the first lines of it, but not by more than this (ns).
_LATE_NOTE_NS = 10_000_000_000


class MessageParser(Protocol):
    """Makes messages of the bytes of a log with timestamps, however they were cut."""

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that are whole with the next bytes."""
        ...

    def rest(self) -> list[Message]:
        """Return the rest at the end of the log."""
        ...


class FramedLog:
    """The log of a container without a terminal: frames that name the stream, one for each message."""

    def __init__(self) -> None:
        self._rest = b""
        self._clock = LogClock()

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that are whole with the next bytes.

        Raises:
            SchedulerError: the engine says that it cannot go on.
        """
        if self._rest:
            data = self._rest + data
        messages = []
        at, size = 0, len(data)
        read = self._clock.read
        unpack = _HEADER.unpack_from
        while at + 8 <= size:
            kind, length = unpack(data, at)
            text = at + 8
            stop = text + length
            if length > _LONGEST_FRAME:
                raise SchedulerError(f"the engine sent a message of {length:,} bytes: the log is not read further")
            if stop > size:
                break
            nanoseconds, start = read(data, text)
            if kind not in _STREAMS:
                raise SchedulerError(f"the engine cannot read the log: {_one_line(data[text:stop])}")
            messages.append(Message(_STREAMS[kind], nanoseconds, data[start:stop]))
            at = stop
        self._rest = data[at:]
        return messages

    def rest(self) -> list[Message]:
        """Return nothing: a frame is whole or was never logged."""
        return []


def _one_line(data: bytes) -> str:
    return " ".join(data.decode("utf-8", "replace").split())


class _ContainerRun(NamedTuple):
    """One of the times that a container was started."""

    started: int
    """When the engine had started it, which may be some moments after its first line."""
    began: int
    """A time after the lines of the run before and before the lines of this one."""
    has_earlier_before: int
    """A line that was logged before this time is one of an earlier run."""
    restarts: int


class DockerLogStream:
    """The records of one replica until its container has ended for good.

    A container that is started again goes on in the same log; a record says so.

    Args:
        engine: the engine.
        app_id: the app.
        role: the role's name.
        k: the replica's number in the role.
        stream: which output.
        cursor: where to go on.
        since: without a cursor, only lines from this time on, in nanoseconds since the epoch.
        follow: wait for more; else end at the present end.
        says_restarts: add records of ours.
        together: lines of one stream that were printed within so many nanoseconds may be one record.
    """

    def __init__(
        self,
        engine: Engine,
        app_id: str,
        role: str,
        k: int,
        stream: Stream = Stream.COMBINED,
        cursor: TimeCursor | None = None,
        *,
        since: int | None = None,
        follow: bool = True,
        says_restarts: bool = True,
        together: int = TOGETHER_NS,
    ) -> None:
        self._engine = engine
        self._names = (app_id, role, k)
        self._stream = stream
        self._since = since
        self._follow = follow
        self._says_restarts = says_restarts
        self._together = together
        self._place = LogPlace(cursor)
        self._container = ""
        self._client: docker.DockerClient | None = None
        self._answer: StreamingResponse | None = None
        self._parser: MessageParser = FramedLog()
        self._was_over = False
        self._started = _NEVER
        self._unsaid: _ContainerRun | None = None
        self._records: deque[tuple[Record, TimeCursor | None]] = deque()
        self._cursor = cursor
        self._waits = LookWaits()
        self._stop = threading.Event()
        self._reading = threading.Lock()
        self.is_complete = False
        """Whether the container has ended for good, and all of its log was read."""

    @property
    def cursor(self) -> TimeCursor | None:
        """The place after the last record."""
        return self._cursor

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        """Return the next record.

        Raises:
            LogUnreadableError: the container's log driver keeps nothing that can be read.
            JobNotFoundError, ValueError: there is no such app, role or replica.
            SchedulerError: the container was removed, or the engine went away.
        """
        while not self._records:
            if self._stop.is_set() or self.is_complete:
                raise StopIteration
            with self._reading:
                self._fill_or_release()
        if self._stop.is_set():
            raise StopIteration
        record, cursor = self._records.popleft()
        self._cursor = cursor or self._cursor
        return record

    def close(self) -> None:
        """End the iteration at once, a blocked read too; may be called again, from any thread."""
        self._stop.set()
        answer = self._answer
        if answer is not None:
            answer.shut()
        # Whoever reads now releases what it holds.
        if self._reading.acquire(blocking=False):
            try:
                self._release()
            finally:
                self._reading.release()

    def _fill_or_release(self) -> None:
        try:
            self._fill()
        except Exception as error:
            self._release()
            if self._stop.is_set():
                return
            if isinstance(error, (SchedulerError, ValueError)):
                raise
            with self._engine.translate_errors(self._names[0]):
                raise
        if self.is_complete or self._stop.is_set():
            self._release()

    def _fill(self) -> None:
        """Read once; connect first where that is needed."""
        if self._answer is None:
            self._connect()
            return
        data = self._answer.read()
        if data:
            self._waits = LookWaits()
            self._take(self._parser.feed(data))
            return
        self._take(self._parser.rest())
        self._answer.close()
        self._answer = None
        if not self._stop.is_set():
            self._look_on()

    # The engine

    def _connect(self) -> None:
        import docker.errors

        if self._client is None:
            self._client = self._engine.new_client(None)
        if not self._container:
            self._container = find_replica(self._engine, *self._names)["Id"]
        inspected = self._inspect(self._client)
        self._was_over = inspected["State"]["Status"] in _OVER
        self._notice(_run_of(inspected))
        self._parser = StampedLines("o") if inspected["Config"].get("Tty") else FramedLog()
        try:
            answer = ask(self._client, "GET", f"/containers/{self._container}/logs", self._params())
        except docker.errors.APIError as error:
            raise self._refusal(error, inspected) from error
        self._answer = answer
        if self._stop.is_set():
            answer.shut()

    def _params(self) -> dict[str, Any]:
        params: dict[str, Any] = {
            "follow": int(self._follow),
            "stdout": int(self._stream is not Stream.STDERR),
            "stderr": int(self._stream is not Stream.STDOUT),
            "timestamps": 1,
        }
        # What is asked for again is passed over.
        cursor = self._place.cursor
        since = cursor.nanoseconds if cursor else self._since
        if since:
            params["since"] = f"{since // 10**9}.{since % 10**9:09d}"
        if cursor is not None:
            self._place = LogPlace(cursor)
        return params

    def _inspect(self, client: docker.DockerClient) -> dict[str, Any]:
        import docker.errors

        try:
            return client.api.inspect_container(self._container)
        except docker.errors.NotFound as error:
            app_id, role, k = self._names
            raise SchedulerError(
                f"the container of {role}/{k} of {app_id} was removed, and its log with it: nothing more can be read"
            ) from error

    def _refusal(self, error: docker.errors.APIError, inspected: dict[str, Any]) -> Exception:
        """Translate an engine's refusal to give a log."""
        driver = inspected["HostConfig"].get("LogConfig", {}).get("Type", "")
        if "does not support reading" not in str(error) and driver != "none":
            return error
        return LogUnreadableError(
            f"the container's log driver is {driver}, which keeps nothing that can be read back: "
            "set one that does, such as json-file or local, in the engine's settings (log-driver)"
        )

    def _look_on(self) -> None:
        """At the end of an answer, decide whether more can come, and wait before asking again."""
        if not self._follow or self._was_over:
            self.is_complete = True
            return
        assert self._client is not None
        inspected = self._inspect(self._client)
        # Where lines came faster than they were read, an engine leaves out the last ones when the container ends:
        # only what was asked for after that is complete.
        is_over = inspected["State"]["Status"] in _OVER
        if is_over or _run_of(inspected).started != self._started:
            return
        self._stop.wait(self._waits.next())

    def _release(self) -> None:
        answer, self._answer = self._answer, None
        client, self._client = self._client, None
        if answer is not None:
            answer.close()
        if client is not None:
            client.close()

    # Records

    def _notice(self, run: _ContainerRun) -> None:
        """Note a restart, to be said at its place in the log; of one that is seen to happen, now."""
        before, self._started = self._started, run.started
        if not self._says_restarts or run.started in (_NEVER, before):
            return
        if before != _NEVER:
            self._records.append((self._restart_record(run), None))
        elif self._cursor.nanoseconds < run.has_earlier_before if self._cursor else run.restarts:
            self._unsaid = run

    def _restart_record(self, run: _ContainerRun) -> Record:
        _, role, k = self._names
        which = f" (restart {run.restarts})" if run.restarts else ""
        text = f"-- {role}/{k} was restarted{which}: its log continues --\n"
        return Record(text.encode(), run.started / 1e9, "c")

    def _take(self, messages: list[Message]) -> None:
        announce = self._announce_restart if self._unsaid is not None else None
        self._records += join_messages(messages, self._place, self._together, announce)

    def _announce_restart(self, nanoseconds: int) -> Record | None:
        """Say before the first message of a run that it began, unless that message was seen before."""
        run = self._unsaid
        if run is None or nanoseconds < run.began:
            return None
        self._unsaid = None
        return None if self._place.left else self._restart_record(run)


def _run_of(inspected: dict[str, Any]) -> _ContainerRun:
    """Return which run a container is in, or was in last; `_NEVER` as its start where it had none."""
    started = _time_of(inspected["State"].get("StartedAt"))
    # Of a container that runs, the end of the run before; of one that has ended, its own.
    finished = _time_of(inspected["State"].get("FinishedAt"))
    restarts = int(inspected.get("RestartCount") or 0)
    if _NEVER < finished < started:
        # What the run before had printed may be logged a little after its end.
        began = min(started, finished + max(_REST_NS, (started - finished) // 4))
        return _ContainerRun(started, began, began, restarts)
    began = max(_NEVER, started - _REST_NS)
    return _ContainerRun(started, began, began if restarts else max(_NEVER, started - _LATE_NOTE_NS), restarts)


def _time_of(text: str | None) -> int:
    return _NEVER if not text or text.startswith("0001-") else nanoseconds_of(text)
