"""Print the logs of replicas: unchanged bytes to a pipe, sanitized text and progress bars to a terminal, or JSON."""

from __future__ import annotations

import abc
import json
import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TextIO

from ..logs.text.cells import char_width
from ..logs.text.sanitize import plain, sanitize
from ..logs.text.shown import LINE_CAP, cap_line
from .output import green, terminal_width

if TYPE_CHECKING:
    import re

    from ..logs.source.stream import Record

# Role and number of the replica.
Target = tuple[str, int]
# Role, number of the replica, and letter of the stream.
StreamKey = tuple[str, int, str]

# Show an unfinished line after this time (s): it is then a progress bar or a prompt, not a line still being written.
_UNFINISHED_S = 0.2


@dataclass
class _Unfinished:
    """A line without a line feed so far.

    Attributes:
        data: its bytes; a terminal keeps only those that may still be visible.
        since: the arrival of its first byte (`time.monotonic`).
        changed: the arrival of its last byte.
    """

    data: bytearray = field(default_factory=bytearray)
    since: float = 0.0
    changed: float = 0.0


class LogPrinter(abc.ABC):
    """Printer that joins the bytes of each stream of each replica to lines.

    Args:
        file: where lines are printed.
        pattern: print only lines that contain a match.
    """

    def __init__(self, file: TextIO, pattern: re.Pattern[str] | None = None) -> None:
        self.file = file
        self.pattern = pattern
        self.has_printed = False
        self._unfinished: dict[StreamKey, _Unfinished] = {}

    def add(self, target: Target, record: Record) -> None:
        """Print the lines that a record completes, and buffer the rest."""
        key = (*target, record.stream)
        line = self._unfinished.setdefault(key, _Unfinished())
        rest = record.data
        if b"\n" in rest:
            *whole, rest = (bytes(line.data) + rest).split(b"\n")
            line.data.clear()
            for text in whole:
                self._print_matching(key, text + b"\n")
        if rest:
            line.changed = time.monotonic()
            line.since = line.since if line.data else line.changed
            line.data += rest
            self._shorten(line.data)
        self.file.flush()

    def end(self, target: Target) -> None:
        """Print the last line of a replica's log if it has no line feed."""
        for key in [key for key in self._unfinished if key[:2] == target]:
            if line := self._unfinished.pop(key).data:
                self._print_matching(key, bytes(line))
        self.file.flush()

    def refresh(self) -> None:
        """Draw unfinished lines; called several times a second."""
        return

    def pause(self) -> None:
        """End the current line, so that a message can follow on a new one."""
        return

    def _print_matching(self, key: StreamKey, line: bytes) -> None:
        if self.pattern is None or self.pattern.search(line.decode("utf-8", "replace")):
            self.has_printed = True
            self._print(key, line)

    def _shorten(self, data: bytearray) -> None:
        """Remove bytes of an unfinished line that are no longer visible."""
        return

    @abc.abstractmethod
    def _print(self, key: StreamKey, line: bytes) -> None:
        """Print one line, with its line feed if it has one."""


def log_printer(file: TextIO, pattern: re.Pattern[str] | None = None) -> LogPrinter:
    """Return the printer for a terminal, or for a pipe or file."""
    return (TerminalPrinter if file.isatty() else BytesPrinter)(file, pattern)


class JsonPrinter(LogPrinter):
    """Printer of one JSON object per line."""

    def _print(self, key: StreamKey, line: bytes) -> None:
        role, k, _ = key
        text = line.decode("utf-8", "replace").removesuffix("\n")
        self.file.write(json.dumps({"role": role, "replica": k, "line": text}) + "\n")


class BytesPrinter(LogPrinter):
    """Printer of unchanged complete lines, each with the name of its replica as prefix."""

    _is_within_line = False

    def _print(self, key: StreamKey, line: bytes) -> None:
        self.pause()
        self.file.buffer.write(f"{_label(key)} ".encode() + line)
        self._is_within_line = not line.endswith(b"\n")

    def pause(self) -> None:
        if self._is_within_line:
            self.file.buffer.write(b"\n")
            self._is_within_line = False


class TerminalPrinter(LogPrinter):
    """Printer of sanitized lines, with the most recently changed unfinished line below them unless there is a pattern.

    Text appended to the shown line is written after it, so that input typed at a prompt stays on the screen. Any other
    change redraws the line.
    """

    _shown = ""
    _shown_key: StreamKey | None = None

    def refresh(self) -> None:
        lines = [(line.changed, key) for key, line in self._unfinished.items() if line.data]
        if self.pattern is not None or not lines:
            return
        _, key = max(lines)
        line = self._unfinished[key]
        if time.monotonic() - line.since >= _UNFINISHED_S:
            text = _first_cells(_shown_text(bytes(line.data)), terminal_width(self.file) - len(_label(key)) - 2)
            if (text, key) != (self._shown, self._shown_key):
                self._write(key, text)
                self._shown, self._shown_key = text, key
                self.file.flush()

    def pause(self) -> None:
        if self._shown_key is not None:
            self.file.write("\n")
            self._shown_key = None
            self.file.flush()

    def _print(self, key: StreamKey, line: bytes) -> None:
        self._write(key, _shown_text(line.removesuffix(b"\n")))
        self.file.write("\n")
        self._shown_key = None

    def _write(self, key: StreamKey, text: str) -> None:
        if self._shown_key == key and text.startswith(self._shown):
            self.file.write(text[len(self._shown) :])
            return
        erase = "" if self._shown_key is None else "\r\x1b[K"
        self.file.write(f"{erase}{green(_label(key), self.file)} {text}")

    def _shorten(self, data: bytearray) -> None:
        # A progress bar that runs for days is a single line.
        if len(data) > 2 * LINE_CAP and b"\r" in data[-LINE_CAP:]:
            data[:] = cap_line(bytes(data))[0]


@lru_cache(maxsize=1024)
def _label(key: StreamKey) -> str:
    role, k, _ = key
    return f"{plain(role)}/{k}"


def _shown_text(line: bytes) -> str:
    """Return the text that a terminal would show at the end of a line, such as the last frame of a progress bar."""
    if len(line) > LINE_CAP and b"\r" in line[-LINE_CAP:]:
        line, _ = cap_line(line)
    return sanitize(line, limit=len(line)).text


def _first_cells(text: str, cells: int) -> str:
    """Cut a text to a number of terminal cells."""
    for at, char in enumerate(text):
        cells -= char_width(char)
        if cells < 0:
            return text[:at]
    return text
