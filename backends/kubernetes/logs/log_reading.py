"""What the logs of one replica's containers share: whom they ask, what is wanted, and how all are ended at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ....logs.source.stream import Part, Record
from ....specs import BackendUnavailableError, SchedulerError
from ..api_server import unavailable_words
from .replica_pods import Look, replica_pods

if TYPE_CHECKING:
    from ...shared.streaming_response import LongAnswer
    from ..api_server import ApiServer


class Item(NamedTuple):
    """A record of a log.

    Attributes:
        record: the record.
        part: the place after it; None of words of ours.
    """

    record: Record
    part: Part | None


@dataclass
class LogReading:
    """One reading of one replica's log.

    Args:
        server: the server.
        app_id: the app.
        name: the replica's, such as ``trainer/0``.
        parts: where to go on, by the names of the parts.
        tail: without a place to go on at, only so many of the lines that are there.
        since: without a place to go on at, only lines from this time on, in nanoseconds since the epoch.
        follow: wait for more; else end at the present end.
        says: add words of ours, such as of a restart.
        together: lines that were printed within so many nanoseconds may be one record.
        within_line: whether what was read last ends within a line.
    """

    server: ApiServer
    app_id: str
    name: str
    parts: Mapping[str, Part]
    tail: int | None
    since: int | None
    follow: bool
    says: bool
    together: int
    within_line: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _answers: set[LongAnswer] = field(default_factory=set)

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more is wanted."""
        return self._stop.is_set()

    def stop(self) -> None:
        """End every answer at once; may be called from any thread."""
        self._stop.set()
        with self._lock:
            for answer in self._answers:
                answer.shut()

    def wait(self, seconds: float) -> None:
        """Wait, but not beyond `stop`."""
        self._stop.wait(seconds)

    def look(self, not_before: float | None = None) -> Look:
        """Return the job and its pods as they are now, or were at a time; see `ReplicaPods.look`."""
        when = time.monotonic() if not_before is None else not_before
        return replica_pods(self.server).look(self.server, self.app_id, when)

    @contextmanager
    def opened(self, path: str, params: Mapping[str, Any]) -> Iterator[LongAnswer]:
        """Give an answer that `stop` ends.

        Raises:
            SchedulerError: the server refused, or went away.
        """
        answer = self.server.open(path, params, accept="*/*")
        with self._lock:
            self._answers.add(answer)
        try:
            if self.is_stopped:
                answer.shut()
            yield answer
        except SchedulerError:
            raise
        except Exception as error:  # whatever the socket and TLS raise
            reason = unavailable_words(error, self.server.host, self.server.context)
            raise BackendUnavailableError(reason) from error
        finally:
            with self._lock:
                self._answers.discard(answer)
            answer.close()

    def own_record(self, text: str, nanoseconds: int | None = None) -> Item:
        """Return a record of ours about the replica."""
        at = time.time() if nanoseconds is None else nanoseconds / 1e9
        # A node that drops a log may leave half a line: words of ours begin on one of their own.
        before, self.within_line = "\n" if self.within_line else "", False
        return Item(Record(f"{before}-- {self.name} {text} --\n".encode(), at, "c"), None)
