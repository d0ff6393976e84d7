"""The lines of a log that match rules, for searches and filters."""

from __future__ import annotations

import math
import threading
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from ..pattern.pattern import Pattern
from ..source.segment import BLOCK, SegmentKey
from ..text.shown import LINE_CAP, is_plain, shown_block
from .line_index import IndexRow
from .merge import Bounds, LogLine, MergedLog

# Bytes that are read and searched at once, and between two looks at the clock.
_RUN_SIZE = 4 * BLOCK
_STEP_SIZE = 8 * BLOCK
# Matching lines that are no further apart than this are read together with the lines between them.
_MAX_GAP = 32
# Bits of an offset in the shown text of a segment, where a tab takes up to 8 bytes.
_OFFSET_BITS = 24
_OFFSET = (1 << _OFFSET_BITS) - 1
# Segments whose shown text is kept while a page is put together.
_CACHED_SEGMENTS = 16
# The most time in one poll for new lines (s).
_POLL_LIMIT_S = 0.02


class Rule(NamedTuple):
    """One filter: lines with the pattern are kept (and no others), or dropped."""

    pattern: Pattern
    keep: bool = True


class _Side:
    """The matching lines on one side of line 0, counted outward.

    Attributes:
        places: where they are (see `Matches`), without their sign, rising.
        gone: how many were found and then dropped.
        next: the number of the next segment to search.
    """

    def __init__(self) -> None:
        self.places = array("q")
        self.gone = 0
        self.next = 0


