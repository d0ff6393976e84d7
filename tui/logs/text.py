"""A log's lines as text that leaves the pane: for the clipboard, a file, a pager."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ...logs.lines.merge import LogLine, MergedLog
from ...logs.source.segment import SegmentKey
from ...logs.text.sanitize import sanitize
from .rows import TimeMode, time_text
from .session import AnyLog

# Bytes of one line that leave the pane; a longer line ends with a mark that says what is missing.
LONGEST = 1_000_000
BATCH = 1_000


@dataclass(frozen=True)
class LineForm:
    """What stands before each line's text.

    Attributes:
        numbers: the number of each of the log's replicas; it is written where there are several.
        times: which time; ``date`` is the date and the time of day with milliseconds.
        start: when the log started (seconds since the epoch), for relative times.
    """

    numbers: tuple[int, ...] = ()
    times: TimeMode | Literal["date"] = "off"
    start: float | None = None

    def text(self, line: LogLine) -> str:
        """Return a line as safe text: no control character, no style."""
        before = f"{date_text(line.time) if self.times == 'date' else time_text(line.time, self.times, self.start)} "
        if len(self.numbers) > 1:
            before += f"{self.numbers[line.replica] if line.replica >= 0 else '-'}| "
        return before.lstrip(" ") + sanitize(line.data, limit=LONGEST, omitted=line.omitted).text


def date_text(at: float | None) -> str:
    """Return the local date and time of ``at`` (seconds since the epoch), empty where it is not known."""
    if at is None:
        return ""
    second, thousandths = divmod(round(at * 1000), 1000)
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second)) + f".{thousandths:03d}"


def whole_lines(log: AnyLog, first: int, end: int) -> Iterator[LogLine]:
    """Yield lines by their numbers, whole ones up to `LONGEST`; a few are read at a time."""
    while first < end:
        lines = log.lines(first, min(BATCH, end - first))
        for line in lines:
            if line.omitted:
                # The pane's own cap is far shorter; lines like this are few.
                yield from log.lines(line.number, 1, LONGEST)
            else:
                yield line
        first += BATCH


def printed_parts(log: MergedLog) -> Iterator[tuple[bytes, int]]:
    """Yield what was printed, byte for byte, each part with how many lines it has; notices of ours are left out."""
    older, newer = log.index.sizes()
    sides = [(False, range(older - 1, -1, -1)), (True, range(log.index.first_newer, newer))]
    lacks_feed = False
    for row in (log.index.row(SegmentKey(side, number)) for side, numbers in sides for number in numbers):
        if row is None or row.file == 0:
            continue
        if lacks_feed:
            yield b"\n", 0
        at = row.start
        while at < row.end and (data := log.read(row.file, at, min(LONGEST, row.end - at))):
            at += len(data)
            lacks_feed = not data.endswith(b"\n")
            yield data, row.lines if at == row.end else 0
