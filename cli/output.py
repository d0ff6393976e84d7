"""What the commands print: results on stdout, words to the person on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO


def say(text: str) -> None:
    """Say something to the person who runs the command, on stderr."""
    from ..backends.shared.secrets import mask_text

    print(plain_lines(f"torchx-tui: {mask_text('', text)}"), file=sys.stderr, flush=True)


def put(text: str, file: TextIO | None = None) -> None:
    """Print a text that may hold what is not ours: as it is into a file or pipe, without control characters else."""
    target = sys.stdout if file is None else file
    print(plain_lines(text) if target.isatty() else text, file=target)


def put_json(data: Any) -> None:
    """Print one JSON value in one line, as it is."""
    from ..base.validation import encode_json

    print(encode_json(data), flush=True)


def put_table(rows: Sequence[Sequence[str]], width: int = 0) -> None:
    """Print rows in columns; whatever a cell holds, a row is one line.

    Args:
        rows: the cells.
        width: the columns of the terminal, to which rows are cut; 0 for none.
    """
    from ..logs.text.sanitize import plain

    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))] if cells else []
    for row in cells:
        line = "  ".join(f"{cell:<{most}}" for cell, most in zip(row, widths, strict=True)).rstrip()
        print(line if not width or len(line) <= width else f"{line[: width - 3]}...")


def plain_lines(text: str) -> str:
    """Return a text of several lines without anything that a terminal would act on."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text.rstrip("\n")
    from ..logs.text.sanitize import plain

    return "\n".join(plain(line) for line in text.splitlines())


def green(text: str, file: TextIO) -> str:
    """Return a text of ours in green where the file is a terminal and colours are wanted."""
    return f"\x1b[32m{text}\x1b[0m" if file.isatty() and not os.environ.get("NO_COLOR") else text
