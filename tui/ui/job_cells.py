"""The columns of the job table: what each shows, how wide it is, and how it sorts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from ...specs.status import AppState, ReplicaState, ReplicaStatus
from ..format import age, clock, cut, duration, fit_name, split_name, state_word
from ..rows import JobRow, RowProgress, backend_word
from . import glyphs as glyph_sets
from .cursor_table import INDENT
from .palette import Text

if TYPE_CHECKING:
    from .glyphs import Glyphs

WIDE_NAME, LEAST_NAME = 28, 16
# Fewer cells of arguments say less than a name's unique suffix.
_LEAST_ARGS = 12
# Screen columns from which the table of one backend has the same columns as that of all.
_EXTRA_WIDE = 160
# The columns that are shown only where they tell jobs apart: before and after the others.
_TELLING = ("kind", "args")
# The columns of every width.
_KEPT = ("state", "name")


@dataclass(frozen=True)
class CellContext:
    """What a cell needs beside its job."""

    glyphs: Glyphs
    marked: bool = False
    dimmed: bool = False
    now: float | None = None
    progress: RowProgress | None = None
    has_why: bool = False
    has_args: bool = False


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        key: its name in settings and sort orders.
        label: its header.
        width: cells; the least for a flexible column.
        cell: draws a job's cell.
        sort_key: what rows are ordered by; of figures the largest first, of ages the newest.
        from_width: the screen width, in cells, from which the column is shown; None where it has to be chosen.
        extra: it is shown only if it fits beside the others.
        progress_key: what rows are ordered by instead of `sort_key`.
        words: what it shows, for the dialog that chooses columns.
        gap: cells between this column and the next.
    """

    key: str
    label: str
    width: int
    cell: Callable[[JobRow, CellContext, int], Text]
    sort_key: Callable[[JobRow], Any] = lambda _: 0
    right: bool = False
    flexible: bool = False
    from_width: int | None = 0
    gap: int = 2
    sortable: bool = True
    words: str = ""
    extra: bool = False
    progress_key: Callable[[RowProgress | None], Any] | None = None


