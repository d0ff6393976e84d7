"""The list to choose a replica from."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from ...logs.source.replica_log import ReplicaLog
from ...logs.text.sanitize import plain
from ..ui.list_dialog import ListDialog
from ..ui.palette import STYLES
from ..ui.theme import glyphs_of

ALL = -1


class ReplicaPicker(ListDialog[int]):
    """Gives the number of a replica, `ALL` for all of them, or None if nothing was chosen.

    Args:
        logs: the replicas.
        chosen: the number of the replica that is shown now, None for all.
        failed: the numbers of the replicas that failed.
    """

    HELP_TITLE = "Replicas"

    def __init__(self, logs: Sequence[ReplicaLog], chosen: int | None, failed: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self._logs = tuple(logs)
        self._chosen = chosen
        self._failed = failed

    def heading(self) -> str:
        """Return the title."""
        return "Replica"

    def on_mount(self) -> None:
        """Start at what is shown now."""
        self.show_rows(0 if self._chosen is None else self._chosen + 1)

    def rows(self) -> list[Text]:
        """Return all replicas together, then each."""
        failed = glyphs_of(self.app).failed
        rows = [Text(f"all {len(self._logs)}, merged", STYLES.text)]
        for number, log in enumerate(self._logs):
            row = Text(f"{number:>4}", STYLES.replica(number))
            row.append(f"  {plain(log.role)}/{log.replica}", STYLES.muted)
            if number in self._failed:
                row.append(f"  {failed}", STYLES.failed)
            rows.append(row)
        return rows

    def choose(self, row: int) -> None:
        """Answer with the replica of a row."""
        self.dismiss(row - 1)
