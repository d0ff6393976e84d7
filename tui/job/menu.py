"""What else can be done with a job: the actions of its backend in a list, a value where one is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.widgets import Input, Static

from ...backends.abilities import SuggestsAlternatives
from ...backends.shared.parallel import parallel_map
from ...backends.types import JobAction
from ...logs.text.sanitize import plain
from ..format import cut
from ..ui.dialog import TEXT_WIDTH
from ..ui.job_cells import name_text
from ..ui.list_dialog import ListDialog
from ..ui.palette import Text
from ..ui.theme import glyphs_of
from .bulk import job_names

if TYPE_CHECKING:
    from ...backends.runner import Runner
    from ..rows import JobRow

SOONER = JobAction("sooner", "Ask what would start sooner: other partitions, less time.")
CONTINUE = JobAction("continue", "Launch a job that continues from the newest checkpoint when this job has ended.")
_NAME_WIDTH = 10


def find_actions(runner: Runner, rows: Sequence[JobRow]) -> dict[JobAction, list[JobRow]]:
    """Ask the backends of jobs what can be done with them; return the jobs of each action. It may take long."""
    found: dict[str, list[JobAction]] = {}

    def ask(row: JobRow) -> None:
        job = runner.job(row.handle)
        found[row.handle] = [] if row.history else list(job.actions())
        if len(rows) == 1 and isinstance(job.scheduler, SuggestsAlternatives) and _waits(row):
            found[row.handle].append(SOONER)
        if len(rows) == 1 and job.scheduler.capabilities.dependencies:
            found[row.handle].append(CONTINUE)

    for error in parallel_map(ask, rows)[:1]:
        raise error
    actions: dict[JobAction, list[JobRow]] = {}
    for row in rows:
        for action in found[row.handle]:
            actions.setdefault(action, []).append(row)
    return actions


def _waits(row: JobRow) -> bool:
    return not row.is_final and row.started_at is None


class ActionsDialog(ListDialog[tuple[JobAction, str]]):
    """A list of actions; answers with an action and its value.

    Args:
        rows: the jobs.
        actions: at least one action, each with the jobs that have it.
    """

    HELP_TITLE = "Actions"
    HINTS = (("list.choose", "do it"), ("dialog.back", "back"))

    def __init__(self, rows: Sequence[JobRow], actions: Mapping[JobAction, Sequence[JobRow]]) -> None:
        super().__init__("More actions")
        self._rows = rows
        self._rows_of = actions
        self.actions = list(actions)
        self._value = Static(markup=False, id="action-value-words")
        self._input = Input(compact=True, id="action-value")
        self._input.cursor_blink = False

    def lines(self) -> list[Text]:
        """Return the job's name, or how many jobs there are."""
        return [name_text(job_names(self._rows), TEXT_WIDTH, glyphs_of(self.app), bold=True), Text()]

    def compose_below(self) -> ComposeResult:
        """Yield the field of a value, which is hidden at first."""
        yield self._value
        yield self._input

    def on_mount(self) -> None:
        """Hide the field."""
        self._value.display = self._input.display = False

    @property
    def chosen(self) -> JobAction:
        """The action at the cursor."""
        return self.actions[self.cursor]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keep the cursor where it is while a value is typed."""
        return action not in ("move", "page", "choose") or not self._input.display

    def rows(self) -> list[Text]:
        """Return the actions."""
        width, mark = TEXT_WIDTH - _NAME_WIDTH - 2, glyphs_of(self.app).cut
        return [
            Text(f"{plain(action.name):<{_NAME_WIDTH}}", "$style-text").append(
                cut(self._share(action) + plain(action.what), width, mark), "$style-muted"
            )
            for action in self.actions
        ]

    def _share(self, action: JobAction) -> str:
        """Return for how many of the jobs an action is, unless it is for all of them."""
        able, asked = len(self._rows_of[action]), len(self._rows)
        return f"{able} of {asked}: " if able < asked else ""

    def choose(self, row: int) -> None:
        """Answer with an action, or ask for its value."""
        action = self.actions[row]
        if not action.value:
            self.dismiss((action, ""))
            return
        self.show_rows(row)
        self._value.update(Text(f"\n{action.name}: {action.value}", "$style-muted"))
        self._value.display = self._input.display = True
        self._input.placeholder = action.value
        self.set_focus(self._input)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the value; an empty one is none."""
        if event.value.strip():
            self.dismiss((self.chosen, event.value.strip()))

    def action_back(self) -> None:
        """Leave the value, then the list."""
        if not self._input.display:
            self.dismiss(None)
            return
        self._value.display = self._input.display = False
        self.set_focus(None)
