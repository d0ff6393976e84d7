"""Prints all that the program says to people, as ``file:line: text``: ``python docs/reference/messages.py [ROOM ...]``.

Strings of two words and more are taken, and single words where they are a label: the description of a key, a help text,
a finding of `doctor`, the title of a dialog. A value that the program fills in is shown as ``{name}``. Patterns, style
sheets, docstrings and lines of the log file are left out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).parents[2]
ROOMS = (
    "backends",
    "base",
    "cli",
    "components",
    "diagnosis",
    "doctor",
    "guest",
    "logs",
    "notify",
    "settings",
    "specs",
    "tui",
)

_WORDS = re.compile(r"[A-Za-z{}]{2,}[,:;.)]? \(?[a-z{]{2,}")
_NOT_WORDS = re.compile(r"(?:not )?bold |\\[bds]|^(?:SELECT|PRAGMA) ")
# The first argument of a call that is a label: what stands before it is a key, an action or a level.
_LABELS = {"Binding": 2, "Button": 0, "Finding": 1, "JobAction": 0, "Label": 0, "Option": 0, "notify": 0}
_LABEL_KEYWORDS = frozenset({"help", "description", "title", "label", "placeholder", "hint", "tooltip"})
_SILENT = frozenset({"compile", "debug", "exception", "fullmatch", "getLogger", "search", "sub"})
_STYLES = ("CSS", "DEFAULT_CSS")


class Message(NamedTuple):
    """A text for people, and where it stands."""

    path: Path
    line: int
    text: str


def messages(path: Path) -> list[Message]:
    """Return what one file says, in the order of its lines."""
    finder = _Finder(path)
    finder.visit(ast.parse(path.read_text(encoding="utf-8")))
    return sorted(finder.found, key=lambda message: message.line)


class _Finder(ast.NodeVisitor):
    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: list[Message] = []
        self._is_label = False

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(isinstance(target, ast.Name) and target.id in _STYLES for target in node.targets):
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value and not (isinstance(node.target, ast.Name) and node.target.id in _STYLES):
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in _SILENT:
            return
        self.visit(function)
        for place, value in enumerate(node.args):
            self._visit_part(value, is_label=place >= _LABELS.get(name, len(node.args)))
        for keyword in node.keywords:
            self._visit_part(keyword.value, is_label=keyword.arg in _LABEL_KEYWORDS)

    def _visit_part(self, node: ast.expr, *, is_label: bool) -> None:
        before, self._is_label = self._is_label, is_label
        self.visit(node)
        self._is_label = before

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._take(node, node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._take(node, _text(node))
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                self._visit_part(value.value, is_label=False)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        parts = list(_sum(node))
        if isinstance(node.op, ast.Add) and any(isinstance(part, ast.JoinedStr | ast.Constant) for part in parts):
            self._take(node, "".join(_text(part) for part in parts))
        else:
            self.generic_visit(node)

    def _take(self, node: ast.expr, text: str) -> None:
        is_text = _WORDS.search(text) or (self._is_label and re.search("[a-z]{2}", text))
        if is_text and not _NOT_WORDS.search(text):
            self.found.append(Message(self.path, node.lineno, " ".join(text.split())))


def _sum(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _sum(node.left)
        yield from _sum(node.right)
    else:
        yield node


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(value) for value in node.values)
    name = ast.unparse(node.value if isinstance(node, ast.FormattedValue) else node)
    return f"{{{name}}}"


if __name__ == "__main__":
    for room in sys.argv[1:] or ROOMS:
        for file in sorted((PROJECT / room).rglob("*.py")):
            for path, line, text in messages(file):
                print(f"{path.relative_to(PROJECT)}:{line}: {text}")
