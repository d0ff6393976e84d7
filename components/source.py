"""Finds components and their parameters in source text through `ast`: nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..base.files import SOURCE, is_folder, is_missing, read_file
from ..base.modules import parse_source
from ..specs.errors import ComponentLoadError, ComponentNotFoundException
from .docstrings import read_docstring
from .model import REQUIRED, AnnotationError, Computed, Enums, Parameter, ParameterKind, ValueType, read_annotation

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef
TOO_DEEP = "too deeply nested to read"
_EMPTY_FACTORIES = {"list": list, "dict": dict, "tuple": tuple}


@dataclass(frozen=True)
class SourceFile:
    """A parsed Python file.

    Args:
        path: Its path.
        tree: Its syntax tree.
    """

    path: Path
    tree: ast.Module

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """The functions and classes at the top level by name, also those inside `if`, `try`, `with` and loops."""
        return {node.name: node for node in _top_level(self.tree) if isinstance(node, Definition)}

    @property
    def components(self) -> list[Definition]:
        """The public functions that are annotated to return an AppDef, and the classes whose `build` is."""
        return [node for node in self.all_components if not node.name.startswith("_")]

    @property
    def all_components(self) -> list[Definition]:
        """`components`, and those whose name begins with an underscore."""
        return list(filter(returns_appdef, self.definitions.values()))

    @cached_property
    def constants(self) -> dict[str, Any]:
        """The values of the names that are assigned literals."""
        values: dict[str, Any] = {}
        for node in _top_level(self.tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        values[target.id] = _literal(node.value, {})
        return {name: value for name, value in values.items() if not isinstance(value, Computed)}

    @cached_property
    def enums(self) -> Enums:
        """The names of the members of each Enum class in the file."""
        enums: dict[str, tuple[str, ...]] = {}
        for node in self.definitions.values():
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("Enum") for base in node.bases):
                assigned = [line.targets[0] for line in node.body if isinstance(line, ast.Assign)]
                enums[node.name] = tuple(target.id for target in assigned if isinstance(target, ast.Name))
        return enums


def existing_file(name: str) -> Path:
    """Return the absolute path of a file that a user named. Raises ComponentNotFoundException where there is none."""
    path = Path(name).expanduser().absolute()
    if is_folder(path) or is_missing(path):
        raise ComponentNotFoundException(f"{name}: there is no file {path}")
    return path


def read_bytes(path: Path) -> bytes:
    """Return the content of a component's file. Raises ComponentLoadError where it cannot be read."""
    try:
        return read_file(path, SOURCE)
    except OSError as error:
        raise ComponentLoadError(str(path), None, error.strerror or str(error)) from error


def read_source(path: Path) -> SourceFile:
    """Parse a file.

    Raises:
        ComponentLoadError: It cannot be read, or is not Python; the message has the line.
    """
    text = read_bytes(path)
    try:
        return SourceFile(path, parse_source(text, path))
    except SyntaxError as error:
        raise ComponentLoadError(str(path), error.lineno, f"syntax error: {error.msg}") from error
    except ValueError as error:
        raise ComponentLoadError(str(path), None, f"not Python: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise ComponentLoadError(str(path), None, TOO_DEEP) from error


def returns_appdef(node: Definition) -> bool:
    """Return whether a function, or the `build` of a class, is annotated to return an AppDef."""
    if isinstance(node, ast.ClassDef):
        builders = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "build"]
        return any(returns_appdef(builder) for builder in builders)
    return return_name(node) == "AppDef"


def return_name(node: Function) -> str | None:
    """Return the last part of a function's return annotation: `AppDef` for `specs.AppDef`; None if it is not a name."""
    returns = node.returns
    if isinstance(returns, ast.Attribute):
        return returns.attr
    if isinstance(returns, ast.Name):
        return returns.id
    if isinstance(returns, ast.Constant) and returns.value:
        return str(returns.value).rpartition(".")[2]
    return None


