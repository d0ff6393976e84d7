"""Run options declared as the fields of a dataclass."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from ..base.modules import parse_source
from ..specs.errors import InvalidRunConfigException
from ..specs.run_options import CfgVal, runopts

if TYPE_CHECKING:
    from typing_extensions import Self


class StructuredOpts(Mapping[str, CfgVal]):
    '''The run options of a scheduler, as fields with types, defaults and a text under each that says what it does.

    Subclasses are dataclasses. Each is a mapping as well, so it can be given wherever options are. Names are
    accepted in snake_case and in camelCase. A field that begins with an underscore is not an option. A field that
    is a `StructuredOpts` itself is a group, whose options are named `group.option`; ``metadata={"cfg_key":
    "mail-user"}`` gives an option a name that no field can have.

    Example:
        >>> @dataclass
        ... class Opts(StructuredOpts):
        ...     queue: str
        ...     """The queue to wait in."""
        ...     retries: int | None = None
        ...     """How often to try again."""
    '''

    _extra_cfg: Mapping[str, CfgVal] = MappingProxyType({})
    """What `from_cfg` was given and is no field, such as the options of a workspace: it is in the mapping too."""

    @staticmethod
    def snake_to_camel(name: str) -> str:
        """Return a snake_case name in camelCase."""
        first, *rest = name.split("_")
        return first + "".join(word.title() for word in rest)

    @classmethod
    def from_cfg(cls, cfg: Mapping[str, CfgVal]) -> Self:
        """Return the options that a mapping holds; what is no option is kept beside them.

        Raises:
            TypeError: an option without a default is missing.
            InvalidRunConfigException: an option is given in two spellings, with two values.
        """
        given: dict[str, Any] = {}
        for option in _options(cls):
            group = _group_type(cls, option)
            if group is None:
                spellings = [key for key in cfg if _option_named(cls, key) is option]
                if spellings:
                    given[option.name] = _one_value(option, spellings, cfg)
            else:
                inside = _of_group(option, cfg)
                if inside or _is_required(option):
                    given[option.name] = group.from_cfg(inside)
        made = cls(**given)
        extra = {key: value for key, value in cfg.items() if key not in made}
        if extra:
            # A dataclass may be frozen.
            object.__setattr__(made, "_extra_cfg", extra)
        return made

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of an option, ``default`` where it is unknown or None."""
        try:
            value = self[key]
        except KeyError:
            return default
        return default if value is None else value

    def __getitem__(self, key: str) -> CfgVal:
        option = _option_named(type(self), key)
        if option is not None:
            return getattr(self, option.name)
        before, point, after = key.partition(".")
        group = _option_named(type(self), before) if point else None
        inside = None if group is None else getattr(self, group.name)
        return inside[after] if isinstance(inside, StructuredOpts) else self._extra_cfg[key]

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[str]:
        for option in _options(self):
            group = getattr(self, option.name)
            if _group_type(type(self), option) is None:
                yield _key_of(option)
            elif group is not None:
                yield from (f"{option.name}.{key}" for key in group)
        yield from self._extra_cfg

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        try:
            self[key]
        except KeyError:
            return False
        return True

    def __or__(self, other: Mapping[str, CfgVal]) -> dict[str, CfgVal]:
        """Return the options of both, the other's where both have one."""
        return {**dict(self), **dict(other)}

    @classmethod
    def get_docstrings(cls) -> dict[str, str]:
        """Return the text under each field, by field, read from the source; what has no source has no texts.

        Those of a group's options are named ``group.option``.
        """
        found: dict[str, str] = {}
        for owner in reversed(cls.__mro__):
            if owner is not StructuredOpts and issubclass(owner, StructuredOpts):
                found.update(_field_texts(owner))
        for option in _options(cls):
            group = _group_type(cls, option)
            if group is not None:
                found.update({f"{option.name}.{key}": text for key, text in group.get_docstrings().items()})
        return found

    @classmethod
    def as_runopts(cls) -> runopts:
        """Return the options as a scheduler declares them; a field without a default is required."""
        opts = runopts()
        texts = cls.get_docstrings()
        for option in _options(cls):
            group = _group_type(cls, option)
            if group is not None:
                for key, inner in group.as_runopts():
                    opts.add(
                        f"{option.name}.{key}",
                        type_=inner.opt_type, help=inner.help, default=inner.default, required=inner.is_required,
                    )  # fmt: skip
                continue
            camel = cls.snake_to_camel(option.name)
            opts.add(
                _key_of(option),
                type_=_without_none(_hints(cls).get(option.name, str)),
                help=texts.get(option.name, option.name),
                default=None if option.default is MISSING else option.default,
                required=_is_required(option),
                aliases=[name for name in dict.fromkeys((option.name, camel)) if name != _key_of(option)] or None,
            )
        return opts


def _options(of: Any) -> list[Field[Any]]:
    return [option for option in fields(of) if not option.name.startswith("_")]


def _key_of(option: Field[Any]) -> str:
    """Return the name of an option in a cfg."""
    return option.metadata.get("cfg_key", option.name)


def _option_named(cls: type[StructuredOpts], key: str) -> Field[Any] | None:
    options = _options(cls)
    named = {name: option for option in options for name in (cls.snake_to_camel(option.name), _snake(option.name))}
    named |= {name: option for option in options for name in (option.name, _key_of(option))}
    return named.get(key) or named.get(_snake(key))


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _one_value(option: Field[Any], spellings: list[str], cfg: Mapping[str, CfgVal]) -> CfgVal:
    first, *others = spellings
    for other in others:
        if cfg[other] != cfg[first]:
            raise InvalidRunConfigException(
                f"`{first}` and `{other}` are one option, and have two values: give one", _key_of(option), dict(cfg)
            )
    return cfg[first]


def _of_group(option: Field[Any], cfg: Mapping[str, CfgVal]) -> dict[str, CfgVal]:
    """Return the options of a group by their names inside it."""
    parts = {key: key.partition(".") for key in cfg}
    return {
        after: cfg[key]
        for key, (before, point, after) in parts.items()
        if point and _snake(before) == _snake(option.name)
    }


@lru_cache(maxsize=64)
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _group_type(cls: type, option: Field[Any]) -> type[StructuredOpts] | None:
    """Return the class of a field that is a group of options, None for an option."""
    hint = _without_none(_hints(cls).get(option.name, str))
    grouped = isinstance(hint, type) and get_origin(hint) is None and issubclass(hint, StructuredOpts)
    return hint if grouped else None


def _is_required(option: Field[Any]) -> bool:
    return option.default is MISSING and option.default_factory is MISSING


def _without_none(hint: Any) -> Any:
    """Return the first type of a union that is not None."""
    if get_origin(hint) in (Union, types.UnionType):
        return next((kind for kind in get_args(hint) if kind is not type(None)), str)
    return hint


@lru_cache(maxsize=64)
def _field_texts(owner: type) -> dict[str, str]:
    import ast
    import inspect
    import textwrap

    try:
        tree = parse_source(textwrap.dedent(inspect.getsource(owner)))
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
