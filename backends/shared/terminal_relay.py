"""This program's own terminal, handed to a program that runs elsewhere."""

from __future__ import annotations

import os
import selectors
import signal
import sys
import termios
import tty
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

READ = 1 << 16
"""Bytes that are read at once."""


def wait_readable(sources: Iterable[Any], timeout_s: float | None = None) -> list[Any]:
    """Return the descriptors and sockets that can be read, after waiting for one; descriptors may be above 1023."""
    with selectors.DefaultSelector() as selector:
        for source in sources:
            selector.register(source, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(timeout_s)]


def read_keys(keys: int) -> bytes:
    """Read what was typed; nothing once the terminal is gone."""
    try:
        return os.read(keys, READ)
    except OSError:
        return b""


def write_all(screen: int, data: bytes) -> None:
    """Write all of it, however little a terminal takes at once."""
    while data:
        data = data[os.write(screen, data) :]


def terminal_size() -> os.terminal_size:
    """Return the terminal's own size: ``COLUMNS`` and ``LINES`` in the environment are those of some time before."""
    with suppress(OSError):
        size = os.get_terminal_size(sys.stdout.fileno())
        # That of a container may not know its size yet.
        if all(size):
            return size
    return os.terminal_size((80, 24))


@contextmanager
def raw_terminal(terminal: int) -> Iterator[None]:
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
def resize_events() -> Iterator[int]:
    """Give a descriptor that can be read when the terminal's size has changed."""
    reading, writing = os.pipe()
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
