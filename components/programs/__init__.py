"""The programs that builtin components send along as `python3 -c`: the job's machine need not have this package."""

from __future__ import annotations

from pathlib import Path


def program_text(name: str) -> str:
    """Return the source of a program.

    Args:
        name: The file beside this one, such as `demo.py`.
    """
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
