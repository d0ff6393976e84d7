"""What a shell reads of a script: its parameters with their defaults, and its text without what is no code."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

# `$NAME`, `$1`: of `$10` the shell reads `$1`.
_PLAIN = re.compile(r"\$([A-Za-z_]\w*|[1-9])")
# `${NAME:-text}` and its siblings, and `${NAME`, behind which anything else may stand.
_BRACED = re.compile(r"\$\{[#!]?(?P<name>[A-Za-z_]\w*|[1-9]\d*)(?:(?P<sign>:?[-=?]))?")
_HERE = re.compile(r"<<(?P<dash>-?)[ \t]*(?P<quote>[\\'\"]?)(?P<end>[A-Za-z_][\w.-]*)['\"]?")
_QUOTED = re.compile(r"\\(?P<escaped>.)|\"(?P<double>(?:[^\"\\]|\\.)*)\"|'(?P<single>[^']*)'", re.DOTALL)


# Maximum nesting of quotes and substitutions.
_MOST_NESTED = 60


def _bounded(scan: Callable[..., int]) -> Callable[..., int]:
    """Limit the nesting depth of a scanning method: at the limit, skip the rest of the text."""

    def read(shell: ShellText, position: int, *details: Any) -> int:
        if shell.depth >= _MOST_NESTED:
            return len(shell.text)
        shell.depth += 1
        try:
            return scan(shell, position, *details)
        finally:
            shell.depth -= 1

    return read


class Read(NamedTuple):
    """A parameter that a script reads.

    Attributes:
        start: where its ``$`` stands in the text.
        end: where it ends.
        name: its name, or its number.
        sign: ``-``, ``=`` or ``?`` where it has a default or a message, else empty.
        text: the default or message; None where the shell has yet to work it out.
    """

    start: int
    end: int
    name: str
    sign: str
    text: str | None


@dataclass
class ShellText:
    """The text of a script as a shell reads it.

    Args:
        text: the text.
        code: the same with blanks in the places of comments, here-documents, escaped and quoted characters.
        reads: the parameters that it reads, in their order; those of defaults follow what they are the default of.
    """

    text: str
    code: str = ""
    reads: list[Read] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._code = [*self.text]
        self._here: list[re.Match[str]] = []
        self._breaks = [found.start() for found in re.finditer("\n", self.text)]
        self.depth = 0
        position = 0
        # An end that opens nothing, such as the bracket of a `case`, ends no more than itself.
        while position < len(self.text):
            position = self._scan_code(position, "")
        self.code = "".join(self._code)
        self.reads.sort(key=lambda read: read.start)

    def line_of(self, position: int) -> int:
        """Return the number of the line of a position, from 1."""
        return bisect_right(self._breaks, position - 1) + 1

    def _blank(self, start: int, end: int) -> int:
        for position in range(start, min(end, len(self._code))):
            if self._code[position] != "\n":
                self._code[position] = " "
        return end

    def _find(self, text: str, start: int) -> int:
        found = self.text.find(text, start)
        return len(self.text) if found < 0 else found

    @_bounded
    def _scan_code(self, position: int, end: str) -> int:
        """Read code up to its end, which is ``)``, a backquote, or nothing; return where it goes on behind that."""
        text, depth = self.text, 0
        while position < len(text):
            letter = text[position]
            if letter == end and not depth:
                return position + 1
            if end == ")" and letter in "()":
                depth += 1 if letter == "(" else -1
            if letter == "\n" and self._here:
                position = self._scan_here(position + 1)
            elif letter == "\\":
                position = self._blank(position, position + 2)
            elif letter == "'":
                is_ansi = text[position - 1 : position] == "$"
                position = self._blank(position + 1, self._single_end(position + 1, is_ansi)) + 1
            elif letter == '"':
                position = self._scan_quoted(position + 1, '"')
            elif letter == "`":
                position = self._scan_code(position + 1, "`")
            elif letter == "#" and (not position or text[position - 1] in " \t\n;&|("):
                position = self._blank(position, self._find("\n", position))
            elif letter == "$":
                position = self._scan_dollar(position, quoted=False)
            elif letter == "<" and text.startswith("<<<", position):
                position += 3
            elif letter == "<" and (here := _HERE.match(text, position)):
                self._here.append(here)
                position = here.end()
            else:
                position += 1
        return position

    def _single_end(self, position: int, is_ansi: bool) -> int:
        while is_ansi and position < len(self.text) and self.text[position] != "'":
            position += 2 if self.text[position] == "\\" else 1
        return self._find("'", position)

    @_bounded
    def _scan_quoted(self, position: int, end: str, stop: int | None = None) -> int:
        """Read the inside of double quotes, or of a here-document up to a position; return where it goes on."""
        stop = len(self.text) if stop is None else stop
        while position < stop:
            letter = self.text[position]
            if letter == end:
                return position + 1
            if letter == "\\":
                position = self._blank(position, position + 2)
            elif letter == "$":
                position = self._scan_dollar(position, quoted=True)
            elif letter == "`":
                position = self._scan_code(position + 1, "`")
            else:
                position = self._blank(position, position + 1)
        return position

    def _scan_here(self, position: int) -> int:
        """Read the bodies of the here-documents that a line has opened; return where the code goes on."""
        opened, self._here = self._here, []
        for here in opened:
            tabs = r"\t*" if here["dash"] else ""
            ends = re.compile(rf"^{tabs}{re.escape(here['end'])}$", re.MULTILINE).search(self.text, position)
            last, behind = (ends.start(), ends.end()) if ends else (len(self.text), len(self.text))
            if not here["quote"]:
                self._scan_quoted(position, "", last)
            position = self._blank(position, behind)
        return position

    def _scan_dollar(self, position: int, quoted: bool) -> int:
        text = self.text
        if text.startswith("$(", position):
            return self._scan_code(position + 2, ")")
        if braced := _BRACED.match(text, position):
            end = self._scan_braces(braced.end(), quoted)
            told = text[braced.end() : end - 1] if braced["sign"] else None
            sign = (braced["sign"] or "")[-1:]
            value = _value(told, quoted) if told is not None else None
            self.reads.append(Read(position, end, braced["name"], sign, value))
            self._blank(braced.end(), end - 1)
            return end
        if plain := _PLAIN.match(text, position):
            self.reads.append(Read(position, plain.end(), plain[1], "", None))
            return plain.end()
        return position + 1

    @_bounded
    def _scan_braces(self, position: int, quoted: bool) -> int:
        """Read the inside of ``${...}`` behind its name and sign; return where it goes on behind the bracket."""
        text = self.text
        while position < len(text):
            letter = text[position]
            if letter == "}":
                return position + 1
            if letter == "\\":
                position += 2
            elif letter == "'" and not quoted:
                position = self._find("'", position + 1) + 1
            elif letter == '"':
                position = self._scan_quoted(position + 1, '"')
            elif letter == "`":
                position = self._scan_code(position + 1, "`")
            elif letter == "$":
                position = self._scan_dollar(position, quoted)
            else:
                position += 1
        return position


def _value(text: str, quoted: bool) -> str | None:
    """Return a text without its quotes; None where the shell works it out. Double quotes keep single ones."""
    made, position = [], 0
    for found in _QUOTED.finditer(text):
        between = text[position : found.start()]
        is_literal = found["single"] is not None and quoted
        inside = found["double"] if found["double"] is not None else ""
        if re.search(r"[$`]", between + (found["single"] or "" if is_literal else re.sub(r"\\.", "", inside))):
            return None
        if found["double"] is not None:
            made += [between, re.sub(r"\\([$`\"\\])", r"\1", inside)]
        elif found["single"] is not None:
            made += [between, found[0] if quoted else found["single"]]
        else:
            made += [between, found["escaped"] if not quoted or found["escaped"] in '$`"\\}' else found[0]]
        position = found.end()
    rest = text[position:]
    return None if re.search(r"[$`]", rest) else "".join([*made, rest])
