"""The Launch screen: pick a component, fill its form, see the request, submit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.widgets import Button

from ...components.finder import component_key, name_here
from ...components.model import ComponentSummary
from ...logs.text.sanitize import plain
from ...specs.handles import make_unique
from ...specs.status import AppState
from ..format import count
from ..messages import ActionDone
from ..rows import JobRow
from ..ui.bars import Hint
from ..ui.base import BaseScreen
from ..ui.palette import Text
from ..ui.pane import Divider
from ..ui.theme import now_of
from .component_docs import ComponentDocs
from .component_picker import ComponentPicker
from .field_input import FieldInput
from .form_editor import FormEditor
from .questions import sweep_dialog
from .session import LaunchSession, Start
from .work import launch_all

if TYPE_CHECKING:
    from ...backends.history.journal import LaunchRecord
    from ..dashboard import Dashboard
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
        scheduler: the scheduler to begin with; the usual one if empty.
    """

    HELP_TITLE = "Launch"
    AUTO_FOCUS = ""
    CSS_PATH = "../styles/launch.tcss"
    BINDINGS = [
        Binding("ctrl+s", "submit", "Submit", priority=True, id="launch.submit"),
        Binding("escape", "back", "Back", priority=True, id="launch.back"),
    ]

    def __init__(
        self,
        record: LaunchRecord | None = None,
        foreign: ForeignJob | None = None,
        component: ComponentSummary | None = None,
        changes: Mapping[str, str] | None = None,
        scheduler: str = "",
    ) -> None:
        super().__init__()
        self.docs = ComponentDocs()
        self.picker = ComponentPicker(self.docs)
        self._chooser = Horizontal(self.picker, Divider(id="launch-divider"), self.docs, id="chooser")
        self.editor = FormEditor()
        self.editor.display = False
        self._start = Start(record, foreign, changes, chosen=scheduler)
        self._component = component
        self._submitting = False
        # What the typed texts of the form are kept under; empty for a form that is filled with changes.
        self._draft_key = ""

    def compose_body(self) -> ComposeResult:
        """Yield both steps; the style sheet shows what the step and the width ask for."""
        with Horizontal(id="launch-body"):
            yield self._chooser
            yield self.editor

    def on_mount(self) -> None:
        self.picker.list_components()
        if self._start.is_relaunch or self._component is not None:
            # What is typed before the form is there is for no list.
            self._show_step(picking=False)
            self.run_worker(self._open(self._component), group="open form", exclusive=True)
        else:
            # At once: the next key may be here already. And again once it is shown: before, nothing takes the focus.
            self.set_focus(self.picker.search)
            self.picker.search.focus()

    def on_unmount(self) -> None:
        self._keep_draft()

    def _keep_draft(self) -> None:
        """Keep what was typed for the next time that the form is opened."""
        drafts, model = self.dashboard.drafts, self.editor.model
        if model is not None and self._draft_key:
            drafts.pop(self._draft_key, None)
            if (draft := model.draft()) is not None:
                drafts[self._draft_key] = draft

    def unsaved(self) -> str:
        self.editor.take_typed()
        model = self.editor.model
        has_typed = model is not None and not self._submitting and model.draft() is not None
        return "What you typed into the form is not kept." if has_typed else ""

    @property
    def is_picking(self) -> bool:
        """Whether a component is picked, rather than its form filled."""
        return not self.editor.display

    def _show_step(self, *, picking: bool) -> None:
        # No class of the screen or of the editor, which would style every field anew.
        self.editor.display = not picking
        self._chooser.set_class(not picking, "-chosen")

    def on_component_picker_chosen(self, message: ComponentPicker.Chosen) -> None:
        self.picker.hold()
        self._open_chosen(message.component)

    @work(group="open form", exclusive=True)
    async def _open_chosen(self, component: ComponentSummary) -> None:
        try:
            await self._open(component)
        finally:
            typed = self.picker.release()
        # Letters that came before the form are for its first field.
        if typed and isinstance(self.focused, FieldInput):
            self.focused.post_message(events.Paste(typed))

    async def _open(self, component: ComponentSummary | None) -> None:
        runner, settings, start = self.dashboard.runner, self.dashboard.settings, self._start
        key = start.record.id if start.record else component.name if component else ""
        self._draft_key = "" if start.changes else key
        start = replace(start, draft=self.dashboard.drafts.get(self._draft_key))
        if start.record is not None:
            # From any folder.
            name = name_here(component_key(start.record.component, start.record.cwd))
            component = ComponentSummary(name, "file", Path(), 0)
        if component is None:
            session = LaunchSession(runner, settings, start)
        elif (described := await self.picker.choose(component)) is not None:
            session = LaunchSession(runner, settings, start, described.doc, described.last)
        else:
            session = None
        is_open = session is not None and await self.editor.open(session)
        self._show_step(picking=not is_open)
        if is_open:
            self.editor.form.focus_first()
            if start.draft is not None and not session.model.lost_arguments:
                self.dashboard.status.say("Filled with the values that you typed before")
        elif self.focused is None:
            self.picker.search.focus()
        self.refresh_bars()

    @on(ComponentPicker.Listed)
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
        self.editor.take_typed()
        model = self.editor.model
        if model is None or self._submitting:
            return
        if not self.editor.is_ready:
            self._refuse(self.editor.why_not_ready())
            return
        self.editor.stop_dry_run()
        jobs, most = model.launch_count(), self.dashboard.settings.launch.most_of_a_sweep
        if jobs > min(most, MOST_PLANS):
            self._refuse(f"{jobs:,} jobs are more than most_of_a_sweep in config.toml allows ({most})")
            return
        plans = list(model.plans())
        if jobs == 1:
            self._launch(plans)
        else:
            self._ask_to_launch(plans)

    @work(group="dialog")
    async def _ask_to_launch(self, plans: list[LaunchPlan]) -> None:
        if await self.app.push_screen_wait(sweep_dialog(plans, self.glyphs)):
            self._launch(plans)

    def _refuse(self, reason: str) -> None:
        self.dashboard.status.say(f"Not launched: {reason}", failed=True)

    def _launch(self, plans: list[LaunchPlan]) -> None:
        self._submitting = True
        # The launch continues when the screen is left.
        self.dashboard.run_worker(self._submit(plans, self.dashboard), group="submit")

    async def _submit(self, plans: list[LaunchPlan], dashboard: Dashboard) -> None:
        """Launch; then show the new jobs, or keep the form and show the error."""
        plan, total = plans[0], len(plans)
        progress = dashboard.launches.begin(plan.name if total == 1 else f"{count(total, 'job')} of {plan.name}")
        # The last part: of `utils.echo`, `jobs.py:train`, `jobs/train.py`, `-m package.train`.
        name = re.split(r"[.:/ ]", re.sub(r"\.(?:py|sbatch)$", "", plan.name))[-1]
        group = make_unique(name or "sweep", 4) if total > 1 else ""
        relaunch_of = self._start.record.id if self._start.record else ""
        done = await asyncio.to_thread(
            launch_all, dashboard.runner, plans, progress, relaunch_of=relaunch_of, group=group
        )
        dashboard.launches.end(progress)
        if not done.error:
            dashboard.drafts.pop(self._draft_key, None)
            self._draft_key = ""
        if group:
            words = f"Launched {count(len(done.handles), 'job')} of {plan.name}, group {group}"
        else:
            words = f"Launched {''.join(done.handles).rpartition('/')[2]}"
        if not self.is_running:
            if done.error:
                words = f"{plan.name} was not launched: {done.error}"
            dashboard.post_message(ActionDone(words, bool(done.error), tuple(done.handles)))
            return
        if done.error:
            self._submitting = False
            self.editor.show_failure(done.error)
            self._refuse(done.error)
        else:
            self.dismiss()
            dashboard.post_message(ActionDone(words, handles=tuple(done.handles)))
        for handle, replicas in zip(done.handles, done.replicas, strict=True):
            dashboard.show_new_job(
                JobRow(
                    handle=handle,
                    scheduler=plan.scheduler,
                    app_id=handle.rpartition("/")[2],
                    state=AppState.SUBMITTED,
                    wanted=replicas,
                    submitted_at=now_of(dashboard),
                    component=plan.component,
                    group=group,
                )
            )

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Submit."""
        if event.button is self.editor.form.submit:
            self.action_submit()

    # Keys and bars

    def action_preview(self, tab: str) -> None:
        """Show the tab of the preview that was clicked."""
        self.editor.show_preview(tab)

    def action_back(self) -> None:
        """Close the preview, go back to the picker, then to the jobs."""
        self.editor.take_typed()
        if self.has_class("-previewing"):
            self.editor.cover_form(False)
        elif not self.is_picking and not self._start.is_relaunch:
            self._show_step(picking=True)
            self._keep_draft()
            self.editor.close()
            self.picker.search.focus()
            self.refresh_bars()
        else:
            self.dismiss()

    def path(self) -> list[str]:
        """Return the way to this screen."""
        return ["Jobs", "Relaunch" if self._start.is_relaunch else "New launch"]

    def top_middle(self) -> Text:
        """Return the path, and the profile of the form."""
        model = self.editor.model
        profile = f"   profile {plain(model.profile)}" if model is not None and model.profile else ""
        return super().top_middle().append(profile, "$style-accent")

    def summary(self) -> Text:
        """Return how many components there are, while one is picked."""
        return self.picker.summary() if self.is_picking else Text()

    def counts(self) -> Text:
        """Return how many components there are that did not load."""
        broken = [component for component in self.picker.components if component.error] if self.is_picking else []
        if not broken:
            return Text()
        where = f"{broken[0].name} line {broken[0].line}" if broken[0].line else broken[0].name
        return Text(f"{count(len(broken), 'component')} cannot be used: {plain(where)}", "$style-pending")

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
            ]
        ready = self.editor.is_ready
        return [
            Hint("launch.submit", "Submit", ready),
            *([Hint("launch.cluster", "What is free")] if self.editor.pool_field is not None else []),
            Hint("launch.dry_run", "Dry run", ready),
            Hint("launch.preview", "Diff"),
            Hint("launch.copy", "Copy command", ready),
            Hint("launch.several", "Several"),
            Hint("launch.profile", "Profile"),
            Hint("", "Next field", key="tab"),
            Hint("launch.back", "Back"),
        ]
