"""The rules of components: what `validate` says about a function, without running it.

Names, messages and lines are TorchX's, so that an editor or a script that reads hers reads ours.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from ..specs import ComponentNotFoundException
from ..specs.files import SOURCE, read_file
from ..specs.module_files import parsing
from .annotations import AnnotationError, read_annotation
from .lint_fixes import missing_annotation, refused_annotation
from .source import Definition, Function, SourceFile, return_name

_FILE_RULES = "TorchXValidator"
_FUNCTION_RULES = "TorchxFunctionValidator"
_NOT_PYTHON = "save it as Python in UTF-8"


@dataclass
class LinterMessage:
    """One fault of a component.

    Args:
        name: The rules that found it.
        description: What is wrong.
        line: The line, from 1; 0 where there is none.
        char: The column.
        severity: `error`, which keeps the component from being launched, or `warning`.
        fix: What to write instead; empty where nothing can be said.
    """

    name: str
    description: str
    line: int
    char: int
    severity: str = "error"
    fix: str = ""


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
        tree = parsing(lambda: ast.parse(data, filename=path))
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
