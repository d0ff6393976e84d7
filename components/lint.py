"""The rules of components: what `validate` says about a function, without running it.

Names, messages and lines are TorchX's, so that an editor or a script that reads hers reads ours.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from ..specs import ComponentNotFoundException
from ..specs.files import SOURCE, read_file
from ..specs.modules import parse_with_retry
from .model import AnnotationError, LinterMessage, read_annotation
from .source import Definition, Function, SourceFile, return_name

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


_FILE_RULES = "TorchXValidator"
_FUNCTION_RULES = "TorchxFunctionValidator"
_NOT_PYTHON = "save it as Python in UTF-8"


def validate(path: str, component_function: str) -> list[LinterMessage]:
    """Return the faults of a component.

    It must annotate every parameter with a type that a text can be turned into, take no `**kwargs`, not be async, and
    return AppDef. A missing docstring is a warning.

    Args:
        path: The Python file.
        component_function: The function's name, or that of a class with a `build` method.

    Raises:
        ComponentNotFoundException: There is no such file.
    """
    try:
        data = read_file(Path(path).expanduser(), SOURCE)
    except OSError as error:
        raise ComponentNotFoundException(f"{path}: {error.strerror or error}") from error
    try:
        tree = parse_with_retry(lambda: ast.parse(data, filename=path))
    except SyntaxError as error:
        fix = f"correct line {error.lineno}: Python reads no further" if error.lineno else _NOT_PYTHON
        return [LinterMessage(_FILE_RULES, error.msg, error.lineno or 0, error.offset or 0, fix=fix)]
    except (ValueError, RecursionError, MemoryError) as error:
        return [LinterMessage(_FILE_RULES, f"not Python: {error}", 0, 0, fix=_NOT_PYTHON)]
    source = SourceFile(Path(path), tree)
    node = source.definition(component_function)
    if node is None:
        there = ", ".join(one.name for one in source.components)
        fix = f"name one that is there: {there}" if there else f"write `def {component_function}() -> AppDef:`"
        return [LinterMessage(_FILE_RULES, f"Function {component_function} not found", 0, 0, fix=fix)]
    return lint_definition(source, node)


def lint_definition(source: SourceFile, node: Definition) -> list[LinterMessage]:
    """Return the faults of a function or class that was found already."""
    if isinstance(node, ast.ClassDef):
        return _lint_class(source, node)
    messages: list[LinterMessage] = []
    if isinstance(node, ast.AsyncFunctionDef):
        messages.append(
            _error(
                node,
                f"Function: {node.name} is async, a component is a plain function",
                f"write `def {node.name}(...)` without `async`",
            )
        )
    messages += _lint_arguments(source, node, node.name, skip=0)
    messages += _lint_return(node)
    if ast.get_docstring(node) is None:
        text = f"Function: {node.name} has no docstring, which would describe it and its arguments"
        fix = f'write """What {node.name} does.""" under its first line, and `Args:` with a line for each argument'
        messages.append(LinterMessage(_FUNCTION_RULES, text, node.lineno, 0, "warning", fix))
    return messages


def _lint_class(source: SourceFile, node: ast.ClassDef) -> list[LinterMessage]:
    messages: list[LinterMessage] = []
    methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
    if "__init__" in methods:
        messages += _lint_arguments(source, methods["__init__"], node.name, skip=1)
    if "build" in methods:
        messages += _lint_return(methods["build"])
    elif not node.bases:
        messages.append(
            _error(node, f"Class: {node.name} has no method build", "write `def build(self) -> AppDef:` in it")
        )
    return messages


def _lint_arguments(source: SourceFile, node: Function, name: str, skip: int) -> list[LinterMessage]:
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    every = list(zip(positional, [*defaults, *arguments.defaults], strict=True))[skip:]
    every += [(arguments.vararg, None)] if arguments.vararg else []
    every += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    messages: list[LinterMessage] = []
    for argument, default in every:
        star = argument is arguments.vararg
        if argument.annotation is None:
            text = f"Missing type annotation for argument {argument.arg!r} in function {name!r}"
            messages.append(_error(argument, text, missing_annotation(argument, default, star=star)))
            continue
        try:
            read_annotation(argument.annotation, source.enums)
        except AnnotationError as error:
            text = f"{error} for argument {ast.unparse(argument)!r} in function {name!r}"
            messages.append(_error(argument, text, refused_annotation(argument, default, source.enums, star=star)))
    if arguments.kwarg:
        kwarg = arguments.kwarg.arg
        text = f"Unsupported argument '**{kwarg}' in function {name!r}: name each argument, or take a dict"
        fix = f"write `{kwarg}: dict[str, str]` in place of `**{kwarg}`, or each argument by its name"
        messages.append(_error(arguments.kwarg, text, fix))
    return messages


def _lint_return(node: Function) -> list[LinterMessage]:
    name = return_name(node)
    if name == "AppDef":
        return []
    fix = f"write `def {node.name}(...) -> AppDef:`"
    if name is None:
        text = (
            f"Function: {node.name} missing return annotation or has unknown annotations. "
            "Supported return annotation: AppDef"
        )
        return [_error(node, text, fix)]
    text = f"Function: {node.name} has incorrect return annotation, supported annotation: AppDef"
    return [_error(node, text, fix)]


def _error(node: ast.stmt | ast.arg, text: str, fix: str) -> LinterMessage:
    return LinterMessage(_FUNCTION_RULES, text, node.lineno, 0, fix=fix)
