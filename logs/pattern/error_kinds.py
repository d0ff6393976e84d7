"""The one table of errors, for the log's colours and error keys, the reason of a failure, messages and stacks.

The settings can add patterns. An error whose role is a consequence is not the cause of a failure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from ..text.line_kinds import LevelWord, level_of
from .pattern import Pattern, PatternError, parse_pattern


class Role(IntEnum):
    """The part of an error in a failure; the error with the highest role is the cause.

    Attributes:
        NOISE: an error that ends nothing, such as one in a destructor at the exit of Python.
        WRAPPER: a launcher reports that a process it started has failed.
        LOST_PEER: another process, or the other end of a connection, has failed before.
        TIMEOUT: other ranks did not reach a collective in time.
        ASIDE: an error of another thread or task, or an interrupt; the main thread may continue.
        SIGN: an error in one line; it may be handled.
        CAUSE: an error that ends a process.
    """

    NOISE = 0
    WRAPPER = 1
    LOST_PEER = 2
    TIMEOUT = 3
    ASIDE = 4
    SIGN = 5
    CAUSE = 6


class ErrorKind(NamedTuple):
    """One kind of error.

    Attributes:
        name: its name, in a word or two.
        pattern: a case-sensitive regular expression.
        role: its part in a failure.
    """

    name: str
    pattern: str
    role: Role = Role.SIGN

    @property
    def is_consequence(self) -> bool:
        """Whether this error cannot be the cause of a failure."""
        return self.role <= Role.TIMEOUT


TRACEBACK_KIND = "Python traceback"
USAGE_KIND = "usage error"
KILLED_KIND = "killed worker"
# Characters in which an error gives a line its colour.
_MAX_HEAD = 400
_PROGRAM = r"(?:^|\]: ?|\) )"  # the start of a line, behind the prefix of a worker

# A line is of the first kind that matches. Consequences stand before the kinds that they could be mistaken for.
ERROR_KINDS: tuple[ErrorKind, ...] = (
    ErrorKind(
        "error at exit",
        r"Exception ignored (?:in|on|while)\b|Error in (?:atexit\._run_exitfuncs|sys\.excepthook)|--- Logging error ---"
        r"|terminate called without an active exception|Fatal Python error: _enter_buffered_busy",
        Role.NOISE,
    ),
    ErrorKind(
        "error of another thread",
        r"Exception in thread \S|exception was never retrieved|Exception in callback |\bKeyboardInterrupt$",
        Role.ASIDE,
    ),
    ErrorKind(
        "ended by torchrun",
        r"\bChildFailedError\b|Sending process \d+ closing signal|SignalException|\bProcessRaisedException\b"
        r"|Terminating process \d+ via signal",
        Role.WRAPPER,
    ),
    # Of torchrun, without SIGTERM: torchrun itself sends that one to workers after a failure.
    ErrorKind(KILLED_KIND, r"failed \(exitcode: -(?:[1-9]|1[0-4])\) local_rank: \d+"),
    ErrorKind(
        "failed worker",
        r"failed \(exitcode: -?\d+\) local_rank: \d+|\bexitcode +: -?\d|Signal \d+ \(\w+\) received by PID",
        Role.WRAPPER,
    ),
    # Of subprocess, deepspeed, mpirun, srun, make, Lightning and glibc.
    ErrorKind(
        "failed command",
        r"\bCalledProcessError\b|exits with return code = -?\d|Killing subprocess \d|Primary job +terminated normally"
        r"|exited with non-zero status|MPI_ABORT was invoked|srun: error: .*(?:: task|Exited with)"
        r"|_step_signal: Terminating|STEP \S+ ON \S+ CANCELLED AT [^ ]+ \*|make(?:\[\d+\])?: \*\*\*"
        r"|Child process with PID \d+ terminated|Error is not recoverable: exiting now|Fatal Python error: Aborted"
        r"|^(?:Aborted|Segmentation fault|Bus error)(?: \(core dumped\))?$",
        Role.WRAPPER,
    ),
    # It may be a DistNetworkError, too.
    ErrorKind("port in use", r"EADDRINUSE|[Aa]ddress already in use"),
    ErrorKind(
        "lost peer",
        r"\bncclRemoteError\b|remote process exited|[Cc]onnection (?:reset|closed) by (?:remote )?peer|Broken pipe"
        r"|[Cc]onnection was (?:reset|closed)|NCCL communicator was aborted|connectFullMesh failed"
        r"|\bDistNetworkError\b|recvValue failed|Socket Timeout|failed to (?:recv|send)\b",
        Role.LOST_PEER,
    ),
    ErrorKind(
        "collective timeout",
        r"Watchdog caught collective operation timeout|\bWork\w*\(.*\) timed out|some NCCL operations have failed"
        r"|Timed out waiting \d+ ?ms for ",
        Role.TIMEOUT,
    ),
    ErrorKind(TRACEBACK_KIND, r"Traceback \(most recent call last\)", Role.CAUSE),
    ErrorKind(
        "out of memory",
        r"(?i:\bout of memory\b)|\bMemoryError\b|\bOutOfMemoryError\b|std::bad_alloc|\b[Oo]om[-_]kill|\bOOMKilled\b"
        r"|DefaultCPUAllocator: can't allocate",
    ),
    ErrorKind("time limit", r"CANCELLED AT .* DUE TO TIME LIMIT", Role.CAUSE),
    ErrorKind(
        "CUDA error",
        r"\bCUDA (?:runtime |driver )?(?i:error)\b|\bcudaError[A-Z]\w+|device-side assert|NVRM: Xid"
        r"|\bCU(?:BLAS|DNN|SOLVER|SPARSE)_STATUS_(?:NOT|ALLOC|INVALID|ARCH|MAPPING|EXECUTION|INTERNAL|BAD)\w*",
    ),
    ErrorKind("NCCL error", r"\bNCCL (?i:error|warn)\b|\bnccl(?:Internal|System|UnhandledCuda|InvalidUsage)\w*Error\b"),
    ErrorKind(
        "crash",
        r"terminate called after|Fatal Python error|[Ss]egmentation fault|\bSIG(?:SEGV|ABRT|BUS|ILL|FPE)\b"
        r"|double free or corruption|\(core dumped\)|Assertion .* failed",
        Role.CAUSE,
    ),
    # Of argparse, jsonargparse, click, typer and tyro (boxes), absl, hydra, and python itself.
    ErrorKind(
        USAGE_KIND,
        _PROGRAM + r"(?:[\w./-]+(?: [\w-]+){0,4}: )?error: \S|" + _PROGRAM + r"Error: \S|Flags parsing error: "
        r"|^\W+ (?:Error|Parsing error|Value error|(?:Required|Unrecognized|Missing|Invalid)[\w ]{0,40}) \W+$"
        r"|can't open file '.*': \[Errno|Error while finding module specification|can't find '__main__' module"
        r"|: No module named \S+$|"
        + _PROGRAM
        + r"(?:[Uu]nknown option:? -|Error parsing override |Could not override )",
        Role.CAUSE,
    ),
    ErrorKind(
        "shell error",
        _PROGRAM + r"[^\s:]+: .*(?:not found|No such file or directory|Permission denied|unbound variable|syntax error"
        r"|cannot execute|bad interpreter|No space left on device|Is a directory|Not a directory|xec format error)"
        r"(?:[:,] [^:]*)?$|" + _PROGRAM + r"fatal: \S",
    ),
    ErrorKind("exception", _PROGRAM + r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Failure|Timeout)(?:: .*)?$"),
    ErrorKind("error", r"\b(?:ERROR|FATAL|CRITICAL)\b|(?:^|\[)[EF]\d{3,4} \d\d:\d\d:\d\d"),
)


def error_pattern(extra: Sequence[str] = ()) -> Pattern:
    """Make the pattern that matches the line of any error.

    Args:
        extra: more regular expressions, from the settings.

    Raises:
        PatternError: one of them is invalid.
    """
    patterns = [*(kind.pattern for kind in ERROR_KINDS), *map(_checked, extra)]
    joined = "|".join(f"(?:{pattern})" for pattern in patterns)
    return parse_pattern(joined, regex=True, ignore_case=False, longest=len(joined))


class KindFinder:
    """Classifies lines by the kind of error.

    Args:
        extra: more regular expressions, from the settings; their lines are of the kind "error".
    """

    def __init__(self, extra: Sequence[str] = ()) -> None:
        kinds = (*ERROR_KINDS, *(ErrorKind("error", pattern) for pattern in extra))
        self._any = error_pattern(extra)
        self._kinds = [(kind, parse_pattern(kind.pattern, regex=True, ignore_case=False)) for kind in kinds]

    def kind_of(self, text: str) -> ErrorKind | None:
        """Return the kind of error in a shown line; None if there is none."""
        found = self._find(text.encode("ascii", "replace"))
        return found[0] if found else None

    def level_of(self, text: str) -> LevelWord | None:
        """Return the level of a shown line: of its level word, or else of the error that it begins with."""
        if (level := level_of(text)) is not None:
            return level
        head = text[:_MAX_HEAD].encode("ascii", "replace")
        # A level word elsewhere in a line is no level.
        if (found := self._find(head)) is None or found[0].role is Role.NOISE or found[0].name == ERROR_KINDS[-1].name:
            return None
        (start, end), *_ = found[1].spans(head.decode())
        return LevelWord(start, end, "exception")

    def _find(self, line: bytes) -> tuple[ErrorKind, Pattern] | None:
        if not self._any.matches(line):
            return None
        return next(((kind, pattern) for kind, pattern in self._kinds if pattern.matches(line)), None)

    def find(self, lines: Sequence[str]) -> list[int]:
        """Return the indexes of the lines with an error."""
        # One byte per character, so that offsets match.
        block = ("\n".join(lines) + "\n").encode("ascii", "replace")
        starts = [*accumulate((len(line) + 1 for line in lines), initial=0)]
        return [bisect_left(starts, start) for start in self._any.starts(block)]


@cache
def known_kinds() -> KindFinder:
    """Return the finder for the default table."""
    return KindFinder()


def _checked(pattern: str) -> str:
    parse_pattern(pattern, regex=True)
    return pattern


__all__ = ["ERROR_KINDS", "ErrorKind", "KindFinder", "PatternError", "error_pattern"]
