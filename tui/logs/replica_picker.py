"""The list to choose a replica from."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import events

from ...logs.source.replica_log import ReplicaLog
from ...logs.text.sanitize import plain
from ..ui.list_dialog import ListDialog
from ..ui.palette import STYLES
from ..ui.theme import glyphs_of

ALL = -1


class ReplicaPicker(ListDialog[int]):
    """Gives the number of a replica, `ALL` for all of them, or None if nothing was chosen; digits go to a number.

    Args:
        logs: the replicas.
        chosen: the number of the replica that is shown now, None for all.
        failed: the numbers of the replicas that failed.
    """

    HELP_TITLE = "Replicas"
    HINTS = (("0-9", "number"), *ListDialog.HINTS)

    def __init__(self, logs: Sequence[ReplicaLog], chosen: int | None, failed: frozenset[int] = frozenset()) -> None:
        super().__init__()
        self._logs = tuple(logs)
        self._chosen = chosen
        self._failed = failed
        # With one role, such as the tasks of an array, its own numbers are what one looks for.
        is_one_role = len({log.role for log in logs}) == 1
        self._rows = {str(log.replica if is_one_role else row): row + 1 for row, log in enumerate(logs)}
        self._typed, self._typed_at = "", 0

    def heading(self) -> str:
        """Return the title."""
        return "Replica"

    def on_key(self, event: events.Key) -> None:
        """Go to the replica whose number is typed, digit by digit; one that there is not begins anew."""
        if event.character is None or not event.character.isdecimal():
            return
        event.stop()
        typed = (self._typed if self.cursor == self._typed_at else "") + event.character
        self._typed = typed if any(number.startswith(typed) for number in self._rows) else event.character
        if self._typed in self._rows:
            self.action_move(self._rows[self._typed] - self.cursor)
        self._typed_at = self.cursor

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
