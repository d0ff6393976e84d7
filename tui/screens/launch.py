"""The Launch screen: pick a component, fill its form, see the request, submit."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widgets import Button

from ...backends.launch_origin import LaunchOrigin
from ...backends.logs.sanitize import plain
from ...components import build_app
from ...specs import AppState, ArgumentError, InvalidRunConfigException
from ..commands import run_command
from ..form_model import FormModel
from ..job_rows import JobRow
from ..launch_messages import DryRunDone, FormReady, Submitted, ValuesKnown
from ..messages import ActionDone
from ..widgets.bars import Hint
from ..widgets.launch_form import LaunchForm
from ..widgets.pane import Divider
from ..widgets.preview import Preview
from ..words import clock, count
from .component_picking import ComponentPicking

if TYPE_CHECKING:
    from ...backends.api import Finding
    from ...backends.journal import LaunchRecord
    from ...backends.progress import Progress
    from ...components import ComponentDoc
    from ..widgets.form_rows import ChoiceField, FieldChanged, FieldFocused

# Seconds of quiet typing after which the request is made anew.
DRY_RUN_DELAY = 0.25


class LaunchScreen(ComponentPicking):
    """Two steps, or three columns where there is room.

    Args:
        record: a launch to fill the form from; the picker is skipped then.
    """

    HELP_TITLE = "Launch"
    KEY_GROUPS = ("launch", "picker")
    CSS_PATH = "../styles/launch.tcss"
    BINDINGS = [
        Binding("ctrl+s", "submit", "Submit", priority=True, id="launch.submit", show=False),
        Binding("ctrl+d", "dry_run", "Dry run: show the request", priority=True, id="launch.dry_run", show=False),
        Binding(
            "ctrl+t",
            "next_preview",
            "Next preview: dry run, diff, command",
            priority=True,
            id="launch.preview",
            show=False,
        ),
        Binding("ctrl+y", "copy_command", "Copy the command", priority=True, id="launch.copy", show=False),
        Binding("escape", "back", "Back", priority=True, id="launch.back", show=False),
        Binding("down", "next_field(1)", "Next field", show=False),
        Binding("up", "next_field(-1)", "Previous field", show=False),
    ]

    def __init__(self, record: LaunchRecord | None = None) -> None:
        super().__init__()
        self.form = LaunchForm()
        self.preview = Preview()
        self.model: FormModel | None = None
        self._record = record
        self._relaunch_of = record.id if record else ""
        self._last: LaunchRecord | None = None
        self._generation = 0
        self._failure = ""
        # Of the launch itself: the same may be tried again, as a full disk or an engine that was away do not last.
        self._may_try_again = False
        self._findings: list[Finding] = []
        self._timer: Timer | None = None
        self._submitting = False

    def compose_body(self) -> ComposeResult:
        """Yield picker, documentation, form and preview; the style sheet shows what the step and the width ask for."""
        with Horizontal(id="launch-body"):
            yield self.picker
            yield Divider(id="launch-divider")
            yield self.docs
            yield self.form
            yield Divider(id="form-divider")
            yield self.preview

    def on_mount(self) -> None:
        """Find the components, or fill the form of a relaunch."""
        super().on_mount()
        self.set_class(True, "-picking")
        self.list_components()
        if self._record is not None:
            self.choose_record(self._record)
        else:
            self.picker.search.focus()

    # Picking

    def open_form(self, doc: ComponentDoc, launches: list[LaunchRecord]) -> None:
        """Make the form of a component; see `ComponentPicking.open_form`."""
        self.model = FormModel(doc)
        self._last = self._record or (launches[0] if launches else None)
        self._load_options(self._last.scheduler if self._last else "", self._last, first=True)

    # Filling

    @work(thread=True, group="options", exclusive=True, exit_on_error=False)
    def _load_options(self, scheduler: str, record: LaunchRecord | None, *, first: bool) -> None:
        runner = self.dashboard.runner
        chosen = scheduler if scheduler in runner.scheduler_names() else runner.default_scheduler()
        self.dashboard.post_to(self, FormReady(chosen, runner.run_opts(chosen), record, first))

    async def on_form_ready(self, message: FormReady) -> None:
        """Show the form with the run options of its scheduler."""
        if self.model is None:
            return
        self.model.choose_scheduler(message.scheduler, message.options)
        if message.record is not None and message.first:
            self.model.fill(message.record)
        if message.first:
            self.set_class(False, "-picking")
            self.set_class(True, "-filling")
            await self.form.show(self.model, self.dashboard.jobs.schedulers or [message.scheduler])
            self.form.focus_first()
        else:
            await self.form.show_options(self.model)
        self._changed(delay=0.01)
        self._load_values(message.scheduler)

    @work(thread=True, group="values", exclusive=True, exit_on_error=False)
    def _load_values(self, scheduler: str) -> None:
        values = self.dashboard.runner.known_values(scheduler)
        if values:
            self.dashboard.post_to(self, ValuesKnown(scheduler, values))

    def on_values_known(self, message: ValuesKnown) -> None:
        """Offer what the run options can be, and fill in what can be one thing only."""
        if self.model is None or self.model.scheduler != message.scheduler:
            return
        filled = self.model.learn(message.values)
        self.form.show_known(self.model)
        if filled:
            self._changed(delay=0.01)

    def on_field_changed(self, message: FieldChanged) -> None:
        """Check what was typed, and make the request anew after a moment of quiet."""
        if self.model is None:
            return
        if self.model.set(message.section, message.name, message.text) is not None:
            row = self.form.row(message.section, message.name)
            if row is not None:
                row.refresh_field()
            self._changed()

    def on_field_focused(self, message: FieldFocused) -> None:
        """Show the field's help."""
        self.form.show_help(self.model.get(message.section, message.name) if self.model else None)

    def on_choice_field_changed(self, message: ChoiceField.Changed) -> None:
        """Take another scheduler's run options."""
        if message.field is self.form.scheduler:
            self._load_options(message.value, None, first=False)

    def _changed(self, delay: float = DRY_RUN_DELAY) -> None:
        model = self.model
        if model is None:
            return
        self._generation += 1
        self._failure, self._findings, self._may_try_again = "", [], False
        self._refresh_form()
        self.preview.set_diff(model.diff(self._last), self._last is not None)
        if model.errors():
            wrong = model.errors()[0]
            self.preview.set_note(f"before the error in {wrong.name}")
            return
        self.preview.set_command(self._command_text())
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(delay, self._start_dry_run)

    def _command_text(self) -> str:
        assert self.model is not None
        model = self.model
        return shlex.join(run_command(model.doc.name, model.arguments(), model.scheduler, model.cfg()))

    def _start_dry_run(self) -> None:
        if self.model is not None and not self.model.errors():
            model = self.model
            self._dry_run(self._generation, model.doc.name, model.arguments(), model.scheduler, model.cfg())

    @work(thread=True, group="dry-run", exclusive=True, exit_on_error=False)
    def _dry_run(
        self, generation: int, name: str, arguments: dict[str, Any], scheduler: str, cfg: dict[str, Any]
    ) -> None:
        runner = self.dashboard.runner
        try:
            app = build_app(name, arguments)
            info = runner.dryrun(app, scheduler, cfg)
            message = DryRunDone(generation, str(info), findings=runner.preflight(app, scheduler, cfg))
        except ArgumentError as error:
            message = DryRunDone(generation, error=error.reason, section="argument", field_name=error.parameter)
        except InvalidRunConfigException as error:
            message = DryRunDone(generation, error=error.invalid_reason, section="option", field_name=error.cfg_key)
        except Exception as error:
            message = DryRunDone(generation, error=str(error) or type(error).__name__)
        self.dashboard.post_to(self, message)

    def on_dry_run_done(self, message: DryRunDone) -> None:
        """Show the request, or the error at the field that it is about."""
        if message.generation != self._generation or self.model is None:
            return
        wrong = self.model.get(message.section, message.field_name) if message.error else None
        if wrong is not None:
            wrong.error = message.error
        self._failure, self._may_try_again = message.error if wrong is None else "", False
        self._findings = message.findings
        if message.error:
            self.preview.set_note(f"{clock(self.clock(), self.clock())}: {message.error}")
        else:
            self.preview.set_request(message.text)
        self._refresh_form()

    def _refresh_form(self) -> None:
        if self.model is not None:
            self.form.refresh_state(self.model, self._failure, self._findings)
        self.refresh_bars()

    # Submitting

    def action_submit(self) -> None:
        """Launch, if nothing is wrong."""
        # A key of the screen overtakes letters that the field was sent and has not taken yet: let it take them first.
        (self.focused or self).call_later(self._submit_typed)

    def _is_ready(self) -> bool:
        model = self.model
        if model is None or not model.is_whole or model.errors():
            return False
        return not self._failure or self._may_try_again

    def _submit_typed(self) -> None:
        """Launch what stands in the fields."""
        model = self.model
        if model is None or self._submitting:
            return
        before = [one.text for one in model]
        for row in self.form.rows:
            model.set(row.field.section, row.field.name, row.input.value)
        if before != [one.text for one in model]:
            self._changed()
        if not self._is_ready():
            if not model.is_whole:
                self.dashboard.say(f"not launched: the run options of {model.scheduler} are not known yet", failed=True)
                return
            wrong = model.errors()
            names = ", ".join(one.name for one in wrong)
            self.dashboard.say(f"not launched: {names or self._failure}", failed=True)
            if wrong and (row := self.form.row(wrong[0].section, wrong[0].name)):
                row.input.focus()
            return
        self._submitting = True
        # A dry run that ends after the launch says nothing about it: its answer would take a failure's words away.
        self._generation += 1
        if self._timer is not None:
            self._timer.stop()
        progress = self.dashboard.launches.begin(model.doc.name)
        self._submit(progress, model.doc.name, model.arguments(), model.scheduler, model.cfg())

    @work(thread=True, group="submit", exit_on_error=False)
    def _submit(
        self, progress: Progress, name: str, arguments: dict[str, Any], scheduler: str, cfg: dict[str, Any]
    ) -> None:
        # A screen that was left has no app any more.
        dashboard, relaunch_of = self.dashboard, self._relaunch_of
        handle = error = ""
        wanted = 0
        try:
            app = build_app(name, arguments)
            wanted = sum(role.num_replicas for role in app.roles)
            handle = dashboard.runner.run(
                app, scheduler, cfg, origin=LaunchOrigin(name, arguments, relaunch_of=relaunch_of), progress=progress
            )
        except Exception as failure:
            error = str(failure) or type(failure).__name__
        if self.is_running:
            dashboard.post_to(self, Submitted(progress, handle, error, wanted))
        else:
            # The form was left while it went on.
            words = f"{name} was not launched: {error}" if error else f"Launched {name}"
            handles = (handle,) if handle else ()
            dashboard.post_from_thread(ActionDone(words, bool(error), handles, progress=progress))

    def on_submitted(self, message: Submitted) -> None:
        """Show the new job in the table, or keep the form and say what went wrong."""
        self._submitting = False
        self.dashboard.launches.end(message.progress)
        if message.error:
            self._failure, self._may_try_again = message.error, True
            self._refresh_form()
            self.dashboard.say(f"not launched: {message.error}", failed=True)
            return
        assert self.model is not None
        row = JobRow(
            handle=message.handle,
            scheduler=self.model.scheduler,
            app_id=message.handle.rpartition("/")[2],
            state=AppState.SUBMITTED,
            wanted=message.wanted,
            submitted_at=self.clock(),
            component=self.model.doc.name,
        )
        self.dismiss()
        self.dashboard.show_new_job(row)
        self.dashboard.post_message(ActionDone(f"Launched {row.name}", handles=(message.handle,)))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Submit."""
        if event.button is self.form.submit:
            self.action_submit()

    # Keys and bars

    def action_next_field(self, step: int) -> None:
        """Go to the next or the previous field."""
        if step > 0:
            self.focus_next()
        else:
            self.focus_previous()

    def action_dry_run(self) -> None:
        """Show the request."""
        self.preview.show("dry run")
        if self.app.size.width < 120:
            self.toggle_class("-previewing")
        self._start_dry_run()

    def action_next_preview(self) -> None:
        """Show the next tab of the preview."""
        self.preview.next_tab()

    def action_copy_command(self) -> None:
        """Copy the command that does the same from a shell."""
        if self.model is not None and not self.model.errors():
            self.dashboard.copy(self._command_text(), "the command")

    def action_back(self) -> None:
        """Close the preview, go back to the picker, then to the jobs."""
        if self.has_class("-previewing"):
            self.remove_class("-previewing")
        elif self.has_class("-filling") and self._record is None:
            self.set_class(False, "-filling")
            self.set_class(True, "-picking")
            self.model = None
            self.picker.search.focus()
            self.refresh_bars()
        else:
            self.dismiss()

    def path(self) -> list[str]:
        """Return the way to this screen."""
        return ["Jobs", "Relaunch" if self._record else "New launch"]

    def summary(self) -> Text:
        """Return how many components there are, while one is picked."""
        return super().summary() if self.has_class("-picking") else Text()

    def counts(self) -> Text:
        """Return how many components there are that did not load."""
        broken = [one for one in self.picker.components if one.error] if self.has_class("-picking") else []
        if not broken:
            return Text()
        where = f"{broken[0].name} line {broken[0].line}" if broken[0].line else broken[0].name
        return Text(f"{count(len(broken), 'component')} cannot be used: {plain(where)}", self.palette.pending)

    def hints(self) -> list[Hint]:
        """Return the keys of the step."""
        if self.has_class("-picking"):
            return [
                Hint("type", "Search"),
                Hint("enter", "Choose"),
                Hint("↑ ↓" if not self.dashboard.ascii_signs else "up down", "Move"),
                Hint("ctrl+k", "Pin"),
                Hint("esc", "Back"),
                Hint("ctrl+e", "Edit file"),
                Hint("F1", "Keys"),
            ]
        ready = self._is_ready()
        return [
            Hint("ctrl+s", "Submit", ready),
            Hint("ctrl+d", "Dry run", ready),
            Hint("ctrl+t", "Diff, command"),
            Hint("ctrl+y", "Copy command", ready),
            Hint("tab", "Next field"),
            Hint("esc", "Back"),
            Hint("F1", "Keys"),
        ]
