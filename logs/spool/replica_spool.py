"""The content of one replica's stream, in segment files of which the oldest can be dropped."""

from __future__ import annotations

import math
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.files import private_folder
from .spool_file import SpoolSegment

if TYPE_CHECKING:
    from ..source.stream import Cursor, Record

MIN_SEGMENT_SIZE = 262_144
"""A segment is finished at a quarter of its replica's size, but at least at this size (bytes)."""
# How long a line without its end is held (s), so that the other stream's lines do not split it.
HOLD_PARTIAL_LINE_S = 1.0
CAUGHT_UP_AFTER_S = 0.3
"""A stream that has been quiet for so long (s) has sent the lines that existed when it began."""
QUIET_S = 1.5
"""A stream that is quiet for so long (s), including the time to connect, has nothing more for now."""
# Notices that are stored for readers.
_MAX_NOTICES = 1000


class ReplicaSpool:
    """The segments of one replica. One thread at a time adds to it; any may read, and drop the oldest segment.

    Args:
        folder: the folder of the segments.
        name: the replica as it is shown, such as ``trainer/3``.
        largest: bytes at which a segment is finished at the latest.
    """

    def __init__(self, folder: Path, name: str, largest: int) -> None:
        self.folder = folder
        self.name = name
        self.cursor: Cursor | None = None
        """Where the stream is resumed."""
        self.ended = False
        """Whether the log has ended and is complete."""
        self.first = 0
        """The number of the oldest segment, or of the first one to be made."""
        self.dropped_lines = 0
        """How many lines were dropped."""
        self.dropped_until = -math.inf
        """The latest time of a dropped line (seconds since the epoch)."""
        self.why_dropped = ""
        """Why the last segment was dropped, in words."""
        self.trouble = ""
        """Why nothing is added now, as a sentence; it is among the notices too."""
        self.notices: list[str] = []
        """Notices to show among the lines, in order."""
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
        """List the segments, the oldest first."""
        with self._lock:
            return list(self._segments)

    def at_or_after(self, number: int) -> SpoolSegment | None:
        """Return the oldest segment from a number on."""
        with self._lock:
            return next((segment for segment in self._segments if segment.number >= number), None)

    @property
    def caught_up(self) -> bool:
        """Whether the lines that existed when the stream began have probably arrived."""
        return not self._is_new or self.ended or time.monotonic() - self._writing_at > CAUGHT_UP_AFTER_S

    def has_all_until(self, when: float) -> bool:
        """Tell whether all lines until a time (seconds since the epoch) have probably arrived, or never will."""
        if self.ended or self.trouble or self._latest >= when:
            return True
        return time.monotonic() - self._writing_at > QUIET_S

    def begin(self, writer: object) -> None:
        """Make a writer the only one that may add records from now on."""
        with self._lock:
            self._writer = writer
            self._writing_at = time.monotonic()
            self.ended, self.trouble = False, ""

    def leave(self, writer: object) -> None:
        """Accept nothing more from a writer; another one may have begun."""
        with self._lock:
            if self._writer is writer:
                self._writer = None

    def take(self, record: Record, cursor: Cursor | None, writer: object) -> None:
        """Add a record, and set the cursor after it; ignore a caller that is not the writer.

        Lines that are not whole are held for `HOLD_PARTIAL_LINE_S`.

        Raises:
            OSError: the record could not be written; the call can be repeated.
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
        """Add the lines that were held for long enough; restore files that somebody has removed.

        It is called regularly, and does nothing while a writer is at work.

        Raises:
            OSError: nothing can be written.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._flush(HOLD_PARTIAL_LINE_S)
            # A removed file can be read, and copied, while it is open.
            current = self._segments[-1] if self._segments else None
            if self._writer is not None and current is not None and not current.finished and current.is_removed:
                self._restore()
        finally:
            self._lock.release()

    def add_notice(self, sentence: str) -> None:
        """Add a notice to show among the lines."""
        if len(self.notices) < _MAX_NOTICES:
            self.notices.append(sentence)

    def report_trouble(self, sentence: str) -> None:
        """Add a notice why nothing is added, for present readers and for those that begin while it lasts."""
        self.trouble = sentence
        self.add_notice(sentence)

    @property
    def can_drop(self) -> bool:
        """Whether the oldest segment is finished."""
        segments = self._segments
        return bool(segments) and segments[0].finished

    def drop_oldest(self, why: str) -> bool:
        """Remove the oldest segment, if it is finished.

        Returns:
            whether it was removed.
        """
        with self._lock:
            if not self.can_drop:
                return False
            self._drop(self._segments[0], why)
            return True

    def finish_current(self) -> None:
        """Finish the current segment; the next record begins another one."""
        with self._lock:
            if self._segments and not self._segments[-1].finished:
                self._finish()

    def release(self) -> None:
        """Close the files until they are read again."""
        for segment in self.segments():
            segment.release()

    def close(self) -> None:
        """Accept nothing more, and close the files; the owner of the folder removes it."""
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
            # A removed file can be read, and copied, while it is open.
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
        full = min(self._largest, max(MIN_SEGMENT_SIZE, self.size // 4))
        # A line without an end is split eventually: it may be a progress bar that never ends.
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
        """Make the folder again that somebody removed, with the content that is still open."""
        *finished, current = self._segments
        private_folder(self.folder)
        current.restore()
        lost = [segment for segment in finished if segment.is_removed]
        what = f"{self.name}: {os.fspath(self.folder)} was removed while it was in use and is made again"
        self.add_notice(
            f"{what}: its oldest lines are gone, nothing that comes is lost" if lost else f"{what}: no line is lost"
        )
        if lost:
            for segment in finished[: finished.index(lost[-1]) + 1]:
                self._drop(segment, f"{os.fspath(self.folder)} was removed")
