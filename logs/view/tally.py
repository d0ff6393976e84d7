"""How many lines of a log are wanted, a segment at a time, and which is the next one: for searches and filters."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, islice

from ..source.segment import BLOCK, Place
from ..text.shown import Block, Look
from .line_index import Row
from .merge import MergedLog
from .scanner import Scanner

# Segments that are fetched in one go: a few of whole blocks, many where chunks are small and a segment is one line.
_FEW_ROWS = 16
_BATCH_ROWS = 512
# Bytes that are read and looked at in one go; a block at a time takes half as long again.
_RUN = 8 * BLOCK
_FEED = 0x0A
# Bytes of the sample, and the places that it is taken from.
_SAMPLE = 131_072
_SAMPLE_PLACES = 16


class _Sums:
    """How many wanted lines the segments of one side have up to each one, from line 0 outward.

    When segments are dropped, another object takes its place, so that other threads never see half of it.

    Attributes:
        first: the number of the first segment that was not dropped.
        gone: how many wanted lines the ones before it had.
        through: the sums from there on.
    """

    __slots__ = ("first", "gone", "through")

    def __init__(self, first: int = 0, gone: int = 0, through: array[int] | None = None) -> None:
        self.first = first
        self.gone = gone
        self.through = array("Q") if through is None else through

    @property
    def end(self) -> int:
        """The number after the last segment that was looked at."""
        return self.first + len(self.through)

    @property
    def total(self) -> int:
        """The sum through the last segment."""
        return self.through[-1] if self.through else self.gone

    def before(self, number: int) -> int:
        """Return the sum of the segments before the ``number``-th one, as far as they were looked at."""
        at = min(number - self.first, len(self.through))
        return self.through[at - 1] if at > 0 else self.gone

    def since(self, first: int) -> _Sums:
        """Return the sums without the segments before the ``first``-th one."""
        return _Sums(first, self.before(first), self.through[first - self.first :])

    def until(self, end: int) -> _Sums:
        """Return the sums without the segments from the ``end``-th one on."""
        return _Sums(self.first, self.gone, self.through[: end - self.first])


class Tally:
    """Counts of wanted lines, kept up with a log as it grows; it costs 8 bytes a segment.

    Lines that the log has dropped are counted no more, and change no position of the others. One thread calls `step`
    and `find`; the other methods may be called from any.

    Args:
        log: the log.
        scanner: tells which lines are wanted.
    """

    def __init__(self, log: MergedLog, scanner: Scanner) -> None:
        self._log = log
        self._scanner = scanner
        self._sums = {True: _Sums(), False: _Sums()}
        self._gone_older = 0
        self._tails: dict[int, tuple[Place, int]] = {}

    @property
    def count(self) -> int:
        """How many wanted lines are known."""
        first, end = self.bounds()
        return end - first

    def bounds(self) -> tuple[int, int]:
        """Return the position, as in `locate`, of the first known wanted line, and the one after the last."""
        older, newer = self._sums[False], self._sums[True]
        return newer.gone - older.total, newer.total

    @property
    def gone(self) -> int:
        """How many lines were counted and then dropped."""
        return self._gone_older + self._sums[True].gone

    @property
    def done(self) -> bool:
        """Whether every line that the log knows was looked at."""
        older, newer = self._log.index.sizes()
        return self._sums[True].end == newer and self._sums[False].end == older

    def step(self, seconds: float) -> bool:
        """Look at more of the log for at most about ``seconds``.

        Returns:
            whether there is more.

        Raises:
            CostlyPatternError: the pattern takes too long.
        """
        deadline = time.monotonic() + seconds
        self._catch_up()
        for newer in (True, False):
            while rows := self._fetch(newer, self._sums[newer].end):
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
        first, end, *_ = self._log.bounds()
        if first == end or (line >= end if forward else line < first):
            return None
        self._catch_up()
        found = self._log.index.place(min(max(line, first), end - 1))
        if found is None:
            # It was dropped just now.
            return self.find(line, forward, stopped)
        place, skip = found
        at: Place | None = place
        while at is not None and not stopped():
            at = self._next_with_any(at, forward)
            if at is None:
                return None
            numbers = self.numbers(at)
            if at == place:
                numbers = numbers[bisect_left(numbers, skip) :] if forward else numbers[: bisect_right(numbers, skip)]
            start = self._log.index.first_line(at)
            if numbers and start is not None:
                return start + numbers[0 if forward else -1]
            at = self._neighbour(at, forward)
        return None

    def numbers(self, place: Place) -> Sequence[int]:
        """Return which lines of a segment are wanted, the segment's first one being 0; none of a dropped one."""
        row = self._log.index.row(place)
        return self._scanner.numbers(self._log.block(row)) if row is not None else ()

    def locate(self, position: int) -> tuple[Place, int] | None:
        """Return the segment of a wanted line, and which of the segment's wanted lines it is; None if there is none.

        Args:
            position: 0 for the first wanted line from line 0 on, -1 for the last one before.
        """
        newer = position >= 0
        sums = self._sums[newer]
        rank = position if newer else -position - 1
        if not sums.gone <= rank < sums.total:
            return None
        at = bisect_right(sums.through, rank)
        number = sums.first + at
        return Place(newer, number), rank - sums.before(number) if newer else sums.through[at] - 1 - rank

    def before(self, place: Place) -> int:
        """Return the position, as in `locate`, of a segment's first wanted line, or of the next one."""
        wanted = self._sums[place.newer].before(place.number + (not place.newer))
        return wanted if place.newer else -wanted

    def rank(self, line: int) -> int | None:
        """Return how many of the known wanted lines come before a line; None if it is none itself, or not counted yet.

        Raises:
            CostlyPatternError: the pattern takes too long.
        """
        self._catch_up()
        found = self._log.index.place(line)
        if found is None:
            return None
        place, skip = found
        if place.number >= self._sums[place.newer].end:
            return None
        numbers = self.numbers(place)
        at = bisect_left(numbers, skip)
        if at == len(numbers) or numbers[at] != skip:
            return None
        return self.before(place) + at - self.bounds()[0]

    def _fetch(self, newer: bool, first: int) -> list[Row]:
        rows = self._log.index.rows(newer, first, _FEW_ROWS)
        if len(rows) == _FEW_ROWS and _batch(rows) == _FEW_ROWS:
            rows += self._log.index.rows(newer, first + _FEW_ROWS, _BATCH_ROWS)
        return rows

    def _take(self, newer: bool, rows: list[Row]) -> None:
        sums = self._sums[newer]
        first = sums.end
        counts = self._counts(newer, first, rows)
        # In one step: other threads read it meanwhile.
        sums.through.extend(array("Q", islice(accumulate(counts, initial=sums.total), 1, None)))
        for number, row in enumerate(rows, first):
            if newer:
                # It may have gone on just before the next one came.
                self._recount(row.file)
                self._tails[row.file] = Place(True, number), row.end
            else:
                self._tails.setdefault(row.file, (Place(False, number), row.end))

    def _catch_up(self) -> None:
        """Let go of what the log has dropped; count the last segments of files again that have grown."""
        end, first = self._log.index.sizes()[0], self._log.index.first_newer
        older, newer = self._sums[False], self._sums[True]
        if end < older.end:
            self._sums[False] = older.until(end)
            self._gone_older += older.total - self._sums[False].total
        if first > newer.first:
            self._sums[True] = newer.since(first)
        for file in tuple(self._tails):
            self._recount(file)

    def _recount(self, file: int) -> None:
        """Count the last segment of a file again if its last line went on."""
        if file not in self._tails:
            return
        place, end = self._tails[file]
        row = self._log.index.row(place)
        sums = self._sums[place.newer]
        if row is None or place.number < sums.first:
            del self._tails[file]
            return
        if row.end == end:
            return
        change = self._count(place, row) - (sums.before(place.number + 1) - sums.before(place.number))
        self._tails[file] = place, row.end
        if change:
            for at in range(place.number - sums.first, len(sums.through)):
                sums.through[at] += change

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
            sums = self._sums[at.newer]
            number, outward = at.number, at.newer == forward
            if number < sums.end:
                found = _jump(sums, number, outward)
                if found is not None:
                    return Place(at.newer, found)
                last = sums.end - 1 if outward else sums.first
            else:
                first = number if outward else max(sums.end, number - _BATCH_ROWS + 1)
                rows = self._log.index.rows(at.newer, first, _BATCH_ROWS if outward else number - first + 1)
                if not rows:
                    # Dropped just now; what comes after it in this direction is found at the next question.
                    return None
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
        if place.number > (self._log.index.first_newer if place.newer else 0):
            return Place(place.newer, place.number - 1)
        if self._log.index.first_newer and place.newer:
            return None
        return Place(not place.newer, 0) if (older if place.newer else newer) else None


def take_sample(log: MergedLog) -> bytes:
    """Return bytes from all over what is known of a log."""
    older, newer = log.index.sizes()
    first = log.index.first_newer
    every = max(1, (older + newer - first) // _SAMPLE_PLACES)
    places = [Place(False, number) for number in range(0, older, every)]
    places += [Place(True, number) for number in range(first, newer, every)]
    rows = [row for place in places if (row := log.index.row(place)) is not None]
    size = _SAMPLE // _SAMPLE_PLACES
    return b"".join(log.read(row.file, row.start, min(row.end - row.start, size)) for row in rows)


def _jump(sums: _Sums, number: int, outward: bool) -> int | None:
    """Return the nearest segment, from ``number`` on, that the count grows at."""
    through, at = sums.through, number - sums.first
    if outward:
        found = bisect_right(through, sums.before(number), at)
        return sums.first + found if found < len(through) else None
    # Wanted lines of dropped segments are none of these.
    return sums.first + bisect_left(through, through[at], 0, at + 1) if through[at] > sums.gone else None


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
