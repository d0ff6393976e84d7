"""Log and show exceptions that end threads, also threads of libraries."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from .errors import describe_error

_log = logging.getLogger(__name__)


def report_thread_failures(show: Callable[[str], object]) -> Callable[[], None]:
    """Install a hook that logs and shows every exception that ends a thread.

    Args:
        show: called in the failed thread with a sentence; never called twice with the same one.

    Returns:
        a function that restores the previous hook.
    """
    before = threading.excepthook
    shown: set[str] = set()

    def report(failure: threading.ExceptHookArgs) -> None:
        name = failure.thread.name if failure.thread is not None else "a thread"
        error = failure.exc_value or failure.exc_type()
        _log.error("the thread %s ended", name, exc_info=error)
        sentence = f"{name} stopped: {describe_error(error)}; see the log file"
        if sentence not in shown:
            shown.add(sentence)
            show(sentence)

    def restore() -> None:
        threading.excepthook = before

    threading.excepthook = report
    return restore
