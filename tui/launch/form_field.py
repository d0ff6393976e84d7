"""One field of the launch form: an argument, a run option, or a change of a role."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from ...backends.shared.secrets import mask_arguments
from ...components.model import REQUIRED, Computed, Parameter
from ...components.role_overrides import ROLE_FIELDS, check_role_field
from ...components.values import check_argument, to_text
from ...specs.run_options import format_value, get_type_name, runopt
from .sweep import SweepError, values_of

ARGUMENT, OPTION, LAUNCH = "argument", "option", "launch"
_ROLE = "role:"
COMPUTED = "computed"
"""The word for a default that is shown as its source."""

Editor = Literal["", "items", "pairs", "words", "mounts", "resource", "choice"]

# More choices than this are typed or searched instead of laid out side by side.
MOST_SIDE_BY_SIDE = 4
_FILE_NAMES = {"script", "src", "dst", "file", "path", "folder", "dir", "workspace"}


class Origin(Enum):
    """Where the text of a field comes from: the word on the screen, and a rank; a higher rank replaces a lower one."""

    DEFAULT = "default", 0
    UNKNOWN = "unknown", 0
    LAST_RUN = "last run", 1
    ONLY_ONE = "only one", 1
    CONFIG = "config", 2
    PROFILE = "profile", 3
    # The launch that is repeated: its values stay, whatever config is now.
    RELAUNCHED = "last run", 4
    TYPED = "typed", 5

    def __init__(self, word: str, rank: int) -> None:
        self.word = word
        self.rank = rank


def role_section(role: str) -> str:
    """Return the section of a role's fields."""
    return f"{_ROLE}{role}"


def role_of(section: str) -> str:
    """Return the role of a section; empty for other sections."""
    return section[len(_ROLE) :] if section.startswith(_ROLE) else ""


@dataclass
class Field:
    """One field.

    Attributes:
        name: the parameter's or option's name.
        section: `ARGUMENT`, `OPTION`, `LAUNCH` or a role's, see `role_section`.
        type_words: the type on the screen.
        kind: ``str``, ``int``, ``float``, ``bool``, ``list``, ``dict``, ``tuple`` or ``other``.
        default: the default as text; empty for none.
        text: the present text.
        origin: where that comes from.
        default_word: the word on the screen for the default.
        source: details of the origin, such as a file's name.
        required: it must not be empty.
        choices: the only valid texts, if they are few.
        error: why the text is invalid; empty if it is valid.
        help: the help text.
        known: valid texts that the backend knows.
        parameter: the component's parameter, or the role's field.
        check: returns why one value is invalid; empty if it is valid.
        several: the text is a list of values, each of which is launched.
        is_hidden: another field has a value with which this one has no meaning; it keeps its text.
        from_other: text that another field determines, and that field's name.
    """

    name: str
    section: str
    type_words: str
    kind: str = "str"
    default: str = ""
    text: str = ""
    origin: Origin = Origin.DEFAULT
    default_word: str = Origin.DEFAULT.word
    source: str = ""
    required: bool = False
    choices: tuple[str, ...] = ()
    error: str = ""
    help: str = ""
    known: tuple[str, ...] = ()
    parameter: Parameter | None = None
    check: Callable[[str], str] = dataclasses.field(default=lambda _text: "", repr=False)
    several: bool = False
    is_hidden: bool = False
    from_other: tuple[str, str] = ("", "")

    @property
    def key(self) -> tuple[str, str]:
        """Section and name."""
        return self.section, self.name

    @property
    def role(self) -> str:
        """The role that the field changes; empty for none."""
        return role_of(self.section)

    @property
    def is_of_launch(self) -> bool:
        """Whether it is about how a script is launched, not an argument of its own."""
        return self.parameter is not None and self.parameter.part == "launch"

    @property
    def is_given(self) -> bool:
        """Whether the text differs from the default."""
        return self.text != self.default and not self.is_hidden

    @property
    def is_swept(self) -> bool:
        """Whether the text is a list of values."""
        # A default may be source text with commas, such as `max(2, 3)`, which only its component can evaluate.
        is_list = self.kind in ("int", "float") and self.is_given and ("," in self.text or ".." in self.text)
        return bool(self.text) and (self.several or is_list) and not self.is_hidden

    @property
    def values(self) -> list[str]:
        """The values of the text; one without a sweep.

        Raises:
            SweepError: a list of values cannot be parsed.
        """
        return values_of(self.kind, self.text) if self.is_swept else [self.text]

    @property
    def sweep_warning(self) -> str:
        """A warning about values of a sweep without the option that the first begins with; empty for none.

        In ``--lr 0.1, 0.2`` the second value is only ``0.2``.
        """
        if not self.is_swept or self.error:
            return ""
        first, *others = self.values
        odd = next((value for value in others if not value.startswith("-")), "") if first.startswith("-") else ""
        option = first.split(maxsplit=1)[0].partition("=")[0] if odd else ""
        return f"{self.name}: the value `{odd}` does not begin with {option}: write each value in full" if odd else ""

    @property
    def can_be_several(self) -> bool:
        """Whether jobs of a sweep may have different values."""
        return self.section != LAUNCH

    @property
    def is_file(self) -> bool:
        """Whether the text is a path, judged by the field's name."""
        return (
            self.kind == "str" and self.section != OPTION and not _FILE_NAMES.isdisjoint(self.name.lower().split("_"))
        )

    @property
    def offered(self) -> tuple[str, ...]:
        """The choices, after a default that is none of them."""
        has_other = not self.required and self.choices and self.default not in self.choices
        return (self.default, *self.choices) if has_other else self.choices

    @property
    def editor(self) -> Editor:
        """The dialog of the field; empty for none."""
        parameter = self.parameter
        form = parameter.form if parameter else ""
        if form == "resource" or (self.role and self.name == "resource"):
            return "resource"
        if form == "mounts" or self.name == "mounts":
            return "mounts"
        if parameter is not None and parameter.kind == "var_positional":
            return "words"
        if self.kind == "dict":
            return "pairs"
        if self.kind in ("list", "tuple"):
            return "items"
        return "choice" if self.known or len(self.choices) > MOST_SIDE_BY_SIDE else ""

    def take(self, text: str, origin: Origin, source: str = "") -> None:
        """Set the text and its origin, and check it."""
        self.text, self.source = text, source
        self.origin = origin if self.is_given else Origin.DEFAULT
        self.verify()

    def verify(self) -> None:
        """Set `error`, with secrets masked."""
        fault = self._fault()
        masked = mask_arguments(fault, self.name, self.text) if fault else fault
        self.error = f"not valid: use {self.type_words}" if masked is None else masked

    def _fault(self) -> str:
        if not self.text and self.required:
            return "required"
        if not self.is_given and not self.is_swept:
            return ""
        if not self.text:
            return self.check("").replace("`` is not", "empty: use")
        try:
            values = self.values
        except SweepError as error:
            return str(error)
        for value in values:
            wrong = self.several and self.choices and value not in self.choices
            if fault := f"use one of {', '.join(self.choices)}" if wrong else self.check(value):
                return f"{value}: {fault}" if self.is_swept else fault
        return ""


