"""Conversion of a field's text to one item a line and back."""

from __future__ import annotations

import re
import shlex

from ...components.values import split_list, to_text
from ...specs.run_options import format_value, runopt, split_cfg, split_items
from .form_field import OPTION, Field

_NOT_IN_NAMES = ",;'\""
_EMPTY_WORD = "''"
_MOUNT_EDGE = re.compile(r",(?=\s*type=)")
HINTS = {
    "items": "One item per line",
    "pairs": "One NAME=value a line",
    "words": "One argument per line, without quotes; '' is an empty argument",
    "mounts": "One mount per line: type=bind,src=/data,dst=/data,readonly",
}


def items_of(field: Field) -> list[str]:
    """Split a field's text into items.

    Raises:
        ValueError: the text is invalid.
    """
    if not field.text.strip():
        return []
    if field.editor == "words":
        return [word or _EMPTY_WORD for word in shlex.split(field.text)]
    if field.editor == "mounts":
        return [part.strip() for part in _MOUNT_EDGE.split(field.text)]
    if field.editor == "pairs":
        pairs = _option_pairs(field.text) if field.section == OPTION else split_cfg(field.text.strip())
        return [f"{key}={value}" for key, value in pairs.items()]
    return split_items(field.text) if field.section == OPTION else split_list(field.text)


def text_of(field: Field, lines: list[str]) -> str:
    """Join items to a field's text; empty lines are left out.

    Raises:
        ValueError: a line is invalid.
    """
    if field.editor == "words":
        return shlex.join("" if line.strip() == _EMPTY_WORD else line for line in lines if line)
    items = [line for line in lines if line.strip()]
    if field.editor == "mounts":
        return ",".join(item.strip().rstrip(",") for item in items)
    if field.editor == "pairs":
        pairs = _pairs(items)
        return format_value(pairs) if field.section == OPTION else to_text(_plainly_named(pairs))
    items = [item.strip() for item in items]
    return format_value(items) if field.section == OPTION else to_text(items)


def _pairs(lines: list[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for line in lines:
        name, glyph, value = line.partition("=")
        name = name.strip()
        if not glyph or not name:
            raise ValueError(f"{line.strip()}: use NAME=value")
        if name in pairs:
            raise ValueError(f"{name} is given twice")
        pairs[name] = value
    return pairs


def _plainly_named(pairs: dict[str, str]) -> dict[str, str]:
    """Refuse names that need quotes, which the text of an argument cannot have."""
    for name in pairs:
        if any(letter in _NOT_IN_NAMES for letter in name):
            raise ValueError(f"{name}: a name cannot contain a comma, semicolon or quote")
    return pairs


def _option_pairs(text: str) -> dict[str, str]:
    pairs = runopt(None, dict[str, str], False, "").cast_to_type(text)
    assert isinstance(pairs, dict)
    return pairs
