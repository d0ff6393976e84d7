"""One field of the launch form: an argument, a run option, what is changed in a role; its text, and what is wrong."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from ...backends.shared.secrets import mask_arguments
from ...components.model import REQUIRED, Parameter
from ...components.role_overrides import ROLE_FIELDS, check_role_field
from ...components.values import check_argument, to_text
from ...specs.run_options import format_value, get_type_name, runopt, split_parts, unquoted

# A field may have so many values; what a launch may make is in the settings.
MOST_OF_A_RANGE = 10_000
# From so many on their number tells a person nothing.
_UNCOUNTED = 10**12
RANGE_HELP = "use a list such as 0.1, 0.01, or a range: 1..8, 0..1..0.25 with a step, 1e-4..1e-1*10 with a factor"


class SweepError(ValueError):
    """Several values are meant and cannot be read; the message says what is wanted."""


def values_of(kind: str, text: str) -> list[str]:
    """Return the values of a text, each once, in order.

    Args:
        kind: the type of each: numbers may be ranges, ``1..8`` by ones, ``0..1..0.25`` by a step, ``1..64*2`` by a
            factor.
        text: values parted by commas; quotes keep one together.

    Raises:
        SweepError: a range cannot be read, or there is no value.
    """
    values: list[str] = []
    for part in split_parts(text, ","):
        word = part.strip()
        if not word:
            continue
        if kind in ("int", "float") and ".." in word:
            values += _range(kind, word)
        else:
            values.append(unquoted(word))
        if len(values) > MOST_OF_A_RANGE:
            raise SweepError(f"there are more than {MOST_OF_A_RANGE:,} values; so many can be read at most")
    if not values:
        raise SweepError(f"there is no value in it: {RANGE_HELP}")
    return list(dict.fromkeys(values))


def _range(kind: str, text: str) -> list[str]:
    ends, star, factor_text = text.partition("*")
    parts = ends.split("..")
    if len(parts) not in (2, 3) or (star and len(parts) == 3):
        raise SweepError(f"`{text}` is not a range: {RANGE_HELP}")
    numbers = [_number(part, text) for part in parts]
    first, last = numbers[0], numbers[1]
    if star:
        found = _by_factor(first, last, _number(factor_text, text), text)
    else:
        found = _by_step(first, last, numbers[2] if len(numbers) == 3 else None, text)
    if kind == "int" and any(value != value.to_integral_value() for value in (first, last, *found)):
        raise SweepError(f"`{text}` has values that are no whole numbers")
    return [_shown(value, kind) for value in found]


def _number(text: str, whole: str) -> Decimal:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise SweepError(f"`{text.strip()}` in `{whole}` is not a number: {RANGE_HELP}") from None
    if not number.is_finite():
        raise SweepError(f"`{whole}` has no end")
    # Beyond what a float holds nothing is launched, and reckoning with it takes minutes.
    if math.isinf(float(number)) or (number and not float(number)):
        raise SweepError(f"`{text.strip()}` in `{whole}` is too large or too small a number")
    return number


def _by_step(first: Decimal, last: Decimal, step: Decimal | None, text: str) -> list[Decimal]:
    size = abs(step) if step is not None else Decimal(1)
    if not size:
        raise SweepError(f"the step of `{text}` is 0")
    count = _counted(abs(last - first) / size, text)
    glyph = 1 if last >= first else -1
    return [first + glyph * size * number for number in range(count)]


def _by_factor(first: Decimal, last: Decimal, factor: Decimal, text: str) -> list[Decimal]:
    if factor <= 0 or factor == 1 or first <= 0 or last <= 0:
        raise SweepError(f"`{text}` needs ends over 0 and a factor that is not 1")
    if (last >= first) != (factor > 1):
        factor = 1 / factor
    # The last value is meant although a product of decimals may miss it by a hair.
    count = _counted((last.ln() - first.ln()) / factor.ln() + Decimal("1e-9"), text)
    return [first * factor**number for number in range(count)]


def _counted(steps: Decimal, text: str) -> int:
    if steps >= MOST_OF_A_RANGE:
        many = f"{int(steps) + 1:,}" if steps < _UNCOUNTED else "too many"
        raise SweepError(f"`{text}` has {many} values; at most {MOST_OF_A_RANGE:,} can be read")
    return int(steps) + 1


def _shown(value: Decimal, kind: str) -> str:
    if kind == "int":
        return str(int(value))
    return f"{float(value):.12g}"


DEFAULT, CONFIG, PROFILE, LAST_RUN, TYPED, ONLY_ONE, UNKNOWN = (
    "default",
    "config",
    "profile",
    "last run",
    "typed",
    "only one",
    "unknown",
)
ARGUMENT, OPTION, LAUNCH = "argument", "option", "launch"
_ROLE = "role:"

Editor = Literal["", "items", "pairs", "words", "mounts", "resource", "choice"]

# More choices than this are typed or searched, not laid side by side.
MOST_SIDE_BY_SIDE = 4
_NUMBERS = ("int", "float")
_FILE_NAMES = ("script", "src", "dst", "file", "path", "folder", "dir", "image_root", "workspace")


def role_section(role: str) -> str:
    """Return the section of a role's fields."""
    return f"{_ROLE}{role}"


