"""One row of the launch form: label, input or choices, origin, and the error under it."""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input

from ...logs.text.sanitize import plain
from ..ui.choice_field import ChoiceField
from ..ui.palette import STYLES, Text
from ..ui.steady_static import SteadyStatic
from ..ui.theme import glyphs_of
from .field_input import FieldInput
from .form_field import COMPUTED, MOST_SIDE_BY_SIDE, Field, Origin


@dataclass
class FieldChanged(Message):
    """A person changed a field."""

    section: str
    name: str
    text: str


class FieldRow(Vertical):
    """A field of the form, drawn as it is at each `refresh_field`."""

    DEFAULT_CSS = "FieldRow { height: auto; width: 1fr; }"

    def __init__(self, field: Field) -> None:
        super().__init__()
        self.field = field
        self._label = SteadyStatic(classes="field-label")
        self._origin = SteadyStatic(classes="field-origin")
        self._error = SteadyStatic(classes="field-error")
        # The last text that was set or reported. An input reports its initial text as a change, perhaps after the
        # form has set another one.
        self._reported = field.text
        self.input: FieldInput | ChoiceField
        if field.choices and len(field.choices) <= MOST_SIDE_BY_SIDE and not field.is_swept:
            self.input = ChoiceField(field.offered, field.text, words={"": "none"})
        else:
            self.input = FieldInput(field.name, field.text, "" if field.required else "none")
        self.display = not field.is_hidden
        # Before it is mounted: each later class styles its parts again.
        self.update_classes(self._marks, update=False)

    @property
    def _marks(self) -> dict[str, bool]:
        return {"-error": bool(self.field.error), "-quiet": self._is_quiet}

    @property
    def _is_quiet(self) -> bool:
        field = self.field
        is_default = field.origin is Origin.DEFAULT and field.default_word in (Origin.DEFAULT.word, COMPUTED)
        return bool(field.from_other[0]) or (is_default and not field.required)

    def compose(self) -> ComposeResult:
        with Horizontal(classes="field-line"):
            yield self._label
            yield self.input
            yield self._origin
        yield self._error

    def on_mount(self) -> None:
        self.show_known()
        self.refresh_field()

    def refresh_field(self) -> None:
        """Draw label, origin and error."""
        glyphs, field, focused, quiet = glyphs_of(self.app), self.field, self.input.has_focus, self._is_quiet
        style = f"bold {STYLES.text}" if focused else STYLES.faint if quiet else STYLES.text
        label = Text(glyphs.focus_bar if focused else " ", STYLES.accent, no_wrap=True, end="")
        label.append(field.name, style)
        label.append(" *" if field.required else "", STYLES.accent)
        self._label.show(label)
        self._origin.show(Text(self._origin_word(), STYLES.faint if quiet else STYLES.muted))
        if isinstance(self.input, FieldInput):
            self.input.show_instead(field.from_other[0])
        self._error.display = bool(field.error) and (focused or field.error != "required")
        self._error.show(Text(f"{glyphs.bad} {plain(field.error)}", STYLES.removed))
        self.update_classes(self._marks)
        self.display = not field.is_hidden

    def _origin_word(self) -> str:
        field = self.field
        derived, source = field.from_other
        if derived:
            return f"from {source}"
        if field.is_swept and not field.error:
            return f"each of {len(field.values)}"
        if field.required and not field.text:
            return "required"
        return field.default_word if field.origin is Origin.DEFAULT else field.origin.word

    def set_text(self, text: str) -> None:
        """Show a text that was not typed here."""
        with self.prevent(Input.Changed, ChoiceField.Changed):
            self.input.value = text
        self._reported = text

    def show_known(self) -> None:
        """Show the field's text, and complete known values and paths with the right arrow."""
        field = self.field
        if isinstance(self.input, FieldInput):
            if field.known or len(field.choices) > MOST_SIDE_BY_SIDE:
                self.input.complete_from(field.known or field.choices)
            elif field.is_file:
                self.input.complete_paths()
        if self.input.value != field.text:
            self.set_text(field.text)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        # An event may be older than the present text.
        if event.value == self.input.value:
            self._report(event.value)

    def on_choice_field_changed(self, event: ChoiceField.Changed) -> None:
        event.stop()
        self._report(event.value)

    def _report(self, text: str) -> None:
        if text != self._reported:
            self._reported = text
            self.post_message(FieldChanged(self.field.section, self.field.name, text))

    def on_descendant_focus(self) -> None:
        self.refresh_field()

    def on_descendant_blur(self) -> None:
        self.refresh_field()
