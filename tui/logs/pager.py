"""The plain view: a log as text in the person's own pager, or printed on the bare terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import BinaryIO

from ..format import count
from ..terminal.external import wait_for
from .session import AnyLog
from .text import LineForm, whole_lines

# Lines that a pager gets at most: less goes to the end, and has to read all of them before.
MOST_LINES = 200_000
# Lines that are printed where there is no pager.
MOST_PRINTED = 5_000
# How long lines are indexed in one step (s).
_STEP = 0.05


def pager_command(environ: Mapping[str, str] | None = None) -> list[str]:
    """Return the pager's argument list: ``$PAGER``, else less at the end of the text; empty where there is none.

    Raises:
        ValueError: ``$PAGER`` cannot be parted into arguments.
    """
    environ = os.environ if environ is None else environ
    chosen = shlex.split(environ.get("PAGER", ""))
    if chosen:
        return chosen
    return ["less", "-R", "+G"] if shutil.which("less", path=environ.get("PATH")) else []


def plain_lines(log: AnyLog, form: LineForm, most: int = MOST_LINES) -> Iterator[str]:
    """Yield a log's last lines as safe text; where that is not all of them, the first line says so.

    Args:
        log: the log, not opened yet; it is closed in the end.
        form: how each line is written.
        most: how many lines.
    """
    try:
        log.open()
        older = True
        while older and log.bounds().end - log.bounds().first <= most:
            older = log.read_older(_STEP, most + 1)
        first, end, *_ = log.bounds()
        start = max(first, end - most)
        if start > first:
            yield f"[the last {count(end - start, 'line')}; to read all of them, save the log]"
        for line in whole_lines(log, start, end):
            yield form.text(line)
    finally:
        log.close()


def show_plain(lines: Iterator[str], command: list[str]) -> str:
    """Show lines in a pager, and wait for its end; the app is suspended meanwhile.

    Args:
        lines: the lines; they are written in a thread while the pager runs.
        command: the pager's argument list; where it is empty, the lines are printed, and enter ends the view.

    Returns:
        why there is no such view, as a sentence; empty where there was.
    """
    if not command:
        return _print(lines)
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return f"the pager {command[0]} cannot be started: {reason}; set PAGER to another one"
    assert pager.stdin is not None
    stop = threading.Event()
    threading.Thread(target=_feed, args=(pager.stdin, lines, stop), name="log-pager", daemon=True).start()
    status = wait_for(pager)
    stop.set()
    # A pager that a signal ended, such as ctrl+c's, has done what it was to do.
    return f"the pager {command[0]} ended with exit code {status}" if 1 < status < 128 else ""


def _feed(pipe: BinaryIO, lines: Iterator[str], stop: threading.Event) -> None:
    """Write lines until the pager has all of them, or is gone."""
    # A pager may be left before it has read everything.
    with suppress(BrokenPipeError, OSError):
        while not stop.is_set() and (batch := list(islice(lines, 500))):
            pipe.write("".join(f"{line}\n" for line in batch).encode())
            pipe.flush()
    with suppress(OSError):
        pipe.close()
    close = getattr(lines, "close", None)
    if close is not None:
        close()


def _print(lines: Iterator[str]) -> str:
    """Write lines to the terminal and wait for enter."""
    import sys

    output, answer = sys.__stdout__, sys.__stdin__
    if output is None or answer is None:
        return "there is no terminal to print to"
    with suppress(OSError, KeyboardInterrupt):
        for line in lines:
            output.write(line + "\n")
        output.write("\nenter: back to torchx-tui\n")
        output.flush()
        answer.readline()
    return ""
