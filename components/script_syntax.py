"""A Python source as its syntax tree: names, constant expressions, calls in the order of the text. Nothing is run."""

from __future__ import annotations

import ast
import operator
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

from ..base.modules import parse_source
from .model import Computed
from .source import Definition, Function

_MAX_TEXT, _MAX_NUMBER = 1_000, 10**15
_OPERATORS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


class TooSlowError(Exception):
    """The time for a script is over."""


UNKNOWN: Any = object()
"""The value of an expression that is not constant."""


def is_plain(value: Any) -> bool:
    """Return whether a value is None, a text or a number."""
    return value is None or isinstance(value, (str, int, float))


class Syntax:
    """The syntax tree of a script.

    Args:
        text: The source.
        path: Its file, for errors.
        until: When to stop, by `time.thread_time`.
        package: The package that its relative imports begin in.

    Attributes:
        body: The calls, assignments, functions and names of the top level, in order.
        inside: The same of each function and class.
        definitions: The functions and classes by name.

    Raises:
        SyntaxError: It is not Python.
        TooSlowError: It is too large.
    """

    def __init__(self, text: bytes, path: Path, until: float, package: str = "") -> None:
        self._package = package
        self.tree = parse_source(text, path)
        self.definitions: dict[str, Definition] = {}
        self.inside: dict[ast.AST, list[ast.AST]] = {}
        self._imports: dict[str, str] = {}
        self._until = until
        self._bound: Counter[str] = Counter()
        self._assigned: dict[str, ast.expr] = {}
        self._values: dict[str, Any] = {}
        self.body = self._collect(self.tree.body)

    def check_time(self) -> None:
        """Raise TooSlowError if the time is over."""
        if time.thread_time() > self._until:
            raise TooSlowError

    def _collect(self, body: Iterable[ast.AST]) -> list[ast.AST]:
        """List the nodes that matter, those of functions and classes apart, and record what is bound."""
        found: list[ast.AST] = []
        waiting = list(body)[::-1]
        while waiting:
            node = waiting.pop()
            inner: Iterable[ast.AST] = ast.iter_child_nodes(node)
            if isinstance(node, ast.stmt):
                self.check_time()
            if isinstance(node, (ast.Call, ast.Assign, ast.Name, Function)):
                found.append(node)
            if isinstance(node, ast.Name):
                self._bound[node.id] += isinstance(node.ctx, ast.Store)
            elif isinstance(node, ast.arg):
                self._bound[node.arg] += 1
            elif isinstance(node, Definition):
                self.definitions[node.name] = node
                self.inside[node] = self._collect(node.body)
                inner = [*node.decorator_list, *(node.bases if isinstance(node, ast.ClassDef) else [node.args])]
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                module = ""
                if isinstance(node, ast.ImportFrom):
                    # One that leaves the package is not found.
                    with suppress(ImportError):
                        module = resolve_name("." * node.level + (node.module or ""), self._package)
                    module += "."
                self._imports |= {alias.asname or alias.name: f"{module}{alias.name}" for alias in node.names}
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                self._assigned[getattr(target, "id", "")] = node.value
            waiting += list(inner)[::-1]
        return found

    def path_of(self, node: ast.AST | None) -> str:
        """Return the dotted path of a name, with the module that it is imported from; empty for other expressions."""
        if isinstance(node, ast.Name):
            return self._imports.get(node.id, node.id)
        if isinstance(node, ast.Attribute) and (owner := self.path_of(node.value)):
            return f"{owner}.{node.attr}"
        return ""

    def assigned(self, node: ast.AST | None) -> ast.AST | None:
        """Return the expression of a name that is bound once; other nodes as they are."""
        is_name = isinstance(node, ast.Name) and self._bound[node.id] == 1
        return self._assigned.get(node.id, node) if is_name else node

    def default(self, node: ast.expr | None, missing: Any = None) -> Any:
        """Return an expression as a default: its value, or `Computed`."""
        if node is None:
            return missing
        value = self.value(node)
        return value if is_plain(value) or isinstance(value, list) else computed(node)

    def value(self, node: ast.AST | None) -> Any:
        """Return the value of a constant expression: a number, a text, None, a list of these, a dict; else UNKNOWN."""
        if isinstance(node, ast.Constant):
            return node.value if is_plain(node.value) else UNKNOWN
        if isinstance(node, ast.Name):
            if node.id not in self._values:
                self._values[node.id] = UNKNOWN
                if (assigned := self.assigned(node)) is not node:
                    self._values[node.id] = self.value(assigned)
            return self._values[node.id]
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            items = [self.value(item) for item in node.elts]
            return items if all(map(is_plain, items)) else UNKNOWN
        if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
            return {self.value(key): self.value(value) for key, value in zip(node.keys, node.values, strict=True)}
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.value(node.operand)
            return -value if isinstance(value, (int, float)) else UNKNOWN
        if isinstance(node, ast.BinOp) and (compute := _OPERATORS.get(type(node.op))):
            sides = [self.value(node.left), self.value(node.right)]
            numbers = all(isinstance(side, (int, float)) and abs(side) < _MAX_NUMBER for side in sides)
            texts = all(isinstance(side, str) and len(side) < _MAX_TEXT for side in sides)
            if (numbers and sides[1]) or (texts and isinstance(node.op, ast.Add)):
                return compute(*sides)
        return UNKNOWN