def parameters_of(source: SourceFile, node: Definition) -> list[Parameter]:
    """List the parameters of a component; of a class, those of its initializer.

    A parameter whose type components cannot have counts as text: `validate` reports it.
    """
    helps = read_docstring(ast.get_docstring(node, clean=False)).parameters
    if isinstance(node, ast.ClassDef):
        initializer = next(
            (item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None
        )
        if initializer is None:
            return [replace(field, help=helps.get(field.name, "")) for field in _dataclass_fields(source, node)]
        helps = {**helps, **read_docstring(ast.get_docstring(initializer, clean=False)).parameters}
        arguments = [*arguments_of(initializer)][1:]
    else:
        arguments = [*arguments_of(node)]
    return [replace(_parameter(source, *one), help=helps.get(one[0].arg, "")) for one in arguments]


def arguments_of(node: Function) -> Iterator[tuple[ast.arg, ast.expr | None, ParameterKind]]:
    """Yield the arguments of a function with their defaults and kinds, except `**kwargs`."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    missing: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    for argument, default in zip(positional, [*missing, *arguments.defaults], strict=True):
        yield argument, default, "positional_or_keyword"
    if arguments.vararg:
        yield arguments.vararg, None, "var_positional"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield argument, default, "keyword_only"


def _parameter(source: SourceFile, argument: ast.arg, default: ast.expr | None, kind: ParameterKind) -> Parameter:
    value = REQUIRED if default is None else _literal(default, source.constants)
    if kind == "var_positional":
        value = ()
    return Parameter(argument.arg, kind, _value_type(source, argument.annotation), value)


def _dataclass_fields(source: SourceFile, node: ast.ClassDef) -> list[Parameter]:
    fields = [line for line in node.body if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)]
    return [
        Parameter(
            ast.unparse(line.target),
            "positional_or_keyword",
            _value_type(source, line.annotation),
            _field_default(source, line.value),
        )
        for line in fields
        if _is_init_field(line)
    ]


def _is_init_field(line: ast.AnnAssign) -> bool:
    """Return whether a line of a dataclass is a field that its `__init__` takes."""
    kind = ast.unparse(line.annotation).partition("[")[0].rpartition(".")[2]
    made = _field_keywords(line.value).get("init")
    return kind not in ("ClassVar", "KW_ONLY") and not (isinstance(made, ast.Constant) and made.value is False)


def _field_default(source: SourceFile, value: ast.expr | None) -> Any:
    keywords = _field_keywords(value)
    if value is None or (keywords and not {"default", "default_factory"} & set(keywords)):
        return REQUIRED
    if "default_factory" in keywords:
        factory = ast.unparse(keywords["default_factory"])
        return _EMPTY_FACTORIES[factory]() if factory in _EMPTY_FACTORIES else Computed(f"{factory}()")
    return _literal(keywords.get("default", value), source.constants)


def _field_keywords(value: ast.expr | None) -> dict[str, ast.expr]:
    """Return the keywords of `dataclasses.field(...)`; none of any other value."""
    if not isinstance(value, ast.Call) or ast.unparse(value.func).rpartition(".")[2] != "field":
        return {}
    return {word.arg: word.value for word in value.keywords if word.arg}


def _value_type(source: SourceFile, annotation: ast.expr | None) -> ValueType:
    if annotation is None:
        return ValueType("str", "str")
    try:
        return read_annotation(annotation, source.enums)
    except AnnotationError:
        return ValueType("other", ast.unparse(annotation))


def _literal(node: ast.expr, constants: dict[str, Any]) -> Any:
    """Return the value of a literal, or of a name that is assigned one in the file."""
    if isinstance(node, ast.Name) and node.id in constants:
        return constants[node.id]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return Computed(ast.unparse(node))


def _top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements outside of functions and classes, in order."""
    waiting: list[ast.AST] = [*reversed(tree.body)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, (ast.expr, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            waiting += [*ast.iter_child_nodes(node)][::-1]
