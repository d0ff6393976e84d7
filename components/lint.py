"""The linter of components: it checks a function without running it.

Names, messages and lines are TorchX's, so that an editor or a script that parses those also parses ours.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from ..base.files import SOURCE, read_file
from ..base.modules import parse_source
from ..specs.errors import ComponentNotFoundException
from .model import AnnotationError, LinterMessage, read_annotation
from .source import Definition, Function, SourceFile, return_name

_FILE_RULES = "TorchXValidator"
_FUNCTION_RULES = "TorchxFunctionValidator"
_NOT_PYTHON = "save it as Python in UTF-8"
_VALID_TYPES = "str, int, float, bool, list[str], dict[str, str], Literal[...]"
# Containers that no text can be parsed to; a list or a dict is advised instead.
_LIST_LIKE = ("set", "frozenset", "sequence", "iterable", "collection")
_DICT_LIKE = ("dict", "mapping", "mutablemapping", "defaultdict", "ordereddict")


def validate(path: str, component_function: str) -> list[LinterMessage]:
    """Check a component and list its faults.

    It must annotate every parameter with a type that a text can be parsed to, take no `**kwargs`, not be async, and
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
        tree = parse_source(data, path)
    except SyntaxError as error:
        fix = f"correct line {error.lineno}: Python reads no further" if error.lineno else _NOT_PYTHON
        return [LinterMessage(_FILE_RULES, error.msg, error.lineno or 0, error.offset or 0, fix=fix)]
    except ValueError as error:
        return [LinterMessage(_FILE_RULES, f"not Python: {error}", 0, 0, fix=_NOT_PYTHON)]
    except (RecursionError, MemoryError):
        return [LinterMessage(_FILE_RULES, "too deeply nested to read", 0, 0, fix="split it into functions")]
    source = SourceFile(Path(path), tree)
    node = source.definition(component_function)
    if node is None:
        names = ", ".join(node.name for node in source.components)
        fix = f"name one that is there: {names}" if names else f"write `def {component_function}() -> AppDef:`"
        return [LinterMessage(_FILE_RULES, f"Function {component_function} not found", 0, 0, fix=fix)]
    return lint_definition(source, node)


def lint_definition(source: SourceFile, node: Definition) -> list[LinterMessage]:
    """List the faults of a parsed function or class."""
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
            messages.append(_error(argument, text, _advise_missing(argument, default, star=star)))
            continue
        try:
            read_annotation(argument.annotation, source.enums)
        except AnnotationError as error:
            text = f"{error} for argument {ast.unparse(argument)!r} in function {name!r}"
            messages.append(_error(argument, text, _advise_refused(argument, default, source.enums, star=star)))
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


def _advise_missing(argument: ast.arg, default: ast.expr | None, *, star: bool = False) -> str:
    """Advise a type for an argument without one: the type of its default, else text."""
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
    written = _format_parameter(argument.arg, kind, default, star=star)
    return f"write `{written}`" if default is not None else f"write `{written}`, or another type: {_VALID_TYPES}"


def _advise_refused(
    argument: ast.arg, default: ast.expr | None, enums: Mapping[str, tuple[str, ...]], *, star: bool = False
) -> str:
    """Advise a type for an argument whose type components cannot have: the nearest valid one."""
    assert argument.annotation is not None
    kind = _nearest_type(argument.annotation, enums)
    return f"write `{_format_parameter(argument.arg, kind, default, star=star)}`, or another type: {_VALID_TYPES}"


def _format_parameter(name: str, kind: str, default: ast.expr | None, *, star: bool) -> str:
    end = f" = {ast.unparse(default)}" if default is not None else ""
    return f"{'*' if star else ''}{name}: {kind}{end}"


def _nearest_type(node: ast.expr, enums: Mapping[str, tuple[str, ...]]) -> str:
    """Return the type nearest to an annotation."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _type_in_quotes(node.value, enums)
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return _nearest_subscript(node)
    return "str"


def _type_in_quotes(text: str, enums: Mapping[str, tuple[str, ...]]) -> str:
    """Return the type inside of quotes, or `str` if it is not a valid one."""
    try:
        (statement,) = parse_source(text.strip()).body
        if not isinstance(statement, ast.Expr):
            return "str"
        read_annotation(statement.value, enums)
    except (SyntaxError, ValueError, AnnotationError):
        return "str"
    return text


def _nearest_subscript(node: ast.Subscript) -> str:
    name = ast.unparse(node.value).rpartition(".")[2].lower()
    arguments = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name == "literal":
        values = [str(item.value) for item in arguments if isinstance(item, ast.Constant)]
        return f"Literal[{', '.join(repr(value) for value in values)}]" if values else "str"
    if name in _DICT_LIKE:
        key, value = (*(_primitive_type(item) for item in arguments[:2]), "str", "str")[:2]
        return f"dict[{key}, {value}]"
    if name in ("list", *_LIST_LIKE):
        return f"list[{_primitive_type(arguments[0])}]"
    if name == "tuple":
        return f"list[{_primitive_type(arguments[0])}]" if len(arguments) == 1 else "list[str]"
    return "str"


def _primitive_type(node: ast.expr) -> str:
    """Return the type of an item if it is a primitive one, else `str`."""
    if isinstance(node, ast.Name) and node.id in ("int", "float", "bool"):
        return node.id
    return "str"
