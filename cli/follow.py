"""Waiting for a job that was just launched, with its logs on stderr, until it ends or somebody has enough."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..specs import TorchXTuiError, UnknownAppException
from .output import say
from .status import WAIT_INTERVAL_SECONDS, say_outage

if TYPE_CHECKING:
    from ..backends.runner import Runner
    from ..specs import AppStatus


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
    status = runner.wait(handle, WAIT_INTERVAL_SECONDS, on_lost=say_outage)
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
        runner.cancel(handle)
        say(f"cancelled {handle}")
    return code
