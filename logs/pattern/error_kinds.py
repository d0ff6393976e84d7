"""The table of errors that are recognised in logs; the settings can add patterns.

The keys that go from error to error look for all of them. The cause of a failure is one that is no consequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .engine import PatternError
from .pattern import Pattern, parse_pattern


class ErrorKind(NamedTuple):
    """One kind of error.

    Attributes:
        name: its name, in a word or two.
        pattern: a case-sensitive regular expression.
        is_consequence: it says that something else failed before: another process, or the other end of a connection.
    """

    name: str
    pattern: str
    is_consequence: bool = False


# A line is of the first kind that matches. Consequences stand before the kinds that they could be mistaken for.
ERROR_KINDS: tuple[ErrorKind, ...] = (
    ErrorKind("ended by torchrun", r"\bChildFailedError\b|Sending process \d+ closing signal|SignalException", True),
    ErrorKind("failed worker", r"failed \(exitcode: -?\d+\) local_rank: \d+", True),
    ErrorKind(
        "lost peer",
        r"\bncclRemoteError\b|remote process exited|[Cc]onnection (?:reset|closed) by (?:remote )?peer|Broken pipe"
        r"|\bDistNetworkError\b|recvValue failed|Socket Timeout|failed to recv, got 0 bytes",
        True,
    ),
    ErrorKind(
        "collective timeout",
        r"Watchdog caught collective operation timeout|\bWork\w*\(.*\) timed out|some NCCL operations have failed",
        True,
    ),
    ErrorKind("Python traceback", r"Traceback \(most recent call last\)"),
    ErrorKind(
        "out of memory",
        r"(?i:\bout of memory\b)|\bMemoryError\b|\bOutOfMemoryError\b|std::bad_alloc|\b[Oo]om-kill|\bOOMKilled\b"
        r"|DefaultCPUAllocator: can't allocate",
    ),
    ErrorKind(
        "CUDA error",
        r"\bCUDA (?:runtime |driver )?(?i:error)\b|\bcudaError[A-Z]\w+|device-side assert|NVRM: Xid"
        r"|\bCU(?:BLAS|DNN|SOLVER|SPARSE)_STATUS_(?:NOT|ALLOC|INVALID|ARCH|MAPPING|EXECUTION|INTERNAL|BAD)\w*",
    ),
    ErrorKind("NCCL error", r"\bNCCL (?i:error|warn)\b|\bnccl(?:Internal|System|UnhandledCuda|InvalidUsage)\w*Error\b"),
    ErrorKind(
        "crash",
        r"terminate called (?:after|without)|Fatal Python error|[Ss]egmentation fault|\bSIG(?:SEGV|ABRT|BUS|ILL|FPE)\b"
        r"|double free or corruption|\(core dumped\)|Assertion .* failed",
    ),
    ErrorKind("error", r"\b(?:ERROR|FATAL|CRITICAL)\b|(?:^|\[)[EF]\d{3,4} \d\d:\d\d:\d\d"),
)


def error_pattern(extra: Sequence[str] = ()) -> Pattern:
    """Make the pattern that matches the line of any error.

    Args:
        extra: more regular expressions, from the settings.

    Raises:
        PatternError: one of them is invalid.
    """
    return _any_of([*(kind.pattern for kind in ERROR_KINDS), *map(_checked, extra)])


def cause_pattern(extra: Sequence[str] = ()) -> Pattern:
    """Make the pattern that matches the line of any error that is not a consequence of another one."""
    return _any_of([*(kind.pattern for kind in ERROR_KINDS if not kind.is_consequence), *map(_checked, extra)])


class KindFinder:
    """Classifies lines by the kind of error.

    Args:
        extra: more regular expressions, from the settings; their lines are of the kind "error".
    """

    def __init__(self, extra: Sequence[str] = ()) -> None:
        kinds = (*ERROR_KINDS, *(ErrorKind("error", pattern) for pattern in extra))
        self._kinds = [(kind, parse_pattern(kind.pattern, regex=True, ignore_case=False)) for kind in kinds]

    def kind_of(self, text: str) -> ErrorKind | None:
        """Return the kind of error in a shown line; None if there is none."""
        line = text.encode("utf-8", "replace")
        return next((kind for kind, pattern in self._kinds if pattern.matches(line)), None)


def _any_of(patterns: Sequence[str]) -> Pattern:
    joined = "|".join(f"(?:{pattern})" for pattern in patterns)
    return parse_pattern(joined, regex=True, ignore_case=False, longest=len(joined))


def _checked(pattern: str) -> str:
    parse_pattern(pattern, regex=True)
    return pattern


__all__ = ["ERROR_KINDS", "ErrorKind", "KindFinder", "PatternError", "cause_pattern", "error_pattern"]
