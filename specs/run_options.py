"""Run options: those that a scheduler accepts, and the text form of given ones (`key=value,key2=value2`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, get_args, get_origin

from .errors import InvalidRunConfigException

CfgVal = str | int | float | bool | list[str] | dict[str, str] | None
Cfg = Mapping[str, CfgVal]
_TRUE = ("true", "1", "yes", "on")
_FALSE = ("false", "0", "no", "off")
# A quoted piece, in which separators have no meaning; a backslash escapes a quote.
_QUOTED = re.compile(r"""(['"])(?:\\.|(?!\1).)*?\1""", re.DOTALL)
_SPECIAL = "=,;:'\""
# The first key, and each later one with the separator before it.
_KEY = re.compile(r"(?:\A[^=]*|[,;][^=,;]*)=")


@dataclass
class runopt:  # noqa: N801 - TorchX's name
    """One option.

    Args:
        default: Its value where none is given.
        opt_type: `str`, `int`, `float`, `bool`, `list[str]` or `dict[str, str]`.
        is_required: Whether a value must be given.
        help: Its description.
        aliases: Other names that it is accepted under.
    """

    default: CfgVal
    opt_type: Any
    is_required: bool
    help: str
    aliases: list[str] = field(default_factory=list)

    @property
    def is_type_list_of_str(self) -> bool:
        """Whether the option is a list of texts."""
        return (get_origin(self.opt_type) or self.opt_type) is list

    @property
    def is_type_dict_of_str(self) -> bool:
        """Whether the option maps texts to texts."""
        return (get_origin(self.opt_type) or self.opt_type) is dict

    def cast_to_type(self, value: str) -> CfgVal:
        """Parse the text of a value.

        Lists are separated by `,` or `;`, and so are the `key:value` pairs of a dict; quotes around an item, a key or
        a value keep its separators. Booleans are parsed by `parse_bool`.

        Raises:
            ValueError: The text is not of the option's type, or a dict has a key twice.
        """
        if self.is_type_list_of_str:
            return list(split_items(value))
        if self.is_type_dict_of_str:
            return _unique(split_pair(item) for item in split_parts(value))
        return parse_scalar(get_type_name(self.opt_type), value)


class runopts:  # noqa: N801 - TorchX's name
    """The options of a scheduler. Iterating gives pairs of name and `runopt`; `str()` is the help for all of them.

    Names are equal in snake_case and camelCase: `clusterName` is `cluster_name`.
    """

    def __init__(self) -> None:
        self._opts: dict[str, runopt] = {}

    def __iter__(self) -> Iterator[tuple[str, runopt]]:
        return iter(self._opts.items())

    def __len__(self) -> int:
        return len(self._opts)

    def __or__(self, other: runopts) -> runopts:
        both = runopts()
        both.update(self)
        both.update(other)
        return both

    def add(
        self,
        cfg_key: str,
        type_: Any,
        help: str,
        default: CfgVal = None,
        required: bool = False,
        *,
        aliases: Sequence[str] | None = None,
        deprecated_aliases: Sequence[str] | None = None,
    ) -> None:
        """Declare an option.

        Args:
            cfg_key: Its name.
            type_: `str`, `int`, `float`, `bool`, `list[str]` or `dict[str, str]`.
            help: Its description.
            default: Its value where none is given; None is allowed for every type.
            required: Whether a value must be given; such an option has no default.
            aliases: Further names, beside the camelCase form.
            deprecated_aliases: Further names that are no longer advertised.

        Raises:
            ValueError: A required option has a default.
            TypeError: The default is not of the type.
        """
        if required and default is not None:
            raise ValueError(f"The option {cfg_key} is required, so it has no default. Given: {default}")
        if default is not None and not self.is_type(default, type_):
            raise TypeError(f"The option {cfg_key} is {get_type_name(type_)}. Given as default: {default!r}")
        names = [*(aliases or ()), *(deprecated_aliases or ())]
        self._opts[cfg_key] = runopt(default, type_, required, help, names)

    def update(self, other: runopts) -> None:
        """Add all options of another set, which replace those of the same name."""
        self._opts.update(other._opts)

    def get(self, name: str) -> runopt | None:
        """Return an option by any of its spellings, or None."""
        key = self.canonical_key(name)
        return None if key is None else self._opts[key]

    def canonical_key(self, name: str) -> str | None:
        """Return the declared name for a spelling, or None if it is not an option."""
        if name in self._opts:
            return name
        for key, opt in self._opts.items():
            if name in opt.aliases:
                return key
        snake = snake_case(name)
        return next((key for key in self._opts if snake_case(key) == snake), None)

    @staticmethod
    def is_type(obj: CfgVal, tp: Any) -> bool:
        """Return whether a value is of a type, like `isinstance`, also for `list[str]` and `dict[str, str]`."""
        origin = get_origin(tp)
        if origin is None:
            return isinstance(obj, tp)
        if not isinstance(obj, origin):
            return False
        inner: list[Any] = [*obj, *obj.values()] if isinstance(obj, dict) else list(obj)  # type: ignore[arg-type]
        kinds = tuple(kind for kind in get_args(tp) if isinstance(kind, type))
        return all(isinstance(item, kinds) for item in inner)

    def check(self, cfg: Cfg) -> None:
        """Check options without filling in defaults.

        Raises:
            InvalidRunConfigException: As for `resolve`.
        """
        self.resolve(cfg)

    def resolve(self, cfg: Cfg, *, ignore_unknown: bool = False) -> dict[str, CfgVal]:
        """Check the given options and add the others at their defaults; the result is a new mapping.

        Args:
            cfg: Options by any spelling. A required option must not be None.
            ignore_unknown: Pass unknown options through instead of refusing them.

        Raises:
            InvalidRunConfigException: An option is unknown, of another type, missing though required, or given twice
                with different values.
        """
        resolved = self._canonical(cfg, ignore_unknown=ignore_unknown, keep_unknown=True)
        for key, opt in self._opts.items():
            value = resolved.setdefault(key, None if opt.is_required else opt.default)
            if value is None and opt.is_required:
                raise InvalidRunConfigException(
                    f"Required run option: {key}, must be provided and not `None`", key, cfg
                )
            if value is not None and not self.is_type(value, opt.opt_type):
                raise self._wrong_type(key, value, cfg)
        return resolved

    def cfg_from_str(self, cfg_str: str) -> dict[str, CfgVal]:
        """Parse a text such as `log_dir=/tmp,prepend_cwd=true`, without adding defaults.

        Pairs and the items of lists are separated by `,` or `;`; the last one before the next `=` ends a pair. Quotes
        keep a value together.

        Raises:
            InvalidRunConfigException: A pair is malformed, an option unknown, or a value not of its type.
        """
        try:
            texts = split_cfg(cfg_str)
        except ValueError as error:
            raise InvalidRunConfigException(str(error), "", {}) from error
        values: dict[str, CfgVal] = {}
        for name, text in texts.items():
            opt = self.get(name)
            if opt is None:
                raise self._unknown(name, texts)
            try:
                values[name] = opt.cast_to_type(text)
            except ValueError as error:
                raise InvalidRunConfigException(f"Run option: {name}: {error}", name, texts) from error
        return self._canonical(values)

    def cfg_from_json_repr(self, json_repr: str, *, ignore_unknown: bool = False) -> dict[str, CfgVal]:
        """Parse a JSON object of options, without adding defaults; items of lists and dicts become texts.

        Args:
            json_repr: The JSON text.
            ignore_unknown: Drop unknown options instead of refusing them.

        Raises:
            InvalidRunConfigException: It is not a JSON object, an option is unknown, or a list or dict is expected.
        """
        try:
            values = json.loads(json_repr)
        except ValueError as error:
            raise InvalidRunConfigException(f"The run options are not JSON: {error}", "", {}) from error
        if not isinstance(values, dict):
            raise InvalidRunConfigException(f"The run options are not a JSON object: {json_repr}", "", {})
        cfg = self._canonical(values, ignore_unknown=ignore_unknown)
        for key, value in cfg.items():
            opt = self._opts[key]
            if value is None:
                continue
            if opt.is_type_list_of_str and isinstance(value, list):
                cfg[key] = [str(item) for item in value]
            elif opt.is_type_dict_of_str and isinstance(value, dict):
                cfg[key] = {str(name): str(item) for name, item in value.items()}
            elif opt.is_type_list_of_str or opt.is_type_dict_of_str:
                raise self._wrong_type(key, value, values)
        return cfg

    def _canonical(self, cfg: Cfg, *, ignore_unknown: bool = False, keep_unknown: bool = False) -> dict[str, CfgVal]:
        """Return options under their declared names, each once."""
        canonical: dict[str, CfgVal] = {}
        spelled: dict[str, str] = {}
        for name, value in cfg.items():
            key = self.canonical_key(name)
            if key is None:
                if not ignore_unknown:
                    raise self._unknown(name, cfg)
                if keep_unknown:
                    canonical[name] = value
                continue
            if key in spelled and canonical[key] != value:
                reason = (
                    f"Run option `{key}` is given twice, as `{spelled[key]}` and as `{name}`, with different values"
                )
                raise InvalidRunConfigException(reason, key, cfg)
            spelled.setdefault(key, name)
            canonical[key] = value
        return canonical

    def _wrong_type(self, key: str, value: CfgVal, cfg: Cfg) -> InvalidRunConfigException:
        wanted = get_type_name(self._opts[key].opt_type)
        reason = f"Run option: {key}, must be of type: {wanted}, but was: {value} ({type(value).__name__})"
        return InvalidRunConfigException(reason, key, cfg)

    def _unknown(self, name: str, cfg: Cfg) -> InvalidRunConfigException:
        valid = ", ".join(sorted(self._opts)) or "(this scheduler has none)"
        return InvalidRunConfigException(f"Unknown run option `{name}`. Valid options are: {valid}", name, cfg)

    def __repr__(self) -> str:
        required = [(key, opt) for key, opt in self._opts.items() if opt.is_required]
        optional = [(key, opt) for key, opt in self._opts.items() if not opt.is_required]
        usage, lines = [], []
        for title, form, group in (("required", "{}={}", required), ("optional", "[{}={}]", optional)):
            if group:
                lines += ["", f"    {title} arguments:"]
            for key, opt in group:
                usage.append(form.format(key, key.upper()))
                default = "" if opt.is_required else f", {opt.default}"
                lines.append(f"        {key}={key.upper()} ({get_type_name(opt.opt_type)}{default})")
                lines.append(f"            {opt.help}")
        return "\n".join(["    usage:", f"        {','.join(usage)}", *lines])


def get_type_name(tp: Any) -> str:
    """Return the name of an option's type: str, int, float, bool, list or dict; other types as Python prints them."""
    origin = get_origin(tp) or tp
    return origin.__name__ if isinstance(origin, type) and origin is not UnionType else str(tp)


def parse_bool(text: str) -> bool:
    """Parse a boolean as written in INI files.

    Raises:
        ValueError: It is none of true, 1, yes, on, false, 0, no, off (upper or lower case).
    """
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"`{text}` is not true or false. Use one of {'/'.join(_TRUE)} or {'/'.join(_FALSE)}")


def parse_scalar(kind: str, text: str) -> Any:
    """Parse a text as a value of a type: `bool`, `int`, `float`; of any other, it is the text.

    Raises:
        ValueError: It is no such value; the message says what is wanted.
    """
    if kind == "bool":
        return parse_bool(text)
    if kind not in ("int", "float"):
        return text
    try:
        return int(text) if kind == "int" else float(text)
    except ValueError:
        raise ValueError(f"`{text}` is not {'a whole number' if kind == 'int' else 'a number'}") from None


def snake_case(name: str) -> str:
    """Convert a camelCase name to snake_case; other names only become lower case."""
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def format_cfg(cfg: Mapping[str, Any]) -> str:
    """Format options as the text that `runopts.cfg_from_str` parses; those that are None are left out."""
    pairs = []
    for key, value in cfg.items():
        if value is not None:
            # Items of lists and dicts are quoted one by one.
            special = "='\"" if isinstance(value, (list, dict)) else "=,;'\""
            pairs.append(f"{key}={quote_if_needed(format_value(value), special)}")
    return ",".join(pairs)


def format_value(value: Any) -> str:
    """Format a value as the text that `runopt.cast_to_type` parses; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ";".join(f"{_format_item(key)}:{_format_item(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ";".join(map(_format_item, value))
    return str(value)


def _format_item(item: Any) -> str:
    return quote_if_needed(str(item), _SPECIAL)


def split_cfg(text: str) -> dict[str, str]:
    """Split the text of options into a text for each name; its meaning depends on the option's type.

    The last `,` or `;` before the next `=` ends a value; those before it belong to the value. Quotes around a whole
    value are removed.

    Raises:
        ValueError: A piece is not `key=value`, a key or value is missing, or a key is given twice.
    """
    blanked = _blank_quoted(text)
    keys = list(_KEY.finditer(blanked))
    if not text:
        return {}
    if not keys:
        raise ValueError(f"`{text}` is not `key=value`")
    pairs = []
    for found, end in zip(keys, [*(following.start() for following in keys[1:]), len(text)], strict=True):
        key = text[found.start() + (found.start() > 0) : found.end() - 1].strip()
        value = text[found.end() : end].strip()
        if "=" in blanked[found.end() : end]:
            raise ValueError(f"`{value.partition('=')[0]}` is not a value, `,` or `;`, and the next key")
        if not key or not value:
            raise ValueError(f"`{text[:end]}` is not `key=value`: the {'value' if key else 'key'} is missing")
        pairs.append((key, unquoted(value)))
    return _unique(pairs)


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"`{key}` is given twice")
        found[key] = value
    return found


def split_items(text: str) -> list[str]:
    """Split a list at `,` and `;`, but not inside quotes, which are removed; empty items are dropped."""
    return [unquoted(item) for item in split_parts(text)]


def split_parts(text: str, separators: str = ",;") -> list[str]:
    """Split a list at separators outside quotes, which stay; empty items are dropped."""
    parts, start = [], 0
    for found in re.finditer(f"[{separators}]|$", _blank_quoted(text)):
        parts.append(text[start : found.start()])
        start = found.end()
    return [part for part in parts if part]


def split_pair(item: str) -> tuple[str, str]:
    """Split `key:value` into key and value.

    Raises:
        ValueError: There is no colon.
    """
    colon = _blank_quoted(item).find(":")
    if colon < 0:
        raise ValueError(f"`{item}` is not a pair. Use key:value, such as FOO:1,BAR:2")
    return unquoted(item[:colon]), unquoted(item[colon + 1 :])


def quoted(text: str) -> str:
    """Put a text in quotes, which `unquoted` removes."""
    quote = '"' if "'" in text and '"' not in text else "'"
    escaped = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    return f"{quote}{escaped}{quote}"


def quote_if_needed(text: str, special: str = "=,;'\"") -> str:
    """Put a text in quotes if it is empty, has spaces around it, or has a special character."""
    is_plain = text and text == text.strip() and not any(letter in special for letter in text)
    return text if is_plain else quoted(text)


def unquoted(value: str) -> str:
    """Remove the quotes around a whole text; inside them a backslash escapes a quote or a backslash."""
    match = _QUOTED.fullmatch(value)
    return re.sub(rf"\\([\\{match[1]}])", r"\1", value[1:-1]) if match else value


def _blank_quoted(text: str) -> str:
    """Replace the separators inside quotes by spaces; positions stay the same."""
    return _QUOTED.sub(lambda match: re.sub(f"[{_SPECIAL}]", " ", match[0]), text)
