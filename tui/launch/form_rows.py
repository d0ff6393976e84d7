"""One row of the launch form: label, input or choices, origin, and the error under it."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text as RichText
from textual.containers import Vertical
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.suggester import SuggestFromList
from textual.widgets import Input

from ...logs.text.sanitize import plain
from ..format import cut
from ..ui.choice_field import ChoiceField
from ..ui.drawing import guard_render
from ..ui.palette import Text
from ..ui.theme import glyphs_of
from .field_input import FieldInput, PathSuggester, complete_path
from .form_field import COMPUTED, MOST_SIDE_BY_SIDE, Field, Origin

# Cells of a label, and on a narrow screen; of the origin with its gap; and lines of an error.
_LABEL, _WIDE_LABEL, _ORIGIN, _MOST_LINES = 20, 34, 11, 4


@dataclass
class FieldChanged(Message):
    """A person changed a field."""

    section: str
    name: str
    text: str


class FieldRow(Vertical):
    """A field of the form. It draws label, origin and error around its input: a form has hundreds of rows."""

    DEFAULT_CSS = "FieldRow { height: auto; width: 1fr; }"

    # Textual lays out a second time for each container whose size is new.
    virtual_size = reactive(Size(0, 0))

    def __init__(self, field: Field) -> None:
        self.input: FieldInput | ChoiceField
        if field.choices and len(field.choices) <= MOST_SIDE_BY_SIDE and not field.is_swept:
            self.input = ChoiceField(field.offered, field.text, words={"": "none"})
        else:
            # Its initial text is no change.
            with self.prevent(Input.Changed):
                self.input = FieldInput(field.name, field.text, "" if field.required else "none")
        # Styled together with it: composed later, it would cost as much again.
        super().__init__(self.input)
        self.field = field
        # The last text that was set or reported.
        self._reported = field.text
        self._drawn: tuple[object, ...] = ("",)
        self.display = not field.is_hidden
        # Before it is mounted: each later class styles its input again.
        self.update_classes(self._marks, update=False)

    def allow_focus_children(self) -> bool:
        # Textual sorts by position: a row that has none yet would be the next one of every field.
        return super().allow_focus_children() and bool(self.virtual_region)

    @property
    def _marks(self) -> dict[str, bool]:
        return {"-error": bool(self.field.error), "-quiet": self._is_quiet}

    @property
    def _is_quiet(self) -> bool:
        field = self.field
        is_default = field.origin is Origin.DEFAULT and field.default_word in (Origin.DEFAULT.word, COMPUTED)
        return bool(field.from_other[0]) or (is_default and not field.required)

    def on_mount(self) -> None:
        self._place_input()
        self.show_known()
        self.refresh_field()

    def on_resize(self) -> None:
        self._place_input()

    def _place_input(self) -> None:
        self.input.styles.margin = (0, _ORIGIN, 0, self._label_width)

    @property
    def _label_width(self) -> int:
        most = _LABEL if self.screen.has_class("-narrow") else _WIDE_LABEL
        return min(max(cell_len(self._label) + 1, _LABEL), most)

    @property
    def _label(self) -> str:
        return f" {self.field.name}{' *' if self.field.required else ''}"

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return 1 + len(self._error_lines(width))

    @property
    def error(self) -> str:
        """The error that is shown; "required" only with the focus."""
        error = self.field.error
        return error if self.input.has_focus or error != "required" else ""

    def _error_lines(self, width: int) -> list[RichText]:
        if not self.error:
            return []
        text = Text(f"{glyphs_of(self.app).bad} {plain(self.error)}", "$style-removed")
        return list(text.wrap(self.app.console, max(1, width - _LABEL - 2)))[:_MOST_LINES]

    @guard_render
    def render(self) -> Text:
        glyphs, field, focused, quiet = glyphs_of(self.app), self.field, self.input.has_focus, self._is_quiet
        style = "bold $style-text" if focused else "$style-faint" if quiet else "$style-text"
        line = Text(glyphs.focus_bar if focused else " ", "$style-accent", end="")
        line.append(field.name, style)
        line.append(" *" if field.required else "", "$style-accent")
        line.truncate(self._label_width - 1, overflow="ellipsis")
        line.pad_right(self.size.width - _ORIGIN + 2 - line.cell_len)
        origin = cut(plain(self.origin), _ORIGIN - 2, glyphs.cut)
        line.append(origin, "$style-faint" if quiet else "$style-muted")
        for error in self._error_lines(self.size.width):
            line.append(f"\n{' ' * (_LABEL + 1)}").append_text(error)
        return line

    def refresh_field(self) -> None:
        """Draw label, origin and error as they are now."""
        field = self.field
        origin = field.origin, field.text, field.several, field.from_other
        shown = self.error, field.error, field.is_hidden, self.input.has_focus, *origin
        if shown == self._drawn:
            return
        self.refresh(layout=shown[0] != self._drawn[0])
        self._drawn = shown
        if isinstance(self.input, FieldInput):
            self.input.show_instead(field.from_other[0])
        self.update_classes(self._marks)
        self.display = not field.is_hidden

    @property
    def origin(self) -> str:
        """Where the text comes from, in a word."""
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
                self.input.suggester = SuggestFromList(field.known or field.choices)
            elif field.is_file:
                self.input.suggester = PathSuggester(complete_path)
        # What was typed a moment ago has not reached the field yet.
        is_edited = self.input.has_focus and bool(self.input.value)
        if self.input.value != field.text and not is_edited:
            self.set_text(field.text)

    def on_input_changed(self, event: Input.Changed) -> None:
        # An event may be older than the present text.
        if event.value == self.input.value:
            self._report(event.value)

    def on_choice_field_changed(self, event: ChoiceField.Changed) -> None:
        self._report(event.value)

    def _report(self, text: str) -> None:
        if text != self._reported:
            self._reported = text
            self.post_message(FieldChanged(self.field.section, self.field.name, text))

    def on_descendant_focus(self) -> None:
        self.refresh_field()

    on_descendant_blur = on_descendant_focus