def role_of(section: str) -> str:
    """Return the role of a section, empty for another one's."""
    return section[len(_ROLE) :] if section.startswith(_ROLE) else ""


@dataclass
class Field:
    """One field.

    Attributes:
        name: the parameter's or option's name.
        section: `ARGUMENT`, `OPTION`, `LAUNCH` or a role's, see `role_section`.
        type_words: the type as a person reads it.
        kind: ``str``, ``int``, ``float``, ``bool``, ``list``, ``dict``, ``tuple`` or ``other``.
        default: the default as text; empty stands for none.
        text: what the field holds.
        origin: where that comes from.
        default_word: what a default is called.
        source: more of that in words, such as a file's name.
        required: it must not be empty.
        choices: the only texts allowed, if they are few.
        error: what is wrong with the text, empty if nothing is.
        help: what it does.
        known: texts that the backend knows, to choose from.
        parameter: the component's parameter, or the role's field.
        check: returns what is wrong with one value as text, empty if nothing is.
        several: the text is a list of values, of which each is launched.
        from_other: text that another field decides, and that field's name.
    """

    name: str
    section: str
    type_words: str
    kind: str = "str"
    default: str = ""
    text: str = ""
    origin: str = DEFAULT
    default_word: str = DEFAULT
    source: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    error: str = ""
    help: str = ""
    known: tuple[str, ...] = ()
    parameter: Parameter | None = None
    check: Callable[[str], str] = dataclasses.field(default=lambda _text: "", repr=False)
    several: bool = False
    from_other: tuple[str, str] = ("", "")

    @property
    def is_given(self) -> bool:
        """Whether the field differs from its default, so that it must be said."""
        return self.text != self.default

    @property
    def is_swept(self) -> bool:
        """Whether the text is meant as several values."""
        # A default may be source text with commas, such as `max(2, 3)`, which only its component can read.
        listed = self.kind in _NUMBERS and self.is_given and ("," in self.text or ".." in self.text)
        return bool(self.text) and (self.several or listed)

    @property
    def values(self) -> list[str]:
        """The values of the text, one where it is not swept.

        Raises:
            SweepError: several are meant and cannot be read.
        """
        return values_of(self.kind, self.text) if self.is_swept else [self.text]

    @property
    def can_be_several(self) -> bool:
        """Whether several values may be launched: what is one value for all of them is not among these."""
        return self.section != LAUNCH

    @property
    def is_file(self) -> bool:
        """Whether the text names a file or folder, by the field's name."""
        words = self.name.lower().split("_")
        return self.kind == "str" and self.section != OPTION and any(word in _FILE_NAMES for word in words)

    @property
    def offered(self) -> tuple[str, ...]:
        """The texts to choose from: the choices, and the default that is none of them, such as nothing at all."""
        has_other = not self.required and self.choices and self.default not in self.choices
        return (self.default, *self.choices) if has_other else self.choices

    @property
    def editor(self) -> Editor:
        """How the field is edited beyond one line, empty for no other way."""
        form = self.parameter.form if self.parameter else ""
        if form == "resource" or (role_of(self.section) and self.name == "resource"):
            return "resource"
        if form == "mounts" or self.name == "mounts":
            return "mounts"
        if self.parameter is not None and self.parameter.kind == "var_positional":
            return "words"
        if self.kind == "dict":
            return "pairs"
        if self.kind in ("list", "tuple"):
            return "items"
        return "choice" if self.known or len(self.choices) > MOST_SIDE_BY_SIDE else ""

    def take(self, text: str, origin: str, source: str = "") -> None:
        """Take a text and where it comes from, and check it."""
        self.text, self.source = text, source
        self.origin = origin if self.is_given else DEFAULT
        self.verify()

    def verify(self) -> None:
        """Note what is wrong with the text, without what looks secret in it."""
        fault = self._fault()
        told = mask_arguments(fault, self.name, self.text) if fault else fault
        self.error = f"not valid: use {self.type_words}" if told is None else told

    def _fault(self) -> str:
        if not self.text:
            if self.required:
                return "required"
            # The default was taken away.
            fault = self._checked("") if self.is_given else ""
            return fault.replace("`` is not", "empty: use")
        if not self.is_given and not self.is_swept:
            return ""
        try:
            values = self.values
        except SweepError as error:
            return str(error)
        faults = ((value, self._checked(value)) for value in values)
        value, fault = next(((value, fault) for value, fault in faults if fault), ("", ""))
        return f"{value}: {fault}" if fault and self.is_swept else fault

    def _checked(self, value: str) -> str:
        if self.several and self.choices and value not in self.choices:
            return f"use one of {', '.join(self.choices)}"
        return self.check(value)


