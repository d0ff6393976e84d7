"""Patterns of a person's own for lines that tell a metric: regular expressions whose named groups are its names."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

PLACES = ("step", "total", "epoch", "epochs")
"""Groups that tell where a line stands; every other one is a value."""


def compile_pattern(text: str) -> Any:
    """Compile a regular expression for bytes, by RE2 where there is one, so that no line takes it long.

    Raises:
        ValueError: it is malformed, or names no value.
    """
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text} is not a regular expression: {error}") from None
    except (RecursionError, OverflowError):
        raise ValueError(f"{text:.40}... is nested too deeply, or repeats too often") from None
    try:
        import re2
    except ImportError:
        compiled: Any = re.compile(text.encode())
    else:
        options = re2.Options()
        options.log_errors = False
        try:
            compiled = re2.compile(text.encode(), options)
        except re2.error as error:
            raise ValueError(f"{text} is not a regular expression of RE2: {error}") from None
    if not {_text(name) for name in compiled.groupindex} - set(PLACES):
        raise ValueError(f"{text} names no value: name it, as in (?P<loss>[-+.e0-9]+) and (?P<step>[0-9]+)")
    return compiled


class Patterns:
    """Patterns that are tried on the lines of a block.

    Args:
        texts: regular expressions.

    Raises:
        ValueError: see `compile_pattern`.
    """

    def __init__(self, texts: Collection[str] = ()) -> None:
        self._compiled = [compile_pattern(text) for text in texts]

    def find(self, line: bytes) -> dict[str, str] | None:
        """Return what the first pattern that matches a line has in its groups; None where none matches."""
        for pattern in self._compiled:
            match = pattern.search(line)
            if match is not None:
                found = {_text(name): match.group(name) for name in pattern.groupindex}
                return {name: value.decode("utf-8", "replace") for name, value in found.items() if value is not None}
        return None


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else name
