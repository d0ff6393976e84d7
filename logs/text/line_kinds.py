"""What kind of line a log line is: part of a Python traceback, also behind torchrun's prefixes; a warning; an error."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

# What launchers write before the lines of a worker: torchrun and PyTorch's own hook `[default0]:[rank0]: `, mpirun
# `[1,0]<stderr>:`, Ray `(load pid=31, ip=10.0.0.2) `, `srun --label` `3: `.
_WORKER = re.compile(
    r"(?:\[\d+,\d+\]<std(?:err|out)>:|\((?:[\w.:-]{1,80} )?(?:pid|ip)=[^()]{1,80}\)(?: |$)| {0,5}\d{1,6}: )?"
    r"(?:\[[^\]\n]{1,40}\]:\s?){0,2}"
)

# A level is within this many characters of a line's start: after a time, a rank, a logger's name.
_MAX_HEAD = 200
_WORD = re.compile(r"(?<![\w.])(WARN(?:ING)?|ERROR|CRITICAL|FATAL)(?![\w.=])")
_BRACKETS = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|<[^<>]*>")
_NAME = re.compile(r"[A-Za-z_][\w.\-/]*")
_EXCEPTION = re.compile(
    r"(?:\[[^\[\]]{0,40}\]:?\s*){0,3}((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}"
    r"(?:Error|Exception|Interrupt|Exit|Failure|Timeout))(?=:\s|:?$)"
)
_MONTHS_AND_DAYS = re.compile(r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)")


def split_worker(line: str) -> tuple[str, str]:
    """Split a line into the prefix that names a worker, such as ``[rank3]: ``, and the rest; there may be no prefix."""
    end = match.end() if (match := _WORKER.match(line)) else 0
    return line[:end], line[end:]


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
    """Return whether loggers write ``before`` before a level; ``after`` is the text after the level."""
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
