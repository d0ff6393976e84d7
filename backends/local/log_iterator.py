"""Reads one replica's log line by line, and on while it grows."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from ..logs.line_assembler import LineAssembler
from ..logs.stream import Record
from ..responses import Stream
from .log_reader import CombinedPieces, FilePieces

# How long to wait for more: short after something came, longer when it has been quiet for 2 s and for 30 s.
_WAITS = ((2.0, 0.02), (30.0, 0.05), (float("inf"), 0.2))
_LETTERS = {Stream.STDOUT: "o", Stream.STDERR: "e"}


class Outlook(Protocol):
    """What is to be known of the app that writes."""

    over: bool
    """Nothing is written any more."""

    supervised: bool
    """combined.log grows."""


class LocalLogIterator:
    """The lines of one replica.

    ``close`` from any thread ends the iteration, a blocked read too. ``iterator[50]`` goes to the line of that number,
    counted from 0 among those that qualify, and returns it; the next one follows it.

    Args:
        folder: the replica's folder.
        stream: which output.
        look: tells how the app is doing.
        regex: only lines in which this is found.
        since: only lines from this time on, in epoch seconds.
        until: only lines up to this time, in epoch seconds.
        should_tail: wait for more until nothing is written any more.
    """

    def __init__(
        self,
        folder: Path,
        stream: Stream,
        look: Callable[[], Outlook],
        *,
        regex: re.Pattern[str] | None = None,
        since: float | None = None,
        until: float | None = None,
        should_tail: bool = False,
    ) -> None:
        self._folder = folder
        self._stream = stream
        self._look = look
        self._regex = regex
        self._since = since
        self._until = until
        self._should_tail = should_tail
        self._closed = threading.Event()
        self._begin()

    def _begin(self) -> None:
        letter = _LETTERS.get(self._stream)
        # Times are in the index of combined.log alone.
        timed = self._since is not None or self._until is not None
        self._letters = letter or "oec"
        self._combined = CombinedPieces(self._folder) if timed or letter is None else None
        self._files = [] if self._combined else [FilePieces(self._folder / f"{self._stream.value}.log", self._letters)]
        self._assembler = LineAssembler()
        self._lines: deque[str] = deque()
        self._line_number = 0
        self._ended = False
        self._active_at = time.monotonic()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while not self._lines:
            if self._ended or self._closed.is_set():
                self._release()
                raise StopIteration
            self._fill()
        self._line_number += 1
        return self._lines.popleft()

    def __getitem__(self, number: int) -> str:
        if number < 0:
            raise IndexError(f"line {number}: lines are counted from 0")
        if number < self._line_number:
            self._release()
            self._begin()
        for line in self:
            if self._line_number == number + 1:
                return line
        raise IndexError(f"line {number}: there are {self._line_number}")

    def close(self) -> None:
        """End the iteration at once; may be called again, from any thread."""
        self._closed.set()

    def _fill(self) -> None:
        """Read once; wait, or end, when there was nothing to read."""
        outlook = self._look()  # before reading: what is over has nothing to add after that
        pieces = self._read(outlook)
        if pieces:
            self._active_at = time.monotonic()
            for piece in pieces:
                if piece.stream in self._letters:
                    self._take(self._assembler.add(piece))
        elif outlook.over or not self._should_tail or self._is_past_until():
            self._take(self._assembler.rest())
            self._ended = True
        else:
            quiet = time.monotonic() - self._active_at
            self._closed.wait(next(wait for limit, wait in _WAITS if quiet < limit))

    def _read(self, outlook: Outlook) -> list[Record]:
        if self._combined and not self._files:
            pieces = self._combined.read()
            if not pieces and (outlook.over or not outlook.supervised):
                self._files = self._combined.rest(self._folder)
            else:
                return pieces
        return [piece for file in self._files for piece in file.read()]

    def _take(self, lines: list[tuple[float | None, bytes]]) -> None:
        for at, data in lines:
            if self._since is not None and at is not None and at < self._since:
                continue
            if self._until is not None and at is not None and at > self._until:
                self._ended = True
                return
            line = data.decode("utf-8", "replace")
            if self._regex is None or self._regex.search(line):
                self._lines.append(line)

    def _is_past_until(self) -> bool:
        # A second of room: a line may be on its way into combined.log.
        return self._until is not None and time.time() > self._until + 1.0

    def _release(self) -> None:
        for source in (self._combined, *self._files):
            if source:
                source.close()
