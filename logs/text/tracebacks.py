"""Python tracebacks in the lines of a log, also behind the prefixes of torchrun's workers."""

from __future__ import annotations

import re
from collections.abc import Iterable

TRACEBACK = "Traceback (most recent call last):"
# The prefix that torchrun, or PyTorch's own hook, writes before the lines of a worker.
_WORKER = re.compile(r"^\[[^\]\n]{1,40}\]:\s?")
# torchrun ends with one of these after the worker's own exception, which says why.
_WRAPPERS = ("ChildFailedError", "ProcessRaisedException", "CalledProcessError")


def without_worker(line: str) -> str:
    """Strip the prefix that names a worker, such as ``[rank3]: ``, from a line."""
    return _WORKER.sub("", line)


def is_from_worker(line: str) -> bool:
    """Tell whether a line begins with the prefix of a worker."""
    return _WORKER.match(line) is not None


def is_wrapper(exception: str) -> bool:
    """Tell whether the last line of a traceback only says that a worker failed."""
    kind = exception.partition(":")[0]
    return any(name in kind for name in _WRAPPERS)


def whole_tracebacks(lines: Iterable[str]) -> list[list[str]]:
    """List the complete tracebacks, each with its exception's line last.

    Args:
        lines: a log's lines; prefixes of workers are stripped.
    """
    tracebacks: list[list[str]] = []
    inside = False
    for line in map(without_worker, lines):
        if line.startswith(TRACEBACK):
            tracebacks.append([])
            inside = True
        if inside:
            tracebacks[-1].append(line)
            # The line of the exception is the first one that is not indented.
            inside = line.startswith((TRACEBACK, " ", "\t")) or not line.strip()
    return [lines for lines in tracebacks if not lines[-1].startswith((" ", "\t", TRACEBACK)) and lines[-1].strip()]
