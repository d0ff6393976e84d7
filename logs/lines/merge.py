"""The logs of all replicas of a job as one list of lines, ordered by time."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from ..source.job_files import JobFiles
from ..source.log_file import Readable
from ..source.replica_log import PollResult, ReplicaLog, StreamName
from ..source.segment import BLOCK, LogSegment
from ..text.shown import LINE_CAP, cap_line
from .line_index import LineIndex, LineSlice

ARRIVAL_WINDOW = 0.2
"""The most seconds between two polls of followed files.

Lines that arrived between two polls are sorted by time, and appended to the earlier ones. So a wrong clock moves a
replica's lines among those of the others by no more than this, and never among themselves.
"""
# Seconds during which the same notice of many replicas is added once.
_REPEAT_NOTICE_S = 10.0
_LINE_IS_GONE = b"[this line is no longer in the file]"


class LogLine(NamedTuple):
    """One line.

    Attributes:
        number: the line's number, which never changes; see `line_index`.
        replica: which of the logs it is from; -1 for a notice of ours.
        time: when it was written (seconds since the epoch), None if not known.
        stream: ``o`` stdout, ``e`` stderr, ``c`` either, ``n`` a notice of ours.
        data: its bytes without the line feed, as printed; at most the cap.
        omitted: bytes at its end that are not in ``data``.
    """

    number: int
    replica: int
    time: float | None
    stream: str
    data: bytes
    omitted: int


class Bounds(NamedTuple):
    """The range of the known lines.

    Attributes:
        first: the number of the first one.
        end: the number after the last one.
        complete: whether all older lines are indexed.
        gone: how many lines before the first one were known and then dropped.
    """

    first: int
    end: int
    complete: bool
    gone: int = 0


class MergedLog(JobFiles):
    """One or more replicas' logs as one.

    Lines that exist at opening are sorted by time; later ones by arrival, and by time within `ARRIVAL_WINDOW`. The
    lines of one replica keep their order whatever their times are. `open`, `read_older` and `poll` are called in one
    thread; the other methods may be called from any.

    Args:
        logs: the replicas' logs.
        stream: which stream is wanted.
        since: leave out earlier lines (s since the epoch); lines without a time stay.
    """

    def __init__(
        self, logs: Sequence[ReplicaLog], stream: StreamName = "combined", *, since: float | None = None
    ) -> None:
        super().__init__(logs, stream)
        self.since = since
        self.index = LineIndex()
        self._complete = False
        self.opened = False
        self._older: Iterator[LogSegment] = iter(())
        self._said: dict[str, float] = {}
        self._told_gone = False

    @property
    def caught_up(self) -> bool:
        """Whether the existing lines have probably arrived: those that are there at `open` are sorted by time."""
        return len(self.logs) == 1 or super().caught_up

    def open(self) -> None:
        """Start at the end of all files."""
        self.opened = True
        since = -math.inf if self.since is None else self.since
        older = []
        for number, reader in enumerate(self.readers()):
            older += [_keyed(segments, number, since) for segments in reader.open()]
        # The list grows backwards: of two at the same time the later replica's, or file's, comes first.
        latest_first = heapq.merge(*reversed(older), key=itemgetter(0, 1), reverse=True)
        self._older = (segment for _, _, segment in latest_first)

    def read_older(self, seconds: float, lines: float = math.inf) -> bool:
        """Index older lines for at most about ``seconds``, or until there are ``lines`` more.

        Returns:
            whether there are more.
        """
        deadline = time.monotonic() + seconds
        segments: list[LogSegment] = []
        while lines > 0 and time.monotonic() < deadline:
            segment = next(self._older, None)
            if segment is None:
                self.index.prepend(segments)
                self._complete = True
                return False
            segments.append(segment)
            lines -= segment.lines
            if segment.stream == "n":
                # Lines of this replica are missing here: older ones would stand beside a gap.
                self._older = iter(())
        self.index.prepend(segments)
        return True

    def poll(self) -> tuple[bool, bool]:
        """Read what was added.

        Returns:
            whether anything changed, and whether there is more to read at once.
        """
        since = -math.inf if self.since is None else self.since
        fresh: list[tuple[float, LogSegment]] = []
        changed = more = False
        for reader in self.readers():
            polled = reader.poll()
            changed = self._drop(polled) or changed
            fresh += _timed(polled.fresh, since)
            fresh += [(math.inf, self.notice(note)) for note in polled.notes if self._is_news(note)]
            more = more or polled.more
            for segment in polled.grown:
                self.index.grow(segment)
                changed = True
        if len(self.logs) > 1:
            fresh.sort(key=itemgetter(0))
        if fresh:
            self.index.append(segment for _, segment in fresh)
        return changed or bool(fresh), more

    def drop_before(self, line: int) -> None:
        """Drop the whole segments before ``line``; called in the reading thread."""
        self.index.drop_before(line)
        # Older lines would stand beside a gap.
        self._older = iter(())

    @property
    def fully_read(self) -> bool:
        """Whether every byte of the replicas' own files, or streams, is read."""
        return all(reader.fully_read for reader in self._readers)

    @property
    def reports_end(self) -> bool:
        """Whether the end of each log will be known, however long it takes; it never is for files."""
        return any(log.spool is not None for log in self.logs)

    def bounds(self) -> Bounds:
        """Return the range of the known lines."""
        complete = self._complete
        return Bounds(*self.index.bounds(), complete, self.index.gone)

    def line_at(self, time: float) -> int | None:
        """Return the number of the first known line of ``time`` (s since the epoch) or later.

        Returns:
            the number after the last line if all are earlier; None if no known line has a time.
        """
        return self.index.line_at(time)

    def lines(self, first: int, count: int, cap: int = LINE_CAP) -> list[LogLine]:
        """Read lines.

        Args:
            first: the number of the first one.
            count: how many; unknown lines are left out.
            cap: the most bytes to return of one line.
        """
        result: list[LogLine] = []
        number, slices = self.index.slices(first, count)
        for line_slice in slices:
            file = self._files[line_slice.file]
            for data, omitted in read_lines(file, line_slice, cap):
                result.append(
                    LogLine(
                        number, self._replica_of[line_slice.file], line_slice.time, line_slice.stream, data, omitted
                    )
                )
                number += 1
        return result

    def _drop(self, polled: PollResult) -> bool:
        """Drop the dropped files of a replica, and all older lines; return whether there were any."""
        before = self.index.gone
        for file in polled.dropped:
            if self.index.drop_file(file):
                self._older = iter(())
        if polled.skipped:
            self.drop_before(self.index.bounds()[1])
        if self.index.gone == before and not polled.skipped:
            return False
        if not self._told_gone:
            self._told_gone = True
            self.index.append([self.notice(f"older lines are being discarded: {polled.why_dropped}")])
        return True

    def _is_news(self, sentence: str) -> bool:
        now = time.monotonic()
        if now - self._said.get(sentence, -math.inf) < _REPEAT_NOTICE_S:
            return False
        self._said[sentence] = now
        return True


