"""A log of which only some lines are shown: those that match, or those that do not."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..pattern.engine import CostlyPatternError
from ..pattern.pattern import Pattern
from ..source.segment import Place
from ..text.shown import LINE_CAP, Block
from .merge import Bounds, LogLine, MergedLog
from .scanner import PatternScanner
from .tally import Tally, take_sample

# Segments whose wanted lines are remembered while a page is put together.
_REMEMBERED = 32
# Kept lines that are no further apart than this are read with what is between them.
_NEAR = 32
# How long one look at new lines takes at most (s).
_POLL_SECONDS = 0.02


class Rule(NamedTuple):
    """One filter: lines with the pattern are kept (and no others), or dropped."""

    pattern: Pattern
    keep: bool = True


class RulesScanner:
    """Finds the lines that every rule lets through.

    Args:
        rules: the rules.
        sample: bytes from all over the log.
    """

    def __init__(self, rules: Sequence[Rule], sample: bytes) -> None:
        self._keeping = [PatternScanner(rule.pattern, sample) for rule in rules if rule.keep]
        self._dropping = [PatternScanner(rule.pattern, sample) for rule in rules if not rule.keep]

    def count(self, block: Block) -> int:
        """See `Scanner`."""
        if not self._dropping and len(self._keeping) == 1:
            return self._keeping[0].count(block)
        if len(self._keeping) + len(self._dropping) > 1:
            return len(self.numbers(block))
        return block.lines - sum(scanner.count(block) for scanner in self._dropping)

    def starts(self, block: Block) -> list[int] | None:
        """See `Scanner`."""
        return self._keeping[0].starts(block) if len(self._keeping) == 1 and not self._dropping else None

    def numbers(self, block: Block) -> Sequence[int]:
        """See `Scanner`."""
        if len(self._keeping) == 1 and not self._dropping:
            return self._keeping[0].numbers(block)
        kept = set(range(block.lines))
        for scanner in self._keeping:
            if kept:
                kept.intersection_update(scanner.numbers(block))
        for scanner in self._dropping:
            if kept:
                kept.difference_update(scanner.numbers(block))
        return sorted(kept)


class FilteredLog:
    """The lines of a log that its rules let through, in the place of that log.

    Its lines have numbers of their own, without gaps: 0 is the first kept one from the log's line 0 on. A number
    changes only where an unfinished line in the midst of others goes on and is then kept, or not any more. As with the
    log, one thread calls `open`, `read_older` and `poll`.

    Args:
        log: the log; it may be open already.
        rules: what is kept and dropped; with none, all is kept.
    """

    def __init__(self, log: MergedLog, rules: Sequence[Rule]) -> None:
        self.log = log
        self.rules = tuple(rules)
        self._lock = threading.Lock()
        self._tally: Tally | None = None
        self._remembered: OrderedDict[tuple[Place, int], Sequence[int]] = OrderedDict()

    def connect(self) -> None:
        """See `MergedLog.connect`."""
        self.log.connect()

    @property
    def caught_up(self) -> bool:
        """See `MergedLog.caught_up`."""
        return self.log.caught_up

    def open(self) -> None:
        """Open the log, unless it is."""
        if not self.log.opened:
            self.log.open()

    def read_older(self, seconds: float, lines: float = math.inf) -> bool:
        """Index and filter older lines for at most about ``seconds``, or until ``lines`` more are kept.

        Returns:
            whether there are more.

        Raises:
            CostlyPatternError: a pattern takes too long.
        """
        deadline = time.monotonic() + seconds
        wanted = self._count() + lines
        more = True
        while more and self._count() < wanted and (left := deadline - time.monotonic()) > 0:
            # Filtering a block costs more than indexing it.
            indexing = self.log.read_older(left / 4, _lines_ahead(lines))
            more = self._step(min(left, _POLL_SECONDS)) or indexing
        return more

    def poll(self) -> tuple[bool, bool]:
        """Take in what came since.

        Returns:
            whether anything did that is kept, and whether there is more to read at once.

        Raises:
            CostlyPatternError: a pattern takes too long.
        """
        before = self._count()
        changed, more = self.log.poll()
        rest = self._step(_POLL_SECONDS)
        # A kept line that went on changes no number.
        return changed or self._count() != before, more or rest

    @property
    def settled(self) -> bool:
        """See `MergedLog.settled`."""
        return self.log.settled

    @property
    def settles(self) -> bool:
        """See `MergedLog.settles`."""
        return self.log.settles

    def bounds(self) -> Bounds:
        """Return which of the kept lines are known."""
        complete = self.log.bounds().complete
        tally = self._tally
        if tally is None:
            return Bounds(0, 0, False)
        return Bounds(*tally.bounds(), complete and tally.done, tally.gone)

    def lines(self, first: int, count: int, cap: int = LINE_CAP) -> list[LogLine]:
        """Read kept lines, with their own numbers; see `MergedLog.lines`."""
        start, end, *_ = self.bounds()
        result: list[LogLine] = []
        originals: dict[int, int] = {}
        for number in range(max(first, start), min(first + count, end)):
            original = self._original(number)
            if original is not None:
                originals[original] = number
        for run in _runs(list(originals)):
            between = self.log.lines(run.start, len(run), cap)
            result += (line._replace(number=originals[line.number]) for line in between if line.number in originals)
        return result

    def line_at(self, time: float) -> int | None:
        """Return the own number of the first kept line that came at a time or later; see `MergedLog.line_at`."""
        original = self.log.line_at(time)
        return None if original is None else self.position(original)

    def original(self, number: int) -> int:
        """Return the number of a kept line in the log.

        Raises:
            IndexError: no kept line has that number.
        """
        original = self._original(number)
        if original is None:
            raise IndexError(f"no kept line has the number {number}")
        return original

    def position(self, original: int) -> int:
        """Return the own number of the log's line, or of the next line that is kept; it may be the end of them."""
        bounds = self.bounds()
        found = self.log.index.place(max(original, self.log.bounds().first))
        if found is None or self._tally is None:
            return bounds.end
        place, skip = found
        return max(bounds.first, self._tally.before(place) + sum(1 for line in self._numbers(place) if line < skip))

    def close(self) -> None:
        """Release the files; lines can no longer be read."""
        self.log.close()

    def _original(self, number: int) -> int | None:
        found = self._tally.locate(number) if self._tally is not None else None
        if found is None:
            return None
        place, rank = found
        wanted = self._numbers(place)
        first = self.log.index.first_line(place)
        return first + wanted[rank] if first is not None and rank < len(wanted) else None

    def _numbers(self, place: Place) -> Sequence[int]:
        """Return the kept lines of a segment, from memory while it does not grow."""
        row = self.log.index.row(place)
        if row is None:
            return ()
        key = (place, row.end)
        with self._lock:
            if key not in self._remembered and self._tally is not None:
                try:
                    self._remembered[key] = self._tally.numbers(place)
                except CostlyPatternError:
                    # Whoever reads on is told; here there is nothing to show.
                    self._remembered[key] = ()
                if len(self._remembered) > _REMEMBERED:
                    self._remembered.popitem(last=False)
            return self._remembered.get(key, ())

    def _count(self) -> int:
        return self._tally.count if self._tally is not None else 0

    def _step(self, seconds: float) -> bool:
        if self._tally is None:
            self._tally = Tally(self.log, RulesScanner(self.rules, take_sample(self.log)))
        return self._tally.step(seconds)


def _runs(numbers: Sequence[int]) -> Iterator[range]:
    """Yield what is to be read for some lines, in order: those near each other with what is between them."""
    start = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] - numbers[at - 1] > _NEAR:
            yield range(numbers[start], numbers[at - 1] + 1)
            start = at


def _lines_ahead(lines: float) -> float:
    """Return how many lines are indexed to find so many that are kept."""
    return lines * 20 if lines < math.inf else lines
