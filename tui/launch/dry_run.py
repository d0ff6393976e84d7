"""The dry run of a form: repeated after a pause in typing, cancelled when the form changes again."""

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

DRY_RUN_DELAY = 0.25
"""Seconds without typing after which a dry run starts."""


class DryRun:
    """Makes the request of a form in a thread and posts it to the editor, as a `DryRunDone`."""

    def __init__(self, editor: FormEditor) -> None:
        self._editor = editor
        self._generation = self._answered = 0
        self._timer: Timer | None = None
        self._progress: Progress | None = None
        # Cancels the build of the first dry run, which imports what the component needs. It goes on when the form
        # changes: the next one would import all of that again.
        self._first_build: Progress | None = None

    @property
    def is_answered(self) -> bool:
        """Whether the request on the screen is that of the present form."""
        return self._answered == self._generation

    @property
    def generation(self) -> int:
        """How often the form has changed."""
        return self._generation

    def invalidate(self) -> None:
        """Cancel the dry run: the form has changed."""
        self._generation += 1
        self._supersede()

    def answered(self, generation: int) -> bool:
        """Note an answer; return whether it is that of the present form."""
        if generation == self._generation:
            self._answered = generation
        return generation == self._generation

    def awaits(self, generation: int) -> bool:
        """Return whether the form still waits for the answer of a generation."""
        return generation == self._generation and not self.is_answered

    def settle(self) -> None:
        """Note that the present form needs no dry run, because it has an error."""
        self._answered = self._generation

    def schedule(self, delay: float = DRY_RUN_DELAY) -> None:
        """Start after some seconds, unless the form changes before."""
        self._stop_timer()
        self._timer = self._editor.set_timer(delay, self._editor.start_dry_run)

    def start(self, plan: LaunchPlan) -> None:
        """Make the request of a launch."""
        self._supersede()
        dashboard, editor, generation = self._editor.dashboard, self._editor, self._generation
        report = lambda text: dashboard.post_to(editor, DryRunSlow(generation, text))  # noqa: E731
        progress = build = self._progress = Progress(report)
        if self._first_build is None:
            build = self._first_build = Progress(report)
        work = partial(self._try, generation, plan, progress, build)
        editor.run_worker(work, thread=True, group="dry-run", exclusive=True, exit_on_error=False)

    def _try(self, generation: int, plan: LaunchPlan, progress: Progress, build: Progress) -> None:
        dashboard = self._editor.dashboard
        dashboard.post_to(self._editor, try_plan(dashboard.runner, generation, plan, progress, build))

    def cancel(self) -> None:
        """End all dry runs in progress: the component is left."""
        for progress in (self._first_build, self._progress):
            if progress is not None:
                progress.cancel()
        self._first_build = None

    def _supersede(self) -> None:
        if self._progress is not None:
            self._progress.cancel()

    def finish(self) -> None:
        """Ignore all further answers: they would replace the message of a failed launch."""
        self._generation += 1
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
