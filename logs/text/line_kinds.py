"""What kind of line a log line is: part of a Python traceback, also behind torchrun's prefixes; a warning; an error."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

TRACEBACK = "Traceback (most recent call last):"
# The prefixes that torchrun and PyTorch's own hook write before the lines of a worker: `[default0]:[rank0]: `.
_WORKER = re.compile(r"^(?:\[[^\]\n]{1,40}\]:\s?){1,2}")
# torchrun ends with one of these after the worker's own exception, which says why.
_WRAPPERS = ("ChildFailedError", "ProcessRaisedException", "CalledProcessError")


# A level stands within so many first characters of a line: after a time, a rank, a logger's name.
_MAX_HEAD = 200
_WORD = re.compile(r"(?<![\w.])(WARN(?:ING)?|ERROR|CRITICAL|FATAL)(?![\w.=])")
_BRACKETS = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|<[^<>]*>")
_NAME = re.compile(r"[A-Za-z_][\w.\-/]*")
_EXCEPTION = re.compile(
    r"(?:\[[^\[\]]{0,40}\]:?\s*){0,3}((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}"
    r"(?:Error|Exception|Interrupt|Exit|Failure|Timeout))(?=:\s|:?$)"
)
_MONTHS_AND_DAYS = re.compile(r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)")


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


Level = Literal["warning", "error", "exception"]


class LevelWord(NamedTuple):
    """The word ``text[start:end]`` and its level."""

    start: int
    end: int
    level: Level


def level_of(text: str) -> LevelWord | None:
    """Find the word that gives a line's level; None if there is none.

    ``no ERROR was found`` has none: only times, brackets and a logger's name may stand before the word.

    Args:
        text: the line as it is shown.
    """
    head = text[:_MAX_HEAD]
    word = _WORD.search(head)
    if word is not None and _is_prefix(head[: word.start()], head[word.end() :]):
        return LevelWord(word.start(), word.end(), "warning" if word[0].startswith("WARN") else "error")
    exception = _EXCEPTION.match(head)
    if exception is not None:
        return LevelWord(exception.start(1), exception.end(1), "exception")
    return None


def _is_prefix(before: str, after: str) -> bool:
    """Tell whether ``before`` is what loggers write before a level; ``after`` is the text after the level."""
    if not before or before.isspace():
        return True
    # The level itself may be in brackets: `[ERROR]`.
    if before[-1] in "[(<":
        before = before[:-1]
        after = after[1:] if after[:1] in ("]", ")", ">") else after
    rest = _BRACKETS.sub(" ", before)
    names = 0
    tokens = rest.split()
    for token in tokens:
        word = token.strip(":,|-*>#")
        if not any(char.isalpha() for char in word) or word[:1].isdigit() or _MONTHS_AND_DAYS.fullmatch(word):
            continue
        if not _NAME.fullmatch(word):
            return False
        names += 1
    if names == 0:
        return True
    separated = tokens[-1][-1] in ":|-" or after.lstrip()[:1] in (":", "]", "-", "|")
    return names == 1 and separated
