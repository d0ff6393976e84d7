"""Run options declared as the fields of a dataclass."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from itertools import pairwise
from typing import Any, Union, get_args, get_origin, get_type_hints

from typing_extensions import Self

from ..specs import CfgVal, runopts


class StructuredOpts(Mapping[str, CfgVal]):
    '''The run options of a scheduler, as fields with types, defaults and a text under each that says what it does.

    Subclasses are dataclasses. Each is a mapping as well, so it can be given wherever options are. Names are accepted
    in snake_case and in camelCase.

    Example:
        >>> @dataclass
        ... class Opts(StructuredOpts):
        ...     queue: str
        ...     """The queue to wait in."""
        ...     retries: int | None = None
        ...     """How often to try again."""
    '''

    @staticmethod
    def snake_to_camel(name: str) -> str:
        """Return a snake_case name in camelCase."""
        first, *rest = name.split("_")
        return first + "".join(word.title() for word in rest)

    @classmethod
    def from_cfg(cls, cfg: Mapping[str, CfgVal]) -> Self:
        """Return the options that a mapping holds; keys that are no option are passed over.

        Raises:
            TypeError: an option without a default is missing.
        """
        given = {}
        for option in fields(_dataclass(cls)):
            for key in (option.name, cls.snake_to_camel(option.name)):
                if key in cfg:
                    given[option.name] = cfg[key]
                    break
        return cls(**given)

    def _name_of(self, key: object) -> str | None:
        for option in fields(_dataclass(self)):
            if key in (option.name, self.snake_to_camel(option.name)):
                return option.name
        return None

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of an option, ``default`` where it is unknown or None."""
        name = self._name_of(key)
        value = None if name is None else getattr(self, name)
        return default if value is None else value

    def __getitem__(self, key: str) -> CfgVal:
        name = self._name_of(key)
        if name is None:
            raise KeyError(key)
        return getattr(self, name)

    def __len__(self) -> int:
        return len(fields(_dataclass(self)))

    def __iter__(self) -> Iterator[str]:
        return iter([option.name for option in fields(_dataclass(self))])

    def __contains__(self, key: object) -> bool:
        return self._name_of(key) is not None

    def __or__(self, other: Mapping[str, CfgVal]) -> dict[str, CfgVal]:
        """Return the options of both, the other's where both have one."""
        return {**dict(self), **dict(other)}

    @classmethod
    def get_docstrings(cls) -> dict[str, str]:
        """Return the text under each field, by field, read from the source; what has no source has no texts."""
        found: dict[str, str] = {}
        for owner in reversed(cls.__mro__):
            if owner is not StructuredOpts and issubclass(owner, StructuredOpts):
                found.update(_field_texts(owner))
        return found

    @classmethod
    def as_runopts(cls) -> runopts:
        """Return the options as a scheduler declares them; a field without a default is required."""
        opts = runopts()
        hints = get_type_hints(cls)
        texts = cls.get_docstrings()
        for option in fields(_dataclass(cls)):
            camel = cls.snake_to_camel(option.name)
            opts.add(
                option.name,
                type_=_without_none(hints.get(option.name, str)),
                help=texts.get(option.name, option.name),
                default=None if option.default is MISSING else option.default,
                required=_is_required(option),
                aliases=None if camel == option.name else [camel],
            )
        return opts


def _dataclass(of: Any) -> Any:
    return of


def _is_required(option: Field[Any]) -> bool:
    return option.default is MISSING and option.default_factory is MISSING


def _without_none(hint: Any) -> Any:
    """Return the first type of a union that is not None."""
    if get_origin(hint) in (Union, types.UnionType):
        return next((kind for kind in get_args(hint) if kind is not type(None)), str)
    return hint


def _field_texts(owner: type) -> dict[str, str]:
    import ast
    import inspect
    import textwrap

    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
    except (OSError, TypeError, SyntaxError):
        return {}
    body = next((node.body for node in tree.body if isinstance(node, ast.ClassDef)), [])
    found = {}
    for field_node, text_node in pairwise(body):
        if (
            isinstance(field_node, ast.AnnAssign)
            and isinstance(field_node.target, ast.Name)
            and isinstance(text_node, ast.Expr)
            and isinstance(text_node.value, ast.Constant)
            and isinstance(text_node.value.value, str)
        ):
            found[field_node.target.id] = inspect.cleandoc(text_node.value.value).strip()
    return found