def argument_field(parameter: Parameter) -> Field:
    """Return the field of a component's parameter."""
    choices = tuple(parameter.choices or (("true", "false") if parameter.type.kind == "bool" else ()))
    default = "" if parameter.default is REQUIRED else plain_text(parameter.default)
    # The member of an Enum is written with its class: `Color.RED`.
    if default not in choices and default.rpartition(".")[2] in choices:
        default = default.rpartition(".")[2]
    return Field(
        name=parameter.name,
        section=ARGUMENT,
        type_words=f"*{parameter.type_text}" if parameter.kind == "var_positional" else parameter.type_text,
        kind=parameter.type.kind,
        default=default,
        text=default,
        required=parameter.required,
        choices=choices,
        help=parameter.help,
        parameter=parameter,
        check=lambda text: check_argument(parameter, text) or "",
    )


def option_field(name: str, option: runopt) -> Field:
    """Return the field of a run option."""
    default = format_value(option.default)
    return Field(
        name=name,
        section=OPTION,
        type_words=get_type_name(option.opt_type),
        kind=get_type_name(option.opt_type),
        default=default,
        text=default,
        required=option.is_required,
        choices=("true", "false") if option.opt_type is bool else (),
        help=option.help,
        check=lambda text: _option_fault(option, text),
    )


def role_field(role: str, name: str, default: str, *, known: bool = True) -> Field:
    """Return the field of what can be changed in a role.

    Args:
        role: the role's name.
        name: one of `ROLE_FIELDS`.
        default: what the role has.
        known: whether that is known; else it must be typed.
    """
    parameter = ROLE_FIELDS[name]
    return Field(
        name=name,
        section=role_section(role),
        type_words="arguments" if name == "args" else parameter.type_text,
        kind=parameter.type.kind,
        default=default,
        text=default,
        origin=DEFAULT if known else UNKNOWN,
        required=not known or (name in ("num_replicas", "entrypoint", "max_retries")),
        choices=parameter.choices,
        help=parameter.help,
        parameter=parameter,
        check=lambda text: check_role_field(name, text),
    )


def given_text(value: Any, field: Field) -> str:
    """Return a value of the journal or of config as the text of a field."""
    if field.section == OPTION:
        return format_value(value)
    if field.parameter is not None and field.parameter.kind == "var_positional" and isinstance(value, (list, tuple)):
        import shlex

        return shlex.join(str(item) for item in value)
    return plain_text(value)


def plain_text(value: Any) -> str:
    """Return a value as the text that a person would type for it."""
    return str(value).lower() if isinstance(value, bool) else to_text(value)


def given_texts(values: Mapping[str, Any], field: Field) -> str:
    """Return what a launch had in a field, as text: its value among those that were given, else the default."""
    return given_text(values[field.name], field) if field.name in values else field.default


def _option_fault(option: runopt, text: str) -> str:
    if not text:
        return ""
    try:
        option.cast_to_type(text)
    except ValueError as error:
        return str(error)
    return ""
