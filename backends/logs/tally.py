"""How many lines of a log are wanted, a segment at a time, and which is the next one: for searches and filters."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, islice

from .line_index import BLOCK, Place, Row
from .merge import MergedLog
from .scanner import Scanner
from .shown import Block, Look

# Segments that are fetched in one go: a few of whole blocks, many where chunks are small and a segment is one line.
_FEW_ROWS = 16
_BATCH_ROWS = 512
# Bytes that are read and looked at in one go; a block at a time takes half as long again.
_RUN = 8 * BLOCK
_FEED = 0x0A
# Bytes of the sample, and the places that it is taken from.
_SAMPLE = 131_072
_SAMPLE_PLACES = 16


class Tally:
    """Counts of wanted lines, kept up with a log as it grows; it costs 8 bytes a segment.

    One thread calls `step` and `find`; the other methods may be called from any.

    Args:
        log: the log.
        scanner: tells which lines are wanted.
    """

    def __init__(self, log: MergedLog, scanner: Scanner) -> None:
        self._log = log
        self._scanner = scanner
        self._through = {True: array("Q"), False: array("Q")}
        self._tails: dict[int, tuple[Place, int]] = {}

    @property
    def count(self) -> int:
        """How many wanted lines are known."""
        return self.total(True) + self.total(False)

    def total(self, newer: bool) -> int:
        """Return how many wanted lines are known on one side of line 0."""
        through = self._through[newer]
        return through[-1] if through else 0

    @property
    def done(self) -> bool:
        """Whether every line that the log knows was looked at."""
        older, newer = self._log.index.sizes()
        return len(self._through[True]) == newer and len(self._through[False]) == older

    def step(self, seconds: float) -> bool:
        """Look at more of the log for at most about ``seconds``.

        Returns:
            whether there is more.

        Raises:
            CostlyPatternError: the pattern takes too long.
        """
        deadline = time.monotonic() + seconds
        self._recount_tails()
        for newer in (True, False):
            while rows := self._fetch(newer, len(self._through[newer])):
                while rows:
                    size = _batch(rows)
                    self._take(newer, rows[:size])
                    if time.monotonic() > deadline:
                        return not self.done
                    del rows[:size]
        return False

    def find(self, line: int, forward: bool, stopped: Callable[[], bool] = lambda: False) -> int | None:
        """Return the first wanted line from ``line`` on, in a direction; None if there is none among the known ones.

        What was counted is passed over; the rest is looked at from ``line`` on, before it is counted.

        Args:
            line: where to start; it may be the answer.
            forward: towards higher numbers.
            stopped: tells whether to give up.
        """
        first, end, _ = self._log.bounds()
        if first == end or (line >= end if forward else line < first):
            return None
        self._recount_tails()
        place, skip = self._log.index.place(min(max(line, first), end - 1))
        at: Place | None = place
        while at is not None and not stopped():
            at = self._next_with_any(at, forward)
            if at is None:
                return None
            numbers = self.numbers(at)
            if at == place:
                numbers = numbers[bisect_left(numbers, skip) :] if forward else numbers[: bisect_right(numbers, skip)]
            if numbers:
                return self._log.index.first_line(at) + numbers[0 if forward else -1]
            at = self._neighbour(at, forward)
        return None

    def numbers(self, place: Place) -> Sequence[int]:
        """Return which lines of a segment are wanted, the segment's first one being 0."""
        (row,) = self._log.index.rows(place.newer, place.number, 1)
        return self._scanner.numbers(self._log.block(row))

    def locate(self, position: int) -> tuple[Place, int]:
        """Return the segment of a wanted line, and which of the segment's wanted lines it is.

        Args:
            position: 0 for the first wanted line from line 0 on, -1 for the last one before.
        """
        through = self._through[position >= 0]
        rank = position if position >= 0 else -position - 1
        number = bisect_right(through, rank)
        if position >= 0:
            return Place(True, number), rank - (through[number - 1] if number else 0)
        return Place(False, number), through[number] - 1 - rank

    def before(self, place: Place) -> int:
        """Return the position, as in `locate`, of a segment's first wanted line, or of the next one."""
        through = self._through[place.newer]
        number = min(place.number + (not place.newer), len(through))
        wanted = through[number - 1] if number else 0
        return wanted if place.newer else -wanted

    def _fetch(self, newer: bool, first: int) -> list[Row]:
        rows = self._log.index.rows(newer, first, _FEW_ROWS)
        if len(rows) == _FEW_ROWS and _batch(rows) == _FEW_ROWS:
            rows += self._log.index.rows(newer, first + _FEW_ROWS, _BATCH_ROWS)
        return rows

    def _take(self, newer: bool, rows: list[Row]) -> None:
        through = self._through[newer]
        first = len(through)
        counts = self._counts(newer, first, rows)
        # In one step: other threads read it meanwhile.
        through.extend(array("Q", islice(accumulate(counts, initial=self.total(newer)), 1, None)))
        for number, row in enumerate(rows, first):
            if newer:
                # It may have gone on just before the next one came.
                self._recount(row.file)
                self._tails[row.file] = Place(True, number), row.end
            else:
                self._tails.setdefault(row.file, (Place(False, number), row.end))

    def _recount_tails(self) -> None:
        for file in tuple(self._tails):
            self._recount(file)

    def _recount(self, file: int) -> None:
        """Count the last segment of a file again if its last line went on."""
        if file not in self._tails:
            return
        place, end = self._tails[file]
        (row,) = self._log.index.rows(place.newer, place.number, 1)
        if row.end == end:
            return
        through = self._through[place.newer]
        before = through[place.number] - (through[place.number - 1] if place.number else 0)
        change = self._count(place, row) - before
        self._tails[file] = place, row.end
        if change:
            for number in range(place.number, len(through)):
                through[number] += change

    def _count(self, place: Place, row: Row) -> int:
        block = self._log.block(row)
        count = self._scanner.count(block)
        if block.look != row.look and row.end - row.start <= BLOCK:
            self._log.index.learn(place, row.end, block.look)
        return count

    def _counts(self, newer: bool, first_number: int, rows: Sequence[Row]) -> list[int]:
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
            found = self._counts_in_run([rows[number] for number in run]) if len(run) > 1 else None
            for at_run, number in enumerate(run):
                place = Place(newer, first_number + number)
                counts[number] = self._count(place, rows[number]) if found is None else found[at_run]
            at = stop
        return counts

    def _counts_in_run(self, run: Sequence[Row]) -> list[int] | None:
        """Count in segments that follow each other, all at once; None if each has to be looked at by itself."""
        start, end = run[0].start, run[-1].end
        data = self._log.read(run[0].file, start, end - start)
        ends = [row.end - start for row in run]
        if len(data) < ends[-1] or any(data[at - 1] != _FEED for at in ends[:-1]):
            return None
        look = min(min(row.look for row in run), Look.UNEDITED)
        block = Block(data, sum(row.lines for row in run), look)
        starts = self._scanner.starts(block)
        if starts is None:
            # Of many short segments most often none has any.
            return [0] * len(run) if len(data) <= BLOCK and self._scanner.count(block) == 0 else None
        starts.sort()
        through = [bisect_left(starts, at) for at in ends]
        return [after - before for after, before in zip(through, [0, *through], strict=False)]

    def _next_with_any(self, place: Place, forward: bool) -> Place | None:
        """Return the first segment from ``place`` on that has wanted lines."""
        at: Place | None = place
        while at is not None:
            through = self._through[at.newer]
            number, outward = at.number, at.newer == forward
            if number < len(through):
                found = _jump(through, number, outward)
                if found is not None:
                    return Place(at.newer, found)
                last = len(through) - 1 if outward else 0
            else:
                first = number if outward else max(len(through), number - _BATCH_ROWS + 1)
                rows = self._log.index.rows(at.newer, first, _BATCH_ROWS if outward else number - first + 1)
                if not outward:
                    rows = rows[-_batch(rows[::-1]) :]
                    first = number - len(rows) + 1
                else:
                    rows = rows[: _batch(rows)]
                counted = [n for n, count in enumerate(self._counts(at.newer, first, rows), first) if count]
                if counted:
                    return Place(at.newer, counted[0 if outward else -1])
                last = number + len(rows) - 1 if outward else number - len(rows) + 1
            at = self._neighbour(Place(at.newer, last), forward)
        return None

    def _neighbour(self, place: Place, forward: bool) -> Place | None:
        older, newer = self._log.index.sizes()
        if place.newer == forward:
            number = place.number + 1
            return Place(place.newer, number) if number < (newer if place.newer else older) else None
        if place.number > 0:
            return Place(place.newer, place.number - 1)
        return Place(not place.newer, 0) if (older if place.newer else newer) else None


def take_sample(log: MergedLog) -> bytes:
    """Return bytes from all over what is known of a log."""
    older, newer = log.index.sizes()
    every = max(1, (older + newer) // _SAMPLE_PLACES)
    parts = []
    for at in range(0, older + newer, every):
        (row,) = log.index.rows(at >= older, at - older if at >= older else at, 1)
        parts.append(log.read(row.file, row.start, min(row.end - row.start, _SAMPLE // _SAMPLE_PLACES)))
    return b"".join(parts)


def _jump(through: array[int], number: int, outward: bool) -> int | None:
    """Return the nearest segment, from ``number`` on, that the count grows at."""
    if outward:
        found = bisect_right(through, through[number - 1] if number else 0, number)
        return found if found < len(through) else None
    return bisect_left(through, through[number], 0, number + 1) if through[number] else None


def _batch(rows: Sequence[Row]) -> int:
    """Return how many of the rows make about one block."""
    size = 0
    for number, row in enumerate(rows, 1):
        size += row.end - row.start
        if size + BLOCK > _RUN:
            return number
    return len(rows)


def _follows(row: Row, later: Row, first: Row) -> bool:
    return later.file == row.file and later.start == row.end and later.end - first.start <= _RUN
