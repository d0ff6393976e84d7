"""An AppDef from a component and the texts of its arguments: the one place where a component is run."""

from __future__ import annotations

import enum
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..specs import AppDef, AppDefError, ArgumentError, ComponentLoadError
from .finder import Component, describe, find
from .foreign import adopted
from .loading import errors_located, loaded
from .model import ComponentDoc, Parameter, ValueType
from .values import parse_value


def build_app(name: str, arguments: Mapping[str, str | Sequence[str]]) -> AppDef:
    """Return the AppDef of a component.

    Args:
        name: The component.
        arguments: Texts by parameter, as `parse_value` reads them; what is absent has its default.

    Raises:
        ArgumentError: An argument is unknown, missing, or no value of its type.
        ComponentLoadError: The component raised something, or returned no AppDef; the message has file and line.
        TorchXTuiError: As for `describe`.
    """
    doc = describe(name)
    values = _values(doc, arguments)
    component = find(name)
    with loaded(component) as function:
        app = _called(function, doc, values, component)
        with errors_located(component.path):
            try:
                return adopted(app)
            except AppDefError as error:
                raise ComponentLoadError(str(component.path), doc.line, str(error)) from error


def _values(doc: ComponentDoc, arguments: Mapping[str, str | Sequence[str]]) -> dict[str, Any]:
    unknown = [name for name in arguments if doc.parameter(name) is None]
    if unknown:
        valid = ", ".join(parameter.name for parameter in doc.parameters) or "it has none"
        raise ArgumentError(unknown[0], f"{doc.name} has no such argument. Valid arguments: {valid}")
    missing = [parameter.name for parameter in doc.parameters if parameter.required and parameter.name not in arguments]
    if missing:
        raise ArgumentError(missing[0], f"{doc.name} needs a value for {', '.join(missing)}")
    given = [parameter for parameter in doc.parameters if parameter.name in arguments]
    return {parameter.name: parse_value(parameter, arguments[parameter.name]) for parameter in given}


def _called(function: Callable[..., Any], doc: ComponentDoc, values: dict[str, Any], component: Component) -> Any:
    rest: Sequence[Any] = ()
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    types = _own_types(function)
    for parameter in doc.parameters:
        if parameter.name not in values:
            continue
        value = _of_own_class(parameter, values[parameter.name], types)
        if parameter.kind == "var_positional":
            rest = value
        else:
            keywords[parameter.name] = value
    for parameter in inspect.signature(function).parameters.values():
        # What stands before `/` can be passed by its place only, and so can what stands before *args, where it has any.
        if parameter.kind is not parameter.POSITIONAL_ONLY and not (
            rest and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ):
            break
        positional.append(keywords.pop(parameter.name, parameter.default))
    try:
        made = function(*positional, *rest, **keywords)
        return made.build() if inspect.isclass(function) else made
    except ValueError as error:
        # The builtins' own complaints are about what was typed, wherever in our code they are raised.
        if component.kind == "builtin" and not isinstance(error, ArgumentError):
            raise ArgumentError("", str(error)) from error
        raise


def _own_types(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function.__init__ if inspect.isclass(function) else function)
    except Exception:
        # Annotations may name what exists for type checkers only.
        return {}


def _of_own_class(parameter: Parameter, value: Any, types: Mapping[str, Any]) -> Any:
    """Return the value of a class that only the loaded module knows: an Enum's member, or what an alias stands for."""
    if parameter.type.kind != "other" or not isinstance(value, str):
        return value
    kind: Any = types.get(parameter.name)
    options = [option for option in typing.get_args(kind) if option is not type(None)]
    kind = options[0] if len(options) == 1 else kind
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _member(parameter, kind, value)
    if kind in (int, float, bool):
        return parse_value(replace(parameter, type=ValueType(kind.__name__, kind.__name__)), value)
    return value


def _member(parameter: Parameter, kind: type[enum.Enum], text: str) -> enum.Enum:
    for member in kind:
        if text in (member.name, str(member.value)):
            return member
    names = ", ".join(member.name for member in kind)
    raise ArgumentError(parameter.name, f"`{text}` is not valid. Want one of {names}")
