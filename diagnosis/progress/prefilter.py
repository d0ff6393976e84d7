"""Finds the lines of a block that may tell progress, without decoding or splitting the others.

One search by RE2 runs at some 500 MB/s, while the parse of each line would be 20 MB/s.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

# Words of trainers; `50%|`; `5/20 [`; a row of a box table; a number at the start of a line; `name=1`; ` 3/10`.
_NEEDLES = (
    rb"(?i:loss|step|iter|epoch|it/s|s/it|\blr\b|\bacc|accura|\bauc|reward|\bscore: -?\d|learning.rate|\d%\||\d+/\d+ \["
    rb"|\|\s+[a-z_/]+ +\| +-?\d|(?m:^)\[?\d+[\]:]?\t|=-?\d|\w/\w+: -?\d"
    rb"|(?m:^) *\d+(?: +(?:\x1b\[\d*m)?[\d.]+[\d.:e+-]*(?:\x1b\[\d*m)?){2,}"
    rb"|(?m:^) +all(?: +[\d.]+){3,})"
)


_WITHOUT_NAMES = re.compile(rb"\(\?P<\w+>")


def compile_needles(patterns: Collection[str] = (), text: bytes = _NEEDLES) -> Any:
    """Return what finds the lines.

    Args:
        patterns: regular expressions for further lines.
        text: a regular expression for lines.
    """
    # Each of them chooses by itself whether case counts.
    needles = b"|".join([b"(?:%b)" % each for each in (text, *(pattern.encode() for pattern in patterns))])
    try:
        import re2
    except ImportError:
        # There is no wheel for some systems; there it is slower.
        return re.compile(_WITHOUT_NAMES.sub(b"(?:", needles))
    options = re2.Options()
    options.never_capture = True
    options.log_errors = False
    return re2.compile(_WITHOUT_NAMES.sub(b"(?:", needles), options)


_compiled = compile_needles()


def candidate_lines(data: bytes, needles: Any = _compiled) -> Iterator[bytes]:
    """Yield the lines of a block that may tell progress, in order, without their ends.

    What a carriage return overwrites counts as a line: each state of a progress bar has values of its own.

    Args:
        data: whole lines; the last one may lack its line feed.
        needles: what finds the lines, by `compile_needles`.
    """
    search, position, size = needles.search, 0, len(data)
    while position < size and (match := search(data, position)) is not None:
        start = data.rfind(b"\n", position, match.start()) + 1 or position
        end = data.find(b"\n", match.start())
        end = size if end < 0 else end
        line = data[start:end]
        if b"\r" in line:
            yield from (segment for segment in line.split(b"\r") if segment.strip())
        else:
            yield line
        position = end + 1
