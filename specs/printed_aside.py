"""Takes what a plugin prints, and what the programs that it starts print, away from the terminal.

Who draws on the terminal, and who reads the JSON of a command, wants nothing else there. It goes to the log file; of a
call that fails, its last line tells why. A plugin takes no signals of this program either: TorchX's own local scheduler
does, which is refused in any thread but the main one.
"""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

# Bytes of what a call printed that are kept.
_MOST = 20_000

_here = threading.local()
_installing = threading.Lock()


class Printed:
    """What was printed in one thread while a plugin worked there."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    @property
    def file(self) -> IO[bytes]:
        """A file for it; made when something is printed, or when a program is started."""
        if self._file is None:
            # Unbuffered: programs write to it as well.
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as this object
        return self._file

    def write(self, text: str) -> None:
        """Add a text; of a great deal the beginning is forgotten."""
        if self.file.tell() > 10 * _MOST:
            self.file.seek(0)
            self.file.truncate()
        self.file.write(text.encode("utf-8", "replace"))

    def text(self) -> str:
        """Return the end of it."""
        if self._file is None:
            return ""
        length = self._file.seek(0, 2)
        self._file.seek(max(0, length - _MOST))
        return self._file.read().decode("utf-8", "replace").strip()

    def close(self) -> None:
        """Free it."""
        if self._file is not None:
            self._file.close()


@contextmanager
def printed_aside() -> Iterator[Printed]:
    """Take what this thread prints away from the terminal; give what it was."""
    _install()
    before = getattr(_here, "printed", None)
    _here.printed = printed = Printed()
    try:
        yield printed
    finally:
        _here.printed = before
        printed.close()


class _ByThread:
    """Stands for a stream of `sys`: a thread in which a plugin works writes elsewhere."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write where this thread writes."""
        printed: Printed | None = getattr(_here, "printed", None)
        if printed is None:
            return self._stream.write(text)
        printed.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts where this thread writes."""
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> Any:
        """What takes bytes, where this thread writes."""
        printed: Printed | None = getattr(_here, "printed", None)
        return self._stream.buffer if printed is None else printed.file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _install() -> None:
    """Make way for it; streams that were exchanged since, as the dashboard does, are exchanged again."""
    with _installing:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and not isinstance(stream, _ByThread):
                setattr(sys, name, _ByThread(stream))
        if not hasattr(subprocess.Popen.__init__, "without_plugins"):
            subprocess.Popen.__init__ = _aside(subprocess.Popen.__init__)
            signal.signal = _unless_in_plugin(signal.signal)


def _aside(start: Any) -> Any:
    """Return what starts a program; of a plugin's, that which would be printed on our terminal is taken.

    There is no other way to the streams of a program that somebody else starts.
    """

    @functools.wraps(start)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        printed: Printed | None = getattr(_here, "printed", None)
        # Those that give more than the command and the buffer's size by position are left alone.
        if printed is not None and len(args) <= 2:
            for name in ("stdout", "stderr"):
                if kwargs.get(name) is None:
                    kwargs[name] = printed.file
            if kwargs.get("stdin") is None:
                kwargs["stdin"] = subprocess.DEVNULL
        start(self, *args, **kwargs)

    init.without_plugins = start  # type: ignore[attr-defined]
    return init


def _unless_in_plugin(handle: Any) -> Any:
    """Return what sets a signal's handler; a plugin's is not set."""

    @functools.wraps(handle)
    def set_handler(number: int, handler: Any) -> Any:
        if getattr(_here, "printed", None) is not None:
            return signal.getsignal(number)
        return handle(number, handler)

    return set_handler
