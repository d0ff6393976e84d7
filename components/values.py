"""Converts texts of a form or a command line to values of a component's parameters, and back."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from ..specs.errors import ArgumentError
from ..specs.run_options import parse_scalar, quote_if_needed, quoted, split_cfg, unquoted
from .model import Computed, Parameter

Texts = Mapping[str, str | Sequence[str]]
"""The texts of arguments, by parameter."""
# An item of a list. Quotes have a meaning only around a whole item that TorchX's lists cannot have.
_LIST_ITEM = re.compile(
    r"""(?:\A|,)(?:\s*(?P<quoted>(['"])(?P<inside>(?:\\.|(?!\2).)*)\2)\s*(?=,|\Z)|(?P<plain>[^,]*))""", re.DOTALL
)
_NEEDS_QUOTES = re.compile(r"""[,'"]|\A\s|\s\Z|\A\Z""")


def check_argument(parameter: Parameter, text: str) -> str | None:
    """Describe what is wrong with a text for a parameter; None if it is valid.

    A named resource is checked once all of them are loaded: that runs code of packages, which may take long.

    Args:
        parameter: The parameter.
        text: As typed.
    """
    try:
        checked_value(parameter, text)
    except ArgumentError as error:
        return error.reason
    return None


def checked_value(parameter: Parameter, text: str | Sequence[str]) -> Any:
    """Parse the text of a value as `parse_value` does, and check its syntax beyond its type. Raises ArgumentError."""
    value = parse_value(parameter, text)
    _check_form(parameter, value)
    return value


def parameters_by_name(name: str, parameters: Iterable[Parameter], arguments: Texts) -> dict[str, Parameter]:
    """Return the parameters of a component by name. Raises ArgumentError for an argument that is none of them."""
    known = {parameter.name: parameter for parameter in parameters}
    for key in arguments:
        if key not in known:
            valid = ", ".join(known) or "it has none"
            raise ArgumentError(key, f"{name} has no such argument. Valid arguments: {valid}")
    return known


def parse_value(parameter: Parameter, text: str | Sequence[str]) -> Any:
    """Parse the text of a value.

    A list is `a,b`, a dict `k=v,k2=v2`; quotes around an item or value keep its commas. A boolean is one of true, 1,
    yes, on, false, 0, no, off. An empty text is None if None is allowed, except for `str`. `*args` is split as a shell
    does, unless it is a list already. A value of the component's own class stays a text.

    Raises:
        ArgumentError: It is not a value of the parameter's type, or not one of its choices.
    """
    try:
        return _parse(parameter, text)
    except ValueError as error:
        raise ArgumentError(parameter.name, str(error)) from error


def _parse(parameter: Parameter, text: str | Sequence[str]) -> Any:
    kind, items = parameter.type.kind, parameter.type.items
    if parameter.kind == "var_positional":
        return tuple(parse_scalar(kind, part) for part in (_split_words(text) if isinstance(text, str) else text))
    if not isinstance(text, str):
        text = to_text(text)
    if not text and parameter.optional and kind not in ("str", "other"):
        return None
    if parameter.choices and text not in parameter.choices:
        raise ValueError(f"`{text}` is not valid. Use one of {', '.join(parameter.choices)}")
    if kind == "dict":
        key_kind, value_kind = items
        pairs = _split_pairs(text)
        return {parse_scalar(key_kind, key): parse_scalar(value_kind, value) for key, value in pairs.items()}
    if kind not in ("list", "tuple"):
        return parse_scalar(kind, text)
    parts = split_list(text)
    if kind == "list" or not items or "..." in items:
        items = (items[0] if items else "str",) * len(parts)
    if len(parts) != len(items):
        raise ValueError(f"`{text}` has {len(parts)} items. Use {len(items)}: {', '.join(items)}")
    values = map(parse_scalar, items, parts)
    return [*values] if kind == "list" else tuple(values)


def to_text(value: Any) -> str:
    """Format a parameter's value or default as the text that `parse_value` parses; empty for None."""
    if value is None:
        return ""
    if isinstance(value, (Computed, str)):
        return str(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, dict):
        return ",".join(f"{key}={quote_if_needed(to_text(item))}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        items = [to_text(item) for item in value]
        return ",".join(quoted(item) if _NEEDS_QUOTES.search(item) else item for item in items)
    return str(value)


def split_list(text: str) -> list[str]:
    """Split the text of a list at commas. Quotes around an item keep its commas and spaces."""
    if not text.strip():
        return []
    items = []
    for found in _LIST_ITEM.finditer(text):
        is_quoted = found["quoted"] is not None and _NEEDS_QUOTES.search(found["inside"])
        items.append(unquoted(found["quoted"]) if is_quoted else (found["quoted"] or found["plain"]).strip())
    return items


def _split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ValueError(f"{error}: a quote has no partner") from error


def _split_pairs(text: str) -> dict[str, str]:
    try:
        return split_cfg(text.strip())
    except ValueError as error:
        advice = "Use KEY=value,KEY2=value2, with quotes around a value that is empty or has `=` or `,`"
        raise ValueError(f"{error}. {advice}") from error


def _check_form(parameter: Parameter, value: Any) -> None:
    """Check the syntax of a builtin's parameter, or of an option of sbatch, beyond its type."""
    if not value:
        return
    if parameter.form == "topology":
        from .topology import parse_topology

        parse_topology(value)
    elif parameter.form == "resource":
        from ..specs.resource_names import named_resources
        from .checked import named_host

        if named_resources.is_loaded:
            named_host(value)
    elif parameter.form == "mounts":
        from .checked import checked_mounts

        checked_mounts(value)
    elif parameter.form in ("time", "memory"):
        from ..specs.sbatch_options import OPTIONS

        if fault := OPTIONS[parameter.name].fault(value):
            raise ArgumentError(parameter.name, fault)
