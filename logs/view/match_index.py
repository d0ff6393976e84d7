"""Counts the wanted lines of a log segment by segment, and finds the next one: for searches and filters."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, islice

from ..source.segment import BLOCK, SegmentKey
from ..text.shown import Block, Rendering
from .line_index import IndexRow
from .merge import MergedLog
from .scanner import Scanner

# Rows that are fetched at once: a few if they are whole blocks, many if a row is one line.
_FIRST_BATCH_ROWS = 16
_MAX_BATCH_ROWS = 512
# Bytes that are read and scanned at once; a block at a time takes half as long again.
_MAX_READ = 8 * BLOCK
_LINE_FEED = 0x0A
# Bytes of the sample, and the number of places that it is taken from.
_SAMPLE_SIZE = 131_072
_SAMPLE_PLACES = 16


class _CumulativeCounts:
    """The number of wanted lines up to each segment on one side of line 0, counted outward.

    It is replaced as a whole when segments are dropped, so that other threads never see half of a change.

    Attributes:
        first: the number of the first segment that was not dropped.
        gone: how many wanted lines the ones before it had.
        through: the counts from there on.
    """

    __slots__ = ("first", "gone", "through")

    def __init__(self, first: int = 0, gone: int = 0, through: array[int] | None = None) -> None:
        self.first = first
        self.gone = gone
        self.through = array("Q") if through is None else through

    @property
    def end(self) -> int:
        """The number after the last counted segment."""
        return self.first + len(self.through)

    @property
    def total(self) -> int:
        """The sum through the last segment."""
        return self.through[-1] if self.through else self.gone

    def before(self, number: int) -> int:
        """Return the sum of the segments before the ``number``-th one, as far as they are counted."""
        at = min(number - self.first, len(self.through))
        return self.through[at - 1] if at > 0 else self.gone

    def since(self, first: int) -> _CumulativeCounts:
        """Return the counts without the segments before the ``first``-th one."""
        return _CumulativeCounts(first, self.before(first), self.through[first - self.first :])

    def until(self, end: int) -> _CumulativeCounts:
        """Return the counts without the segments from the ``end``-th one on."""
        return _CumulativeCounts(self.first, self.gone, self.through[: end - self.first])


class MatchIndex:
    """Counts of wanted lines, updated as a log grows; it costs 8 bytes a segment.

    Lines that the log has dropped are no longer counted; the positions of the others stay. One thread calls `step` and
    `find`; the other methods may be called from any.

    Args:
        log: the log.
        scanner: finds the wanted lines.
    """

    def __init__(self, log: MergedLog, scanner: Scanner) -> None:
        self._log = log
        self._scanner = scanner
        self._sides = {True: _CumulativeCounts(), False: _CumulativeCounts()}
        self._gone_older = 0
        self._tails: dict[int, tuple[SegmentKey, int]] = {}

    @property
    def count(self) -> int:
        """The number of known wanted lines."""
        first, end = self.bounds()
        return end - first

    def bounds(self) -> tuple[int, int]:
        """Return the position, as in `locate`, of the first known wanted line, and the one after the last."""
        older, newer = self._sides[False], self._sides[True]
        return newer.gone - older.total, newer.total

    @property
    def gone(self) -> int:
        """The number of lines that were counted and then dropped."""
        return self._gone_older + self._sides[True].gone

    @property
    def done(self) -> bool:
        """Whether every known line of the log is counted."""
        older, newer = self._log.index.sizes()
        return self._sides[True].end == newer and self._sides[False].end == older

    def step(self, seconds: float) -> bool:
        """Count more of the log for at most about ``seconds``.

        Returns:
            whether there is more.

        Raises:
            CostlyPatternError: the pattern takes too long.
        """
        deadline = time.monotonic() + seconds
        self._catch_up()
        for newer in (True, False):
            while rows := self._fetch(newer, self._sides[newer].end):
                while rows:
                    size = _batch(rows)
                    self._take(newer, rows[:size])
                    if time.monotonic() > deadline:
                        return not self.done
                    del rows[:size]
        return False

    def find(self, line: int, forward: bool, stopped: Callable[[], bool] = lambda: False) -> int | None:
        """Find the first wanted line from ``line`` on, in a direction; None if there is none among the known ones.

        Counted segments without wanted lines are skipped; others are scanned from ``line`` on, before they are counted.

        Args:
            line: where to start; it may be the answer.
            forward: search towards higher numbers.
            stopped: tells whether to give up.
        """
        first, end, *_ = self._log.bounds()
        if first == end or (line >= end if forward else line < first):
            return None
        self._catch_up()
        located = self._log.index.locate(min(max(line, first), end - 1))
        if located is None:
            # The line was dropped just now.
            return self.find(line, forward, stopped)
        key, skip = located
        at: SegmentKey | None = key
        while at is not None and not stopped():
            at = self._next_with_any(at, forward)
            if at is None:
                return None
            numbers = self.numbers(at)
            if at == key:
                numbers = numbers[bisect_left(numbers, skip) :] if forward else numbers[: bisect_right(numbers, skip)]
            start = self._log.index.first_line(at)
            if numbers and start is not None:
                return start + numbers[0 if forward else -1]
            at = self._neighbour(at, forward)
        return None

    def numbers(self, key: SegmentKey) -> Sequence[int]:
        """List the wanted lines of a segment by their numbers in it, from 0; none of a dropped one."""
        row = self._log.index.row(key)
        return self._scanner.numbers(self._log.block(row)) if row is not None else ()

    def locate(self, position: int) -> tuple[SegmentKey, int] | None:
        """Find the segment of a wanted line, and the line's rank among the wanted ones in it; None if there is none.

        Args:
            position: 0 for the first wanted line from line 0 on, -1 for the last one before line 0.
        """
        newer = position >= 0
        counts = self._sides[newer]
        rank = position if newer else -position - 1
        if not counts.gone <= rank < counts.total:
            return None
        at = bisect_right(counts.through, rank)
        number = counts.first + at
        return SegmentKey(newer, number), rank - counts.before(number) if newer else counts.through[at] - 1 - rank

    def before(self, key: SegmentKey) -> int:
        """Return the position, as in `locate`, of a segment's first wanted line, or of the next one."""
        wanted = self._sides[key.newer].before(key.number + (not key.newer))
        return wanted if key.newer else -wanted

    def rank(self, line: int) -> int | None:
        """Count the known wanted lines before a line; None if the line is not wanted, or not counted yet.

        Raises:
            CostlyPatternError: the pattern takes too long.
        """
        self._catch_up()
        located = self._log.index.locate(line)
        if located is None:
            return None
        key, skip = located
        if key.number >= self._sides[key.newer].end:
            return None
        numbers = self.numbers(key)
        at = bisect_left(numbers, skip)
        if at == len(numbers) or numbers[at] != skip:
            return None
        return self.before(key) + at - self.bounds()[0]

    def _fetch(self, newer: bool, first: int) -> list[IndexRow]:
        rows = self._log.index.rows(newer, first, _FIRST_BATCH_ROWS)
        if len(rows) == _FIRST_BATCH_ROWS and _batch(rows) == _FIRST_BATCH_ROWS:
            rows += self._log.index.rows(newer, first + _FIRST_BATCH_ROWS, _MAX_BATCH_ROWS)
        return rows

    def _take(self, newer: bool, rows: list[IndexRow]) -> None:
        counts = self._sides[newer]
        first = counts.end
        row_counts = self._count_rows(newer, first, rows)
        # In one step, since other threads read it.
        counts.through.extend(array("Q", islice(accumulate(row_counts, initial=counts.total), 1, None)))
        for number, row in enumerate(rows, first):
            if newer:
                # The earlier one may have grown just before the next one was added.
                self._recount(row.file)
                self._tails[row.file] = SegmentKey(True, number), row.end
            else:
                self._tails.setdefault(row.file, (SegmentKey(False, number), row.end))

    def _catch_up(self) -> None:
        """Forget the dropped segments; count again the last segments of files that have grown."""
        end, first = self._log.index.sizes()[0], self._log.index.first_newer
        older, newer = self._sides[False], self._sides[True]
        if end < older.end:
            self._sides[False] = older.until(end)
            self._gone_older += older.total - self._sides[False].total
        if first > newer.first:
            self._sides[True] = newer.since(first)
        for file in tuple(self._tails):
            self._recount(file)

    def _recount(self, file: int) -> None:
        """Count the last segment of a file again if its last line grew."""
        if file not in self._tails:
            return
        key, end = self._tails[file]
        row = self._log.index.row(key)
        counts = self._sides[key.newer]
        if row is None or key.number < counts.first:
            del self._tails[file]
            return
        if row.end == end:
            return
        change = self._count(key, row) - (counts.before(key.number + 1) - counts.before(key.number))
        self._tails[file] = key, row.end
        if change:
            for at in range(key.number - counts.first, len(counts.through)):
                counts.through[at] += change

    def _count(self, key: SegmentKey, row: IndexRow) -> int:
        block = self._log.block(row)
        count = self._scanner.count(block)
        if block.rendering != row.rendering and row.end - row.start <= BLOCK:
            self._log.index.note_rendering(key, row.end, block.rendering)
        return count

    def _count_rows(self, newer: bool, first_number: int, rows: Sequence[IndexRow]) -> list[int]:
        """Count the wanted lines of segments; those that follow each other in a file are read at once."""
        counts = [0] * len(rows)
        order = sorted(range(len(rows)), key=lambda number: rows[number][:2])
        at = 0
        while at < len(order):
            stop = at + 1
            first = rows[order[at]]
            while stop < len(order) and _follows(rows[order[stop - 1]], rows[order[stop]], first):
                stop += 1
            run = order[at:stop]
            run_counts = self._count_run([rows[number] for number in run]) if len(run) > 1 else None
            for at_run, number in enumerate(run):
                key = SegmentKey(newer, first_number + number)
                counts[number] = self._count(key, rows[number]) if run_counts is None else run_counts[at_run]
            at = stop
        return counts

    def _count_run(self, run: Sequence[IndexRow]) -> list[int] | None:
        """Count in segments that follow each other, all at once; None if each must be scanned by itself."""
        start, end = run[0].start, run[-1].end
        data = self._log.read(run[0].file, start, end - start)
        ends = [row.end - start for row in run]
        if len(data) < ends[-1] or any(data[at - 1] != _LINE_FEED for at in ends[:-1]):
            return None
        rendering = min(min(row.rendering for row in run), Rendering.UNEDITED)
        block = Block(data, sum(row.lines for row in run), rendering)
        starts = self._scanner.starts(block)
        if starts is None:
            # Most often none of many short segments has any.
            return [0] * len(run) if len(data) <= BLOCK and self._scanner.count(block) == 0 else None
        starts.sort()
        through = [bisect_left(starts, at) for at in ends]
        return [after - before for after, before in zip(through, [0, *through], strict=False)]

    def _next_with_any(self, key: SegmentKey, forward: bool) -> SegmentKey | None:
        """Find the first segment from ``key`` on that has wanted lines."""
        at: SegmentKey | None = key
        while at is not None:
            counts = self._sides[at.newer]
            number, outward = at.number, at.newer == forward
            if number < counts.end:
                nearest = _nearest_with_any(counts, number, outward)
                if nearest is not None:
                    return SegmentKey(at.newer, nearest)
                last = counts.end - 1 if outward else counts.first
            else:
                first = number if outward else max(counts.end, number - _MAX_BATCH_ROWS + 1)
                rows = self._log.index.rows(at.newer, first, _MAX_BATCH_ROWS if outward else number - first + 1)
                if not rows:
                    # Dropped just now; the next search finds what comes after it in this direction.
                    return None
                if not outward:
                    rows = rows[-_batch(rows[::-1]) :]
                    first = number - len(rows) + 1
                else:
                    rows = rows[: _batch(rows)]
                counted = [n for n, count in enumerate(self._count_rows(at.newer, first, rows), first) if count]
                if counted:
                    return SegmentKey(at.newer, counted[0 if outward else -1])
                last = number + len(rows) - 1 if outward else number - len(rows) + 1
            at = self._neighbour(SegmentKey(at.newer, last), forward)
        return None

    def _neighbour(self, key: SegmentKey, forward: bool) -> SegmentKey | None:
        older, newer = self._log.index.sizes()
        if key.newer == forward:
            number = key.number + 1
            return SegmentKey(key.newer, number) if number < (newer if key.newer else older) else None
        if key.number > (self._log.index.first_newer if key.newer else 0):
            return SegmentKey(key.newer, key.number - 1)
        if self._log.index.first_newer and key.newer:
            return None
        return SegmentKey(not key.newer, 0) if (older if key.newer else newer) else None


