"""Reads the logs of a plugin: its outputs side by side, as whole lines, as far as there is room for them."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from ...guest.framing import STREAM_AHEAD
from ..api import split_lines

# After this many pieces without an end, each piece is a line whose end the plugin has left out.
_ENDLESS_PIECES = 3

LogSource = Callable[[], Iterable[str]]
"""Begins to read one output."""


class LogStream:
    """Lines of one or several outputs, each read in a thread of its own; `close` may be called from any thread.

    A read that is blocked in the plugin is left to its thread, which closes the plugin's iterator when it returns.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._lines: deque[str] = deque()
        self._room = STREAM_AHEAD
        self._readers = 0
        self._open: list[Iterable[str]] = []
        self._error: BaseException | None = None
        self._is_closed = False
        self._pattern: re.Pattern[str] | None = None

    def start(self, sources: Sequence[LogSource], pattern: re.Pattern[str] | None) -> None:
        """Read outputs; leave out lines in which a pattern is not found."""
        self._readers, self._pattern = len(sources), pattern
        for source in sources:
            threading.Thread(target=self._read, args=(source,), name="read-log", daemon=True).start()

    def make_room(self, lines: int) -> None:
        """Read this many lines more."""
        with self._changed:
            self._room += lines
            self._changed.notify_all()

    def close(self) -> None:
        """End `batches` at once."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            sources = list(self._open)
        # An iterator may end its own blocked read by this; closing may block, and a running generator refuses it.
        threading.Thread(target=_close_all, args=(sources,), name="close-log", daemon=True).start()

    def batches(self) -> Iterator[list[str]]:
        """Yield the lines that came since the last batch; raise what the plugin raised, after the lines before it."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._is_closed or self._error or not self._readers)
                lines = [*self._lines]
                self._lines.clear()
                if self._is_closed:
                    return
            if not lines:
                break
            yield lines
        if self._error is not None:
            raise self._error

    def _read(self, begin: LogSource) -> None:
        error: BaseException | None = None
        try:
            source = begin()
            with self._changed:
                self._open.append(source)
                lines = whole_lines(() if self._is_closed else source)
            for line in filter(self._pattern.search, lines) if self._pattern else lines:
                if not self._put(line):
                    break
            _close_all([source])
        except BaseException as raised:  # SystemExit too
            error = raised
        with self._changed:
            self._readers -= 1
            self._error = self._error or error
            self._changed.notify_all()

    def _put(self, line: str) -> bool:
        """Add a line when there is room; return whether more are wanted."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._room > 0)
            self._room -= 1
            self._lines.append(line)
            self._changed.notify_all()
            return not self._is_closed


def _close_all(sources: Sequence[Iterable[str]]) -> None:
    for source in sources:
        with suppress(Exception):
            source.close()  # type: ignore[attr-defined]


def whole_lines(pieces: Iterable[str]) -> Iterator[str]:
    r"""Yield whole lines, each with its ``\n`` but perhaps the last.

    Args:
        pieces: lines, parts of lines, or several at once; a plugin that leaves all ends out gives a line each.
    """
    rest: list[str] = []
    ends_seen = lines_without_end = False
    for piece in pieces:
        for part in split_lines(str(piece)):
            if part.endswith("\n"):
                ends_seen = True
                yield "".join([*rest, part])
                rest.clear()
            elif part and lines_without_end and not ends_seen:
                yield f"{part}\n"
            elif part:
                rest.append(part)
        if not ends_seen and len(rest) >= _ENDLESS_PIECES:
            lines_without_end = True
            yield from (f"{line}\n" for line in rest)
            rest.clear()
    if rest:
        yield "".join(rest)
