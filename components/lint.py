"""A linter for components that runs none of them.

Rule names, messages and lines are TorchX's, so that editors and scripts that parse its output parse ours.
"""

from __future__ import annotations

import ast
from pathlib import Path

from ..specs.errors import ComponentLoadError, ComponentNotFoundException
from .model import AnnotationError, LinterMessage, read_annotation
from .source import Definition, Function, SourceFile, arguments_of, read_source, return_name

_FILE_RULES = "TorchXValidator"
_FUNCTION_RULES = "TorchxFunctionValidator"


def validate(path: str, component_function: str) -> list[LinterMessage]:
    """Check a component without running it, by TorchX's rules.

    Every parameter needs a type that can be parsed from text. `**kwargs` and `async` are not allowed. The return type
    is AppDef.

    Args:
        path: The Python file.
        component_function: The function's name, or that of a class with a `build` method.

    Raises:
        ComponentNotFoundException: The file cannot be read.
    """
    try:
        source = read_source(Path(path).expanduser())
    except ComponentLoadError as error:
        cause = error.__cause__
        if isinstance(cause, OSError):
            raise ComponentNotFoundException(f"{path}: {error.reason}") from cause
        if isinstance(cause, SyntaxError):
            return [LinterMessage(_FILE_RULES, cause.msg, cause.lineno or 0, cause.offset or 0)]
        return [LinterMessage(_FILE_RULES, error.reason, 0, 0)]
    node = source.definitions.get(component_function)
    if node is None:
        return [LinterMessage(_FILE_RULES, f"Function {component_function} not found", 0, 0)]
    return lint_definition(source, node)


def lint_definition(source: SourceFile, node: Definition) -> list[LinterMessage]:
    """List the faults of a parsed function or class."""
    if isinstance(node, ast.ClassDef):
        return _lint_class(source, node)
    messages: list[LinterMessage] = []
    if isinstance(node, ast.AsyncFunctionDef):
        messages.append(_error(node, f"Function: {node.name} is async, a component is a plain function"))
    return [*messages, *_lint_arguments(source, node, node.name), *_lint_return(node)]


def _lint_class(source: SourceFile, node: ast.ClassDef) -> list[LinterMessage]:
    messages: list[LinterMessage] = []
    methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef)}
    if "__init__" in methods:
        messages += _lint_arguments(source, methods["__init__"], node.name, skip=1)
    if "build" in methods:
        messages += _lint_return(methods["build"])
    elif not node.bases:
        messages.append(_error(node, f"Class: {node.name} has no method build"))
    return messages


def _lint_arguments(source: SourceFile, node: Function, name: str, skip: int = 0) -> list[LinterMessage]:
    messages: list[LinterMessage] = []
    for argument, *_ in [*arguments_of(node)][skip:]:
        if argument.annotation is None:
            text = f"Missing type annotation for argument {argument.arg!r} in function {name!r}"
            messages.append(_error(argument, text))
            continue
        try:
            read_annotation(argument.annotation, source.enums)
        except AnnotationError as error:
            text = f"{error} for argument {ast.unparse(argument)!r} in function {name!r}"
            messages.append(_error(argument, text))
    if kwarg := node.args.kwarg:
        text = f"Unsupported argument '**{kwarg.arg}' in function {name!r}: name each argument, or take a dict"
        messages.append(_error(kwarg, text))
    return messages


def _lint_return(node: Function) -> list[LinterMessage]:
    name = return_name(node)
    if name == "AppDef":
        return []
    fault = "missing return annotation or has unknown annotations. Supported return annotation: AppDef"
    if name is not None:
        fault = "has incorrect return annotation, supported annotation: AppDef"
    return [_error(node, f"Function: {node.name} {fault}")]


def _error(node: ast.stmt | ast.arg, text: str) -> LinterMessage:
    return LinterMessage(_FUNCTION_RULES, text, node.lineno, 0)
