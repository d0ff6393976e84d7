"""The list to choose a replica from."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ...logs.source.replica_log import ReplicaLog
from ...logs.text.sanitize import plain
from ..ui.governor import PacedScreen
from ..ui.options import Options
from ..ui.palette import STYLES
from ..ui.theme import glyphs_of

ALL = -1


class ReplicaPicker(PacedScreen, ModalScreen[int | None]):
    """Gives the number of a replica, `ALL` for all of them, or None if nothing was chosen.

    Args:
        logs: the replicas.
        chosen: the one that is shown now, None for all.
        failed: the numbers of the replicas that failed.
    """

    DEFAULT_CSS = """
    ReplicaPicker { align: center middle; }
    ReplicaPicker > Vertical { width: 40; height: auto; max-height: 80%; background: $bar; border: round $line; }
    ReplicaPicker OptionList { height: auto; max-height: 30; background: $bar; border: none; }
    """
    BINDINGS = [Binding("escape", "close", "Close", id="replicas.close", show=False)]

    def __init__(self, logs: Sequence[ReplicaLog], chosen: int | None, failed: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self._logs = tuple(logs)
        self._chosen = chosen
        self._failed = failed

    def compose(self) -> ComposeResult:
        """Yield the list."""
        with Vertical() as box:
            box.border_title = "Replica"
            yield Options(*self._options())

    def on_mount(self) -> None:
        """Start at the one that is shown."""
        self.query_one(OptionList).highlighted = 0 if self._chosen is None else self._chosen + 1

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Give the choice."""
        self.dismiss(event.option_index - 1)

    def action_close(self) -> None:
        """Close without a choice."""
        self.dismiss(None)

    def _options(self) -> list[Option]:
        glyphs = glyphs_of(self.app)
        options = [Option(Text(f"all {len(self._logs)}, merged", STYLES.text))]
        for number, log in enumerate(self._logs):
            text = Text(f"{number:>4}", STYLES.replica(number))
            text.append(f"  {plain(log.role)}/{log.replica}", STYLES.muted)
            if number in self._failed:
                text.append(f"  {glyphs.failed}", STYLES.failed)
            options.append(Option(text))
        return options
