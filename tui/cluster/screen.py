"""The Cluster screen: the pools of each backend with what is free, the nodes of a pool, and this user's limits."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.timer import Timer
from textual.widgets import Input

from ...backends.abilities import DescribesCluster, EstimatesStarts
from ...backends.shared.cluster_columns import Table, has_room, node_table, pool_table, start_words
from ...backends.types import StartEstimate
from ...base.errors import describe_error
from ...logs.text.sanitize import plain
from ..format import clock, count
from ..rows import backend_word
from ..ui.bars import Hint
from ..ui.base import BaseScreen
from ..ui.filtered_pane import FilteredPane
from ..ui.palette import Text
from ..ui.row_table import RowTable
from ..ui.text_pane import TextPane
from ..ui.title_rule import tabs_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...backends.api import ClusterPool, ClusterStatus, DescribeAppResponse, Scheduler

POOL_OPTIONS = ("partition", "queue")
"""The run options that name a pool: Slurm's, and those of Volcano and Kueue."""
# A backend is asked no more often than this, whatever it says (s).
_LEAST_REFRESH_S = 2.0
# A backend that never answered is asked again after this time (s).
_RETRY_S = 10.0
# A start is estimated for the row on which the cursor rests for this time (s): each one is a request.
_ESTIMATE_DELAY_S = 0.4


def pool_of_job(described: DescribeAppResponse) -> str:
    """Return the pool of a job; empty if it names none."""
    found = (where.get(name) for name in POOL_OPTIONS for where in (described.metadata, described.cfg))
    return str(next(filter(None, found), "")).partition(",")[0]


class _Answer(NamedTuple):
    """The last answer of a backend.

    Attributes:
        status: what it has; None if it never answered.
        error: why the last question failed.
        at: when it was asked, in seconds since the epoch.
    """

    status: ClusterStatus | None
    error: str
    at: float


class _Shown(NamedTuple):
    """A table, and what it shows.

    Attributes:
        name: the backend.
        pool: the pool whose nodes are shown; empty for all pools.
        table: the rows; None without an answer.
        bright: the names of rows that have room.
    """

    name: str = ""
    pool: str = ""
    table: Table | None = None
    bright: frozenset[str] = frozenset()


