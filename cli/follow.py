"""Waiting for a job that was just launched, with its logs on stderr, until it ends or somebody has enough."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ..base.errors import TorchXTuiError
from ..specs.errors import UnknownAppException
from ..specs.status import is_terminal
from .output import say
from .status import WAIT_INTERVAL_SECONDS, say_outage

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..specs.status import AppStatus

_PID_INTERVAL_S = 0.1


class Interrupted(KeyboardInterrupt):
    """A signal asks this process to end.

    Args:
        number: the signal's number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def interruptible() -> Iterator[None]:
    """Make SIGINT and SIGTERM raise `Interrupted`, so that jobs are not left behind unsaid."""

    def interrupt(number: int, _frame: object) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def suspending(runner: Runner, handle: str) -> Iterator[None]:
    """Stop a local job that reads this terminal while this process is suspended by Ctrl-Z, as a shell would.

    The job has a session of its own, so that the terminal does not stop it: it would take keys from the shell.
    """
    groups: list[int] = []

    def find_groups() -> None:
        # The first process of a replica leads its process group. It is looked up here: a signal handler takes no lock.
        with suppress(TorchXTuiError, OSError):
            while (status := runner.job(handle).status()) is not None and not is_terminal(status.state):
                groups[:] = [one.pid for role in status.roles for one in role.replicas if one.pid]
                if groups:
                    return
                time.sleep(_PID_INTERVAL_S)

    def send(number: int) -> None:
        for group in groups:
            with suppress(OSError):
                os.killpg(group, number)

    def hang_up(_number: int, _frame: object) -> None:
        send(signal.SIGCONT)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGHUP)

    def suspend(_number: int, _frame: object) -> None:
        send(signal.SIGSTOP)
        on_hang_up = signal.signal(signal.SIGHUP, hang_up)
        try:
            os.kill(os.getpid(), signal.SIGSTOP)
        finally:
            send(signal.SIGCONT)
            signal.signal(signal.SIGHUP, on_hang_up)

    threading.Thread(target=find_groups, name="find-pids", daemon=True).start()
    before = signal.signal(signal.SIGTSTP, suspend)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)


def follow(runner: Runner, handle: str, *, logs: bool) -> AppStatus:
    """Wait for a job's end and return its status.

    Args:
        runner: the way to its backend.
        handle: the job's handle.
        logs: print what its replicas write on stderr meanwhile.

    Raises:
        UnknownAppException: the job is gone.
    """
    if logs:
        from .logs import follow_logs

        try:
            follow_logs(runner, handle, sys.stderr)
        except (TorchXTuiError, ValueError, OSError) as error:
            say(f"the logs cannot be read: {error}; still waiting for the job's end")
    status = runner.job(handle).wait(WAIT_INTERVAL_SECONDS, on_lost=say_outage)
    if status is None:
        raise UnknownAppException(handle)
    return status


def end_or_leave(runner: Runner, handle: str, interrupt: KeyboardInterrupt, *, ends: bool) -> int:
    """Do what a signal asks for, and return the exit code of who was ended by it.

    Args:
        runner: the way to the backend.
        handle: the job's handle; empty where it was interrupted before there was one.
        interrupt: what was raised.
        ends: the job ends with this command; else it goes on.
    """
    # After a second signal nothing is waited for: it ends this process as it would any other.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    code = 128 + getattr(interrupt, "number", signal.SIGINT)
    if not ends:
        if handle:
            say(f"{handle} continues; `torchx-tui cancel {handle}` ends it")
        return code
    runner.end_own_jobs()
    if handle:
        runner.job(handle).cancel()
        say(f"cancelled {handle}")
    return code
