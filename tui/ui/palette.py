"""The colours of the screens: one table a theme, as Rich styles for text and as CSS variables for widgets.

Every text colour reaches a contrast of 4.5:1 on each background that it may stand on; tests/tui/test_palette.py
computes it. ANSI palettes use the terminal's own colours and Rich's attributes (dim, bold, reverse) alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from rich.text import Text as RichText
from textual.content import Content, Span
from textual.strip import Strip
from textual.style import Style as TextualStyle

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Palette:
    """The styles of one theme.

    Each field is a Rich style definition. Fields that name a background (``bg``, ``bar``, ``raised``, ``sel``) and
    ``line`` are a colour alone, and empty where the terminal's default is meant.
    """

    name: str
    dark: bool
    ansi: bool
    bg: str
    bar: str
    raised: str
    sel: str
    line: str
    text: str
    log: str
    muted: str
    faint: str
    accent: str
    accent_fill: str
    spark: str
    submitted: str
    pending: str
    running: str
    succeeded: str
    failed: str
    cancelled: str
    unknown: str
    state_word: str
    error_row: str
    match_row: str
    added: str
    removed: str
    yaml_key: str
    yaml_string: str
    yaml_number: str
    cursor: str
    cursor_unfocused: str
    replicas: tuple[str, ...]
    named_colors: tuple[str, ...]

    def replica(self, number: int) -> str:
        """Return the style of replica ``number``; colours come round again after eight."""
        return self.replicas[number % len(self.replicas)]


DARK = Palette(
    name="torchx-dark",
    dark=True,
    ansi=False,
    bg="#11141a",
    bar="#181d25",
    raised="#222936",
    sel="#1c2c4e",
    line="#333c4b",
    text="#e4e8ef",
    log="#c6cdd8",
    muted="#b0b9c7",
    faint="#8b95a5",
    accent="#8ab4ff",
    accent_fill="bold #0d1628 on #8ab4ff",
    spark="#6482b8",
    submitted="#c3cbd8",
    pending="#e8b45a",
    running="#4fd1a5",
    succeeded="#74a897",
    failed="bold #ff7d73",
    cancelled="#98a1b0",
    unknown="#c9a2f5",
    state_word="#b0b9c7",
    error_row="on #34191c",
    match_row="on #4a4322",
    added="#4fd1a5",
    removed="#ff7d73",
    yaml_key="#8ab4ff",
    yaml_string="#9fc7a4",
    yaml_number="#e0b77d",
    cursor="on #1c2c4e",
    cursor_unfocused="on #222936",
    replicas=("#98f7ff", "#d09805", "#48b98f", "#faef71", "#9c8bff", "#8f9a4c", "#be88c6", "#bef2a3"),
    named_colors=(
        "#8b95a5", "#ff7d73", "#4fd1a5", "#e8b45a", "#8ab4ff", "#c9a2f5", "#6fd3e0", "#c6cdd8",
        "#98a1b0", "#ff9d95", "#7be3bf", "#f3cb85", "#adcaff", "#dcc2fa", "#9fe6ef", "#ffffff",
    ),
)  # fmt: skip

LIGHT = Palette(
    name="torchx-light",
    dark=False,
    ansi=False,
    bg="#fcfcfd",
    bar="#f0f2f6",
    raised="#e8ecf2",
    sel="#dbe7fd",
    line="#cdd4de",
    text="#1c222b",
    log="#2c3440",
    muted="#434c59",
    faint="#5a6370",
    accent="#1f57c9",
    accent_fill="bold #ffffff on #1f57c9",
    spark="#6b8bcb",
    submitted="#3f4c5e",
    pending="#845400",
    running="#08704f",
    succeeded="#466b5f",
    failed="bold #b01240",
    cancelled="#5a6370",
    unknown="#7b3fb3",
    state_word="#434c59",
    error_row="on #fdecea",
    match_row="on #fbeab0",
    added="#08704f",
    removed="#b01240",
    yaml_key="#1f57c9",
    yaml_string="#2f6b3a",
    yaml_number="#845400",
    cursor="on #dbe7fd",
    cursor_unfocused="on #e8ecf2",
    replicas=("#026cad", "#a15a06", "#02303b", "#85623f", "#9400ff", "#4d1d03", "#4a00a2", "#696c79"),
    named_colors=(
        "#1c222b", "#b01240", "#08704f", "#845400", "#1f57c9", "#7b3fb3", "#026cad", "#5a6370",
        "#434c59", "#b01240", "#08704f", "#845400", "#1f57c9", "#7b3fb3", "#026cad", "#2c3440",
    ),
)  # fmt: skip

# Blue runs, orange failed, yellow waits: apart for eyes without red, green or blue receptors, as the test computes.
COLOR_BLIND = replace(
    DARK,
    name="torchx-color-blind",
    accent="#c4f0e4",
    accent_fill="bold #0d1628 on #c4f0e4",
    pending="#f5c729",
    running="#6da5f8",
    succeeded="#7fa0cf",
    failed="bold #e27a3c",
    unknown="#f1e0ea",
    error_row="on #33201a",
    added="#6da5f8",
    removed="#e27a3c",
    yaml_key="#c4f0e4",
    yaml_string="#9dc0f5",
    yaml_number="#f5c729",
    cursor="on #1c2c4e",
)

_ANSI_NAMES = (
    "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
    "bright_black", "bright_red", "bright_green", "bright_yellow",
    "bright_blue", "bright_magenta", "bright_cyan", "bright_white",
)  # fmt: skip
_ANSI_COLORS = frozenset([*_ANSI_NAMES, "default"])


# The terminal's own sixteen colours.
ANSI = Palette(
    name="torchx-ansi-dark",
    dark=True,
    ansi=True,
    bg="",
    bar="",
    raised="",
    sel="",
    line="dim",
    text="default",
    log="default",
    muted="default",
    faint="dim",
    accent="bold cyan",
    accent_fill="bold reverse",
    spark="dim cyan",
    submitted="default",
    pending="yellow",
    running="green",
    succeeded="green",
    failed="bold bright_red",
    cancelled="dim",
    unknown="magenta",
    state_word="dim",
    error_row="bold",
    match_row="underline",
    added="green",
    removed="bright_red",
    yaml_key="cyan",
    yaml_string="green",
    yaml_number="yellow",
    cursor="reverse",
    cursor_unfocused="bold",
    replicas=("cyan", "yellow", "green", "magenta", "bright_blue", "bright_cyan", "bright_magenta", "default"),
    named_colors=_ANSI_NAMES,
)

# Weight alone: bold for what lives or went wrong, dim for what could be missed.
NO_COLOR = replace(
    ANSI,
    name="torchx-no-color",
    accent="bold",
    spark="dim",
    pending="default",
    running="bold",
    succeeded="dim",
    failed="bold",
    unknown="default",
    added="default",
    removed="bold",
    yaml_key="default",
    yaml_string="default",
    yaml_number="default",
    replicas=("default",),
    named_colors=("default",) * 16,
)


def replica_style(number: int) -> str:
    """Return the name of the style of a replica; colours come round again after eight."""
    return f"$style-replica{number % 8}"


class Text(RichText):
    """A Rich text whose styles are looked up when it is drawn, so it follows the theme."""

    def visualize(self) -> Content:
        """Return the text as Textual draws it; the style of a span may be a variable."""
        spans = [(0, len(self), self.style), *self.spans]
        return Content(self.plain, [Span(start, end, _textual_style(style)) for start, end, style in spans if style])

    def strip(self, width: int, base: Style) -> Strip:
        """Return the text as one drawn row."""
        segments = Segment.apply_style(self.visualize().render_segments(), base)
        return Strip(segments).adjust_cell_length(width, base)

    if TYPE_CHECKING:
        # They return what they are called on; Rich declares its own class.
        def append(self, text: RichText | str, style: str | Style | None = None) -> Text: ...
        def append_text(self, text: RichText) -> Text: ...
        def join(self, lines: Iterable[RichText]) -> Text: ...
        @classmethod
        def assemble(cls, *parts: str | RichText | tuple[str, str], end: str = "") -> Text: ...  # type: ignore

    def blank_copy(self, plain: str = "") -> Text:
        return Text(plain, self.style, justify=self.justify)

    def copy(self) -> Text:
        text = self.blank_copy(self.plain)
        text.spans = self.spans
        return text


def _textual_style(style: str | Style) -> str | TextualStyle:
    return style if isinstance(style, str) else TextualStyle.from_rich_style(style)


def style_variables(palette: Palette) -> dict[str, str]:
    """Return the styles that texts name, such as ``style-faint`` for ``$style-faint``."""
    named = {name.replace("_", "-"): text for name, text in vars(palette).items() if isinstance(text, str)}
    named |= {f"replica{number}": palette.replica(number) for number in range(8)}
    return {
        f"style-{name}": " ".join(f"ansi_{word}" if word in _ANSI_COLORS else word for word in definition.split())
        for name, definition in named.items()
        if name != "name"
    }


_ALL = (DARK, LIGHT, COLOR_BLIND, ANSI, NO_COLOR)
PALETTES = {palette.name: palette for palette in _ALL}
