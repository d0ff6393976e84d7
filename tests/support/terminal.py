"""The installed command in a real pseudo-terminal, read through a terminal emulator."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pyte
from ptyprocess import PtyProcess

from .waiting import PATIENCE, wait_until

COMMAND = str(Path(sys.executable).with_name("torchx-tui"))

KEYS = {
    "enter": "\r",
    # As of a terminal that tells keys apart: an escape alone, followed at once, would be alt with the next key.
    "escape": "\x1b[27u",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "backspace": "\x7f",
    "space": " ",
    **{f"ctrl+{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}

# What the emulator would print as text or take for something else, since it does not know it: queries and modes of the
# keyboard and of drawing, and the pointer's shape, in which it would see a title. Colours, most of what is sent, are
# left out as well: nobody reads them, and the emulator takes long for them.
_UNKNOWN = re.compile(
    rb"\x1b\[[0-9;]*m|\x1b\[[<>=?]?[0-9;]*(?:\$p|u|q|t)|\x1b\[>[0-9;]*[a-zA-Z]|\x1bP.*?\x1b\\"
    rb"|\x1b\]22;[^\x07\x1b]*(?:\x07|\x1b\\)",
    re.DOTALL,
)

# Modern terminals say that they draw whole frames at once; so does this one, and no test sees half a frame.
_ASKS_FRAMES, _HAS_FRAMES = b"\x1b[?2026$p", b"\x1b[?2026;2$y"
_FRAME, _FRAME_END = b"\x1b[?2026h", b"\x1b[?2026l"

# The emulator knows one screen only: what the other one showed must not be taken for what this one shows.
_OTHER_SCREEN = re.compile(rb"\x1b\[\?1049[hl]")
_ERASE = b"\x1b[2J\x1b[H"
# A sequence of which only the beginning has come: of control characters, of a string, or of the others.
_BEGUN = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)\Z")


def _whole(data: bytes) -> tuple[bytes, bytes]:
    """Return what can be drawn now, and what waits for its rest: a frame, or a sequence that a read has cut in two."""
    frame = data.rfind(_FRAME)
    if frame > data.rfind(_FRAME_END):
        return data[:frame], data[frame:]
    cut = _BEGUN.search(data)
    return (data[: cut.start()], data[cut.start() :]) if cut else (data, b"")


class Terminal:
    """A program in a pseudo-terminal of its own.

    Args:
        arguments: the argument list; the installed command if None.
        size: columns and rows.
        environ: changes to this process's environment.
        cwd: where it is started.
        rate: bytes a second that the terminal takes, as over a slow link; as they come if None.
    """

    def __init__(
        self,
        arguments: list[str] | None = None,
        size: tuple[int, int] = (120, 40),
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        rate: int | None = None,
    ) -> None:
        columns, rows = size
        changes = dict(environ or {})
        if "PYTHONPATH" in changes and "PYTHONPATH" in os.environ:
            changes["PYTHONPATH"] += os.pathsep + os.environ["PYTHONPATH"]
        self.rate = rate
        self.raw = bytearray()
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        # What the screen showed when it was looked at last, until more is drawn.
        self._seen: list[str] | None = None
        self.process = PtyProcess.spawn(
            arguments or [COMMAND],
            dimensions=(rows, columns),
            env={**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **changes},
            cwd=str(cwd) if cwd else None,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_exc: object) -> None:
        if self.process.isalive():
            self.process.kill(signal.SIGKILL)
            # To close a program that is still there some tenths of a second later is an error.
            wait_until(lambda: not self.process.isalive(), "the end of a program that was killed")
        self.process.close(force=True)

    @property
    def pid(self) -> int:
        """The program's process id."""
        return self.process.pid

    def _read(self) -> None:
        pending = question = b""
        while True:
            rate = self.rate
            try:
                data = self.process.read(max(1, rate // 50) if rate else 65536)
            except (EOFError, OSError, ValueError):
                break
            if rate:
                time.sleep(len(data) / rate)
            # A question may be cut in two by a read.
            *asked, question = (question + data).split(_ASKS_FRAMES)
            question = question[-len(_ASKS_FRAMES) + 1 :]
            with self._lock:
                self.raw += data
                ready, pending = _whole(pending + data)
                if ready:
                    self._stream.feed(_OTHER_SCREEN.sub(_ERASE, _UNKNOWN.sub(b"", ready)))
                    self._seen = None
            # Like a terminal that is busy drawing, it answers after it has drawn.
            with suppress(OSError, ValueError):
                self.process.write(_HAS_FRAMES * len(asked))
        with self._lock:
            self._stream.feed(_UNKNOWN.sub(b"", pending))
            self._seen = None

    def press(self, *keys: str, wait: str | Callable[[str], object] | None = None, patience: float = PATIENCE) -> None:
        """Press keys, and wait for what they show, see `wait`.

        Names are Textual's; the letters of other texts come together, as from a slow link.
        """
        for key in keys:
            self.process.write(KEYS.get(key, key).encode())
            time.sleep(0.02)
        if wait:
            self.wait(wait, patience)

    def lines(self) -> list[str]:
        """Return the rows of the screen."""
        with self._lock:
            if self._seen is None:
                # As `display`, without asking each character for its width: behind a wide one stands an empty text.
                columns, rows = range(self._screen.columns), range(self._screen.lines)
                buffer = self._screen.buffer
                self._seen = ["".join([buffer[y][x].data for x in columns]).rstrip() for y in rows]
            return list(self._seen)

    def text(self) -> str:
        """Return the screen."""
        return "\n".join(self.lines())

    @property
    def title(self) -> str:
        """The window title that the program set."""
        with self._lock:
            return self._screen.title

    def wait(self, wanted: str | Callable[[str], object], patience: float = PATIENCE) -> str:
        """Wait until a pattern is on the screen, or a test of its text holds; return the text.

        Raises:
            AssertionError: it did not come; the message shows the screen.
        """
        test = wanted if callable(wanted) else re.compile(wanted, re.MULTILINE).search
        deadline = time.monotonic() + patience
        before = None
        while True:
            text = self.text()
            if (text != before or callable(wanted)) and test(text):
                return text
            before = text
            if ended := not self.process.isalive():
                self._read_rest()
                if test(text := self.text()):
                    return text
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"waited for {wanted!r}, the screen shows:\n{text}\n{self._end()}")
            time.sleep(0.03)

    def _read_rest(self) -> None:
        """Read what the program, which has ended, wrote last, at once also where the terminal was slow."""
        self.rate = None
        self._reader.join(PATIENCE)

    def _end(self) -> str:
        """Return how the program ended, if it has, and the last lines of its log file."""
        log = Path(os.environ.get("XDG_STATE_HOME", "/nonexistent"), "torchx-tui", "torchx-tui.log")
        tail = log.read_text(errors="replace")[-3000:] if log.exists() else "no log file"
        ended = "" if self.process.isalive() else f"exit {self.process.exitstatus}, {self.process.signalstatus}; "
        return f"{ended}{bytes(self.raw[-200:])!r}\n{tail}"

    def wait_for_end(self, patience: float = PATIENCE) -> int:
        """Wait for the program's end and return its exit status."""
        deadline = time.monotonic() + patience
        while self.process.isalive():
            if time.monotonic() > deadline:
                raise AssertionError(f"still running, the screen shows:\n{self.text()}")
            time.sleep(0.03)
        self._read_rest()
        status = self.process.exitstatus
        return status if status is not None else -(self.process.signalstatus or 0)
