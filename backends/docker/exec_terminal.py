"""Runs a program in a container on this terminal, where Docker's own client is not installed.

    python -m torchx_tui.backends.docker.exec_terminal CONTAINER PROGRAM [ARGUMENT...]

Which engine that is, is looked up as Docker's client does; the exit code is the program's.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ...specs import TorchXTuiError
from .engine import Engine

_READ = 1 << 16


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a program in a container until it ends; return its exit code."""
    container, *command = sys.argv[1:] if arguments is None else arguments
    engine = Engine()
    try:
        with engine.in_words():
            return _run(engine, container, command)
    except TorchXTuiError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        engine.close()


def _run(engine: Engine, container: str, command: Sequence[str]) -> int:
    # One client asks for the sizes, while another's connection is the terminal's.
    api = engine.client().api
    relaying = engine.new_client(None)
    environment = {"TERM": os.environ.get("TERM", "xterm")}
    asked = api.exec_create(container, list(command), stdin=True, tty=True, environment=environment)["Id"]
    answer: Any = relaying.api.exec_start(asked, tty=True, socket=True)
    connection = getattr(answer, "_sock", answer)
    with suppress(OSError, AttributeError):
        connection.settimeout(None)
    with _raw(sys.stdin.fileno()), _told_of_resizes() as resized:
        _relay(connection, resized, lambda: _resize(api, asked))
    relaying.close()
    return api.exec_inspect(asked)["ExitCode"] or 0


def _relay(connection: Any, resized: int, resize: Any) -> None:
    """Carry keys to the program and its output back until one side ends."""
    keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
    resize()
    sources = [connection, keys, resized]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if resized in ready:
            os.read(resized, _READ)
            resize()
        if connection in ready:
            data = connection.recv(_READ)
            if not data:
                return
            _write_all(screen, data)
        if keys in ready:
            data = _read_keys(keys)
            if data:
                connection.sendall(data)
            else:
                sources.remove(keys)
                with suppress(OSError):
                    connection.shutdown(1)


def _read_keys(keys: int) -> bytes:
    """Return what was typed; nothing once the terminal is gone."""
    try:
        return os.read(keys, _READ)
    except OSError:
        return b""


def _write_all(screen: int, data: bytes) -> None:
    while data:
        data = data[os.write(screen, data) :]


def _resize(api: Any, asked: str) -> None:
    size = shutil.get_terminal_size()
    with suppress(Exception):  # a program that has just ended has no size
        api.exec_resize(asked, height=size.lines, width=size.columns)


@contextmanager
def _raw(terminal: int) -> Iterator[None]:
    """Within this, a terminal gives each key as it is; what is no terminal is left alone."""
    if not os.isatty(terminal):
        yield
        return
    before = termios.tcgetattr(terminal)
    try:
        # What was typed ahead is kept.
        tty.setraw(terminal, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def _told_of_resizes() -> Iterator[int]:
    """Give a descriptor that can be read when the terminal's size has changed."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    os.set_blocking(writing, False)
    wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    before = signal.signal(signal.SIGWINCH, lambda *_: None)
    try:
        yield reading
    finally:
        signal.signal(signal.SIGWINCH, before)
        signal.set_wakeup_fd(wakeup)
        os.close(reading)
        os.close(writing)


if __name__ == "__main__":
    sys.exit(main())
