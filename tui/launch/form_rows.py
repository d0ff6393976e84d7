"""One row of the launch form: label, input or choices, origin, and the error under it."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static

from ...logs.text.sanitize import plain
from ..format import cut
from ..ui.choice_field import ChoiceField
from ..ui.palette import STYLES
from ..ui.theme import glyphs_of
from .field_input import FieldInput
from .form_field import DEFAULT, MOST_SIDE_BY_SIDE, Field

LABEL_WIDTH = 20


@dataclass
class FieldChanged(Message):
    """A person changed a field."""

    section: str
    name: str
    text: str


@dataclass
class FieldFocused(Message):
    """A field has the focus."""

    section: str
    name: str


@dataclass
class FieldOpened(Message):
    """A person wants to edit a field in a dialog."""

    section: str
    name: str


class FieldRow(Vertical):
    """A field of the form.

    Args:
        field: the field; the row draws it as it is at each `refresh_field`.
    """

    DEFAULT_CSS = "FieldRow { height: auto; width: 1fr; }"

    def __init__(self, field: Field) -> None:
        super().__init__()
        self.field = field
        self._label = Static(markup=False, classes="field-label")
        self._origin = Static(markup=False, classes="field-origin")
        self._error = Static(markup=False, classes="field-error")
        self._drawn: dict[Static, tuple[object, ...]] = {}
        # What form and row agree on: an input tells the text that it was made with as a change, and by the time that is
        # read the form may have another one.
        self._agreed = field.text
        self.input: FieldInput | ChoiceField
        if field.choices and len(field.choices) <= MOST_SIDE_BY_SIDE and not field.is_swept:
            self.input = ChoiceField(field.offered, field.text, words={"": "none"})
        else:
            self.input = FieldInput(field.name, field.text, "" if field.required else "none")
        # Before it is mounted: each class that comes later styles its parts anew.
        self.update_classes(self._marks(), update=False)

    def _marks(self) -> dict[str, bool]:
        return {"-error": bool(self.field.error), "-quiet": self._is_quiet}

    @property
    def _is_quiet(self) -> bool:
        field = self.field
        return bool(field.from_other[0]) or (field.origin == DEFAULT == field.default_word and not field.required)

    def compose(self) -> ComposeResult:
        """Yield the row and the error under it."""
        with Horizontal(classes="field-line"):
            yield self._label
            yield self.input
            yield self._origin
        yield self._error

    def on_mount(self) -> None:
        """Draw the field."""
        self.show_known()
        self.refresh_field()

    def refresh_field(self) -> None:
        """Draw label, origin and error as the field has them now."""
        glyphs = glyphs_of(self.app)
        field, focused = self.field, self.input.has_focus
        derived, decides = field.from_other
        label = Text(no_wrap=True, end="")
        label.append(glyphs.focus_bar if focused else " ", STYLES.accent)
        quiet = self._is_quiet
        label.append(
            cut(field.name, LABEL_WIDTH - 3, glyphs.cut),
            f"bold {STYLES.text}" if focused else STYLES.faint if quiet else STYLES.text,
        )
        if field.required:
            label.append(" *", STYLES.accent)
        self._draw(self._label, label)
        if derived:
            origin = f"from {decides}"
        elif self._is_read_sweep:
            origin = f"each of {len(field.values)}"
        else:
            word = field.default_word if field.origin == DEFAULT else field.origin
            origin = "required" if field.required and not field.text else word
        self._draw(self._origin, Text(origin, STYLES.faint if quiet else STYLES.muted))
        if isinstance(self.input, FieldInput):
            self.input.show_instead(derived)
        shown = bool(field.error) and not (field.error == "required" and not focused)
        self._error.display = shown
        if shown:
            self._draw(self._error, Text(f"{glyphs.bad} {plain(field.error)}", STYLES.removed))
        self.update_classes(self._marks())

    def _draw(self, part: Static, text: Text) -> None:
        # Every letter draws every row: laying out what is as it was would be most of the work.
        drawn = (text.plain, text.style, tuple(text.spans))
        if self._drawn.get(part) != drawn:
            self._drawn[part] = drawn
            part.update(text)

    @property
    def _is_read_sweep(self) -> bool:
        return self.field.is_swept and not self.field.error

    def set_text(self, text: str) -> None:
        """Show a text that was not typed here."""
        with self.prevent(Input.Changed, ChoiceField.Changed):
            self.input.value = text
        self._agreed = text

    def show_known(self) -> None:
        """Offer what the field can be while somebody types; the right arrow takes it."""
        if isinstance(self.input, FieldInput):
            if self.field.known or len(self.field.choices) > MOST_SIDE_BY_SIDE:
                self.input.complete_from(self.field.known or self.field.choices)
            elif self.field.is_file:
                self.input.complete_paths()
        if self.input.value != self.field.text:
            self.set_text(self.field.text)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Hand on what was typed; what came before the text that stands there now says nothing any more."""
        event.stop()
        if event.value == self.input.value:
            self._hand_on(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Ask for the field's dialog."""
        event.stop()
        self.post_message(FieldOpened(self.field.section, self.field.name))

    def on_choice_field_changed(self, event: ChoiceField.Changed) -> None:
        """Hand on what was chosen."""
        event.stop()
        self._hand_on(event.value)

    def _hand_on(self, text: str) -> None:
        if text != self._agreed:
            self._agreed = text
            self.post_message(FieldChanged(self.field.section, self.field.name, text))

    def on_descendant_focus(self, _event: events.DescendantFocus) -> None:
        """Draw the focus bar."""
        self.refresh_field()
        self.post_message(FieldFocused(self.field.section, self.field.name))

    def on_descendant_blur(self, _event: events.DescendantBlur) -> None:
        """Take the focus bar away."""
        self.refresh_field()
