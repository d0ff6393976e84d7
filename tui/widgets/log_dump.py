"""A log as plain lines on the bare terminal, for its own selection, search and scrollback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from ...backends.logs.filtering import FilteredLog
from ...backends.logs.merge import MergedLog
from ...backends.logs.sanitize import sanitize
from .log_rows import clock_text

_MOST = 5_000
_BATCH = 500


def dump_lines(log: MergedLog | FilteredLog, numbers: Sequence[int], *, times: bool) -> Iterator[str]:
    """Yield the log's last lines as safe text, each with its time and replica where there are several."""
    bounds = log.bounds()
    for first in range(max(bounds.first, bounds.end - _MOST), bounds.end, _BATCH):
        for line in log.lines(first, min(_BATCH, bounds.end - first)):
            before = f"{clock_text(line.time)} " if times and line.time is not None else ""
            if len(numbers) > 1 and line.replica >= 0:
                before += f"{numbers[line.replica]}| "
            yield before + sanitize(line.data, omitted=line.omitted).text


def show_plain(lines: Iterator[str], output: TextIO, answer: TextIO) -> None:
    """Write lines to the terminal and wait for enter; the app is suspended meanwhile."""
    for line in lines:
        output.write(line + "\n")
    output.write("\nenter: back to torchx-tui\n")
    output.flush()
    answer.readline()
