"""What the signals that end a program do: SIGHUP leaves every job alone, SIGTERM and SIGINT end this process's own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

# How long SIGINT goes on to end nothing after another program had the terminal (s).
_INTERRUPTS_PASS = 0.2


class Ended(BaseException):
    """A signal that ends the app came while another program had the terminal and the event loop stood still."""


def stop_group() -> bool:
    """Stop this process and its group until the shell continues them; return False without a shell that could."""
    if not _has_job_control():
        return False
    # The whole group, since the shell waits for its first process, such as `make` or `uv run`.
    os.killpg(os.getpgrp(), signal.SIGTSTP)
    return True


def _has_job_control() -> bool:
    import psutil

    group, pid = os.getpgrp(), os.getpid()
    try:
        while pid and os.getpgid(pid) == group:
            pid = psutil.Process(pid).ppid()
        return pid > 0 and os.getsid(pid) == os.getsid(0)
    except (OSError, psutil.Error):
        return False


class Signals:
    """Handles signals on the event loop. Outside the main thread, as in tests, it does nothing.

    Args:
        end: called with whether the jobs of this process are ended as well.
    """

    def __init__(self, end: Callable[[bool], None]) -> None:
        self._end = end

    def install(self) -> None:
        """Take the signals over."""
        loop = asyncio.get_running_loop()
        for number, ends_jobs in ((signal.SIGHUP, False), (signal.SIGTERM, True), (signal.SIGINT, True)):
            try:
                loop.add_signal_handler(number, partial(self._end, ends_jobs))
            except (NotImplementedError, RuntimeError, ValueError):
                return

    @contextmanager
    def lend_terminal(self) -> Iterator[None]:
        """Leave SIGINT to the program that has the terminal; raise `Ended` in the block on SIGTERM and SIGHUP.

        The block ends early then, and the event loop handles the signal as usual.
        """
        loop = asyncio.get_running_loop()
        try:
            loop.remove_signal_handler(signal.SIGINT)
            # A handler, since the other program would inherit that a signal is ignored.
            signal.signal(signal.SIGINT, lambda *_: None)
        except (NotImplementedError, RuntimeError, ValueError):
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)}
        came: list[int] = []

        def end(number: int, _: object) -> None:
            came.append(number)
            if len(came) == 1:
                raise Ended

        try:
            for number in before:
                signal.signal(number, end)
            yield
        except Ended:
            pass
        finally:
            came.append(0)  # nothing is raised from here on
            for number, handler in before.items():
                signal.signal(number, handler)
            # Not at once: the loop has yet to see the signals of this time, which were not meant for it.
            loop.call_later(_INTERRUPTS_PASS, loop.add_signal_handler, signal.SIGINT, partial(self._end, True))
