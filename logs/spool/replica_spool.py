"""What came of one replica's stream, in segment files of which the oldest can be dropped."""

from __future__ import annotations

import math
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ...specs.files import private_folder
from .spool_file import SpoolSegment

if TYPE_CHECKING:
    from ..source.stream import Cursor, Record

# A segment is finished at a quarter of what its replica has, at this at least (bytes).
_SMALLEST = 262_144
# How long a line without its end waits for more (s), so that the other stream's lines do not cut it in two.
HOLD_SECONDS = 1.0
# A stream that has been quiet for so long (s) has given what was there when it began.
_CAUGHT_UP_AFTER = 0.3
# A stream that is quiet for so long (s), the time to connect included, has nothing more for now.
_QUIET = 1.5
# Remarks that are kept for whoever reads.
_MOST_NOTICES = 1000


class ReplicaSpool:
    """The segments of one replica. One thread at a time adds to it; any may read, and drop the oldest segment.

    Args:
        folder: where the segments are.
        name: the replica in words, such as ``trainer/3``.
        largest: bytes at which a segment is finished at the latest.
    """

    def __init__(self, folder: Path, name: str, largest: int) -> None:
        self.folder = folder
        self.name = name
        self.cursor: Cursor | None = None
        """Where the stream is taken up again."""
        self.ended = False
        """Whether the log has ended and is all here."""
        self.first = 0
        """The number of the oldest segment that is there, or of the first to come."""
        self.dropped_lines = 0
        """How many lines were dropped."""
        self.dropped_until = -math.inf
        """The latest time of a dropped line (seconds since the epoch)."""
        self.why_dropped = ""
        """Why the last segment was dropped, in words."""
        self.trouble = ""
        """Why nothing comes at present, as a sentence; said when it began."""
        self.notices: list[str] = []
        """What was to be said of the log, in order."""
        self._largest = largest
        self._lock = threading.Lock()
        self._segments: list[SpoolSegment] = []
        self._size_of_finished = 0
        self._held: dict[str, tuple[float | None, bytes, float]] = {}
        self._writer: object = None
        self._writing_at = math.inf
        self._latest = -math.inf
        self._is_new = True

    @property
    def size(self) -> int:
        """The bytes that the segments take on the disk."""
        segments = self._segments
        return self._size_of_finished + (segments[-1].size if segments and not segments[-1].finished else 0)

    def segments(self) -> list[SpoolSegment]:
        """Return the segments that are there, the oldest first."""
        with self._lock:
            return list(self._segments)

    def at_or_after(self, number: int) -> SpoolSegment | None:
        """Return the oldest segment from a number on."""
        with self._lock:
            return next((segment for segment in self._segments if segment.number >= number), None)

    @property
    def caught_up(self) -> bool:
        """Whether the lines that were there when the stream began have probably come."""
        return not self._is_new or self.ended or time.monotonic() - self._writing_at > _CAUGHT_UP_AFTER

    def has_all_until(self, when: float) -> bool:
        """Tell whether what was printed until a time, in seconds since the epoch, has probably come, or will not."""
        if self.ended or self.trouble or self._latest >= when:
            return True
        return time.monotonic() - self._writing_at > _QUIET

    def begin(self, writer: object) -> None:
        """Let a writer be the one that may add from now on."""
        with self._lock:
            self._writer = writer
            self._writing_at = time.monotonic()
            self.ended, self.trouble = False, ""

    def leave(self, writer: object) -> None:
        """Take nothing from a writer any more; another one may have begun."""
        with self._lock:
            if self._writer is writer:
                self._writer = None

    def take(self, record: Record, cursor: Cursor | None, writer: object) -> None:
        """Add a record, and note where the stream goes on after it; nothing of one that is not the writer.

        Lines that are not whole wait for `HOLD_SECONDS`.

        Raises:
            OSError: the record could not be written; it can be given again.
        """
        with self._lock:
            if writer is not self._writer:
                return
            at, rest, since = self._held.get(record.stream, (record.time, b"", time.monotonic()))
            data = rest + record.data if rest else record.data
            whole = data.rfind(b"\n") + 1
            if whole:
                self._append(data[:whole] if whole < len(data) else data, at, record.stream)
                at, since = record.time, time.monotonic()
            if whole < len(data):
                self._held[record.stream] = (at, data[whole:], since)
            else:
                self._held.pop(record.stream, None)
            self.cursor = cursor
            self._writing_at = time.monotonic()
            if record.time is not None:
                self._latest = max(self._latest, record.time)
            if record.time is not None and record.time > time.time() - 1:
                self._is_new = False

    def flush(self) -> None:
        """Add the lines that are not whole.

        Raises:
            OSError: they could not be written.
        """
        with self._lock:
            self._flush(0.0)

    def tend(self) -> None:
        """Add the lines that were not whole for long; make the files again that somebody has removed.

        It is called now and then, and leaves all to a writer that is at work.

        Raises:
            OSError: nothing can be written.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._flush(HOLD_SECONDS)
            # What was written since can be read, and copied, while the files are open.
            current = self._segments[-1] if self._segments else None
            if self._writer is not None and current is not None and not current.finished and current.is_removed:
                self._restore()
        finally:
            self._lock.release()

    def say(self, sentence: str) -> None:
        """Have something said among the lines."""
        if len(self.notices) < _MOST_NOTICES:
            self.notices.append(sentence)

    def say_trouble(self, sentence: str) -> None:
        """Have said why nothing comes, now and to whoever begins to read while that holds."""
        self.trouble = sentence
        self.say(sentence)

    @property
    def can_drop(self) -> bool:
        """Whether there is a segment that nothing comes to any more."""
        segments = self._segments
        return bool(segments) and segments[0].finished

    def drop_oldest(self, why: str) -> bool:
        """Remove the oldest segment, unless it is the one that is written.

        Returns:
            whether it was removed.
        """
        with self._lock:
            if not self.can_drop:
                return False
            self._drop(self._segments[0], why)
            return True

    def finish_current(self) -> None:
        """Begin another segment with what comes next."""
        with self._lock:
            if self._segments and not self._segments[-1].finished:
                self._finish()

    def release(self) -> None:
        """Close the files until they are read again."""
        for segment in self.segments():
            segment.release()

    def close(self) -> None:
        """Take nothing any more, and close the files; whoever owns the folder removes it."""
        with self._lock:
            self._writer = None
            for segment in self._segments:
                if not segment.finished:
                    segment.finish()
                segment.release()

    def _append(self, data: bytes, at: float | None, stream: str) -> None:
        segments = self._segments
        if segments and not segments[-1].finished:
            full = self._is_full(segments[-1])
            # What was written since it was removed can be read while it is open.
            if full and segments[-1].is_removed:
                self._restore()
            if full:
                self._finish()
        if not segments or segments[-1].finished:
            number = segments[-1].number + 1 if segments else self.first
            private_folder(self.folder)
            segments.append(SpoolSegment(self.folder, number))
        segments[-1].append(data, at, stream)

    def _flush(self, older_than: float) -> None:
        for stream, (at, data, since) in tuple(self._held.items()):
            if self._writer is not None and time.monotonic() - since >= older_than:
                self._append(data, at, stream)
                del self._held[stream]

    def _is_full(self, segment: SpoolSegment) -> bool:
        full = min(self._largest, max(_SMALLEST, self.size // 4))
        # A line that does not end is cut in the end: it may be a progress bar that never does.
        return segment.data.size >= (full if segment.is_whole else 2 * full)

    def _finish(self) -> None:
        segment = self._segments[-1]
        segment.finish()
        self._size_of_finished += segment.size

    def _drop(self, segment: SpoolSegment, why: str) -> None:
        self._segments.remove(segment)
        self._size_of_finished -= segment.size
        self.dropped_lines += segment.lines
        self.dropped_until = max(self.dropped_until, segment.latest)
        self.why_dropped = why
        self.first = segment.number + 1
        segment.drop()

    def _restore(self) -> None:
        """Make the folder again that somebody removed, with what is still open of it."""
        *finished, current = self._segments
        private_folder(self.folder)
        current.restore()
        lost = [segment for segment in finished if segment.is_removed]
        what = f"{self.name}: {os.fspath(self.folder)} was removed while it was in use and is made again"
        self.say(
            f"{what}: its oldest lines are gone, nothing that comes is lost" if lost else f"{what}: no line is lost"
        )
        if lost:
            for segment in finished[: finished.index(lost[-1]) + 1]:
                self._drop(segment, f"{os.fspath(self.folder)} was removed")
