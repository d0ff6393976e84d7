"""What else can be done with a job: the actions of its backend in a list, a value where one is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from ...backends.types import JobAction
from ...logs.text.sanitize import plain
from ...specs.errors import describe_error
from ..format import cut
from ..messages import Told
from ..ui.dialog import TEXT_WIDTH, Dialog
from ..ui.job_cells import name_text
from ..ui.palette import STYLES
from ..ui.theme import glyphs_of
from .dialogs import ConfirmDialog

if TYPE_CHECKING:
    from ..app import TorchXTuiApp
    from ..rows import JobRow
    from ..ui.base import BaseScreen

SOONER = JobAction("sooner", "Ask what would start sooner: other partitions, a shorter time.")
CONTINUE = JobAction("continue", "Launch a job that goes on when this one has ended, from its newest checkpoint.")
_NAME_WIDTH = 10


@dataclass
class ActionsFound(Message):
    """What can be done with a job now is known."""

    row: JobRow
    actions: list[JobAction]


def find_actions(screen: BaseScreen, row: JobRow) -> None:
    """Ask a job's backend, off the event loop, what can be done with it; the screen gets `ActionsFound`."""
    app: TorchXTuiApp = screen.dashboard

    def work() -> None:
        runner = app.runner
        try:
            capabilities = runner.capabilities(row.scheduler)
            actions = runner.actions(row.handle) if capabilities.actions and not row.history else []
            if capabilities.alternatives and _waits(row):
                actions.append(SOONER)
            if capabilities.dependencies:
                actions.append(CONTINUE)
        except Exception as error:
            app.post_from_thread(Told(f"{row.name}: {describe_error(error)}", failed=True))
            return
        app.post_to(screen, ActionsFound(row, actions))

    app.run_worker(work, thread=True, group="actions", exit_on_error=False)


def _waits(row: JobRow) -> bool:
    return not row.is_final and row.started_at is None


class ActionsDialog(Dialog[tuple[JobAction, str]]):
    """A list of actions; answers with one and its value.

    Args:
        row: the job.
        actions: what can be done with it, at least one.
    """

    HELP_TITLE = "Actions"
    BINDINGS = [
        Binding("j,down", "move(1)", "Down", id="actions.down", show=False),
        Binding("k,up", "move(-1)", "Up", id="actions.up", show=False),
        Binding("enter", "choose", "Do it, or type its value", id="actions.choose", show=False),
    ]

    def __init__(self, row: JobRow, actions: Sequence[JobAction]) -> None:
        super().__init__()
        self._row = row
        self.actions = list(actions)
        self._cursor = 0
        self._list = Static(markup=False, id="dialog-text")
        self._list.can_focus = True
        self._input = Input(compact=True, id="action-value")
        self._input.cursor_blink = False

    def heading(self) -> str:
        """Return the title."""
        return "What to do with it"

    def compose(self) -> ComposeResult:
        """Yield the box with the list, and the field of a value, which is hidden at first."""
        with Vertical(id="dialog") as box:
            box.border_title = self.heading()
            yield self._list
            yield self._input

    def first_focus(self) -> Widget:
        """Return the list: there are no buttons."""
        return self._list

    def on_mount(self) -> None:
        """Draw the list."""
        self._input.display = False
        self._draw()

    @property
    def chosen(self) -> JobAction:
        """The action at the cursor."""
        return self.actions[self._cursor]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave letters and enter to the field while a value is typed."""
        return action not in ("move", "choose") or not self._input.display

    def action_move(self, step: int) -> None:
        """Go to another action."""
        self._cursor = min(max(self._cursor + step, 0), len(self.actions) - 1)
        self._draw()

    def action_choose(self) -> None:
        """Take the action at the cursor, or ask for its value."""
        if not self.chosen.value:
            self.dismiss((self.chosen, ""))
            return
        self._input.display = True
        self._input.placeholder = self.chosen.value
        self._input.focus()
        self._draw()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the value; an empty one is none."""
        event.stop()
        if event.value.strip():
            self.dismiss((self.chosen, event.value.strip()))

    def action_back(self) -> None:
        """Leave the value, then the list."""
        if not self._input.display:
            self.dismiss(None)
            return
        self._input.display = False
        self._list.focus()
        self._draw()

    def _draw(self) -> None:
        glyphs = glyphs_of(self.app)
        text = Text(end="", no_wrap=True)
        text.append_text(name_text(self._row.name, TEXT_WIDTH, glyphs, bold=True)).append("\n\n")
        for number, action in enumerate(self.actions):
            line = Text(f" {plain(action.name):<{_NAME_WIDTH}}", STYLES.text, end="")
            line.append(cut(plain(action.what), TEXT_WIDTH - _NAME_WIDTH - 2, glyphs.cut), STYLES.muted)
            line.pad_right(max(0, TEXT_WIDTH - line.cell_len))
            if number == self._cursor:
                line.stylize(STYLES.cursor)
            text.append_text(line).append("\n")
        if self._input.display:
            text.append(f"\n{self.chosen.name}: {self.chosen.value}", STYLES.muted)
        else:
            for key, words in (("enter", "do it"), ("esc", "back")):
                text.append("\n" if key == "enter" else "  ")
                text.append(key, f"bold {STYLES.accent}").append(f" {words}", STYLES.muted)
        self._list.update(text)


class EndingDialog(ConfirmDialog):
    """Asks before an action that ends what runs.

    Args:
        row: the job.
        action: the action.
    """

    KEEP = "Leave it"

    def __init__(self, row: JobRow, action: JobAction) -> None:
        super().__init__([row])
        self._action = action
        self.CONFIRM = action.name.capitalize()

    def heading(self) -> str:
        """Return the question."""
        return f"{self._action.name.capitalize()} this job?"

    def lines(self) -> list[Text]:
        """Return the job, its facts, and what will happen."""
        return [*self._one(self.rows[0]), Text(), Text(self._action.what, STYLES.muted), Text()]
