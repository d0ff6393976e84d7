"""How a process ended, and why, as text for all backends."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

from ...base.validation import decode_json
from ...logs.pattern.error_reader import OutputError, explain_output, shorten
from ...logs.text.sanitize import plain
from ...specs.status import NONE

T = TypeVar("T")
# Maximum replicas to read in search of an error that is not a consequence.
_MOST_READ = 8


def format_exit(exit_code: int | None) -> str:
    """Return how a process ended, such as "exit 1" or "killed by SIGKILL"; empty while that is not known.

    Args:
        exit_code: what it exited with, a signal's number below 0.
    """
    if exit_code is None:
        return ""
    if exit_code < 0:
        return f"killed by {signal_name(exit_code)}"
    if exit_code > 128 and (name := signal_name(128 - exit_code)).startswith("SIG"):
        return f"exit {exit_code} ({name})"  # as a shell says it
    return f"exit {exit_code}"


def signal_name(exit_code: int | None) -> str:
    """Return the name of the signal that a negative exit code stands for, empty for another one."""
    if exit_code is None or exit_code >= 0:
        return ""
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


def signal_of(exit_code: int | None) -> str:
    """Return the signal that an exit code over 128 stands for, empty for another one."""
    if exit_code is None or not 128 < exit_code < 128 + 65:
        return ""
    name = signal_name(128 - exit_code)
    return name if name.startswith("SIG") else ""


def error_sentence(error: str) -> str:
    """Summarise an error file: TorchX's JSON, a traceback, or the first line of any other text."""
    if error == NONE:
        return ""
    message: Any = error
    try:
        message = decode_json(error)["message"]
        message = message["message"] if isinstance(message, dict) else message
    except (ValueError, TypeError, KeyError):
        if error.startswith("{"):
            return ""
    if not isinstance(message, str):
        return ""
    # A traceback ends with the error; any other text begins with it.
    lines = [line for line in message.splitlines() if line.strip()]
    return explain_output(message).sentence if "Traceback (" in message else shorten("".join(lines[:1]))


def first_cause(errors: Iterable[tuple[T, OutputError]]) -> tuple[T, OutputError] | None:
    """Return the first replica that failed by itself, and its error; else the first one.

    Args:
        errors: the replicas that failed in the order in which they ended, each with its error; only the first ones are
            read.
    """
    first: tuple[T, OutputError] | None = None
    for replica, error in islice(errors, _MOST_READ):
        first = first or (replica, error)
        if not error.is_consequence:
            return replica, error
    return first


def may_tell(exit_code: int | None) -> bool:
    """Return whether the last lines of a process may explain its end: it failed, and not by a signal."""
    return 0 < (exit_code or 0) <= 128


def short_time(seconds: float) -> str:
    """Return a duration in its largest unit, such as "5m"."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def format_cancelled(by: str, after: float | None, ended: bool = True) -> str:
    """Return that an app was cancelled, or is being.

    Args:
        by: who cancelled it, empty where that is not known.
        after: how long it had run, in seconds; None where that is not known.
        ended: whether it has ended.
    """
    who = f" by {plain(by)}" if by else ""
    if not ended:
        return f"being cancelled{who}"
    return f"cancelled{who}" + ("" if after is None else f" after {short_time(max(0.0, after))}")


def some_of(names: Iterable[str], most: int = 3) -> str:
    """Return names for a sentence: a few of them, and how many more there are."""
    found = list(names)
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")
