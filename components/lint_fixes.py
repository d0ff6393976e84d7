"""What to write in place of what `validate` refuses, as the code itself."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from .annotations import AnnotationError, read_annotation

_TYPES = "str, int, float, bool, list[str], dict[str, str], Literal[...]"
# What stands for a container that no text can be turned into.
_CONTAINERS = {"set": "list", "frozenset": "list", "sequence": "list", "iterable": "list", "collection": "list"}
_MAPPINGS = ("dict", "mapping", "mutablemapping", "defaultdict", "ordereddict")


def missing_annotation(argument: ast.arg, default: ast.expr | None, *, star: bool = False) -> str:
    """Return what to write for an argument without a type: the type of its default, else text."""
    kind = "str"
    if isinstance(default, ast.Constant) and default.value is not None:
        kind = type(default.value).__name__
    elif isinstance(default, ast.Constant):
        kind = "str | None"
    elif isinstance(default, ast.UnaryOp) and isinstance(default.operand, ast.Constant):
        kind = type(default.operand.value).__name__
    elif isinstance(default, (ast.List, ast.Tuple, ast.Set)):
        kind = "list[str]"
    elif isinstance(default, ast.Dict):
        kind = "dict[str, str]"
    written = _written(argument.arg, kind, default, star=star)
    return f"write `{written}`" if default is not None else f"write `{written}`, or another type: {_TYPES}"


def refused_annotation(
    argument: ast.arg, default: ast.expr | None, enums: Mapping[str, tuple[str, ...]], *, star: bool = False
) -> str:
    """Return what to write for an argument whose type components cannot have: the nearest one that they can."""
    assert argument.annotation is not None
    kind = _nearest(argument.annotation, enums)
    return f"write `{_written(argument.arg, kind, default, star=star)}`, or another type: {_TYPES}"


def _written(name: str, kind: str, default: ast.expr | None, *, star: bool) -> str:
    end = f" = {ast.unparse(default)}" if default is not None else ""
    return f"{'*' if star else ''}{name}: {kind}{end}"


def _nearest(node: ast.expr, enums: Mapping[str, tuple[str, ...]]) -> str:
    """Return the type nearest to an annotation."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _of_text(node.value, enums)
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return _of_subscript(node)
    return "str"


def _of_text(text: str, enums: Mapping[str, tuple[str, ...]]) -> str:
    """Return a type that was written in quotes without them, where it is one."""
    try:
        inner = ast.parse(text, mode="eval").body
        read_annotation(inner, enums)
    except (SyntaxError, ValueError, AnnotationError):
        return "str"
    return text


def _of_subscript(node: ast.Subscript) -> str:
    name = ast.unparse(node.value).rpartition(".")[2].lower()
    arguments = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name == "literal":
        values = [str(one.value) for one in arguments if isinstance(one, ast.Constant)]
        return f"Literal[{', '.join(repr(value) for value in values)}]" if values else "str"
    if name in _MAPPINGS:
        key, value = (*(_primitive(one) for one in arguments[:2]), "str", "str")[:2]
        return f"dict[{key}, {value}]"
    if name in ("list", *_CONTAINERS):
        return f"list[{_primitive(arguments[0])}]"
    if name == "tuple":
        return f"list[{_primitive(arguments[0])}]" if len(arguments) == 1 else "list[str]"
    return "str"


def _primitive(node: ast.expr) -> str:
    """Return the type of an item: the one inside of it where it is a container itself."""
    if isinstance(node, ast.Name) and node.id in ("str", "int", "float", "bool"):
        return node.id
    return "str"
