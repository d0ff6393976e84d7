"""Python tracebacks in the lines of a log, also behind the prefixes of torchrun's workers."""

from __future__ import annotations

import re
from collections.abc import Iterable

TRACEBACK = "Traceback (most recent call last):"
# What torchrun, or PyTorch's own hook, puts before the lines of a worker.
_WORKER = re.compile(r"^\[[^\]\n]{1,40}\]:\s?")
# torchrun ends with one of its own after the worker's; the worker's says why.
_WRAPPERS = ("ChildFailedError", "ProcessRaisedException", "CalledProcessError")


def without_worker(line: str) -> str:
    """Return a line without what names the worker that wrote it, such as ``[rank3]: ``."""
    return _WORKER.sub("", line)


def is_from_worker(line: str) -> bool:
    """Whether a line begins with the name of a worker."""
    return _WORKER.match(line) is not None


def is_wrapper(exception: str) -> bool:
    """Whether the last line of a traceback only says that a worker failed."""
    kind = exception.partition(":")[0]
    return any(name in kind for name in _WRAPPERS)


def whole_tracebacks(lines: Iterable[str]) -> list[list[str]]:
    """Return the tracebacks that came to their end, each with its exception's line last.

    Args:
        lines: a log's lines; prefixes of workers are taken off.
    """
    found: list[list[str]] = []
    inside = False
    for line in map(without_worker, lines):
        if line.startswith(TRACEBACK):
            found.append([])
            inside = True
        if inside:
            found[-1].append(line)
            # The line of the exception is the first one that is not indented.
            inside = line.startswith((TRACEBACK, " ", "\t")) or not line.strip()
    return [one for one in found if not one[-1].startswith((" ", "\t", TRACEBACK)) and one[-1].strip()]
