"""A small app with a log pane alone, and what tests read off it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from support.waiting import PATIENCE
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.widgets import Static

from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.tui.logs.pane import LogPane
from torchx_tui.tui.logs.search import LogSearch
from torchx_tui.tui.logs.status import LogStatus, StatusRow
from torchx_tui.tui.logs.view import LogView
from torchx_tui.tui.terminal.ordered_keys import OrderedKeysApp
from torchx_tui.tui.ui.theme import follow_theme, use_themes


class LogApp(OrderedKeysApp[None]):
    """Shows logs in a `LogPane`."""

    def __init__(
        self, logs: Sequence[ReplicaLog], is_final: Callable[[], bool] | None = None, theme: str = "torchx-dark"
    ) -> None:
        super().__init__()
        self.logs = logs
        self.is_final = is_final
        self.statuses: list[LogStatus] = []
        use_themes(self, theme)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return {"bar": "#181d25", "line": "#333c4b"}

    def compose(self) -> ComposeResult:
        yield LogPane()

    def on_mount(self) -> None:
        follow_theme(self)
        self.show()

    def show(self) -> None:
        self.pane.show(self.logs, is_final=self.is_final)
        self.pane.focus_log()

    def on_log_pane_status_changed(self, message: LogPane.StatusChanged) -> None:
        self.statuses.append(message.status)

    @property
    def pane(self) -> LogPane:
        return self.query_one(LogPane)

    @property
    def view(self) -> LogView:
        return self.query_one(LogView)

    def rows(self) -> list[str]:
        """The rows of the log on screen, without the blank ones at the end."""
        rows = [self.view.render_line(y).text.rstrip() for y in range(self.view.size.height)]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    @property
    def search(self) -> LogSearch:
        return self.query_one(LogSearch)

    def search_words(self) -> str:
        """What the search row says behind its field."""
        return str(self.search.query_one("#pattern-words", Static).content)

    def status_row(self) -> str:
        return self.query_one(StatusRow).render().plain

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition, and for what is under way with it: rows are drawn before the status is told of."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, (self.rows()[-5:], self.status_row(), self.pane.status)
            await asyncio.sleep(0.01)
        await Pilot(self).pause()
