"""Where a followed log goes on after it broke off."""

from __future__ import annotations

from .stream import TimeCursor

# Times are counted in spans of 2**26 ns, 67 ms. An engine logs stdout and stderr in two threads: the line that comes
# later may bear the earlier time, and one that was not here yet when the log broke off may be older than one that was.
_SPAN = 26
# For clocks that are set back the latest spans are remembered one by one, those before in groups of 2**10.
_REMEMBERED = 256
_GROUP = 10


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
        self._given = cursor
        self._start = cursor.nanoseconds if cursor else 0
        self._left = cursor.seen if cursor else 0
        self._last = -1
        self._counts: dict[int, int] = {}
        self._groups: dict[int, int] = {}
        # The first span that is counted one by one, and the first that is counted at all.
        self._single = self._known = self._start >> _SPAN

    @property
    def left(self) -> int:
        """How many messages that were seen before have not come again yet."""
        return self._left

    def skip_missing(self) -> None:
        """Take the next message for new: those that were seen before are not there any more."""
        self._left = 0

    @property
    def cursor(self) -> TimeCursor | None:
        """The place after the last message that was told of."""
        if self._last < 0:
            return self._given
        floor = max((self._last >> _SPAN) - 1, self._known)
        grouped = 0
        if floor < self._single:
            group = floor >> _GROUP
            floor = max(group << _GROUP, self._known)
            grouped = sum(count for number, count in self._groups.items() if number >= group)
        single = sum(count for span, count in self._counts.items() if span >= floor)
        return TimeCursor(floor << _SPAN, single + grouped)

    def is_new(self, nanoseconds: int) -> bool:
        """Tell of each message in turn, by its time since the epoch, whether it was not seen before."""
        if self._left:
            # Some engines give what is older too, once they have found the first that is not.
            if nanoseconds >= self._start:
                self._left -= 1
                self._note(nanoseconds)
            return False
        self._note(nanoseconds)
        return True

    def _note(self, nanoseconds: int) -> None:
        self._last = nanoseconds
        self.latest = max(self.latest, nanoseconds)
        span = nanoseconds >> _SPAN
        if span in self._counts:
            self._counts[span] += 1
            return
        self._counts[span] = 1
        if len(self._counts) > _REMEMBERED:
            oldest = min(self._counts)
            group = oldest >> _GROUP
            self._groups[group] = self._groups.get(group, 0) + self._counts.pop(oldest)
            self._single = max(self._single, oldest + 1)