class ClusterScreen(BaseScreen):
    """What is free where; where an option is chosen, the answer is its new text.

    Args:
        scheduler: the backend to begin with; the first one if it does not have the ability.
        pool: the pool for the cursor.
        launch: opens a launch on a backend with the run options of a pool.
        option: the run option to choose a pool of that backend for; empty to only look.
    """

    HELP_TITLE = "Cluster"
    DEFAULT_CSS = """
    #cluster-limits { height: auto; max-height: 40%; }
    #cluster-limits TextScroll { height: auto; max-height: 100%; padding: 0 1; }
    """
    BINDINGS = [
        Binding("n", "choose", "Launch in this pool, or choose it for the form", id="cluster.launch"),
        Binding("slash", "filter", "Filter", id="cluster.filter"),
        Binding("right_square_bracket", "next_tab(1)", "Next backend", id="cluster.next_tab"),
        Binding("left_square_bracket", "next_tab(-1)", "Previous backend", id="cluster.previous_tab"),
        Binding("R", "refresh_now", "Refresh", id="cluster.refresh"),
        Binding("escape", "back", "Clear the filter, back", id="cluster.back"),
    ]

    def __init__(
        self,
        scheduler: str = "",
        pool: str = "",
        launch: Callable[[str, Mapping[str, str]], object] | None = None,
        *,
        option: str = "",
    ) -> None:
        super().__init__()
        self._wanted, self._cursor, self._launch, self._option = scheduler, pool, launch, option
        self._names: list[str] = []
        self._backend = ""
        # The pool whose nodes are shown; empty for all pools.
        self._pool = ""
        self._answers: dict[str, _Answer] = {}
        self._estimates: dict[tuple[str, str], StartEstimate] = {}
        self._shown = _Shown()
        self._pane = FilteredPane(
            "", RowTable(id="cluster-table"), "words that a row contains", id="cluster-pane", filter_id="cluster-filter"
        )
        self._limits = TextPane("Limits", id="cluster-limits")
        self._timer: Timer | None = None

    def compose_body(self) -> ComposeResult:
        yield self._pane
        yield self._limits

    def on_mount(self) -> None:
        able = self.dashboard.jobs.with_ability(DescribesCluster)
        self._names = [self._wanted] if self._option else able
        self._backend = self._wanted if self._wanted in self._names else next(iter(self._names), "")
        self.set_focus(self._pane.table)
        self._draw()

    def on_screen_resume(self) -> None:
        if self._names:
            self._show(asks=True)

    # What is shown

    @property
    def status(self) -> ClusterStatus | None:
        """What the chosen backend has; None until it answers."""
        answer = self._answers.get(self._backend)
        return answer.status if answer is not None else None

    @property
    def pool(self) -> ClusterPool | None:
        """The open pool, or the one at the cursor."""
        name = self._pool or self._pane.table.cursor_name
        return next((pool for pool in self.status.pools if plain(pool.name) == name), None) if self.status else None

    @work(group="cluster", exclusive=True)
    async def _show(self, *, asks: bool) -> None:
        """Show the chosen backend and pool.

        Args:
            asks: whether the backend is asked again; it is in any case if it has not answered yet.
        """
        name, pool = self._backend, self._pool
        known = self._answers.get(name)
        if asks or known is None:
            scheduler = self.dashboard.jobs.made.get(name)
            known = self._answers[name] = await asyncio.to_thread(_ask, scheduler, known, self.clock())
        # Also where nothing is asked now: this worker may have ended one that asked.
        if self._timer is not None:
            self._timer.stop()
        wait_s = known.status.refresh_s if known.status is not None else _RETRY_S
        self._timer = self.set_timer(max(_LEAST_REFRESH_S, wait_s), self._ask_again)
        self._shown = await asyncio.to_thread(_make_table, name, pool, known.status)
        self._draw()

    @work(group="estimate", exclusive=True)
    async def _estimate(self) -> None:
        """Ask when a small job would start in the open pool or the one at the cursor."""
        name, pool, scheduler = self._backend, self.pool, self.dashboard.jobs.made.get(self._backend)
        if pool is None or not isinstance(scheduler, EstimatesStarts):
            return
        await asyncio.sleep(_ESTIMATE_DELAY_S)
        self._estimates[name, pool.name] = await asyncio.to_thread(_estimate_start, scheduler, pool.name)
        self._draw_limits()

    def _ask_again(self) -> None:
        if self.is_active:
            self._show(asks=True)

    def _draw(self) -> None:
        answer, table, shown = self._answers.get(self._backend), self._pane.table, self._shown
        words = {name: backend_word(name, long=True) for name in self._names}
        self._pane.rule.title = tabs_text(words, self._backend, "tab")
        if answer is None or (shown.name, shown.pool) != (self._backend, self._pool):
            table.placeholder = Text(f"Asking {words.get(self._backend, 'the backends')}", "$style-faint")
            table.show(None, frozenset())
        else:
            empty = "No row contains these words" if self._pane.words else "Nothing here"
            table.placeholder = Text(plain(answer.error) or empty, "$style-failed" if answer.error else "$style-faint")
            table.show(shown.table, shown.bright, self._pane.words, self._cursor)
            self._cursor = ""
        self._draw_limits()
        self._estimate()
        self._pane.rule.info = self._info()
        self.refresh_bars()

    def _info(self) -> Text:
        answer, table = self._answers.get(self._backend), self._shown.table
        if answer is None or answer.status is None or table is None:
            return Text()
        if answer.error:
            return Text(f"! {plain(answer.error)}", "$style-pending")
        shown, total = self._pane.table.row_count, len(table.rows)
        pools = Counter(pool.kind for pool in answer.status.pools)
        every = f"{count(total, 'node')} of {plain(self._pool)}"
        if not self._pool:
            every = ", ".join(count(number, kind) for kind, number in pools.items()) or "nothing"
        rows = f"{shown:,} of " if shown != total else ""
        return Text(f"{rows}{every}   free/all at {clock(answer.at, answer.at)}", "$style-faint")

    def _draw_limits(self) -> None:
        status, pool, text, starts = self.status, self.pool, Text(end=""), []
        if pool is not None and self.dashboard.jobs.can(self._backend, EstimatesStarts):
            # A row of its own from the beginning: the table does not move when the answer comes.
            starts = [_start_sentence(pool, self._estimates.get((self._backend, pool.name)), self.clock())]
        of_all = (
            (("$style-pending", status.notes), ("$style-muted", status.limits)) if status and not self._pool else ()
        )
        for style, sentences in (("$style-text", starts), *of_all):
            for sentence in sentences:
                text.append("\n" if text else "").append(plain(sentence), style)
        self._limits.show_text(text)
        self._limits.rule.title = Text("Start" if self._pool else "Start and limits" if starts else "Limits")
        self._limits.display = bool(text)

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if not super().check_action(action, parameters):
            return None
        if action == "choose":
            return True if self._can_choose and self.pool is not None else None
        if action == "next_tab":
            return True if len(self._names) > 1 else None
        return True

    @property
    def _can_choose(self) -> bool:
        return bool(self._option) or (self._launch is not None and not self.dashboard.runner.read_only)

    def on_row_table_opened(self, message: RowTable.Opened) -> None:
        """Show the nodes of a pool, or choose it."""
        if self._option:
            self.action_choose()
        elif not self._pool and message.name:
            self._open_pool(message.name)

    def on_row_table_moved(self) -> None:
        self._draw_limits()
        self._estimate()

    def _open_pool(self, name: str) -> None:
        self._cursor, self._pool = (self._pool, "") if not name else ("", name)
        self._pane.clear_filter()
        self._draw()
        self._show(asks=False)

    def action_choose(self) -> None:
        """Open a launch that goes to the pool, or answer with its text of the option."""
        if (pool := self.pool) is None:
            return
        if self._option in pool.cfg:
            self.dismiss(pool.cfg[self._option])
        elif self._option:
            self.dashboard.status.say(f"{plain(pool.name)} is not a {self._option}: choose another row", failed=True)
        elif self._launch is not None:
            self._launch(self._backend, pool.cfg)

    def action_filter(self) -> None:
        """Type a filter."""
        self._pane.ask_filter()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while typing."""
        if event.input is self._pane.filter:
            self._draw()

    def action_tab(self, name: str) -> None:
        """Show the pools of a backend."""
        self._backend, self._pool, self._cursor = name, "", ""
        self._draw()
        self._show(asks=True)

    def action_next_tab(self, step: int) -> None:
        """Show the next or the previous backend."""
        if self._names:
            self.action_tab(self._names[(self._names.index(self._backend) + step) % len(self._names)])

    def action_refresh_now(self) -> None:
        """Ask now; a backend may repeat its last answer."""
        self._show(asks=True)

    def action_back(self) -> None:
        """Clear the filter, leave the nodes, go back."""
        if self._pane.filter.display:
            self._pane.clear_filter()
        elif self._pool:
            self._open_pool("")
        else:
            self.dismiss()

    def path(self) -> list[str]:
        return ["Jobs", *(["Launch"] if self._option else []), "Cluster"]

    def hints(self) -> list[Hint]:
        if self._pane.filter.has_focus:
            return [Hint("", "Keep filter", key="enter"), Hint("cluster.back", "Clear")]
        return [
            *([] if self._pool else [Hint("rows.open", f"Choose {self._option}" if self._option else "Nodes")]),
            *([Hint("cluster.launch", "Launch here")] if self._can_choose and not self._option else []),
            Hint("cluster.filter", "Filter"),
            *([Hint("cluster.next_tab cluster.previous_tab", "Backends")] if len(self._names) > 1 else []),
            Hint("cluster.refresh", "Refresh"),
            Hint("cluster.back", "Back"),
        ]


def _ask(scheduler: Scheduler[Any] | None, known: _Answer | None, at: float) -> _Answer:
    """Ask a backend; called in a thread."""
    try:
        if not isinstance(scheduler, DescribesCluster):
            return _Answer(None, "this backend does not show what is free", at)
        return _Answer(scheduler.cluster(), "", at)
    except Exception as error:
        return _Answer(known.status if known else None, describe_error(error), known.at if known else at)


def _estimate_start(scheduler: EstimatesStarts, pool: str) -> StartEstimate:
    """Ask a backend; called in a thread."""
    try:
        return scheduler.estimate_start(pool)
    except Exception as error:
        return StartEstimate(fault=describe_error(error))


def _start_sentence(pool: ClusterPool, estimate: StartEstimate | None, now: float) -> str:
    if estimate is None:
        return f"{pool.name}: asking when a job of one task would start"
    would = "would start" if estimate.start is not None else "would not start:"
    return f"{pool.name}: a job of one task {would} {start_words(estimate, now)}"


def _make_table(name: str, pool: str, status: ClusterStatus | None) -> _Shown:
    """Make the table of the pools, or of the nodes of one; called in a thread."""
    if status is None:
        return _Shown(name, pool)
    if not pool:
        return _Shown(name, pool, pool_table(status), frozenset(each.name for each in status.pools if has_room(each)))
    nodes = [node for node in status.nodes if pool in map(plain, node.pools)]
    return _Shown(name, pool, node_table(nodes), frozenset(node.name for node in nodes if has_room(node)))
