"""A few choices side by side, of which one is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from ..format import cut
from .drawing import guard_render
from .palette import Text
from .theme import glyphs_of


def choices_in(widths: Sequence[int], taken: int, room: int) -> range:
    """Return which of several choices side by side are shown: all, else those up to the one taken, and what still fits.

    Args:
        widths: of the choices, in cells.
        taken: the choice that has to be seen.
        room: the cells that there are; two on each side are kept for a glyph that more follow.
    """
    if sum(widths) <= room:
        return range(len(widths))
    room -= 4
    first = stop = taken
    used = 0
    while first >= 0 and (used + widths[first] <= room or first == taken):
        used += widths[first]
        first -= 1
    stop += 1
    while stop < len(widths) and used + widths[stop] <= room:
        used += widths[stop]
        stop += 1
    return range(first + 1, stop)


class ChoiceField(Widget, can_focus=True):
    """A few choices side by side; space and the arrows go on to the next."""

    HELP_TITLE = "Choices"
    DEFAULT_CSS = "ChoiceField { height: 1; width: 1fr; padding: 0 1; }"
    BINDINGS = [
        Binding("right,space", "turn(1)", "Next choice", id="choice.next"),
        Binding("left", "turn(-1)", "Previous choice", id="choice.previous"),
    ]

    choices: reactive[tuple[str, ...]] = reactive(())
    value: reactive[str] = reactive("")

    @dataclass
    class Changed(Message):
        """Another choice was taken."""

        field: ChoiceField
        value: str

        @property
        def control(self) -> ChoiceField:
            """The field."""
            return self.field

    def __init__(
        self, choices: tuple[str, ...], value: str, *, words: dict[str, str] | None = None, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self.set_reactive(ChoiceField.choices, choices)
        self.set_reactive(ChoiceField.value, value)
        self._words = words or {}

    @guard_render
    def render(self) -> Text:
        """Draw the choices, as many as there is room for beside the one taken, which is filled and bold."""
        glyphs = glyphs_of(self.app)
        text = Text()
        shown = self._shown()
        if shown.start:
            text.append(f"{glyphs.cut} ", "$style-faint")
        for index in shown:
            on = self.choices[index] == self.value
            text.append(glyphs.radio_on if on else glyphs.radio_off, "$style-accent" if on else "$style-faint")
            text.append(f" {self._word(index)}  ", "bold $style-text" if on else "$style-muted")
        if shown.stop < len(self.choices):
            text.append(glyphs.cut, "$style-faint")
        return text

    def _word(self, index: int) -> str:
        choice = self.choices[index]
        return cut(self._words.get(choice, choice), max(4, self.content_size.width - 10), glyphs_of(self.app).cut)

    def _shown(self) -> range:
        """Return which choices there is room for."""
        widths = [len(self._word(index)) + 6 for index in range(len(self.choices))]
        taken = self.choices.index(self.value) if self.value in self.choices else 0
        return choices_in(widths, taken, self.content_size.width)

    def action_turn(self, step: int) -> None:
        """Take the next or the previous choice."""
        index = self.choices.index(self.value) if self.value in self.choices else -1 if step > 0 else 0
        self._take(self.choices[(index + step) % len(self.choices)])

    def on_click(self, event: events.Click) -> None:
        """Take the choice that was clicked."""
        shown = self._shown()
        x = event.x - (3 if shown.start else 1)
        for index in shown:
            x -= len(self._word(index)) + 6
            if x < 0:
                self._take(self.choices[index])
                return

    def _take(self, choice: str) -> None:
        if choice != self.value:
            self.value = choice
            self.post_message(self.Changed(self, choice))
