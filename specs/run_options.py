"""The options that a scheduler accepts, and how given ones are read, checked and completed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args, get_origin

from .errors import InvalidRunConfigException

# A quoted piece, in which separators stand for themselves; a backslash keeps the quote after it inside.
_QUOTED = re.compile(r"""(['"])(?:\\.|(?!\1).)*?\1""", re.DOTALL)
_SEPARATORS = "=,;:"


def format_cfg(cfg: Mapping[str, Any]) -> str:
    """Return the text that `runopts.cfg_from_str` turns into these options; those that are None are left out."""
    return ",".join(f"{key}={_kept_together(value)}" for key, value in cfg.items() if value is not None)


def format_value(value: Any) -> str:
    """Return the text that `runopt.cast_to_type` turns into a value; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ";".join(f"{_item_text(key)}:{_item_text(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ";".join(_item_text(item) for item in value)
    return str(value)


def split_items(text: str) -> list[str]:
    """Return the items of a list, separated by `,` or `;`; quotes around one keep its separators. Empty ones go."""
    return [unquoted(item) for item in split_parts(text)]


def split_parts(text: str, separators: str = ",;") -> list[str]:
    """Return the items of a list as they are written, quotes and all; empty ones go."""
    marked = _marked(text)
    places = [place for place, letter in enumerate(marked) if letter in separators]
    edges = zip([0, *(place + 1 for place in places)], [*places, len(text)], strict=True)
    return [text[first:stop] for first, stop in edges if stop > first]


def split_pair(item: str) -> tuple[str, str]:
    """Return the key and the value of `key:value`.

    Raises:
        ValueError: There is no colon.
    """
    place = _marked(item).find(":")
    if place < 0:
        raise ValueError(f"`{item}` is not a pair. Want key:value, such as FOO:1,BAR:2")
    return unquoted(item[:place]), unquoted(item[place + 1 :])


def quoted(text: str) -> str:
    """Return a text in quotes; `unquoted` takes them off."""
    quote = '"' if "'" in text and '"' not in text else "'"
    kept = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    return f"{quote}{kept}{quote}"


def unquoted(value: str) -> str:
    """Return a text without the quotes around all of it; inside them a backslash keeps a quote or a backslash."""
    match = _QUOTED.fullmatch(value)
    if match is None:
        return value
    return re.sub(rf"\\([\\{match[1]}])", r"\1", value[1:-1])


def split_cfg(text: str) -> dict[str, str]:
    """Return the texts of options by name; what they mean depends on the options' types.

    The last `,` or `;` before the next `=` ends a value; those before it belong to the value. Quotes around a whole
    value are taken off.

    Raises:
        ValueError: A piece is not `key=value`, or a key or value is missing.
    """
    if not text:
        return {}
    kind = _marked(text)
    equals = [place for place, letter in enumerate(kind) if letter == "="]
    if not equals:
        raise ValueError(f"`{text}` is not `key=value`")
    pairs: dict[str, str] = {}
    key = text[: equals[0]].strip()
    for place, following in zip(equals, [*equals[1:], None], strict=True):
        end, next_key = len(text), ""
        if following is not None:
            end = max(kind.rfind(",", place, following), kind.rfind(";", place, following))
            next_key = text[end + 1 : following].strip() if end > 0 else ""
            if not next_key:
                raise ValueError(f"`{text[place + 1 : following]}` is not a value, `,` or `;`, and the next key")
        value = text[place + 1 : end].strip()
        if not key or not value:
            raise ValueError(f"`{text[:end]}` is not `key=value`: the {'value' if key else 'key'} is missing")
        pairs[key] = unquoted(value)
        key = next_key
    return pairs


def _marked(text: str) -> str:
    """Return the text with every separator inside quotes blanked, at the same places."""

    def blanked(match: re.Match[str]) -> str:
        return "".join(" " if letter in _SEPARATORS else letter for letter in match.group())

    return _QUOTED.sub(blanked, text)


def _item_text(item: Any) -> str:
    text = str(item)
    return text if text and not any(letter in "=,;:'\"" for letter in text) else quoted(text)


def _kept_together(value: Any) -> str:
    """Return a value's text, in quotes where it could not be told from what follows it."""
    text = format_value(value)
    separators = "='\"" if isinstance(value, (list, dict)) else "=,;'\""
    plain = text and text == text.strip() and not any(letter in separators for letter in text)
    return text if plain else quoted(text)


CfgVal = str | int | float | bool | list[str] | dict[str, str] | None

_TRUE = ("true", "1", "yes", "on")
_FALSE = ("false", "0", "no", "off")


def get_type_name(tp: Any) -> str:
    """Return the word for an option's type: str, int, float, bool, list or dict."""
    origin = get_origin(tp) or tp
    return getattr(origin, "__name__", str(tp))


def is_type(obj: CfgVal, tp: Any) -> bool:
    """Return whether a value is of a type, as `isinstance` but for `list[str]` and `dict[str, str]` too."""
    origin = get_origin(tp)
    if origin is None:
        return isinstance(obj, tp)
    if not isinstance(obj, origin):
        return False
    inner: list[Any] = [*obj, *obj.values()] if isinstance(obj, dict) else list(obj)  # type: ignore[arg-type]
    kinds = tuple(kind for kind in get_args(tp) if isinstance(kind, type))
    return all(isinstance(item, kinds) for item in inner)


def parse_bool(text: str) -> bool:
    """Return the truth value of a word, as INI files have them.

    Raises:
        ValueError: It is none of true, 1, yes, on, false, 0, no, off (upper or lower case).
    """
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"`{text}` is not true or false. Want one of {'/'.join(_TRUE)} or {'/'.join(_FALSE)}")


@dataclass
class runopt:  # noqa: N801 - TorchX's name
    """One option.

    Args:
        default: Its value where none is given.
        opt_type: `str`, `int`, `float`, `bool`, `list[str]` or `dict[str, str]`.
        is_required: Whether a value must be given.
        help: What it does.
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
        """Return the value that a text stands for.

        Lists are separated by `,` or `;`, and so are the `key:value` pairs of a dict; quotes around an item, a key or
        a value keep its separators. Booleans are as `parse_bool` has them.

        Raises:
            ValueError: The text is not of the option's type.
        """
        if self.is_type_list_of_str:
            return list(split_items(value))
        if self.is_type_dict_of_str:
            return dict(split_pair(item) for item in split_parts(value))
        if self.opt_type is bool:
            return parse_bool(value)
        if self.opt_type in (int, float):
            try:
                return self.opt_type(value)
            except ValueError:
                wanted = "a whole number" if self.opt_type is int else "a number"
                raise ValueError(f"`{value}` is not {wanted}") from None
        return value


def _snake(name: str) -> str:
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


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
            help: What it does.
            default: Its value where none is given; None is allowed for every type.
            required: Whether a value must be given; such an option has no default.
            aliases: Further names, beside the camelCase form.
            deprecated_aliases: Further names that are not advertised any more.

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
        """Take over all options of another set, which win over ours of the same name."""
        self._opts.update(other._opts)

    def get(self, name: str) -> runopt | None:
        """Return an option by any of its spellings, or None."""
        key = self.canonical_key(name)
        return None if key is None else self._opts[key]

    def canonical_key(self, name: str) -> str | None:
        """Return the declared name that a spelling stands for, or None where it is no option."""
        if name in self._opts:
            return name
        for key, opt in self._opts.items():
            if name in opt.aliases:
                return key
        snake = _snake(name)
        return next((key for key in self._opts if _snake(key) == snake), None)

    @staticmethod
    def is_type(obj: CfgVal, tp: Any) -> bool:
        """Return whether a value is of a type, as `isinstance` but for `list[str]` and `dict[str, str]` too."""
        return is_type(obj, tp)

    def check(self, cfg: Mapping[str, CfgVal]) -> None:
        """Check options without filling in defaults.

        Raises:
            InvalidRunConfigException: As for `resolve`.
        """
        self.resolve(cfg)

    def resolve(self, cfg: Mapping[str, CfgVal], *, ignore_unknown: bool = False) -> dict[str, CfgVal]:
        """Return a new mapping of all options, the given ones checked, the others at their defaults.

        Args:
            cfg: Options by any spelling. None stands for "not given" in a required option's check.
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
                reason = (
                    f"Run option: {key}, must be of type: {get_type_name(opt.opt_type)},"
                    f" but was: {value} ({type(value).__name__})"
                )
                raise InvalidRunConfigException(reason, key, cfg)
        return resolved

    def cfg_from_str(self, cfg_str: str) -> dict[str, CfgVal]:
        """Return the options of a text such as `log_dir=/tmp,prepend_cwd=true`, without defaults.

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
        """Return the options of a JSON object, without defaults; items of lists and dicts become texts.

        Args:
            json_repr: The JSON text.
            ignore_unknown: Drop unknown options instead of refusing them.

        Raises:
            InvalidRunConfigException: It is no JSON object, or an option is unknown or a list or dict is not one.
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
                reason = f"Run option: {key}, must be of type: {get_type_name(opt.opt_type)}"
                raise InvalidRunConfigException(f"{reason}, but was: {value} ({type(value).__name__})", key, values)
        return cfg

    def _canonical(
        self, cfg: Mapping[str, CfgVal], *, ignore_unknown: bool = False, keep_unknown: bool = False
    ) -> dict[str, CfgVal]:
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

    def _unknown(self, name: str, cfg: Mapping[str, CfgVal]) -> InvalidRunConfigException:
        valid = ", ".join(sorted(self._opts)) or "(this scheduler has none)"
        return InvalidRunConfigException(f"Unknown run option `{name}`. Valid options are: {valid}", name, cfg)

    def __repr__(self) -> str:
        required = [(key, opt) for key, opt in self._opts.items() if opt.is_required]
        optional = [(key, opt) for key, opt in self._opts.items() if not opt.is_required]
        usage = [f"{key}={key.upper()}" for key, _ in required]
        usage += [f"[{key}={key.upper()}]" for key, _ in optional]
        lines = ["    usage:", f"        {','.join(usage)}"]
        for title, group in (("required", required), ("optional", optional)):
            if group:
                lines += ["", f"    {title} arguments:"]
            for key, opt in group:
                default = "" if opt.is_required else f", {opt.default}"
                lines.append(f"        {key}={key.upper()} ({get_type_name(opt.opt_type)}{default})")
                lines.append(f"            {opt.help}")
        return "\n".join(lines)
