"""One run option: its type, default and help, and how a text becomes its value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args, get_origin

from .cfg_text import split_items, split_pair, split_parts

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
