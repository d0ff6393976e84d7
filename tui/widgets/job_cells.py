"""The columns of the job table: what each shows, how wide it is, and how it sorts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ...specs import AppState
from ..job_rows import JobRow, backend_word
from ..words import age, cut, fit_name, state_word

if TYPE_CHECKING:
    from ..palette import Palette
    from ..signs import Signs


@dataclass(frozen=True)
class CellContext:
    """What a cell needs beside its job."""

    palette: Palette
    signs: Signs
    marked: bool = False
    dimmed: bool = False
    now: float | None = None


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        key: its name in settings and sort orders.
        label: its header.
        width: cells; the least for a flexible column.
        cell: draws a job's cell.
        sort_key: what rows are ordered by; of figures the largest first, of ages the newest.
        from_width: the screen width, in cells, from which the column is shown.
        gap: cells between this column and the next.
    """

    key: str
    label: str
    width: int
    cell: Callable[[JobRow, CellContext, int], Text]
    sort_key: Callable[[JobRow], Any]
    right: bool = False
    flexible: bool = False
    from_width: int = 0
    gap: int = 2
    sortable: bool = True


_STATE_STYLES = {
    AppState.UNSUBMITTED: "submitted",
    AppState.SUBMITTED: "submitted",
    AppState.PENDING: "pending",
    AppState.RUNNING: "running",
    AppState.SUCCEEDED: "succeeded",
    AppState.FAILED: "failed",
    AppState.CANCELLED: "cancelled",
    AppState.UNKNOWN: "unknown",
}

# What needs a person comes first.
_STATE_ORDER = [
    AppState.RUNNING,
    AppState.PENDING,
    AppState.SUBMITTED,
    AppState.UNSUBMITTED,
    AppState.UNKNOWN,
    AppState.FAILED,
    AppState.CANCELLED,
    AppState.SUCCEEDED,
]


def state_style(state: AppState, palette: Palette) -> str:
    """Return the style of a state's sign."""
    return getattr(palette, _STATE_STYLES[state])


def state_text(state: AppState, palette: Palette, signs: Signs, *, dimmed: bool = False) -> Text:
    """Return a state's sign and word; only what lives or went wrong has a coloured word."""
    style = palette.text3 if dimmed else state_style(state, palette)
    word_style = style
    if state is AppState.SUCCEEDED:
        word_style = palette.text2 if not palette.ansi else palette.text3
    elif state is AppState.CANCELLED:
        word_style = palette.text3
    text = Text(end="")
    text.append(signs.state(state), style)
    text.append(" ")
    text.append(state_word(state), palette.text3 if dimmed else word_style)
    return text


def name_text(
    app_id: str, width: int, palette: Palette, signs: Signs, *, dimmed: bool = False, bold: bool = False
) -> Text:
    """Return an app id whose unique suffix is dimmer than its name, in at most ``width`` cells."""
    name, suffix = fit_name(app_id, width, signs.cut)
    text = Text(end="")
    text.append(name, palette.text3 if dimmed else f"bold {palette.text}" if bold else palette.text)
    text.append(suffix, palette.text3)
    return text


def _mark(_row: JobRow, context: CellContext, _width: int) -> Text:
    return Text(context.signs.mark if context.marked else " ", context.palette.accent)


def _state(row: JobRow, context: CellContext, _width: int) -> Text:
    return state_text(row.state, context.palette, context.signs, dimmed=context.dimmed)


def _name(row: JobRow, context: CellContext, width: int) -> Text:
    return name_text(row.name, width, context.palette, context.signs, dimmed=context.dimmed)


def _backend(row: JobRow, context: CellContext, width: int) -> Text:
    word = cut(backend_word(row.scheduler), width, context.signs.cut)
    return Text(word, context.palette.text3 if context.dimmed else context.palette.text2)


def _replicas(row: JobRow, context: CellContext, _width: int) -> Text:
    figure = f"{row.running}/{row.wanted}" if row.wanted else ""
    return Text(figure, context.palette.text3 if context.dimmed else context.palette.text2, justify="right")


def _age(row: JobRow, context: CellContext, _width: int) -> Text:
    seconds = row.age_seconds(context.now)
    return Text("" if seconds is None else age(seconds), context.palette.text3, justify="right")


def _component(row: JobRow, context: CellContext, width: int) -> Text:
    return Text(cut(row.component, width, context.signs.cut), context.palette.text3)


def _why(row: JobRow, context: CellContext, width: int) -> Text:
    bright = row.state is AppState.FAILED and not context.dimmed
    return Text(cut(row.why, width, context.signs.cut), context.palette.text2 if bright else context.palette.text3)


COLUMNS: tuple[Column, ...] = (
    Column("mark", "", 1, _mark, lambda row: 0, gap=2, sortable=False),
    Column("state", "STATE", 11, _state, lambda row: _STATE_ORDER.index(row.state)),
    Column("name", "NAME", 24, _name, lambda row: row.name, flexible=True),
    Column("backend", "ON", 6, _backend, lambda row: row.scheduler),
    Column("replicas", "REPL", 5, _replicas, lambda row: -row.wanted, right=True),
    Column("age", "AGE", 4, _age, lambda row: -(row.submitted_at or 0), right=True),
    Column("component", "COMPONENT", 12, _component, lambda row: row.component, from_width=160),
    Column("why", "WHY", 20, _why, lambda row: row.why, from_width=160, flexible=True),
)

COLUMNS_BY_KEY = {column.key: column for column in COLUMNS}
