"""The launch form without its widgets: fields, where each value comes from, what is wrong with it, what it makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..backends.secrets import mask_text
from ..components import REQUIRED, ComponentDoc, Parameter, check_argument, to_text
from ..specs import get_type_name, runopts

if TYPE_CHECKING:
    from ..backends.journal import LaunchRecord

DEFAULT, LAST_RUN, TYPED, ONLY_ONE = "default", "last run", "typed", "only one"


@dataclass
class Field:
    """One field.

    Attributes:
        name: the parameter's or option's name.
        section: ``argument`` or ``option``.
        type_words: the type as a person reads it.
        default: the default as text; empty stands for none.
        text: what the field holds.
        origin: where that comes from.
        required: it must not be empty.
        choices: the only texts allowed, if they are few.
        error: what is wrong with the text, empty if nothing is.
        help: what it does.
        known: texts that the backend knows, to choose from.
    """

    name: str
    section: str
    type_words: str
    default: str = ""
    text: str = ""
    origin: str = DEFAULT
    required: bool = False
    choices: tuple[str, ...] = ()
    error: str = ""
    help: str = ""
    known: tuple[str, ...] = ()
    parameter: Parameter | None = None

    @property
    def is_given(self) -> bool:
        """Whether the field differs from its default, so that it must be said."""
        return self.text != self.default


@dataclass
class FormModel:
    """The form of one component on one scheduler.

    Attributes:
        doc: the component.
        scheduler: the chosen scheduler's name.
        fields: arguments first, then run options.
    """

    doc: ComponentDoc
    scheduler: str = ""
    fields: list[Field] = field(default_factory=list)
    _options: runopts | None = None

    def __post_init__(self) -> None:
        self.fields = [_argument_field(parameter) for parameter in self.doc.parameters]
        for one in self.fields:
            self._check(one)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def section(self, name: str) -> list[Field]:
        """Return the fields of a section."""
        return [one for one in self.fields if one.section == name]

    def get(self, section: str, name: str) -> Field | None:
        """Return a field, or None."""
        return next((one for one in self.fields if (one.section, one.name) == (section, name)), None)

    def choose_scheduler(self, name: str, options: runopts) -> None:
        """Take another scheduler's run options; texts of options that it has too are kept."""
        kept = {one.name: one for one in self.section("option")}
        self.scheduler, self._options = name, options
        fresh = []
        for key, option in options:
            one = Field(
                name=key,
                section="option",
                type_words=get_type_name(option.opt_type),
                default=_option_text(option.default),
                text=_option_text(option.default),
                required=option.is_required,
                choices=("true", "false") if option.opt_type is bool else (),
                help=option.help,
            )
            before = kept.get(key)
            if before is not None and before.origin != DEFAULT:
                one.text, one.origin = before.text, before.origin
            self._check(one)
            fresh.append(one)
        self.fields = [*self.section("argument"), *fresh]

    def fill(self, record: LaunchRecord) -> None:
        """Take every value of an earlier launch that the form still has a field for."""
        for one in self.fields:
            values = record.arguments if one.section == "argument" else record.cfg
            if one.name in values:
                text = _given_text(values[one.name], one)
                one.text, one.origin = text, LAST_RUN if text != one.default else DEFAULT
                self._check(one)

    def learn(self, known: Mapping[str, Sequence[str]]) -> list[Field]:
        """Take what run options can be; return the fields that were filled: what must be given and can be one thing."""
        filled = []
        for one in self.section("option"):
            one.known = tuple(known.get(one.name, ()))
            if one.required and not one.text and len(one.known) == 1:
                one.text, one.origin = one.known[0], ONLY_ONE
                self._check(one)
                filled.append(one)
        return filled

    def set(self, section: str, name: str, text: str) -> Field | None:
        """Take what was typed into a field and check it."""
        one = self.get(section, name)
        if one is not None and one.text != text:
            one.text = text
            one.origin = TYPED if one.is_given else DEFAULT
            self._check(one)
        return one

    @property
    def is_whole(self) -> bool:
        """Whether the run options of the chosen scheduler are known."""
        return self._options is not None

    def errors(self) -> list[Field]:
        """Return the fields that something is wrong with, in the order of the form."""
        return [one for one in self.fields if one.error]

    def arguments(self) -> dict[str, Any]:
        """Return the component's arguments as text, those at their defaults left out."""
        return {one.name: one.text for one in self.section("argument") if one.is_given}

    def cfg(self) -> dict[str, Any]:
        """Return the run options, those at their defaults left out; none before `is_whole`.

        Raises:
            ValueError: a text is not of its option's type; `errors` names the field.
        """
        given: dict[str, Any] = {}
        if self._options is None:
            return given
        for one in self.section("option"):
            option = self._options.get(one.name)
            if option is not None and one.is_given:
                given[one.name] = option.cast_to_type(one.text) if one.text else None
        return given

    def origins(self) -> dict[str, int]:
        """Return how many fields come from where."""
        counts: dict[str, int] = {}
        for one in self.fields:
            counts[one.origin] = counts.get(one.origin, 0) + 1
        return counts

    def diff(self, record: LaunchRecord | None) -> list[tuple[str, str, str]]:
        """Return name, text then and text now of each field that differs from an earlier launch, in form order.

        What looks secret is masked.
        """
        if record is None:
            return []
        rows = []
        for one in self.fields:
            values: Mapping[str, Any] = record.arguments if one.section == "argument" else record.cfg
            before = _given_text(values[one.name], one) if one.name in values else one.default
            if before != one.text:
                rows.append((one.name, mask_text(one.name, before), mask_text(one.name, one.text)))
        if record.scheduler != self.scheduler:
            rows.append(("scheduler", record.scheduler, self.scheduler))
        return rows

    def _check(self, one: Field) -> None:
        one.error = _argument_error(one) if one.section == "argument" else self._option_error(one)

    def _option_error(self, one: Field) -> str:
        if not one.text:
            return "required" if one.required else ""
        option = self._options.get(one.name) if self._options is not None else None
        if option is None:
            return ""
        try:
            option.cast_to_type(one.text)
        except ValueError as error:
            return str(error)
        return ""


def _argument_field(parameter: Parameter) -> Field:
    required = parameter.required
    default = "" if parameter.default is REQUIRED else _text(parameter.default)
    choices = parameter.choices or (("true", "false") if parameter.type_text == "bool" else ())
    return Field(
        name=parameter.name,
        section="argument",
        type_words=f"*{parameter.type_text}" if parameter.kind == "var_positional" else parameter.type_text,
        default=default,
        text=default,
        required=required,
        choices=tuple(choices),
        help=parameter.help,
        parameter=parameter,
    )


def _argument_error(one: Field) -> str:
    if one.required and not one.text:
        return "required"
    if not one.is_given or one.parameter is None:
        return ""
    return check_argument(one.parameter, one.text) or ""


def _text(value: Any) -> str:
    """Return a value as the text that a person would type for it."""
    return str(value).lower() if isinstance(value, bool) else to_text(value)


def _option_text(value: Any) -> str:
    """Return a run option's value as text."""
    if isinstance(value, dict):
        return ",".join(f"{key}:{item}" for key, item in value.items())
    return _text(value)


def _given_text(value: Any, one: Field) -> str:
    """Return a value of the journal as the text of a field."""
    if one.parameter is not None and one.parameter.kind == "var_positional" and isinstance(value, list):
        import shlex

        return shlex.join(str(item) for item in value)
    return _option_text(value) if one.section == "option" else _text(value)
