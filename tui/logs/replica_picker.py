"""The list to choose a replica from."""

from __future__ import annotations

from collections.abc import Sequence

from ...logs.source.replica_log import ReplicaLog
from ...logs.text.sanitize import plain
from ..ui.list_dialog import ListDialog
from ..ui.palette import Text, replica_style
from ..ui.replica_numbers import DIGITS, TypedNumber, replica_numbers
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
    BINDINGS = [*DIGITS]

    def __init__(self, logs: Sequence[ReplicaLog], chosen: int | None, failed: frozenset[int] = frozenset()) -> None:
        super().__init__("Replica")
        self._logs = tuple(logs)
        self._chosen = chosen
        self._failed = failed
        self._numbers = replica_numbers((log.role, log.replica) for log in logs)
        self._typed = TypedNumber()

    def action_digit(self, digit: str) -> None:
        """Go to the replica whose number is typed, digit by digit."""
        self.action_move(self._typed.add(digit, self._numbers, self.cursor - 1) + 1 - self.cursor)

    def on_mount(self) -> None:
        """Start at what is shown now."""
        self.show_rows(0 if self._chosen is None else self._chosen + 1)

    def rows(self) -> list[Text]:
        """Return all replicas together, then each."""
        failed = glyphs_of(self.app).failed
        rows = [Text(f"all {len(self._logs)}, merged", "$style-text")]
        for place, (number, log) in enumerate(zip(self._numbers, self._logs, strict=True)):
            row = Text(f"{number:>4}", replica_style(number))
            row.append(f"  {plain(log.role)}/{log.replica}", "$style-muted")
            if place in self._failed:
                row.append(f"  {failed}", "$style-failed")
            rows.append(row)
        return rows

    def choose(self, row: int) -> None:
        """Answer with the replica of a row."""
        self.dismiss(row - 1)
