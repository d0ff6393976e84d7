"""Reads the logs of a plugin: its outputs side by side, as whole lines, as far as there is room for them."""

from __future__ import annotations

import queue
import re
import threading
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
        # Lines; at the end of each output None, or what was raised there.
        self._items: queue.SimpleQueue[str | BaseException | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(STREAM_AHEAD)
        self._readers = 0
        self._open: list[Iterable[str]] = []
        self._is_closed = False

    def start(self, sources: Sequence[LogSource], pattern: re.Pattern[str] | None) -> None:
        """Read outputs; leave out lines in which a pattern is not found."""
        self._readers = len(sources)
        for source in sources:
            threading.Thread(target=self._read, args=(source, pattern), name="read-log", daemon=True).start()

    def make_room(self, lines: int) -> None:
        """Read this many lines more."""
        self._room.release(lines)

    def close(self) -> None:
        """End `batches` at once."""
        self._is_closed = True
        self._items.put(None)
        self.make_room(1 + self._readers)
        # An iterator may end its own blocked read by this; closing may block, and a running generator refuses it.
        threading.Thread(target=_close_all, args=([*self._open],), name="close-log", daemon=True).start()

    def batches(self) -> Iterator[list[str]]:
        """Yield the lines that came since the last batch; raise what the plugin raised, after the lines before it."""
        left = self._readers
        while left:
            items = [self._items.get()]
            with suppress(queue.Empty):
                while True:
                    items.append(self._items.get_nowait())
            if self._is_closed:
                return
            if lines := [item for item in items if isinstance(item, str)]:
                yield lines
            for error in items:
                if isinstance(error, BaseException):
                    raise error
            left -= items.count(None)

    def _read(self, begin: LogSource, pattern: re.Pattern[str] | None) -> None:
        try:
            source = begin()
            self._open.append(source)
            lines = whole_lines(() if self._is_closed else source)
            for line in filter(pattern.search, lines) if pattern else lines:
                self._room.acquire()
                if self._is_closed:
                    break
                self._items.put(line)
            _close_all([source])
            self._items.put(None)
        except BaseException as raised:  # SystemExit too
            self._items.put(raised)


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
