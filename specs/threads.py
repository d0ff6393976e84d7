"""Exceptions that end threads: each is logged with its traceback and shown, whoever started the thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from .errors import describe_error

_log = logging.getLogger(__name__)


def report_thread_failures(show: Callable[[str], object]) -> Callable[[], None]:
    """Log and show every exception that ends a thread of this process, from now on.

    Args:
        show: called in the thread that failed, with a sentence; the same sentence is shown once.

    Returns:
        what restores the reporter that was there before.
    """
    before = threading.excepthook
    shown: set[str] = set()

    def report(failure: threading.ExceptHookArgs) -> None:
        name = failure.thread.name if failure.thread is not None else "a thread"
        error = failure.exc_value or failure.exc_type()
        _log.error("the thread %s ended", name, exc_info=error)
        sentence = f"{name} stopped: {describe_error(error)}; the log file says more"
        if sentence not in shown:
            shown.add(sentence)
            show(sentence)

    def restore() -> None:
        threading.excepthook = before

    threading.excepthook = report
    return restore
