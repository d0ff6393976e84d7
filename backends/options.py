"""Run options declared as the fields of a dataclass."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

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
        keys: dict[str, str] = {}
        groups: dict[str, dict[str, CfgVal]] = {}
        for key, value in cfg.items():
            option, inside = _find_option(cls, key)
            if option is not None and inside:
                groups.setdefault(option.name, {})[inside] = value
            elif option is not None and option.group is None:
                first = keys.setdefault(option.name, key)
                if cfg[first] != value:
                    raise InvalidRunConfigException(
                        f"`{first}` and `{key}` are one option, and have two values: give one", option.key, dict(cfg)
                    )
                given[option.name] = cfg[first]
        for option in _options(cls):
            if option.group is not None and (option.name in groups or option.is_required):
                given[option.name] = option.group.from_cfg(groups.get(option.name, {}))
        made = cls(**given)
        extra = {key: value for key, value in cfg.items() if key not in made}
        if extra:
            # A dataclass may be frozen.
            object.__setattr__(made, "_extra_cfg", extra)
        return made

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of an option, ``default`` where it is unknown or None."""
        value = super().get(key)
        return default if value is None else value

    def __getitem__(self, key: str) -> CfgVal:
        option, inside = _find_option(type(self), key)
        value: Any = None if option is None else getattr(self, option.name)
        if option is None or (inside and value is None):
            return self._extra_cfg[key]
        return value[inside] if inside else value

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[str]:
        for option in _options(type(self)):
            if option.group is None:
                yield option.key
            else:
                yield from (f"{option.name}.{key}" for key in getattr(self, option.name) or ())
        yield from self._extra_cfg

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
            texts = option.group.get_docstrings() if option.group is not None else {}
            found.update((f"{option.name}.{key}", text) for key, text in texts.items())
        return found

    @classmethod
    def as_runopts(cls) -> runopts:
        """Return the options as a scheduler declares them; a field without a default is required."""
        opts = runopts()
        texts = cls.get_docstrings()
        for option in _options(cls):
            if option.group is not None:
                for key, inner in option.group.as_runopts():
                    opts.add(
                        f"{option.name}.{key}",
                        type_=inner.opt_type, help=inner.help, default=inner.default, required=inner.is_required,
                    )  # fmt: skip
                continue
            spellings = dict.fromkeys((option.name, cls.snake_to_camel(option.name)))
            opts.add(
                option.key,
                type_=option.kind,
                help=texts.get(option.name, option.name),
                default=None if option.is_required else option.default,
                required=option.is_required,
                aliases=[name for name in spellings if name != option.key] or None,
            )
        return opts


class _Option(NamedTuple):
    """An option, or a group of options.

    Attributes:
        name: the name of its field.
        key: its name in a cfg.
        kind: its type, without None.
        default: its default; None for one that is made, or if it is required.
        is_required: whether it has none.
        group: the class of a group.
    """

    name: str
    key: str
    kind: Any
    default: Any
    is_required: bool
    group: type[StructuredOpts] | None


@lru_cache(maxsize=64)
def _options(cls: type) -> list[_Option]:
    found, hints = [], get_type_hints(cls)
    for field in fields(cls):
        if not field.name.startswith("_"):
            kind = _without_none(hints.get(field.name, str))
            is_group = isinstance(kind, type) and get_origin(kind) is None and issubclass(kind, StructuredOpts)
            default = None if field.default is MISSING else field.default
            is_required = field.default is field.default_factory is MISSING
            key = field.metadata.get("cfg_key", field.name)
            found.append(_Option(field.name, key, kind, default, is_required, kind if is_group else None))
    return found


@lru_cache(maxsize=64)
def _spellings(cls: type[StructuredOpts]) -> dict[str, _Option]:
    """Return the options by all their names; the declared ones take precedence."""
    options = _options(cls)
    named = {name: option for option in options for name in (cls.snake_to_camel(option.name), _snake(option.name))}
    return named | {name: option for option in options for name in (option.name, option.key)}


def _find_option(cls: type[StructuredOpts], key: object) -> tuple[_Option | None, str]:
    """Return the option of a name, or the group that has it, with the name inside that."""
    text, named = str(key), _spellings(cls)
    if option := named.get(text) or named.get(_snake(text)):
        return option, ""
    before, _, inside = text.partition(".")
    group = named.get(before) or named.get(_snake(before))
    return (group, inside) if group is not None and group.group is not None and inside else (None, "")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


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
    for pair in pairwise(body):
        match pair:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = inspect.cleandoc(text).strip()
    return found
