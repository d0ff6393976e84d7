"""The dry run of a form: made anew after a moment of quiet typing, given up when the form changes again."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.timer import Timer

from ...backends.shared.progress import Progress
from .messages import DryRunSlow
from .work import try_plan

if TYPE_CHECKING:
    from .form_editor import FormEditor
    from .plan import LaunchPlan

# Seconds of quiet typing after which the request is made anew.
DRY_RUN_DELAY = 0.25


class DryRun:
    """Makes the request of a form in a thread; a `DryRunDone` with the form's generation brings it to the editor.

    Args:
        editor: the editor of the form.
    """

    def __init__(self, editor: FormEditor) -> None:
        self._editor = editor
        self._generation = self._answered = 0
        self._timer: Timer | None = None
        self._progress: Progress | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the request that is shown is that of the form as it stands."""
        return self._answered == self._generation

    @property
    def generation(self) -> int:
        """How often the form has changed."""
        return self._generation

    def invalidate(self) -> None:
        """Give up the dry run that is under way: the form has changed."""
        self._generation += 1
        self.cancel()

    def answered(self, generation: int) -> bool:
        """Take note of an answer; return whether it is that of the form as it stands."""
        if generation == self._generation:
            self._answered = generation
        return generation == self._generation

    def awaits(self, generation: int) -> bool:
        """Return whether the form as it stands is of a generation whose answer is still to come."""
        return generation == self._generation and not self.is_answered

    def settle(self) -> None:
        """Say that the form as it stands needs no dry run, as something in it is wrong."""
        self._answered = self._generation

    def schedule(self, delay: float = DRY_RUN_DELAY) -> None:
        """Start after so many seconds, unless the form changes before."""
        self._stop_timer()
        self._timer = self._editor.set_timer(delay, self._editor.start_dry_run)

    def start(self, plan: LaunchPlan) -> None:
        """Make the request of a launch."""
        self.cancel()
        dashboard, editor, generation = self._editor.dashboard, self._editor, self._generation
        progress = self._progress = Progress(lambda text: dashboard.post_to(editor, DryRunSlow(generation, text)))
        work = partial(self._try, generation, plan, progress)
        editor.run_worker(work, thread=True, group="dry-run", exclusive=True, exit_on_error=False)

    def _try(self, generation: int, plan: LaunchPlan, progress: Progress) -> None:
        dashboard = self._editor.dashboard
        dashboard.post_to(self._editor, try_plan(dashboard.runner, generation, plan, progress))

    def cancel(self) -> None:
        """End the dry run that is under way."""
        if self._progress is not None:
            self._progress.cancel()
            self._progress = None

    def finish(self) -> None:
        """Let no dry run change the form any more: its answer would take the words of a failed launch away."""
        self._generation += 1
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
