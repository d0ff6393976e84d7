"""The installed command in a pseudo-terminal, with real local jobs, for the benchmarks that need all of it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("torchx-tui"))
PATIENCE_SECONDS = 60.0
_QUESTION, _ANSWER = b"\x1b[?2026$p", b"\x1b[?2026;2$y"


class Screen:
    """A program in a pseudo-terminal that takes what it is sent, and keeps it with the time at which it came.

    Args:
        argv: the program and its arguments.
        environ: its environment.
        size: columns and rows.
        rate: bytes a second that the terminal takes; as they come if None.
        answers: whether it answers that it draws whole frames, as most terminals do.
    """

    def __init__(
        self,
        argv: list[str],
        environ: dict[str, str],
        size: tuple[int, int] = (200, 50),
        *,
        rate: int | None = None,
        answers: bool = True,
    ) -> None:
        self.data = bytearray()
        self.came: list[tuple[float, int]] = []
        """When bytes came (`time.perf_counter`), and how many there were with them."""
        self._changed = threading.Condition()
        self._rate, self._answers = rate, answers
        self.began = time.perf_counter()
        """When the program was started."""
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, environ)
        fcntl.ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        asked = b""
        while True:
            try:
                data = os.read(self._file, max(1, self._rate // 100) if self._rate else 1 << 16)
            except OSError:
                data = b""
            if not data:
                return
            if self._rate:
                time.sleep(len(data) / self._rate)
            *questions, asked = (asked + data).split(_QUESTION)
            asked = asked[-len(_QUESTION) + 1 :]
            if self._answers:
                self.press(_ANSWER * len(questions))
            with self._changed:
                self.data += data
                self.came.append((time.perf_counter(), len(self.data)))
                self._changed.notify_all()

    def press(self, keys: bytes) -> None:
        """Press keys."""
        if keys:
            os.write(self._file, keys)

    def wait(self, wanted: bytes | re.Pattern[bytes], start: int = 0, patience: float = PATIENCE_SECONDS) -> float:
        """Wait until something came, at the earliest at an offset of `data`; return when the last byte of it did.

        Raises:
            TimeoutError: it did not come.
        """
        pattern = re.compile(re.escape(wanted)) if isinstance(wanted, bytes) else wanted
        with self._changed:
            if not self._changed.wait_for(lambda: pattern.search(self.data, start), patience):
                raise TimeoutError(f"{wanted!r} did not come; the last was {bytes(self.data[-400:])!r}")
            found = pattern.search(self.data, start)
            assert found is not None
            # More may have come before this thread was woken.
            end = found.end()
            return next(at for at, position in self.came if position >= end)

    def bytes_in(self, seconds: float) -> int:
        """Return how many bytes come in the next seconds."""
        before = len(self.data)
        time.sleep(seconds)
        return len(self.data) - before

    def wait_for_end(self, patience: float = PATIENCE_SECONDS) -> float:
        """Wait until the program has ended and its last bytes were read; return when (`time.perf_counter`)."""
        began = time.perf_counter()
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.perf_counter() - began > patience:
                raise TimeoutError("the program did not end")
            time.sleep(0.005)
        self.pid = 0
        self._thread.join(patience)
        return time.perf_counter()

    def close(self) -> None:
        """End the program if it still runs."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self._rate = None
        self._thread.join(5)
        os.close(self._file)


# Prints lines at a steady rate; it ends by itself.
_FLOOD = """
import sys, time
rate, seconds = float(sys.argv[1]), float(sys.argv[2])
out, began, done = sys.stdout.buffer, time.perf_counter(), 0
while (now := time.perf_counter() - began) < seconds:
    due = int(now * rate)
    out.write(b"".join(
        b"INFO trainer.loop step %7d  loss 1.6120  lr 1.71e-05  3.41 it/s  grad_norm 0.83  tokens 8192\\\\n" % number
        for number in range(done, due)))
    out.flush()
    done = due
    time.sleep(0.02)
"""
_COMPONENT = f'''
from torchx_tui.specs import AppDef, Role
FLOOD = """{_FLOOD}"""


def flood(replicas: int, rate: float, seconds: float) -> AppDef:
    """Print lines in each replica."""
    args = ["-c", FLOOD, str(rate), str(seconds)]
    return AppDef("flood", [Role("trainer", "", entrypoint={sys.executable!r}, args=args, num_replicas=replicas)])


def program(text: str) -> AppDef:
    """Run a program of Python."""
    return AppDef("program", [Role("trainer", "", entrypoint={sys.executable!r}, args=["-u", "-c", text])])
'''


class Home:
    """A home of its own, with the jobs that are launched in it."""

    def __init__(self, folder: Path) -> None:
        self.environ = {
            **os.environ,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "HOME": str(folder),
            **{f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("STATE", "CACHE", "CONFIG")},
        }
        self.components = folder / "jobs.py"
        self.components.write_text(_COMPONENT)
        self._handles: list[str] = []

    def launch(self, function: str, **arguments: object) -> None:
        """Launch a job that goes on by itself."""
        told = self._run(
            "run", "--detach", f"{self.components}:{function}", *(f"--{k}={v}" for k, v in arguments.items())
        )
        self._handles.append(told.strip())

    def cancel_all(self) -> None:
        """End the jobs that were launched."""
        while self._handles:
            self._run("cancel", self._handles.pop())

    @contextmanager
    def open(self, argv: list[str] | None = None, **options: object) -> Iterator[Screen]:
        """Open the dashboard."""
        screen = Screen(argv or [COMMAND], self.environ, **options)  # type: ignore[arg-type]
        try:
            yield screen
        finally:
            screen.close()

    def _run(self, *arguments: str) -> str:
        return subprocess.run(
            [COMMAND, *arguments],
            env=self.environ,
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        ).stdout


@contextmanager
def home() -> Iterator[Home]:
    """Make a home, and end its jobs when it is no longer needed."""
    with tempfile.TemporaryDirectory(prefix="torchx-tui-bench-", ignore_cleanup_errors=True) as folder:
        made = Home(Path(folder))
        try:
            yield made
        finally:
            made.cancel_all()


def open_logs(screen: Screen) -> None:
    """Go from the first screen to the logs of its first job, full screen."""
    screen.wait(b"trainer")
    start = len(screen.data)
    screen.press(b"l")
    screen.wait("›".encode(), start)


# What is new on screen when the lines get the time of day, and when they get that with milliseconds.
_CLOCK, _MILLISECONDS = re.compile(rb"\d\d:\d\d:\d\d[^.]"), re.compile(rb"\d\d:\d\d:\d\d\.\d\d\d")


def key_seconds(screen: Screen, count: int) -> list[float]:
    """Return how long after a key the lines were painted as it asks: ``t`` goes round four ways to show times."""
    taken = []
    for number in range(count):
        # Of four keys the first shows milliseconds, the next two, which are not timed, the time since the start and
        # nothing, the last one the time of day.
        pattern = _CLOCK if number % 2 else _MILLISECONDS
        if number % 2:
            screen.press(b"tt")
        # Keys come at no fixed point between two repaints; those of before have to be painted first.
        time.sleep(0.5 + number * 0.037 % 0.2)
        start, began = len(screen.data), time.perf_counter()
        screen.press(b"t")
        taken.append(screen.wait(pattern, start) - began)
    return taken