class Matches:
    """The matching lines of a log, found as it grows; it can be shown in place of the log.

    Its lines have positions without gaps: 0 is the first matching line from the log's line 0 on. A position changes
    only if an unfinished line among others grows and then matches, or no longer does.

    A line takes 8 bytes, for its place: the number of its segment's first line, and its offset in the segment's shown
    text. Its own number is counted when it is needed: counting lines takes five times as long as finding a text.

    One thread calls `step`, `find`, `rank`, `open`, `read_older` and `poll`; the other methods may be called from any.

    Args:
        log: the log; it may be open already.
        rules: which lines match; without rules, all do.
    """

    def __init__(self, log: MergedLog, rules: Sequence[Rule]) -> None:
        self.log = log
        self.rules = tuple(rules)
        self._lock = threading.Lock()
        self._older, self._newer = _Side(), _Side()
        # The last searched segment of each file, and its end then: its last line may grow.
        self._tails: dict[int, tuple[SegmentKey, int]] = {}
        self._cached_text = lru_cache(_CACHED_SEGMENTS)(lambda row: self._shown([row])[0])

    @property
    def count(self) -> int:
        """The number of known matching lines."""
        return len(self._older.places) + len(self._newer.places)

    @property
    def complete(self) -> bool:
        """Whether every known line of the log was searched."""
        return self.log.index.sizes() == (self._older.next, self._newer.next)

    def bounds(self) -> Bounds:
        """Return the positions of the first known matching line and after the last one."""
        complete = self.log.bounds().complete and self.complete
        with self._lock:
            first, end = self._newer.gone - len(self._older.places), self._newer.gone + len(self._newer.places)
            return Bounds(first, end, complete, self._older.gone + self._newer.gone)

    def original(self, position: int) -> int:
        """Return the number of a matching line in the log.

        Raises:
            IndexError: no matching line has that position.
        """
        line = self._line(self._place(position))
        if line is None:
            raise IndexError(f"no matching line has the position {position}")
        return line

    def position(self, line: int) -> int:
        """Return the position of a line of the log, or of the next matching line; it may be the end of them."""
        start = self._start(line)
        with self._lock:
            before = 0 if start >= 0 else bisect_right(self._older.places, -start)
            return -before or self._newer.gone + bisect_left(self._newer.places, start)

    def rank(self, line: int) -> int | None:
        """Count the known matching lines before a line; None if the line does not match, or is not searched yet."""
        self._catch_up()
        position = self.position(line)
        return position - self.bounds().first if self._place(position) == self._start(line) else None

    def find(self, line: int, forward: bool, stopped: Callable[[], bool] = lambda: False) -> int | None:
        """Find the first matching line from ``line`` on, in a direction; None if no known line matches.

        Lines that `step` has not come to yet are searched from ``line`` on.

        Args:
            line: where to start; it may be the answer.
            forward: search towards higher numbers.
            stopped: whether to give up.
        """
        self._catch_up()
        first, end, *_ = self.log.bounds()
        at = max(line, first) if forward else min(line, end - 1)
        while first <= at < end and not stopped():
            row = self.log.index.row_of(at)
            if row is None:
                # The line was dropped just now.
                return self.find(at, forward, stopped)
            key = row.key
            if key.number < self._side(key.newer).next:
                position = self.position(at if forward else at + 1) - (not forward)
                found = self._line(self._place(position))
                if found is not None:
                    return found
                at = self._searched_end(forward)
                continue
            rows = self.log.index.rows(key, _STEP_SIZE, outward=key.newer == forward)
            start = self._start(at if forward else at + 1)
            places = [place for place in self._search(rows) if (place >= start) == forward]
            if places:
                return self._line(min(places) if forward else max(places))
            at = (rows[-1].stop if forward else rows[-1].first - 1) if rows else at
        return None

    def step(self, seconds: float) -> bool:
        """Search more of the log for at most about ``seconds``; return whether there is more."""
        deadline = time.monotonic() + seconds
        self._catch_up()
        for newer in (True, False):
            side = self._side(newer)
            while rows := self.log.index.rows(SegmentKey(newer, side.next), _STEP_SIZE):
                # The last line before these may have grown until they were added.
                self._catch_up()
                found = array("q", sorted(map(abs, self._search(rows))))
                with self._lock:
                    side.places.extend(found)
                    side.next = max(side.next, rows[-1].key.number + 1)
                for row in rows:
                    if newer or row.file not in self._tails:
                        self._tails[row.file] = row.key, row.end
                if time.monotonic() > deadline:
                    return not self.complete
        return False

    def lines(self, first: int, count: int, cap: int = LINE_CAP) -> list[LogLine]:
        """Read matching lines by their positions; see `MergedLog.lines`."""
        found = [(self._line(self._place(position)), position) for position in range(first, first + count)]
        positions = {number: position for number, position in found if number is not None}
        result: list[LogLine] = []
        for run in _near(list(positions)):
            between = self.log.lines(run.start, len(run), cap)
            result += (line._replace(number=positions[line.number]) for line in between if line.number in positions)
        return result

    def line_at(self, time: float) -> int | None:
        """Return the position of the first matching line of a time or later; see `MergedLog.line_at`."""
        line = self.log.line_at(time)
        return None if line is None else self.position(line)

    def connect(self) -> None:
        """See `MergedLog.connect`."""
        self.log.connect()

    @property
    def caught_up(self) -> bool:
        """See `MergedLog.caught_up`."""
        return self.log.caught_up

    def open(self) -> None:
        """Open the log, unless it is open."""
        if not self.log.opened:
            self.log.open()

    def read_older(self, seconds: float, lines: float = math.inf) -> bool:
        """Index and search older lines for at most about ``seconds``, or until ``lines`` more match.

        Returns:
            whether there are more.
        """
        deadline = time.monotonic() + seconds
        wanted = self.count + lines
        more = True
        while more and self.count < wanted and (left := deadline - time.monotonic()) > 0:
            # Searching a block costs more than indexing it; about 20 lines are indexed to find one that matches.
            indexing = self.log.read_older(left / 4, lines * 20)
            more = self.step(min(left, _POLL_LIMIT_S)) or indexing
        return more

    def poll(self) -> tuple[bool, bool]:
        """Read and search what was added since.

        Returns:
            whether any matching line was added, and whether there is more to read at once.
        """
        before = self.count
        changed, more = self.log.poll()
        rest = self.step(_POLL_LIMIT_S)
        # A matching line that grew changes no position.
        return changed or self.count != before, more or rest

    @property
    def fully_read(self) -> bool:
        """See `MergedLog.fully_read`."""
        return self.log.fully_read

    @property
    def reports_end(self) -> bool:
        """See `MergedLog.reports_end`."""
        return self.log.reports_end

    def close(self) -> None:
        """Release the files; lines can no longer be read."""
        self.log.close()

    def _side(self, newer: bool) -> _Side:
        return self._newer if newer else self._older

    def _place(self, position: int) -> int | None:
        with self._lock:
            newer = position >= 0
            places, at = self._side(newer).places, position - self._newer.gone if newer else -position - 1
            if not 0 <= at < len(places):
                return None
            return places[at] if newer else -places[at]

    def _line(self, place: int | None) -> int | None:
        """Return the number of the line at a place; None if it was dropped."""
        row = None if place is None else self.log.index.row_of(place >> _OFFSET_BITS)
        if place is None or row is None:
            return None
        return row.first + min(self._cached_text(row).count(b"\n", 0, place & _OFFSET), row.lines - 1)

    def _start(self, line: int) -> int:
        """Return the place of a line; of an unknown one, any before or after those of all others."""
        row = self.log.index.row_of(line)
        if row is None or row.first == line:
            return line << _OFFSET_BITS
        text = self._cached_text(row)
        rest = text.split(b"\n", line - row.first)[-1]
        return (row.first << _OFFSET_BITS) + len(text) - len(rest)

    def _searched_end(self, forward: bool) -> int:
        """Return the first line beyond the searched ones, in a direction."""
        row = self.log.index.row(SegmentKey(forward, self._side(forward).next))
        if row is None:
            bounds = self.log.bounds()
            return bounds.end if forward else bounds.first - 1
        return row.first if forward else row.stop - 1

    def _catch_up(self) -> None:
        """Forget the dropped lines; search the last segments of files again that have grown."""
        first, older_end, first_newer = self.log.bounds().first, self.log.index.sizes()[0], self.log.index.first_newer
        older, newer = self._older, self._newer
        with self._lock:
            older.next, newer.next = min(older.next, older_end), max(newer.next, first_newer)
            start = first << _OFFSET_BITS
            kept, dropped = bisect_right(older.places, -start), bisect_left(newer.places, start)
            older.gone += len(older.places) - kept
            newer.gone += dropped
            del older.places[kept:], newer.places[:dropped]
        for file, (key, end) in tuple(self._tails.items()):
            row = self.log.index.row(key)
            if row is None:
                del self._tails[file]
            elif row.end != end:
                found = array("q", sorted(map(abs, self._search([row]))))
                start = row.first << _OFFSET_BITS
                nearest, farthest = sorted((abs(start), abs(start + _OFFSET)))
                places = self._side(key.newer).places
                with self._lock:
                    places[bisect_left(places, nearest) : bisect_right(places, farthest)] = found
                self._tails[file] = key, row.end

    def _search(self, rows: Iterable[IndexRow]) -> list[int]:
        """Return the places of the matching lines of segments, in no order."""
        places: list[int] = []
        for run in _adjoining(rows):
            text, ends = self._shown(run)
            starts, begin = self._starts(text), 0
            for row, end in zip(run, ends, strict=True):
                # The place of the block's first byte, if it were in this segment.
                base = (row.first << _OFFSET_BITS) - begin
                places += [base + start for start in starts[bisect_left(starts, begin) : bisect_left(starts, end)]]
                begin = end
        return places

    def _shown(self, run: Sequence[IndexRow]) -> tuple[bytes, list[int]]:
        """Return the lines of adjoining segments as shown, each with a line feed, and the end of each segment's."""
        start, end = run[0].start, run[-1].end
        if end - start > _RUN_SIZE:
            # One long line.
            lines = self.log.lines(run[0].first, run[0].lines)
            text = shown_block(b"".join(line.data + b"\n" for line in lines))
            return text, [len(text)]
        data = self.log.read(run[0].file, start, end - start)
        if not all(row.is_plain for row in run) and is_plain(data):
            self.log.index.note_plain(run)
            run = [row._replace(is_plain=True) for row in run]
        ends = [row.end - start for row in run]
        # A line may end unfinished, also where the next one is of another stream.
        if all(row.is_plain for row in run) and all(data.endswith(b"\n", 0, end) for end in ends):
            return data, ends
        parts = [data[row.start - start : row.end - start] for row in run]
        texts = [shown_block(part) + b"\n" * (not part.endswith(b"\n")) for part in parts]
        return b"".join(texts), list(accumulate(map(len, texts)))

    def _starts(self, text: bytes) -> list[int]:
        """Return the offsets of the lines that pass all rules, in order."""
        if len(self.rules) == 1 and self.rules[0].keep:
            return self.rules[0].pattern.starts(text)
        starts = set(accumulate((len(line) + 1 for line in text.split(b"\n")[:-2]), initial=0))
        for pattern, keep in self.rules:
            found = pattern.starts(text)
            starts = starts.intersection(found) if keep else starts.difference(found)
        return sorted(starts)


def _adjoining(rows: Iterable[IndexRow]) -> Iterator[list[IndexRow]]:
    """Group segments that follow each other in a file, as far as they are read at once."""
    run: list[IndexRow] = []
    for row in sorted(rows, key=lambda row: (row.file, row.start)):
        if run and (row.file != run[-1].file or row.start != run[-1].end or row.end - run[0].start > _RUN_SIZE):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _near(numbers: Sequence[int]) -> Iterator[range]:
    """Group line numbers into ranges to read: lines near each other together with those between them."""
    start = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] - numbers[at - 1] > _MAX_GAP:
            yield range(numbers[start], numbers[at - 1] + 1)
            start = at