def computed(node: ast.expr) -> Computed:
    """Return an expression as a default that is not known; a long one without its source."""
    is_short = node.end_lineno == node.lineno and (node.end_col_offset or 0) - node.col_offset < _MAX_TEXT
    return Computed(ast.unparse(node) if is_short else "...")


class Call:
    """A call, with its arguments by position or name.

    Args:
        syntax: The script.
        node: The call.

    Attributes:
        path: The dotted path of the function.
        name: The last part of that.
        is_complete: Whether it has no `*` and `**`.
    """

    def __init__(self, syntax: Syntax, node: ast.Call) -> None:
        self.syntax, self.node = syntax, node
        self._words = {word.arg: word.value for word in node.keywords}
        self.path = syntax.path_of(node.func)
        self.name = node.func.attr if isinstance(node.func, ast.Attribute) else self.path.rpartition(".")[2]
        self.is_complete = None not in self._words and not any(isinstance(item, ast.Starred) for item in node.args)

    def __contains__(self, name: str) -> bool:
        return name in self._words

    def node_of(self, name: str, position: int | None = None) -> ast.expr | None:
        """Return the expression of an argument; None if it is not given."""
        if position is not None and position < len(self.node.args):
            return self.node.args[position]
        return self._words.get(name)

    def value(self, name: str, position: int | None = None) -> Any:
        """Return the value of an argument; None if it is not given, UNKNOWN if it is not constant."""
        node = self.node_of(name, position)
        return None if node is None else self.syntax.value(node)

    def default(self, name: str = "default", position: int | None = None) -> Any:
        """Return an argument as a default."""
        return self.syntax.default(self.node_of(name, position))

    def symbol(self, name: str) -> Any:
        """Return a constant, or the last part of a name: `store_true`, `int`, `REMAINDER`."""
        value = self.value(name)
        return self.syntax.path_of(self.node_of(name)).rpartition(".")[2] if value is UNKNOWN else value

    def text(self, name: str = "help", position: int | None = None) -> str:
        """Return a text in one line; empty if it is not given or not constant."""
        value = self.value(name, position)
        return " ".join(value.split()) if isinstance(value, str) else ""

    def is_true(self, name: str) -> bool:
        """Return whether an argument is True."""
        return self.value(name) is True

    def names(self) -> list[str]:
        """Return the positional arguments; empty if not all of them are known texts."""
        values = [self.syntax.value(item) for item in self.node.args]
        return values if self.is_complete and all(isinstance(value, str) and value for value in values) else []
