"""The Launch screen: pick a component, fill its form, see the request, submit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.widgets import Button

from ...logs.text.sanitize import plain
from ...specs.handles import make_unique
from ...specs.status import AppState
from ..format import count
from ..messages import ActionDone
from ..rows import JobRow
from ..ui.bars import Hint
from ..ui.base import BaseScreen
from ..ui.palette import STYLES
from .component_chooser import ComponentChooser
from .form_editor import FormEditor
from .messages import Submitted
from .sweep_dialog import SweepDialog
from .work import launch_all

if TYPE_CHECKING:
    from ...backends.history.journal import LaunchRecord
    from ...backends.shared.progress import Progress
    from ...components.model import ComponentSummary
    from .foreign_job import ForeignJob
    from .plan import LaunchPlan

# A sweep beyond this is refused before all of it is worked out.
MOST_PLANS = 10_000


class LaunchScreen(BaseScreen):
    """Two steps, or three columns where there is room.

    Args:
        record: a launch to fill the form from; the picker is skipped then.
        foreign: a job that was not launched here, to be launched again from what its backend tells; so it is then too.
        component: what to open the form of first.
        changes: texts of arguments and run options that differ from those, by name.
    """

    HELP_TITLE = "Launch"
    CSS_PATH = "../styles/launch.tcss"
    BINDINGS = [
        Binding("ctrl+s", "submit", "Submit", priority=True, id="launch.submit", show=False),
        Binding("escape", "back", "Back", priority=True, id="launch.back", show=False),
    ]

    def __init__(
        self,
        record: LaunchRecord | None = None,
        foreign: ForeignJob | None = None,
        component: ComponentSummary | None = None,
        changes: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.chooser = ComponentChooser()
        self.editor = FormEditor(record, foreign, changes)
        self.editor.display = False
        self._record = record
        self._foreign = foreign
        self._component = component
        self._submitting = False

    def compose_body(self) -> ComposeResult:
        """Yield both steps; the style sheet shows what the step and the width ask for."""
        with Horizontal(id="launch-body"):
            yield self.chooser
            yield self.editor

    def on_mount(self) -> None:
        """Find the components, or fill the form of a relaunch."""
        self.chooser.list_components()
        if self._record is not None:
            self.chooser.choose_record(self._record)
        elif self._foreign is not None:
            self.editor.open_foreign(self._foreign)
        elif self._component is not None:
            self.chooser.choose(self._component)
        else:
            # At once: the next key may be here already. And again once it is shown: before, nothing takes the focus.
            self.set_focus(self.chooser.picker.search)
            self.chooser.picker.search.focus()

    @property
    def is_picking(self) -> bool:
        """Whether a component is picked, rather than its form filled."""
        return not self.editor.display

    def _show_step(self, *, picking: bool) -> None:
        # No class of the screen or of the editor, which would style every field anew.
        self.editor.display = not picking
        self.chooser.set_class(not picking, "-chosen")

    def on_component_chooser_chosen(self, message: ComponentChooser.Chosen) -> None:
        """Make the form of the component."""
        self.editor.open_form(message.doc, message.launches)

    def on_form_editor_opened(self) -> None:
        """Go on to the form."""
        self._show_step(picking=False)
        self.editor.form.focus_first()
        self.refresh_bars()

    @on(ComponentChooser.Listed)
    @on(FormEditor.Changed)
    def show_state(self) -> None:
        """Show in the bars how things stand."""
        self.refresh_bars()

    # Submitting

    def action_submit(self) -> None:
        """Launch, if nothing is wrong."""
        # A key of the screen overtakes letters that the field was sent and has not taken yet: let it take them first.
        (self.focused or self).call_later(self._submit_typed)

    def _submit_typed(self) -> None:
        """Launch what stands in the fields."""
        model = self.editor.model
        if model is None or self._submitting:
            return
        self.editor.take_typed()
        if not self.editor.is_ready:
            self.dashboard.status.say(f"not launched: {self.editor.why_not_ready()}", failed=True)
            return
        self.editor.dry_run.finish()
        count_of_jobs, most = model.launch_count(), self.dashboard.settings.launch.most_of_a_sweep
        if count_of_jobs == 1:
            self._launch([model.plan()])
            return
        if count_of_jobs > min(most, MOST_PLANS):
            words = f"not launched: {count_of_jobs:,} jobs; most_of_a_sweep in config.toml is {most}"
            self.dashboard.status.say(words, failed=True)
            return
        plans = list(model.plans())
        self.app.push_screen(SweepDialog(plans), lambda yes: self._launch(plans) if yes else None)

    def _launch(self, plans: list[LaunchPlan]) -> None:
        self._submitting = True
        name = plans[0].name
        progress = self.dashboard.launches.begin(name if len(plans) == 1 else f"{count(len(plans), 'job')} of {name}")
        group = make_unique(name.rpartition(".")[2].rpartition(":")[2] or "sweep", 4) if len(plans) > 1 else ""
        self._submit(progress, plans, group)

    @work(thread=True, group="submit", exit_on_error=False)
    def _submit(self, progress: Progress, plans: list[LaunchPlan], group: str) -> None:
        # A screen that was left has no app any more.
        dashboard, relaunch_of = self.dashboard, (self._record.id if self._record else "")
        done = launch_all(dashboard.runner, plans, progress, relaunch_of=relaunch_of, group=group)
        if self.is_running:
            dashboard.post_to(self, done)
        else:
            # The form was left while it went on.
            words = f"{plans[0].name} was not launched: {done.error}" if done.error else _launched_words(done, plans[0])
            dashboard.post_from_thread(ActionDone(words, bool(done.error), tuple(done.handles), progress=progress))

    def on_submitted(self, message: Submitted) -> None:
        """Show the new jobs in the table, or keep the form and say what went wrong."""
        self.dashboard.launches.end(message.progress)
        if message.error:
            self._submitting = False
            self.editor.show_failure(message.error)
            self.dashboard.status.say(f"not launched: {message.error}", failed=True)
        plan = message.plan
        if not message.error:
            self.dismiss()
        for handle, wanted in zip(message.handles, message.wanted, strict=True):
            self.dashboard.show_new_job(
                JobRow(
                    handle=handle,
                    scheduler=plan.scheduler,
                    app_id=handle.rpartition("/")[2],
                    state=AppState.SUBMITTED,
                    wanted=wanted,
                    submitted_at=self.clock(),
                    component=plan.component,
                    group=message.group,
                )
            )
        if not message.error:
            self.dashboard.post_message(ActionDone(_launched_words(message, plan), handles=tuple(message.handles)))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Submit."""
        if event.button is self.editor.form.submit:
            self.action_submit()

    # Keys and bars

    def action_back(self) -> None:
        """Close the preview, go back to the picker, then to the jobs."""
        if self.has_class("-previewing"):
            self.editor.cover_form(False)
        elif not self.is_picking and self._record is None and self._foreign is None:
            self._show_step(picking=True)
            self.editor.close()
            self.chooser.picker.search.focus()
            self.refresh_bars()
        else:
            self.dismiss()

    def path(self) -> list[str]:
        """Return the way to this screen."""
        return ["Jobs", "Relaunch" if self._record or self._foreign else "New launch"]

    def summary(self) -> Text:
        """Return how many components there are, while one is picked."""
        return self.chooser.summary() if self.is_picking else Text()

    def counts(self) -> Text:
        """Return how many components there are that did not load."""
        broken = (
            [component for component in self.chooser.picker.components if component.error] if self.is_picking else []
        )
        if not broken:
            return Text()
        where = f"{broken[0].name} line {broken[0].line}" if broken[0].line else broken[0].name
        return Text(f"{count(len(broken), 'component')} cannot be used: {plain(where)}", STYLES.pending)

    def hints(self) -> list[Hint]:
        """Return the keys of the step."""
        if self.is_picking:
            return [
                Hint("", "Search", key="type"),
                Hint("", "Choose", key="enter"),
                Hint("picker.up picker.down", "Move"),
                Hint("picker.pin", "Pin"),
                Hint("launch.back", "Back"),
                Hint("picker.edit", "Edit file"),
                Hint("app.keys", "Keys"),
            ]
        ready = self.editor.is_ready
        return [
            Hint("launch.submit", "Submit", ready),
            Hint("launch.dry_run", "Dry run", ready),
            Hint("launch.preview", "Diff, command"),
            Hint("launch.copy", "Copy command", ready),
            Hint("launch.several", "Several"),
            Hint("launch.profile", "Profile"),
            Hint("", "Next field", key="tab"),
            Hint("launch.back", "Back"),
            Hint("app.keys", "Keys"),
        ]


def _launched_words(done: Submitted, plan: LaunchPlan) -> str:
    if done.group:
        return f"Launched {count(len(done.handles), 'job')} of {plan.name}, group {done.group}"
    return f"Launched {done.handles[0].rpartition('/')[2]}"
