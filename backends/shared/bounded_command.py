"""A command of this machine: without a shell, bounded in time and in what it prints."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

RUN_BESIDE_S = 20.0
RUN_BESIDE_BYTES = 64 << 20
"""How long `RunsCommands` lets a command run where nothing else is said, and the most bytes that it prints."""
REPLICA_PID = "TORCHX_TUI_REPLICA_PID"
_WAIT_AFTER_END_S = 0.1
_MOST_WRITTEN, _MOST_READ = 1 << 16, 1 << 20


@dataclass(frozen=True)
class CommandOutput:
    """What a command printed, see `RunsCommands`.

    Args:
        code: its exit code; None where it was ended because it took too long.
        out: what it wrote to stdout, as far as it got.
        err: what it wrote to stderr.
    """

    code: int | None
    out: bytes
    err: bytes


def run_command(
    argv: Sequence[str],
    *,
    timeout_s: float,
    max_bytes: int,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    on_start: Callable[[subprocess.Popen[bytes]], object] = lambda _: None,
) -> CommandOutput:
    """Run a command to its end, or kill it with its children; return what it printed either way.

    Args:
        argv: the program and its arguments.
        timeout_s: seconds after which it is killed.
        max_bytes: the most bytes that it may print, both outputs together; it is killed beyond that.
        stdin: what it reads.
        env: its environment; this process's if None.
        cwd: its working folder; this process's if None.
        on_start: called with the process; another thread may kill it.

    Raises:
        OSError: it cannot be started.
        OverflowError: it printed too much.
    """
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=env, cwd=cwd, start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    read: dict[IO[bytes], list[bytes]] = {process.stdout: [], process.stderr: []}
    code = None
    try:
        on_start(process)
        with suppress(TimeoutError, subprocess.TimeoutExpired):
            deadline = time.monotonic() + timeout_s
            _communicate(process.stdin, read, stdin, deadline, max_bytes)
            code = process.wait(max(_WAIT_AFTER_END_S, deadline - time.monotonic()))
    finally:
        _end(process)
    return CommandOutput(code, b"".join(read[process.stdout]), b"".join(read[process.stderr]))


def _communicate(
    stdin: IO[bytes], read: Mapping[IO[bytes], list[bytes]], data: bytes, deadline: float, max_bytes: int
) -> None:
    """Write to a process and read what it prints until both of its outputs are closed.

    Raises:
        TimeoutError: the deadline has passed.
        OverflowError: it printed too much.
    """
    size, written = 0, 0
    with selectors.DefaultSelector() as selector:
        for pipe in read:
            selector.register(pipe, selectors.EVENT_READ)
        os.set_blocking(stdin.fileno(), False)
        if data:
            selector.register(stdin, selectors.EVENT_WRITE)
        else:
            stdin.close()
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            for key, _ in selector.select(left):
                if key.fileobj is stdin:
                    written += _write(stdin, data[written : written + _MOST_WRITTEN])
                    if written >= len(data):
                        selector.unregister(stdin)
                        stdin.close()
                    continue
                pipe = next(pipe for pipe in read if pipe is key.fileobj)
                piece = os.read(pipe.fileno(), _MOST_READ)
                if not piece:
                    selector.unregister(pipe)
                read[pipe].append(piece)
                size += len(piece)
                if size > max_bytes:
                    raise OverflowError


def _write(pipe: IO[bytes], data: bytes) -> int:
    """Write to a pipe; a reader that has gone is given all there is."""
    try:
        return os.write(pipe.fileno(), data)
    except BrokenPipeError:
        return sys.maxsize


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes of a process, and kill its group where it still runs."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        with suppress(OSError):
            if pipe is not None:
                pipe.close()
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
