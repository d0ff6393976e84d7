"""Finds the parameters that a shell script reads, with their defaults, and its text without comments and quotes."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

# `${NAME` may be followed by anything, such as `%.*`; of `$10` the shell reads `$1`.
_PARAMETER = (
    r"\\.|\$\{[#!]?(?P<braced>[A-Za-z_]\w*|[1-9]\d*)(?P<sign>:?[-=?])?|\$(?P<plain>[A-Za-z_]\w*|[1-9])|\$\(|[`\"}]"
)
_HERE_DOCUMENT = r"<<(?P<tabs>-?)[ \t]*(?P<literal>[\\'\"]?)(?P<end>[A-Za-z_][\w.-]*)['\"]?"
# Tokens inside double quotes and here-documents, inside `${...}`, and elsewhere.
_QUOTED = re.compile(_PARAMETER, re.DOTALL)
_WORD = re.compile(rf"{_PARAMETER}|'", re.DOTALL)
_CODE = re.compile(rf"\$'(?:[^'\\]|\\.)*'?|{_PARAMETER}|<<<|{_HERE_DOCUMENT}|(?<![^\s;&|(])#[^\n]*|[\n'()]", re.DOTALL)
_DEFAULT_PART = re.compile(r"\\(?P<escaped>.)|'(?P<single>[^']*)'|(?P<double>\")|[$`]", re.DOTALL)


class Read(NamedTuple):
    """A parameter that a script reads.

    Args:
        start: the position of its ``$`` in the text.
        end: the position after it.
        name: its name, or its number.
        sign: ``-``, ``=`` or ``?`` if it has a default or a message, else empty.
        text: the default or message; None if the shell computes it.
    """

    start: int
    end: int
    name: str
    sign: str
    text: str | None


class _Context(NamedTuple):
    """A quote, substitution or here-document that is open.

    Args:
        tokens: matches what has a meaning inside.
        closing: the token that closes it; empty for a here-document.
        opened: the match of the ``${NAME`` that opened it.
        stop: the position at which a here-document ends.
    """

    tokens: re.Pattern[str]
    closing: str
    opened: re.Match[str] | None = None
    stop: int = 0


class ShellText:
    """The text of a script, as a shell reads it.

    Attributes:
        text: the text.
        code: the same, with spaces in place of comments, here-documents, and escaped and quoted characters.
        reads: the parameters that it reads, in order.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.reads: list[Read] = []
        self._code = [*text]
        self._line_breaks = [found.start() for found in re.finditer("\n", text)]
        self._scan()
        self.code = "".join(self._code)
        self.reads.sort()

    def line_of(self, position: int) -> int:
        """Return the line number of a position, from 1."""
        return bisect_right(self._line_breaks, position - 1) + 1

    def _blank(self, start: int, end: int) -> None:
        self._code[start:end] = ["\n" if letter == "\n" else " " for letter in self._code[start:end]]

    def _scan(self) -> None:
        contexts = [_Context(_CODE, "")]
        here_documents: list[re.Match[str]] = []
        position = 0
        while position < len(self.text):
            context = contexts[-1]
            is_code, is_text = context.tokens is _CODE, context.tokens is _QUOTED and context.closing != "}"
            stop = context.stop or len(self.text)
            found = context.tokens.search(self.text, position, stop)
            start, end = found.span() if found else (stop, stop)
            if is_text:
                self._blank(position, start)
            position = end
            if found is None:
                contexts[1:] = contexts[1:-1]
                continue
            lexeme = found[0]
            if found["plain"]:
                self.reads.append(Read(start, end, found["plain"], "", None))
            elif found["braced"]:
                contexts.append(_Context(_QUOTED if context.tokens is _QUOTED else _WORD, "}", found))
            elif lexeme == context.closing:
                contexts.pop()
                if context.opened:
                    self._close_braces(context.opened, start, context.tokens is _QUOTED)
            elif lexeme in ("$(", "`") or (lexeme == "(" and context.closing == ")"):
                contexts.append(_Context(_CODE, "`" if lexeme == "`" else ")"))
            elif lexeme == '"' and not is_text:
                contexts.append(_Context(_QUOTED, '"'))
            elif lexeme == "'":
                position = (self.text.find("'", end) + 1) or len(self.text)
                self._blank(end, position - 1)
            elif lexeme[0] == "\\" or is_text or (is_code and lexeme[0] in "#$"):
                self._blank(start, end)
            elif is_code and found["end"]:
                here_documents.append(found)
            elif lexeme == "\n" and here_documents:
                opened = here_documents.pop(0)
                ends = re.compile(rf"^{opened['tabs'] and '	*'}{re.escape(opened['end'])}$", re.MULTILINE)
                body_end = closed.start() if (closed := ends.search(self.text, end)) else len(self.text)
                if opened["literal"]:
                    self._blank(end, body_end)
                    position = body_end
                elif body_end > end:
                    contexts.append(_Context(_QUOTED, "", stop=body_end))

    def _close_braces(self, opened: re.Match[str], closing: int, is_quoted: bool) -> None:
        sign = (opened["sign"] or "")[-1:]
        text = _default_value(self.text[opened.end() : closing], is_quoted) if sign else None
        self.reads.append(Read(opened.start(), closing + 1, opened["braced"], sign, text))
        self._blank(opened.end(), closing)


def _default_value(text: str, is_quoted: bool) -> str | None:
    """Remove the quotes from a default; return None if the shell computes it. Double quotes keep single ones."""
    made, position, in_double = "", 0, False
    for found in _DEFAULT_PART.finditer(text):
        made += text[position : found.start()]
        position = found.end()
        in_quotes = is_quoted or in_double
        single = found["single"]
        if found["double"]:
            in_double = not in_double
        elif found["escaped"]:
            made += found["escaped"] if not in_quotes or found["escaped"] in '$`"\\}' else found[0]
        elif single is None or (in_quotes and re.search(r"[$`]", single)):
            return None
        else:
            made += found[0] if in_quotes else single
    return made + text[position:]
