"""Output of the commands: results on stdout, messages on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO


def say(text: str) -> None:
    """Print a message on stderr, with secrets masked."""
    from ..backends.shared.secrets import mask_text

    print(plain_lines(f"torchx-tui: {mask_text('', text)}"), file=sys.stderr, flush=True)


def put(text: str, file: TextIO | None = None) -> None:
    """Print text from outside: without control characters on a terminal, else unchanged."""
    target = sys.stdout if file is None else file
    print(plain_lines(text) if target.isatty() else text, file=target)


def put_json(data: Any) -> None:
    from ..base.validation import encode_json

    print(encode_json(data), flush=True)


def put_table(rows: Sequence[Sequence[str]], width: int = 0) -> None:
    """Print rows in columns, one line each.

    Args:
        rows: the cells.
        width: cut rows to this number of characters; 0 for no limit.
    """
    from ..logs.text.sanitize import plain

    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(map(str.ljust, row, widths)).rstrip()
        print(line if not width or len(line) <= width else f"{line[: width - 3]}...")


def plain_lines(text: str) -> str:
    """Return text of several lines without control characters."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text.rstrip("\n")
    from ..logs.text.sanitize import plain

    return "\n".join(map(plain, text.splitlines()))


def colored(text: str, code: str, file: TextIO) -> str:
    """Add a colour, by its SGR code, if the file is a terminal and NO_COLOR is not set."""
    return f"\x1b[{code}m{text}\x1b[0m" if file.isatty() and not os.environ.get("NO_COLOR") else text


def green(text: str, file: TextIO) -> str:
    return colored(text, "32", file)


def terminal_width(file: TextIO | None = None) -> int:
    """Return the columns of a terminal, by default stdout's: those of COLUMNS if it is set, 80 if unknown."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size((file or sys.stdout).fileno()).columns or 80
    except (OSError, ValueError):
        return 80