_STATE_STYLES = {
    AppState.UNSUBMITTED: "$style-submitted",
    AppState.SUBMITTED: "$style-submitted",
    AppState.PENDING: "$style-pending",
    AppState.RUNNING: "$style-running",
    AppState.SUCCEEDED: "$style-succeeded",
    AppState.FAILED: "$style-failed",
    AppState.CANCELLED: "$style-cancelled",
    AppState.UNKNOWN: "$style-unknown",
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


def state_style(state: AppState) -> str:
    """Return the style of a state's glyph."""
    return _STATE_STYLES[state]


def state_text(state: AppState, glyphs: Glyphs, *, dimmed: bool = False) -> Text:
    """Return a state's glyph and word; only what lives or went wrong has a coloured word."""
    style = "$style-faint" if dimmed else state_style(state)
    word_style = style
    if state is AppState.SUCCEEDED:
        word_style = "$style-state-word"
    elif state is AppState.CANCELLED:
        word_style = "$style-faint"
    word_style = "$style-faint" if dimmed else word_style
    return Text.assemble((glyphs.state(state), style), " ", (state_word(state), word_style))


def state_times_text(row: JobRow, glyphs: Glyphs, now: float) -> Text:
    """Return a job's state, its age and since when it runs; of an ended job how long it ran and when it ended."""
    text = state_text(row.state, glyphs)
    seconds = row.duration_seconds if row.is_final else row.age_seconds(now)
    if seconds is not None:
        text.append(f"  {duration(seconds) if row.is_final else age(seconds)}", "$style-muted")
    since = row.finished_at if row.is_final else row.started_at
    if since is not None:
        text.append(f", {'ended' if row.is_final else 'since'} {clock(since, now)}", "$style-muted")
    return text


def name_text(app_id: str, width: int, glyphs: Glyphs, *, dimmed: bool = False, bold: bool = False) -> Text:
    """Return an app id whose unique suffix is dimmer than its name, in at most ``width`` cells."""
    name, suffix = fit_name(app_id, width, glyphs.cut)
    style = "$style-faint" if dimmed else "bold $style-text" if bold else "$style-text"
    return Text.assemble((name, style), (suffix, "$style-faint"))


def _mark(_row: JobRow, context: CellContext, _width: int) -> Text:
    return Text(context.glyphs.mark if context.marked else " ", "$style-accent")


def _state(row: JobRow, context: CellContext, _width: int) -> Text:
    if row.state is AppState.RUNNING and context.progress is not None and context.progress.stalled:
        return Text(STALLED, "$style-faint" if context.dimmed else "bold $style-pending")
    return state_text(row.state, context.glyphs, dimmed=context.dimmed)


def _name(row: JobRow, context: CellContext, width: int) -> Text:
    if not row.link:
        name = split_name(row.name)[0]
        room = width - cell_len(name) - 1
        if not row.varied or (room < _LEAST_ARGS and not context.has_args):
            return name_text(row.name, width, context.glyphs, dimmed=context.dimmed)
        # What it was launched with says more than the unique suffix.
        text = name_text(name, width, context.glyphs, dimmed=context.dimmed)
        return (
            text
            if context.has_args
            else text.append(f" {cut(row.fit_varied(room), room, context.glyphs.cut)}", "$style-muted")
        )
    text = name_text(row.name, width - len(row.link) - 1, context.glyphs, dimmed=context.dimmed)
    return text.append(f" {row.link}", "$style-muted")


def _args(row: JobRow, context: CellContext, width: int) -> Text:
    return Text(
        cut(row.fit_varied(width), width, context.glyphs.cut), "$style-faint" if context.dimmed else "$style-muted"
    )


def _backend(row: JobRow, context: CellContext, width: int) -> Text:
    word = cut(backend_word(row.scheduler), width, context.glyphs.cut)
    return Text(word, "$style-faint" if context.dimmed else "$style-muted")


def _replicas(row: JobRow, context: CellContext, width: int) -> Text:
    # What is left of a figure that is cut must not look like another one.
    figure = cut(f"{row.running}/{row.wanted}", width, context.glyphs.cut) if row.wanted else ""
    return Text(figure, "$style-faint" if context.dimmed else "$style-muted", justify="right")


def _age(row: JobRow, context: CellContext, _width: int) -> Text:
    seconds = row.age_seconds(context.now)
    return Text("" if seconds is None else age(seconds), "$style-faint", justify="right")


def _why(row: JobRow, context: CellContext, width: int) -> Text:
    bright = row.state is AppState.FAILED and not context.dimmed
    why = row.why
    if not why and row.limit_at is not None:
        why = f"limit {clock(row.limit_at, time.time() if context.now is None else context.now)}"
    return Text(cut(why, width, context.glyphs.cut), "$style-muted" if bright else "$style-faint")


def _plain_column(key: str, label: str, width: int, words: str, read: Callable[[JobRow], str] | None = None) -> Column:
    """Return a column of a text of the row, which is shown only where it is chosen."""
    value = read or attrgetter(key)

    def cell(row: JobRow, context: CellContext, width: int) -> Text:
        return Text(cut(value(row), width, context.glyphs.cut), "$style-faint")

    return Column(key, label, width, cell, value, from_width=None, words=words)


def _handle(row: JobRow) -> str:
    from ...logs.text.sanitize import plain

    return plain(row.handle)


def _ran_seconds(row: JobRow, now: float | None) -> float | None:
    """Return how long a job ran, or has run until now."""
    if row.started_at is None or row.is_final:
        return row.duration_seconds
    return max(0.0, (time.time() if now is None else now) - row.started_at)


def _duration(row: JobRow, context: CellContext, _width: int) -> Text:
    seconds = _ran_seconds(row, context.now)
    # Of a running job the minutes are enough: a figure of seconds would change with each poll.
    words = "" if seconds is None else duration(seconds) if row.is_final else age(seconds)
    return Text(words, "$style-faint", justify="right")


def _started(row: JobRow, context: CellContext, _width: int) -> Text:
    words = "" if row.started_at is None else clock(row.started_at, context.now or time.time())
    return Text(words, "$style-faint")


STALLED = "! Stalled"
_BAR_WIDTH = 10


def progress_bar(fraction: float, width: int, style: str, *, is_ascii: bool) -> Text:
    """Return a bar of ``width`` cells of which a part is done, in half cells."""
    done, half = divmod(int(fraction * width * 2), 2)
    full, middle, rest = ("=", "", "-") if is_ascii else ("━", "╸", "─")
    bar = Text(full * done, style)
    if half and middle:
        bar.append(middle, style)
    return bar.append(rest * (width - bar.cell_len), "$style-line")


def _progress(row: JobRow, context: CellContext, width: int) -> Text:
    known = context.progress
    if row.is_final and known is not None and known.fraction is not None:
        percent = int(known.fraction * 100)
        # Its steps are done, and it failed all the same.
        percent = percent if row.state is AppState.SUCCEEDED else min(percent, 99)
        return Text(f"{percent:>4} %".rjust(_BAR_WIDTH + 6), "$style-faint")
    if row.state is not AppState.RUNNING and not context.has_why:
        return Text(cut(row.why, width, context.glyphs.cut), "$style-faint")
    if known is None or known.step is None:
        return Text() if context.has_why else _why(row, context, width)
    if known.stalled:
        return Text(f"no step for {age(known.stalled_seconds)}", "$style-pending")
    if known.fraction is None:
        return Text(cut(f"step {known.step:,.0f}", width, context.glyphs.cut), "$style-faint")
    style = "$style-faint" if context.dimmed else "$style-running"
    bar = progress_bar(known.fraction, _BAR_WIDTH, style, is_ascii=context.glyphs is glyph_sets.ASCII)
    return bar.append(f"{int(known.fraction * 100):>4} %", "$style-muted")


def _eta(row: JobRow, context: CellContext, _width: int) -> Text:
    left = context.progress.seconds_left if context.progress and row.state is AppState.RUNNING else None
    # Minutes are enough: a figure of seconds would change with each look.
    words = "" if left is None else duration(left) if left >= 3600 else age(left)
    return Text(words, "$style-faint", justify="right")


def _metric(row: JobRow, context: CellContext, width: int) -> Text:
    known = context.progress
    name = known.metric.rpartition("/")[2] if known else ""
    # A loss is what everybody expects there.
    words = "" if known is None else known.value if "loss" in name.lower() else f"{name} {known.value}".strip()
    return Text(cut(words, width, context.glyphs.cut), "$style-muted", justify="right")


def _order_of(value: float | None) -> tuple[bool, float]:
    """Return what orders a figure; unknown ones come last."""
    return (True, 0.0) if value is None or value != value else (False, value)


def _metric_value(known: RowProgress | None) -> float | None:
    try:
        return float(known.value.replace(",", "")) if known else None
    except ValueError:
        return None


COLUMNS: tuple[Column, ...] = (
    Column("mark", "", 1, _mark, sortable=False),
    Column("state", "STATE", 11, _state, lambda row: _STATE_ORDER.index(row.state), words="the job's state"),
    Column("name", "NAME", 24, _name, lambda row: row.name, flexible=True, words="the app's id"),
    replace(
        _plain_column("kind", "KIND", 11, "what kind of job it is, where a backend has several"),
        from_width=0, extra=True,
    ),
    Column("args", "ARGS", 16, _args, lambda row: row.varied, flexible=True, extra=True,
           words="what differs from the defaults, or within its sweep"),
    Column("backend", "ON", 6, _backend, lambda row: row.scheduler, words="where it runs"),
    Column(
        "replicas", "REPL", 5, _replicas, lambda row: -row.wanted, right=True, words="replicas, running of wanted"
    ),
    Column("progress", "PROGRESS", 16, _progress, extra=True, flexible=True,
           words="how far a running job is, by its log",
           progress_key=lambda known: _order_of(-known.fraction if known and known.fraction is not None else None)),
    Column("eta", "ETA", 7, _eta, right=True, extra=True, words="how long until its last step",
           progress_key=lambda known: _order_of(known.seconds_left if known else None)),
    Column("metric", "METRIC", 10, _metric, right=True, extra=True,
           words="its loss, or its first metric", progress_key=lambda known: _order_of(_metric_value(known))),
    Column("age", "AGE", 4, _age, lambda row: -(row.submitted_at or 0), right=True, words="since it was submitted"),
    _plain_column("component", "COMPONENT", 12, "what it was launched from"),
    Column("why", "WHY", 20, _why, lambda row: row.why, from_width=240, flexible=True, extra=True,
           words="why it is in its state"),
    Column(
        "duration", "RAN", 8, _duration, lambda row: -(_ran_seconds(row, None) or 0), right=True, from_width=None,
        words="how long it ran",
    ),
    _plain_column("user", "USER", 10, "who launched it"),
    Column("started", "STARTED", 19, _started, lambda row: -(row.started_at or 0), from_width=None,
           words="when its first replica started"),
    _plain_column("image", "IMAGE", 20, "the first role's image"),
    _plain_column("group", "GROUP", 16, "the sweep that it belongs to"),
    _plain_column("handle", "HANDLE", 40, "scheduler://session/app", _handle),
)  # fmt: skip

COLUMNS_BY_KEY = {column.key: column for column in COLUMNS}


def first_failed(replicas: Sequence[ReplicaStatus]) -> int:
    """Return the number of the failed replica that ended first, or 0 if none failed."""
    failed = [
        (replica.finished_at or float("inf"), number)
        for number, replica in enumerate(replicas)
        if replica.state is ReplicaState.FAILED
    ]
    return min(failed)[1] if failed else 0


def column_widths(
    width: int,
    screen_width: int,
    wanted: Sequence[str] = (),
    *,
    one_backend: bool = False,
    telling: Set[str] = frozenset(),
) -> list[tuple[Column, int]]:
    """Return the columns for a table of ``width`` cells on a screen of ``screen_width``, with their widths.

    The last flexible column takes what is left. Of columns that were chosen those at the right go that do not fit.

    Args:
        width: the cells of a row.
        screen_width: the cells of a row of the screen.
        wanted: the keys of the columns that were chosen; those for the width if empty.
        one_backend: whether all jobs run at one place: how far they are, or why they wait, says more than that.
        telling: which of the columns of kinds and arguments, by their keys, tell jobs apart.
    """
    name_width = WIDE_NAME
    if wanted:
        chosen = _fitting([COLUMNS[0], *(COLUMNS_BY_KEY[key] for key in wanted)], width)
    elif one_backend and screen_width < _EXTRA_WIDE:
        chosen = [COLUMNS[0], *(COLUMNS_BY_KEY[key] for key in ("state", "name", "progress", "age"))]
        more = [*chosen[:3], COLUMNS_BY_KEY["kind"], *chosen[3:]]
        chosen = more if "kind" in telling and _least_width(more) <= width else chosen
        name_width = max(LEAST_NAME, width // 4)
    else:
        usual = [each for each in COLUMNS if each.from_width is not None and screen_width >= each.from_width]
        chosen = [column for column in usual if not column.extra]
        while _least_width(chosen) > width and (others := [one for one in chosen[1:] if one.key not in _KEPT]):
            chosen.remove(others[0])
        # An ETA without its progress would say little: the first that does not fit ends it.
        others = [column for column in usual if column.extra and column.key not in _TELLING]
        kind, args = ([COLUMNS_BY_KEY[key]] if key in telling else [] for key in _TELLING)
        for extra in [*kind, *others, *args]:
            more = [column for column in usual if column in chosen or column is extra]
            if _least_width(more) > width:
                break
            chosen = more
    taker = next((column for column in reversed(chosen) if column.flexible), None)
    if not wanted and not one_backend and taker is COLUMNS_BY_KEY["progress"]:
        taker = next((column for column in chosen if column.key == "args"), taker)
    # Once another column takes what is left, a name has a width of its own, in which most unique suffixes still fit.
    wide = not wanted and taker is not None and taker.key != "name"
    widths = [name_width if column.key == "name" and wide else column.width for column in chosen]
    spare = width - INDENT - sum(widths) - sum(column.gap for column in chosen[:-1])
    if wide and spare < 0:
        taker = COLUMNS_BY_KEY["name"]  # it gives what the others lack
    return [
        (column, max(1, cells + (spare if column is taker else 0)))
        for column, cells in zip(chosen, widths, strict=True)
    ]


def _least_width(columns: Sequence[Column]) -> int:
    widths = sum(LEAST_NAME if column.key == "name" else column.width for column in columns)
    return INDENT + widths + sum(column.gap for column in columns[:-1])


def _fitting(columns: list[Column], width: int) -> list[Column]:
    fitting, used = columns[:2], INDENT + columns[0].width + columns[0].gap + columns[1].width
    for before, column in pairwise(columns[1:]):
        used += before.gap + column.width
        if used > width:
            break
        fitting.append(column)
    return fitting
