"""Filling the form of a launch: its fields, what config and the last launch say, the request that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.worker import get_current_worker

from ...backends.abilities import KnowsValues, SuggestsPartitions
from ...backends.torchxconfig import CONFIG_FILE
from ...base.errors import describe_error
from ...base.trust import trust_folder
from ...components.model import ComponentDoc
from ...settings.launch_defaults import LaunchDefaults, Resolved, resolve
from ..messages import ActionDone
from ..ui.pane import Divider
from ..ui.status import OnDashboard
from .commands import commands_text
from .dry_run import DRY_RUN_DELAY, DryRun
from .field_editing import FieldEditing
from .form import LaunchForm
from .form_field import ARGUMENT, LAUNCH, OPTION
from .form_model import FormModel
from .messages import (
    DryRunDone,
    DryRunSlow,
    FormReady,
    ResourceRead,
    ResourcesListed,
    SchedulersChecked,
    ValuesKnown,
    WorkspaceListed,
)
from .partitions import PartitionQuery
from .preview import Preview
from .trust_dialog import TrustDialog
from .work import list_shipped, named_resource, resource_rows, why_unusable

if TYPE_CHECKING:
    from textual.widget import Widget

    from ...backends.api import Finding
    from ...backends.history.journal import LaunchRecord
    from ..ui.choice_field import ChoiceField
    from .foreign_job import ForeignJob
    from .form_field import Field
    from .form_rows import FieldChanged, FieldFocused, FieldOpened
    from .role_rule import RoleRule


class FormEditor(OnDashboard, Horizontal):
    """A form beside the preview of what it would launch.

    Args:
        record: a launch to fill the form from.
        foreign: a job to be launched again from what its backend tells.
        changes: texts of arguments and run options that differ from those, by name.
    """

    HELP_TITLE = "Form"
    BINDINGS = [
        Binding("ctrl+d", "dry_run", "Dry run: show the request", priority=True, id="launch.dry_run", show=False),
        Binding(
            "ctrl+t",
            "next_preview",
            "Next preview: dry run, diff, command, workspace",
            priority=True,
            id="launch.preview",
            show=False,
        ),
        Binding("ctrl+o", "profile", "Choose a profile", priority=True, id="launch.profile", show=False),
        Binding(
            "ctrl+l",
            "ignore_config",
            "Launch without .torchxconfig, or with it again",
            priority=True,
            id="launch.ignore_config",
            show=False,
        ),
        Binding("ctrl+g", "several", "Several values: a sweep", priority=True, id="launch.several", show=False),
        Binding("ctrl+y", "copy_command", "Copy the command", priority=True, id="launch.copy", show=False),
        Binding("down", "next_field(1)", "Next field", id="launch.next_field", show=False),
        Binding("up", "next_field(-1)", "Previous field", id="launch.previous_field", show=False),
    ]

    class Opened(Message):
        """The form of a component, or of a job, has its fields."""

    class Changed(Message):
        """The form, or what is known of it, has changed."""

    def __init__(
        self,
        record: LaunchRecord | None = None,
        foreign: ForeignJob | None = None,
        changes: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(id="editor")
        self.form = LaunchForm()
        self.preview = Preview()
        self.model: FormModel | None = None
        self._record = record
        self._foreign = foreign
        self._changes = changes or {}
        self._fields = FieldEditing(self)
        self._defaults: LaunchDefaults | None = None
        self._last: LaunchRecord | None = None
        self.dry_run = DryRun(self)
        self.partitions = PartitionQuery(self)
        self._failure = ""
        # Why config cannot be read where the form takes something of it: a launch would go elsewhere than config says.
        self._config_fault = ""
        self._reads_resource = False
        # Of the launch itself: the same may be tried again, as a full disk or an engine that was away do not last.
        self._may_try_again = False
        self._findings: list[Finding] = []
        self._covered_focus: Widget | None = None

    def compose(self) -> ComposeResult:
        """Yield the form and the preview; the style sheet shows what the step and the width ask for."""
        yield self.form
        yield Divider(id="form-divider")
        yield self.preview

    def on_unmount(self) -> None:
        """Give up the dry run: nobody waits for it."""
        self.dry_run.cancel()

    def open_form(self, doc: ComponentDoc, launches: list[LaunchRecord]) -> None:
        """Make the form of a component.

        Args:
            doc: the component.
            launches: its launches, newest first.
        """
        self.model = FormModel(doc)
        self._last = self._record or (launches[0] if launches else None)
        self._load_options(self._record.scheduler if self._record else "", first=True)

    def open_foreign(self, job: ForeignJob) -> None:
        """Make the form of a job that was not launched here."""
        self.model = FormModel(ComponentDoc("", "module", "", ""), job.app, job.unknown)
        self._load_options(job.scheduler, first=True)

    @work(thread=True, group="options", exclusive=True, exit_on_error=False)
    def _load_options(
        self, scheduler: str, *, first: bool = False, refill: bool = False, trusted: Path | None = None
    ) -> None:
        """Read what a form needs; the scheduler is config's, else that of the last launch, where none is named."""
        try:
            if trusted is not None:
                trust_folder(trusted)
            self._read_options(scheduler, first=first, refill=refill)
        except Exception as error:
            # A scheduler's own code, which raises what it likes.
            reason = describe_error(error)
            self.dashboard.post_from_thread(ActionDone(f"no form for {scheduler or 'it'}: {reason}", True))

    def _read_options(self, scheduler: str, *, first: bool, refill: bool) -> None:
        runner, last = self.dashboard.runner, self._last.scheduler if self._last else ""
        ignored = self.model is not None and self.model.ignores_config
        defaults = LaunchDefaults.load(self.dashboard.settings, self.dashboard.profile, ignore_files=ignored)
        given = defaults.scheduler()
        now, only = (self.model.scheduler, self.model.doc.scheduler) if self.model is not None else ("", "")
        wanted = scheduler or only or (given.value if given else "") or now or last
        chosen = wanted if wanted in runner.scheduler_names() else runner.default_scheduler()
        on = runner.scheduler(chosen)
        ready = FormReady(chosen, on.run_opts(), on.takes_workspace, isinstance(on, SuggestsPartitions), defaults)
        ready.first, ready.refill = first, refill
        if get_current_worker().is_cancelled:
            # A later reading answers for this one, and may have done so already.
            return
        self.dashboard.post_to(self, ready)
        if first:
            self.dashboard.post_to(self, SchedulersChecked(why_unusable(runner)))

    async def on_form_ready(self, message: FormReady) -> None:
        """Show the form with the run options of its scheduler."""
        model, defaults = self.model, message.defaults
        if model is None:
            return
        self._defaults = defaults
        if message.refill:
            model.drop_given()
        model.choose_scheduler(message.scheduler, message.options, takes_workspace=message.takes_workspace)
        if message.first:
            self._fill_first(model)
        self._config_fault = ""
        model.profile = defaults.profile
        resolved = resolve(defaults)
        if not message.first or not (self._record or self._foreign):
            resolved = resolve(defaults, message.scheduler, message.options, model.doc.name, model.doc)
            if message.first or message.refill:
                model.fill_given(ARGUMENT, resolved.arguments)
            model.fill_given(OPTION, resolved.options)
            workspace = defaults.workspace()
            model.fill_given(LAUNCH, {"workspace": workspace} if workspace else {})
            self._config_fault = _config_fault(resolved)
            if (untrusted := defaults.untrusted) is not None:
                self.app.push_screen(
                    TrustDialog(untrusted), lambda yes: self.read_config(untrusted.folder) if yes else None
                )
        if resolved.problems:
            self.dashboard.status.say(resolved.problems[0], failed=True)
        if message.first:
            await self.form.show(model, self.dashboard.jobs.schedulers or [message.scheduler])
            self.post_message(self.Opened())
        else:
            self.form.show_scheduler(message.scheduler)
            await self.form.show_options(model)
            self.form.show_known()
        self.preview.set_has_partitions(message.has_partitions)
        # Read anew for the new field.
        self.preview.set_workspace("")
        self._changed(delay=0.01)
        self._load_values(message.scheduler)

    def _fill_first(self, model: FormModel) -> None:
        if self._last is not None:
            model.fill(self._last)
        if self._foreign is not None:
            model.fill_cfg(self._foreign.cfg)
        for name, text in self._changes.items():
            model.set(ARGUMENT if model.get(ARGUMENT, name) else OPTION, name, text)

    def on_schedulers_checked(self, message: SchedulersChecked) -> None:
        """Note which schedulers cannot be used, and why."""
        self.form.show_reasons(message.reasons)

    @work(thread=True, group="values", exclusive=True, exit_on_error=False)
    def _load_values(self, scheduler: str) -> None:
        chosen = self.dashboard.runner.scheduler(scheduler)
        if isinstance(chosen, KnowsValues) and (values := chosen.known_values()):
            self.dashboard.post_to(self, ValuesKnown(scheduler, values))

    def on_values_known(self, message: ValuesKnown) -> None:
        """Offer what the run options can be, and fill in what can be one thing only."""
        if self.model is None or self.model.scheduler != message.scheduler:
            return
        filled = self.model.learn(message.values)
        self.form.show_known()
        if filled:
            self._changed(delay=0.01)

    def on_field_changed(self, message: FieldChanged) -> None:
        """Check what was typed, and make the request anew after a moment of quiet."""
        if self.model is None:
            return
        if self.model.set(message.section, message.name, message.text) is not None:
            self._changed()

    def on_field_focused(self, message: FieldFocused) -> None:
        """Show the field's help."""
        self.form.show_help(self.model.get(message.section, message.name) if self.model else None)

    def on_choice_field_changed(self, message: ChoiceField.Changed) -> None:
        """Take another scheduler's run options."""
        if message.field is self.form.scheduler:
            self._reload(message.value)

    def on_field_opened(self, message: FieldOpened) -> None:
        """Edit a field in a dialog, where it has one."""
        field = self.model.get(message.section, message.name) if self.model else None
        if field is not None:
            self._fields.open(field)

    async def on_role_rule_toggled(self, message: RoleRule.Toggled) -> None:
        """Show the fields of a role, or hide them."""
        if self.model is not None:
            await self.form.toggle_role(self.model, message.role)

    async def take_text(self, section: str, name: str, text: str) -> None:
        """Take a text that a dialog made for a field."""
        row = self.form.row(section, name)
        if self.model is None or row is None:
            return
        self.model.set(section, name, text)
        row.set_text(text)
        self._changed()

    async def action_several(self) -> None:
        """Take the field's text for several values, each of which is launched; or for one again."""
        row = self.form.focused_row()
        if self.model is None or row is None:
            return
        if not row.field.can_be_several:
            self.dashboard.status.say(f"{row.field.name} is the same for all jobs of a launch", failed=True)
            return
        self.model.toggle_several(row.field)
        await self.form.replace_row(row)
        self._changed()
        words = "values separated by commas: each is launched" if row.field.several else "one value"
        self.dashboard.status.say(f"{row.field.name}: {words}")

    def action_profile(self) -> None:
        """Choose the profile whose defaults are taken."""
        if self.model is not None:
            self._fields.choose_profile(self.dashboard.settings.profiles, self._defaults)

    def action_ignore_config(self) -> None:
        """Leave out what .torchxconfig says, or read it again."""
        if self.model is not None and self.model.is_whole:
            self.model.ignores_config = not self.model.ignores_config
            self.dashboard.status.say(f"{'without' if self.model.ignores_config else 'with'} .torchxconfig")
            self.read_config()

    def read_config(self, trusted: Path | None = None) -> None:
        """Read config again, after trusting a folder if one is given; what was typed stays."""
        # A file that was not read before may choose the scheduler.
        scheduler = self.model.scheduler if self.model and trusted is None else ""
        self._reload(scheduler, refill=True, trusted=trusted)

    def take_profile(self, name: str | None) -> None:
        """Take the defaults of a profile, none's where None."""
        self.dashboard.profile = name
        self._reload("", refill=True)

    def _reload(self, scheduler: str, *, refill: bool = False, trusted: Path | None = None) -> None:
        # ctrl+s may come before the new options: it must not launch with the old ones.
        if self.model is not None:
            self.model.expect_options(scheduler or self.model.scheduler)
            self._refresh_form()
        self._load_options(scheduler, refill=refill, trusted=trusted)

    def _changed(self, delay: float = DRY_RUN_DELAY) -> None:
        model = self.model
        if model is None:
            return
        self.dry_run.invalidate()
        self._failure, self._findings, self._may_try_again = "", [], False
        self._read_resource()
        self._refresh_form()
        self.preview.set_diff(model.diff(self._last), self._last is not None, model.script_lines())
        if model.errors() or self._config_fault:
            wrong = model.errors()[0] if model.errors() else None
            self.preview.set_note(f"{wrong.name}: {wrong.error}" if wrong else self._config_fault)
            self.dry_run.settle()
            return
        self.preview.set_command(commands_text(model, self.dashboard.settings.launch))
        self.dry_run.schedule(delay)

    def _read_resource(self) -> None:
        name = self.model.unread_resource if self.model is not None else ""
        if name and not self._reads_resource:
            self._reads_resource = True
            # It may be a package's, and is made by code of others.
            read = lambda: self.dashboard.post_to(self, ResourceRead(name, named_resource(name)))  # noqa: E731
            self.run_worker(read, thread=True, group="resource", exit_on_error=False)

    def on_resource_read(self, message: ResourceRead) -> None:
        """Show the figures of a named resource beside it, and read that which was typed meanwhile."""
        self._reads_resource = False
        if self.model is not None:
            self.model.learn_resource(message.name, message.resource)
            self._refresh_form()
            self._read_resource()

    @work(thread=True, group="resources", exclusive=True, exit_on_error=False)
    def list_resources(self, field: Field) -> None:
        """Read the named resources to choose from for a field; a `ResourcesListed` brings them."""
        self.dashboard.post_to(self, ResourcesListed(field, resource_rows()))

    def on_resources_listed(self, message: ResourcesListed) -> None:
        """Let one be chosen, where nobody has gone on meanwhile."""
        row = self.form.focused_row()
        if self.screen.is_active and row is not None and row.field is message.field:
            self._fields.choose_resource(message.field, message.rows)

    def start_dry_run(self) -> None:
        """Make the request of the form, where nothing in it is wrong."""
        if self.model is not None and not self.model.errors() and not self._config_fault:
            self._list_workspace()
            self.dry_run.start(self.model.plan())
            self.partitions.update()

    def _list_workspace(self) -> None:
        assert self.model is not None
        field = self.model.get(LAUNCH, "workspace")
        text = field.text if field is not None else ""
        if self.preview.set_workspace(text) and text:
            self._read_workspace(text)

    @work(thread=True, group="workspace", exclusive=True, exit_on_error=False)
    def _read_workspace(self, text: str) -> None:
        worker = get_current_worker()
        listed = list_shipped(self.dashboard.runner, text, lambda: not worker.is_cancelled)
        # One that was given up is not whole, and may be of the path that stands there again.
        if not worker.is_cancelled:
            self.dashboard.post_to(self, WorkspaceListed(text, *listed))

    def on_workspace_listed(self, message: WorkspaceListed) -> None:
        """Show what would be shipped; one that cannot be read is wrong."""
        self.preview.show_workspace(message.workspace, message.listing, message.error)
        field = self.model.get(LAUNCH, "workspace") if self.model else None
        if message.error and field is not None and field.text == message.workspace:
            field.error = message.error
            self._refresh_form()

    def on_dry_run_slow(self, message: DryRunSlow) -> None:
        """Say that the request is late."""
        if self.dry_run.awaits(message.generation):
            self.preview.set_note(f"the component runs: {message.text}")

    async def on_dry_run_done(self, message: DryRunDone) -> None:
        """Show the request, or the error at the field that it is about."""
        if not self.dry_run.answered(message.generation) or self.model is None:
            return
        if message.app is not None and self.model.base is None and self.model.take_app(message.app):
            await self.form.show_roles(self.model)
            # The form may have been left meanwhile.
            if self.model is None:
                return
            if self.model.lost:
                self.dashboard.status.say(f"missing, so not changed: {', '.join(self.model.lost)}", failed=True)
        wrong = self.model.get(message.section, message.field_name) if message.error else None
        if wrong is not None:
            wrong.error = message.error
        self._failure, self._may_try_again = message.error if wrong is None else "", False
        self._findings = message.findings
        if message.error:
            self.preview.set_note(message.error, message.interpreter)
        else:
            self.preview.set_request(message.text, self.model.plan().label, message.interpreter)
        self._refresh_form()

    def _refresh_form(self) -> None:
        if self.model is not None:
            self.form.refresh_state(self.model, self._config_fault or self._failure, self._findings)
        self.post_message(self.Changed())

    @property
    def is_ready(self) -> bool:
        """Whether the form can be launched as it stands."""
        model = self.model
        if model is None or not model.is_whole or model.errors() or self._config_fault:
            return False
        return not self._failure or self._may_try_again

    def take_typed(self) -> None:
        """Take what stands in the fields: letters that were typed last may still be on their way to the model."""
        model = self.model
        assert model is not None
        before = [field.text for field in model]
        for row in self.form.rows:
            model.set(row.field.section, row.field.name, row.input.value)
        if before != [field.text for field in model]:
            self._changed()

    def why_not_ready(self) -> str:
        """Return what keeps the form from being launched, and go to the first wrong field."""
        model = self.model
        assert model is not None
        if not model.is_whole and not self._config_fault:
            return f"the run options of {model.scheduler} are not known yet"
        self.cover_form(False)
        if (wrong := model.errors()) and (row := self.form.row(wrong[0].section, wrong[0].name)):
            self.screen.set_focus(row.input)
        elif self._config_fault:
            # It may have been corrected meanwhile.
            self.read_config()
        return ", ".join(field.name for field in wrong) or self._config_fault or self._failure

    def show_failure(self, error: str) -> None:
        """Show why a launch failed; the same may be launched again, as a full disk does not last."""
        self._failure, self._may_try_again = error, True
        self._refresh_form()

    def close(self) -> None:
        """Forget the component, so that another one can be chosen."""
        self.model = None
        self.dry_run.cancel()

    def action_next_field(self, step: int) -> None:
        """Go to the next or the previous field."""
        if step > 0:
            self.screen.focus_next()
        else:
            self.screen.focus_previous()

    def action_dry_run(self) -> None:
        """Show the request; where the preview covers the form, hide it again."""
        covers = self.screen.has_class("-previewing") and self.preview.tab == "dry run"
        self.preview.show("dry run")
        self.cover_form(self._is_narrow and not covers)
        self.start_dry_run()

    def action_next_preview(self) -> None:
        """Show the next tab of the preview; where it is hidden, show it with the difference."""
        if self._is_narrow and not self.screen.has_class("-previewing"):
            self.preview.show("diff")
            self.cover_form(True)
        else:
            self.preview.next_tab()
        self.partitions.update()

    @property
    def _is_narrow(self) -> bool:
        # The form and the preview do not fit beside each other.
        return self.app.size.width < 120

    def cover_form(self, covers: bool) -> None:
        """Show the preview in place of the form, or the form again with the focus where it was."""
        if covers == self.screen.has_class("-previewing"):
            return
        self.screen.set_class(covers, "-previewing")
        # A hidden field loses the focus, and the keys of the form act only while something here has it.
        if covers:
            self._covered_focus = self.screen.focused
        self.screen.set_focus(self.preview.body if covers else self._covered_focus)

    def action_copy_command(self) -> None:
        """Copy the command that does the same from a shell."""
        if self.model is not None and not self.model.errors():
            text = commands_text(self.model, self.dashboard.settings.launch)
            self.dashboard.terminal_clipboard.copy(text, "the command", is_command=True)


def _config_fault(resolved: Resolved) -> str:
    """Return why config cannot be read and what to do; empty if it can be read."""
    if not resolved.faults:
        return ""
    way = f"ctrl+l continues without {CONFIG_FILE}" if resolved.file_faults else "ctrl+o chooses another profile"
    return f"{resolved.faults[0]}; correct it and press ctrl+s, or {way}"
