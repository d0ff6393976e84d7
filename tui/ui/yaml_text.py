"""YAML in the colours of the theme. Lines are coloured by shape: a request is a few hundred lines, drawn often."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.console import Console

from .palette import Text

_LINE = re.compile(r"^(?P<indent>\s*(?:- )*)(?P<key>[^\s:#'\"\[{][^:]*)(?P<colon>:)(?P<value>\s.*|)$")
_BLOCK = re.compile(r"(?:^|[:-]) *[|>][-+]?\d?$")
_INDENT = re.compile(r"\s*(?:[-$+] )*")
_CONSOLE = Console()
_NUMBER = re.compile(r"^(?:-?\d+(?:\.\d+)?|true|false|null|~)$")


def yaml_text(text: str) -> Text:
    """Return YAML with keys, numbers and strings in their styles."""
    result = Text()
    block: int | None = None
    for number, line in enumerate(text.splitlines()):
        if number:
            result.append("\n")
        indent = len(line) - len(line.lstrip())
        if block is not None and (not line.strip() or indent >= block):
            result.append(line, "$style-muted")
            continue
        # A literal block: what follows at least as far in is text, whatever it looks like.
        block = indent + 1 if _BLOCK.search(line) else None
        match = _LINE.match(line)
        if match is None:
            stripped = line.lstrip(" -")
            result.append(line[: len(line) - len(stripped)], "$style-muted")
            result.append(stripped, _value_style(stripped))
            continue
        result.append(match["indent"], "$style-muted")
        result.append(match["key"], "$style-yaml-key")
        result.append(match["colon"], "$style-faint")
        result.append(match["value"], _value_style(match["value"].strip()))
    return result


def indented(text: Text, width: int) -> Text:
    """Wrap long lines so that the rows of a line keep its indentation."""
    if width <= 0 or all(cell_len(line) <= width for line in text.plain.split("\n")):
        return text
    rows = []
    for line in text.split("\n", allow_blank=True):
        indent = min(_INDENT.match(line.plain).end(), width // 2)  # type: ignore[union-attr]
        if line.cell_len <= width:
            rows.append(line)
            continue
        parts = line[indent:].wrap(_CONSOLE, width - indent)
        rows += [(line[:indent] if not number else Text(" " * indent)) + part for number, part in enumerate(parts)]
    return Text("\n").join(rows)


def _value_style(value: str) -> str:
    if _NUMBER.match(value):
        return "$style-yaml-number"
    return "$style-muted" if value[:1] in "[{|>" else "$style-yaml-string"
