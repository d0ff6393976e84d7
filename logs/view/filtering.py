"""A filtered log: only the lines that match some patterns, or do not match others."""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..pattern.engine import CostlyPatternError
from ..pattern.pattern import Pattern
from ..source.segment import SegmentKey
from ..text.shown import LINE_CAP, Block
from .match_index import MatchIndex, take_sample
from .merge import Bounds, LogLine, MergedLog
from .scanner import PatternScanner

# Segments whose kept lines are cached while a page is put together.
_CACHED_SEGMENTS = 32
# Kept lines that are no further apart than this are read together with the lines between them.
_MAX_GAP = 32
# How long new lines are filtered in one poll at most (s).
_POLL_LIMIT_S = 0.02


class Rule(NamedTuple):
    """One filter: lines with the pattern are kept (and no others), or dropped."""

    pattern: Pattern
    keep: bool = True


class RulesScanner:
    """Finds the lines that pass every rule.

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
    """The lines of a log that pass some rules; it can be shown in place of the log.

    Its lines have numbers of their own, without gaps: 0 is the first kept line from the log's line 0 on. A number
    changes only if an unfinished line among others grows and is then kept, or no longer kept. As with the log, one
    thread calls `open`, `read_older` and `poll`.

    Args:
        log: the log; it may be open already.
        rules: which lines are kept or dropped; without rules, all are kept.
    """

    def __init__(self, log: MergedLog, rules: Sequence[Rule]) -> None:
        self.log = log
        self.rules = tuple(rules)
        self._lock = threading.Lock()
        self._matches: MatchIndex | None = None
        self._cached_numbers = lru_cache(_CACHED_SEGMENTS)(_numbers)

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
            # Filtering a block costs more than indexing it; about 20 lines are indexed to find one that is kept.
            indexing = self.log.read_older(left / 4, lines * 20)
            more = self._step(min(left, _POLL_LIMIT_S)) or indexing
        return more

    def poll(self) -> tuple[bool, bool]:
        """Read and filter what was added since.

        Returns:
            whether any kept line was added, and whether there is more to read at once.

        Raises:
            CostlyPatternError: a pattern takes too long.
        """
        before = self._count()
        changed, more = self.log.poll()
        rest = self._step(_POLL_LIMIT_S)
        # A kept line that grew changes no number.
        return changed or self._count() != before, more or rest

    @property
    def fully_read(self) -> bool:
        """See `MergedLog.fully_read`."""
        return self.log.fully_read

    @property
    def reports_end(self) -> bool:
        """See `MergedLog.reports_end`."""
        return self.log.reports_end

    def bounds(self) -> Bounds:
        """Return the range of the known kept lines."""
        complete = self.log.bounds().complete
        matches = self._matches
        if matches is None:
            return Bounds(0, 0, False)
        return Bounds(*matches.bounds(), complete and matches.done, matches.gone)

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
        """Return the own number of the first kept line of a time or later; see `MergedLog.line_at`."""
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
        """Return the own number of a line of the log, or of the next kept line; it may be the end of them."""
        bounds = self.bounds()
        located = self.log.index.locate(max(original, self.log.bounds().first))
        if located is None or self._matches is None:
            return bounds.end
        key, skip = located
        before = bisect_left(self._kept_numbers(self._matches, key), skip)
        return max(bounds.first, self._matches.before(key) + before)

    def close(self) -> None:
        """Release the files; lines can no longer be read."""
        self.log.close()

    def _original(self, number: int) -> int | None:
        matches = self._matches
        located = matches.locate(number) if matches is not None else None
        if matches is None or located is None:
            return None
        key, rank = located
        kept = self._kept_numbers(matches, key)
        first = self.log.index.first_line(key)
        return first + kept[rank] if first is not None and rank < len(kept) else None

    def _kept_numbers(self, matches: MatchIndex, key: SegmentKey) -> Sequence[int]:
        """Return the kept lines of a segment, from a cache as long as it does not grow."""
        row = self.log.index.row(key)
        if row is None:
            return ()
        with self._lock:
            return self._cached_numbers(matches, key, row.end)

    def _count(self) -> int:
        return self._matches.count if self._matches is not None else 0

    def _step(self, seconds: float) -> bool:
        if self._matches is None:
            self._matches = MatchIndex(self.log, RulesScanner(self.rules, take_sample(self.log)))
        return self._matches.step(seconds)


def _numbers(matches: MatchIndex, key: SegmentKey, end: int) -> Sequence[int]:
    try:
        return matches.numbers(key)
    except CostlyPatternError:
        # The reading thread reports it; here there is nothing to show.
        return ()


def _runs(numbers: Sequence[int]) -> Iterator[range]:
    """Group line numbers into ranges to read: lines near each other together with those between them."""
    start = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] - numbers[at - 1] > _MAX_GAP:
            yield range(numbers[start], numbers[at - 1] + 1)
            start = at
