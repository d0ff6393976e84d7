"""Resuming a followed log after its connection broke."""

from __future__ import annotations

from .stream import TimeCursor

# Messages are counted in spans of 2**26 ns (67 ms). An engine logs stdout and stderr in two threads: the line that
# arrives later may have the earlier time, and one that had not arrived yet when the connection broke may be older than
# one that had.
_SPAN_BITS = 26
# For clocks that are set back, the latest spans are counted one by one, earlier ones in groups of 2**10.
_MAX_SINGLE_SPANS = 256
_GROUP_BITS = 10


class LogPlace:
    """Skips the messages that were read before a connection broke, and keeps the cursor to resume from next time.

    The messages' times are nearly in order. On resuming, the last span of time is asked for again, and as many messages
    are skipped as were read of it.

    Args:
        cursor: where to resume; None from the start.
    """

    def __init__(self, cursor: TimeCursor | None = None) -> None:
        self.latest = -1
        """The latest time of a message, since the epoch; -1 before the first."""
        self._given_cursor = cursor
        self._start = cursor.nanoseconds if cursor else 0
        self._to_skip = cursor.seen if cursor else 0
        self._last_time = -1
        self._counts: dict[int, int] = {}
        self._groups: dict[int, int] = {}
        # The first span that is counted by itself, and the first that is counted at all.
        self._first_single_span = self._first_counted_span = self._start >> _SPAN_BITS

    @property
    def left(self) -> int:
        """How many messages that were read before are still to be skipped."""
        return self._to_skip

    def skip_missing(self) -> None:
        """Treat the next message as new: those that were read before are no longer there."""
        self._to_skip = 0

    @property
    def cursor(self) -> TimeCursor | None:
        """The place after the last message that was passed to `is_new`."""
        if self._last_time < 0:
            return self._given_cursor
        floor = max((self._last_time >> _SPAN_BITS) - 1, self._first_counted_span)
        grouped = 0
        if floor < self._first_single_span:
            group = floor >> _GROUP_BITS
            floor = max(group << _GROUP_BITS, self._first_counted_span)
            grouped = sum(count for number, count in self._groups.items() if number >= group)
        single = sum(count for span, count in self._counts.items() if span >= floor)
        return TimeCursor(floor << _SPAN_BITS, single + grouped)

    def is_new(self, nanoseconds: int) -> bool:
        """Tell whether a message was not read before; called for each message in turn.

        Args:
            nanoseconds: the message's time since the epoch.
        """
        if self._to_skip:
            # Some engines also send older messages, once they have found the first that is not.
            if nanoseconds >= self._start:
                self._to_skip -= 1
                self._count(nanoseconds)
            return False
        self._count(nanoseconds)
        return True

    def _count(self, nanoseconds: int) -> None:
        self._last_time = nanoseconds
        self.latest = max(self.latest, nanoseconds)
        span = nanoseconds >> _SPAN_BITS
        if span in self._counts:
            self._counts[span] += 1
            return
        self._counts[span] = 1
        if len(self._counts) > _MAX_SINGLE_SPANS:
            oldest = min(self._counts)
            group = oldest >> _GROUP_BITS
            self._groups[group] = self._groups.get(group, 0) + self._counts.pop(oldest)
            self._first_single_span = max(self._first_single_span, oldest + 1)