def take_sample(log: MergedLog) -> bytes:
    """Read bytes from all over the known part of a log."""
    older, newer = log.index.sizes()
    first = log.index.first_newer
    every = max(1, (older + newer - first) // _SAMPLE_PLACES)
    keys = [SegmentKey(False, number) for number in range(0, older, every)]
    keys += [SegmentKey(True, number) for number in range(first, newer, every)]
    rows = [row for key in keys if (row := log.index.row(key)) is not None]
    size = _SAMPLE_SIZE // _SAMPLE_PLACES
    return b"".join(log.read(row.file, row.start, min(row.end - row.start, size)) for row in rows)


def _nearest_with_any(counts: _CumulativeCounts, number: int, outward: bool) -> int | None:
    """Find the nearest counted segment, from ``number`` on, that has wanted lines."""
    through, at = counts.through, number - counts.first
    if outward:
        nearest = bisect_right(through, counts.before(number), at)
        return counts.first + nearest if nearest < len(through) else None
    # Wanted lines of dropped segments do not count.
    return counts.first + bisect_left(through, through[at], 0, at + 1) if through[at] > counts.gone else None


def _batch(rows: Sequence[IndexRow]) -> int:
    """Count the rows that make about one read."""
    size = 0
    for number, row in enumerate(rows, 1):
        size += row.end - row.start
        if size + BLOCK > _MAX_READ:
            return number
    return len(rows)


def _follows(row: IndexRow, later: IndexRow, first: IndexRow) -> bool:
    return later.file == row.file and later.start == row.end and later.end - first.start <= _MAX_READ
