"""How the help of commands is laid out."""

from __future__ import annotations

import argparse
import os
import sys

_WIDEST = 120


def help_formatter(prog: str) -> argparse.HelpFormatter:
    """Return a formatter as wide as the terminal; argparse's own asks for its width, by a slow import, per argument."""
    return argparse.HelpFormatter(prog, width=_width() - 2)


def _width() -> int:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return min(_WIDEST, os.get_terminal_size(sys.stdout.fileno()).columns or 80)
    except (OSError, ValueError):
        return 80