def argument_field(parameter: Parameter) -> Field:
    """Make the field of a component's parameter."""
    choices = tuple(parameter.choices or (("true", "false") if parameter.type.kind == "bool" else ()))
    default = "" if parameter.default is REQUIRED else plain_text(parameter.default)
    # The default may be the member of an Enum with its class: `Color.RED`.
    if default not in choices and default.rpartition(".")[2] in choices:
        default = default.rpartition(".")[2]
    is_computed = isinstance(parameter.default, Computed) and default == parameter.default.text
    return Field(
        name=parameter.name,
        section=ARGUMENT,
        type_words=f"*{parameter.type_text}" if parameter.kind == "var_positional" else parameter.type_text,
        kind=parameter.type.kind,
        default=default,
        text=default,
        default_word=COMPUTED if is_computed else Origin.DEFAULT.word,
        required=parameter.required,
        choices=choices,
        help=parameter.help,
        parameter=parameter,
        check=lambda text: check_argument(parameter, text) or "",
    )


def option_field(name: str, option: runopt) -> Field:
    """Make the field of a run option."""
    default, kind = format_value(option.default), get_type_name(option.opt_type)

    def check(text: str) -> str:
        try:
            if text:
                option.cast_to_type(text)
        except ValueError as error:
            return str(error)
        return ""

    return Field(
        name=name,
        section=OPTION,
        type_words=kind,
        kind=kind,
        default=default,
        text=default,
        required=option.is_required,
        choices=("true", "false") if option.opt_type is bool else (),
        help=option.help,
        check=check,
    )


def role_field(role: str, name: str, default: str, *, known: bool = True) -> Field:
    """Make the field of a change of a role.

    Args:
        role: the role's name.
        name: one of `ROLE_FIELDS`.
        default: the role's own value.
        known: whether that is known; otherwise a value must be typed.
    """
    parameter = ROLE_FIELDS[name]
    return Field(
        name=name,
        section=role_section(role),
        type_words="arguments" if name == "args" else parameter.type_text,
        kind=parameter.type.kind,
        default=default,
        text=default,
        origin=Origin.DEFAULT if known else Origin.UNKNOWN,
        required=not known or name in ("num_replicas", "entrypoint", "max_retries"),
        choices=parameter.choices,
        help=parameter.help,
        parameter=parameter,
        check=lambda text: check_role_field(name, text),
    )


def given_text(value: Any, field: Field) -> str:
    """Format a value of the journal or of config as the text of a field."""
    if field.section == OPTION:
        return format_value(value)
    if field.parameter is not None and field.parameter.kind == "var_positional" and isinstance(value, (list, tuple)):
        return shlex.join(map(str, value))
    return plain_text(value)


def plain_text(value: Any) -> str:
    """Format a value as a person would type it."""
    return str(value).lower() if isinstance(value, bool) else to_text(value)


def text_among(values: Mapping[str, Any], field: Field) -> str:
    """Return the text of a field among the values of a launch, else its default."""
    return given_text(values[field.name], field) if field.name in values else field.default
