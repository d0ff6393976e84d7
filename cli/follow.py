"""Wait for a launched job until it ends or a signal interrupts, with its logs on stderr."""

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
from ..specs.status import is_terminal
from .jobs import wait_for_job
from .output import say

if TYPE_CHECKING:
    from ..backends.job import Job
    from ..backends.runner import Runner
    from ..specs.status import AppStatus

_PID_INTERVAL_S = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
    """Make SIGINT and SIGTERM raise `Interrupted`, so that the fate of the job can be reported."""

    def interrupt(number: int, _frame: object) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def suspending(job: Job) -> Iterator[None]:
    """Stop a local job that reads this terminal while Ctrl-Z suspends this process, as a shell would.

    The terminal does not stop the job, which has a session of its own: it would take keys from the shell.
    """
    groups: list[int] = []

    def find_groups() -> None:
        # The first process of a replica leads its process group. Look it up early: a signal handler must take no lock.
        with suppress(TorchXTuiError, OSError):
            while not groups and (status := job.status()) is not None and not is_terminal(status.state):
                groups[:] = [one.pid for role in status.roles for one in role.replicas if one.pid]
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


def follow(job: Job, *, logs: bool) -> AppStatus:
    """Wait for a job's end and return its status; with ``logs``, print its logs on stderr.

    Raises:
        UnknownAppException: its backend no longer knows it.
    """
    if logs:
        from .logs import follow_logs

        try:
            follow_logs(job, sys.stderr)
        except (TorchXTuiError, ValueError, OSError) as error:
            say(f"the logs cannot be read: {error}; still waiting for the job to end")
    return wait_for_job(job)


def end_or_leave(runner: Runner, handle: str, interrupt: KeyboardInterrupt, *, ends: bool) -> int:
    """Cancel the job of an interrupted launch or report that it continues; return the exit code of the signal.

    Args:
        runner: launched the job.
        handle: the job's handle; empty if the signal came before the job was launched.
        interrupt: the exception of the signal.
        ends: cancel the job.
    """
    # A second signal ends this process at once.
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    if ends:
        runner.end_own_jobs()
        if handle:
            runner.job(handle).cancel()
            say(f"cancelled {handle}")
    elif handle:
        say(f"{handle} continues; `torchx-tui cancel {handle}` ends it")
    return 128 + getattr(interrupt, "number", signal.SIGINT)