def read_lines(file: Readable, line_slice: LineSlice, cap: int) -> list[tuple[bytes, int]]:
    """Read the lines of a slice, each with the number of bytes that were left out at its end."""
    data = file.read(line_slice.start, min(line_slice.end - line_slice.start, BLOCK))
    wanted = line_slice.skip + line_slice.take
    parts = data.split(b"\n", wanted)
    lines: list[tuple[bytes, int]] = []
    for part in parts[line_slice.skip : wanted]:
        lines.append(cap_line(part, cap))
    if len(parts) <= wanted and line_slice.skip < len(parts) and line_slice.end - line_slice.start > len(data):
        at = line_slice.start + len(data) - len(parts[-1])
        lines[-1] = _long_line(file, at, line_slice.end - at, cap)
    missing = line_slice.take - len(lines)
    return lines + [(_LINE_IS_GONE, 0)] * missing if data else [(_LINE_IS_GONE, 0)] * line_slice.take


def _long_line(file: Readable, start: int, length: int, cap: int) -> tuple[bytes, int]:
    """Read a line that goes beyond its segment's first block."""
    size = min(length, cap + 2)
    tail = file.read(start + length - size, size)
    line = tail.rstrip(b"\r\n")
    if size == length or b"\r" in line[-cap:]:
        return cap_line(line, cap)
    return file.read(start, cap), length - tail.endswith(b"\n") - cap


def _keyed(segments: Iterator[LogSegment], replica: int, since: float) -> Iterator[tuple[float, int, LogSegment]]:
    """Pair segments, the latest first, with keys to merge by that never rise; stop at one before ``since``."""
    key = math.inf
    for segment in segments:
        # A segment without a time was written not long before the next one.
        if segment.time is not None or math.isinf(key):
            key = min(key, segment.order)
        if key < since and segment.time is not None:
            return
        yield key, replica, segment


def _timed(segments: list[LogSegment], since: float) -> Iterator[tuple[float, LogSegment]]:
    """Pair a replica's new segments with keys to sort by that never fall; leave out those before ``since``."""
    key = -math.inf
    for segment in segments:
        key = max(key, math.inf if segment.time is None else segment.time)
        if key >= since:
            yield key, segment
