"""The form of a launch beside the preview of its request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message

from ...backends.abilities import DescribesCluster
from ...backends.torchxconfig import CONFIG_FILE
from ...base.errors import describe_error
from ..cluster.screen import POOL_OPTIONS, ClusterScreen
from ..dashboard import OnDashboard
from ..ui.bars import key_of
from ..ui.pane import Divider
from .field_dialogs import Choice, ChoiceDialog, ItemsDialog
from .form import LaunchForm
from .form_field import OPTION
from .preview import Preview
from .questions import trust_dialog
from .work import resource_rows

if TYPE_CHECKING:
    from textual.widget import Widget

    from ...base.trust import UntrustedError
    from ..ui.choice_field import ChoiceField
    from .form_field import Field
    from .form_model import FormModel
    from .form_rows import FieldChanged
    from .session import LaunchSession

# Seconds without typing before a dry run, and before the one of a form that was filled.
DRY_RUN_DELAY = 0.25
_AT_ONCE = 0.01
_NO_PROFILE = "no profile"


class FormEditor(OnDashboard, Horizontal):
    """A form beside the preview of what it would launch."""

    HELP_TITLE = "Form"
    BINDINGS = [
        Binding("ctrl+d", "dry_run", "Dry run: show the request", priority=True, id="launch.dry_run"),
        Binding(
            "ctrl+t", "next_preview", "Next preview: diff, dry run, workspace", priority=True,
            id="launch.preview",
        ),
        Binding("ctrl+o", "profile", "Choose a profile", priority=True, id="launch.profile"),
        Binding(
            "ctrl+l", "ignore_config", "Launch without .torchxconfig, or with it again", priority=True,
            id="launch.ignore_config",
        ),
        Binding("ctrl+g", "several", "Several values: a sweep", priority=True, id="launch.several"),
        Binding("ctrl+r", "cluster", "What is free: choose a partition or queue", priority=True, id="launch.cluster"),
        Binding("ctrl+y", "copy_command", "Copy the command", priority=True, id="launch.copy"),
        Binding("down", "next_field(1)", "Next field", id="launch.next_field"),
        Binding("up", "next_field(-1)", "Previous field", id="launch.previous_field"),
    ]  # fmt: skip

    class Changed(Message):
        """The form, or an answer about it, has changed."""

    def __init__(self) -> None:
        super().__init__(id="editor")
        self.form = LaunchForm()
        self.preview = Preview()
        self.session: LaunchSession | None = None
        self._covered_focus: Widget | None = None

    def compose(self) -> ComposeResult:
        yield self.form
        yield Divider(id="form-divider")
        yield self.preview

    def on_unmount(self) -> None:
        if self.session is not None:
            self.session.close()

    @property
    def model(self) -> FormModel | None:
        """The form that is open."""
        return self.session.model if self.session else None

    @property
    def is_answered(self) -> bool:
        """Whether the dry run of the form with its current values has ended."""
        return self.session is not None and self.session.is_answered

    async def open(self, session: LaunchSession) -> bool:
        """Show the form of a session; return whether it could be made."""
        self.close()
        self.session = session
        if not await self._load(first=True):
            return False
        self._ask("schedulers", session.check_schedulers)
        return True

    def close(self) -> None:
        """Close the form, and end what runs for it."""
        self.workers.cancel_node(self)
        if self.session is not None:
            self.session.close()
        self.session = None

    # Config and run options

    async def _load(
        self, scheduler: str = "", *, first: bool = False, refill: bool = False, trusted: Path | None = None
    ) -> bool:
        session, profile = self.session, self.dashboard.profile
        assert session is not None
        try:
            problems, untrusted = await session.load(scheduler, profile, first=first, refill=refill, trusted=trusted)
        except Exception as error:
            # A scheduler's own code may raise anything.
            reason = describe_error(error)
            self.dashboard.status.say(f"No form for {scheduler or 'this component'}: {reason}", failed=True)
            return False
        if session.config_fault:
            session.config_fault += f"; {self._way_past_config(session)}"
        if problems:
            self.dashboard.status.say(problems[0], failed=True)
        if first:
            await self.form.show(session.model, self.dashboard.jobs.schedulers or [session.model.scheduler])
        else:
            await self.form.show_options(session.model)
        self._changed(_AT_ONCE)
        self._learn_values(session)
        if untrusted is not None:
            self._ask_for_trust(untrusted)
        return True

    @work(group="dialog")
    async def _ask_for_trust(self, untrusted: UntrustedError) -> None:
        if await self.app.push_screen_wait(trust_dialog(untrusted)):
            self.read_config(untrusted.folder)

    def _way_past_config(self, session: LaunchSession) -> str:
        submit, ignore, profile = (key_of(self, f"launch.{name}") for name in ("submit", "ignore_config", "profile"))
        way = f"{profile} for another profile"
        if session.is_file_faulty:
            way = f"{ignore} to launch without {CONFIG_FILE}"
        return f"correct it and press {submit}, or press {way}"

    @work(group="values", exclusive=True)
    async def _learn_values(self, session: LaunchSession) -> None:
        filled = await session.learn_values()
        self.form.show_known()
        if filled:
            self._changed(_AT_ONCE)

    def _reload(self, scheduler: str, *, refill: bool = False, trusted: Path | None = None) -> None:
        if self.session is None:
            return
        # ctrl+s may come before the new options: it must not launch with the old ones.
        self.session.model.expect_options(scheduler or self.session.model.scheduler)
        self._refresh()
        loading = partial(self._load, scheduler, refill=refill, trusted=trusted)
        self.run_worker(loading, group="options", exclusive=True)

    def read_config(self, trusted: Path | None = None) -> None:
        """Read config again, after trusting a folder if one is given; typed texts stay."""
        # A file that was not read before may choose the scheduler.
        self._reload(self.model.scheduler if self.model and trusted is None else "", refill=True, trusted=trusted)

    def take_profile(self, name: str | None) -> None:
        """Fill the form from another profile; None for none."""
        self.dashboard.profile = name
        self._reload("", refill=True)

    def action_ignore_config(self) -> None:
        model = self.model
        if model is not None and model.is_whole:
            model.ignores_config = not model.ignores_config
            self.dashboard.status.say(f".torchxconfig is {'ignored' if model.ignores_config else 'used'}")
            self.read_config()

    @work(group="dialog", exclusive=True)
    async def action_profile(self) -> None:
        profiles = self.dashboard.settings.profiles
        if not profiles:
            self.dashboard.status.say("config.toml has no profiles: add a table [profiles.NAME]", failed=True)
            return
        choices = [Choice(name, (profile.scheduler,)) for name, profile in profiles.items()]
        chosen = (self.model.profile if self.model else "") or _NO_PROFILE
        dialog = ChoiceDialog("Profile", [Choice(_NO_PROFILE, ("",)), *choices], ("scheduler",), chosen)
        name = await self.app.push_screen_wait(dialog)
        if name is not None:
            self.take_profile(None if name == _NO_PROFILE else name)

    # Editing

    def on_choice_field_changed(self, message: ChoiceField.Changed) -> None:
        if message.field is self.form.scheduler:
            self._reload(message.value)

    def on_field_changed(self, message: FieldChanged) -> None:
        if self.model is not None and self.model.set(message.section, message.name, message.text) is not None:
            self._changed()

    def on_input_submitted(self) -> None:
        row = self.form.focused_row()
        if row is not None and row.field.editor and not row.field.is_swept:
            self._edit(row.field)

    @work(group="dialog", exclusive=True)
    async def _edit(self, field: Field) -> None:
        """Edit a field in the dialog of its kind."""
        if field.editor == "resource":
            choices = [Choice("", ("", "", ""), "none")] if not field.required else []
            choices += [Choice(name, tuple(figures)) for name, *figures in await asyncio.to_thread(resource_rows)]
            row = self.form.focused_row()
            if not self.screen.is_active or row is None or row.field is not field:
                return
            dialog: ChoiceDialog | ItemsDialog = ChoiceDialog(field.name, choices, ("cpu", "gpu", "GB"), field.text)
        elif field.editor == "choice":
            dialog = ChoiceDialog(field.name, [Choice(text) for text in field.known or field.offered], taken=field.text)
        elif "\n" in field.text.strip():
            # The dialog, with an item a line, would split it.
            self.dashboard.status.say(f"{field.name} has an item of several lines: edit it in the form", failed=True)
            return
        else:
            dialog = ItemsDialog(field)
        self._take(field, await self.app.push_screen_wait(dialog))

    def _take(self, field: Field, text: str | None) -> None:
        """Set the text of a field; None for an answer that was refused."""
        row = self.form.row(field.section, field.name)
        if text is not None and self.model is not None and row is not None:
            self.model.set(field.section, field.name, text)
            row.set_text(text)
            self._changed()

    @property
    def pool_field(self) -> Field | None:
        """The field with the focus if it names a partition or queue of a backend that knows what is free."""
        row, model = self.form.focused_row(), self.model
        if row is None or model is None or row.field.is_swept:
            return None
        is_known = self.dashboard.jobs.can(model.scheduler, DescribesCluster)
        return row.field if is_known and row.field.section == OPTION and row.field.name in POOL_OPTIONS else None

    @work(group="dialog", exclusive=True)
    async def action_cluster(self) -> None:
        """Choose a partition or queue for the field on the Cluster screen."""
        self.take_typed()
        if (field := self.pool_field) is not None and self.model is not None:
            pool = field.text.partition(",")[0]
            screen = ClusterScreen(self.model.scheduler, pool, option=field.name)
            self._take(field, await self.app.push_screen_wait(screen))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "cluster" and self.pool_field is None:
            return None
        return super().check_action(action, parameters)

    async def action_several(self) -> None:
        """Switch the field between one value and a list of values, with a job for each."""
        row = self.form.focused_row()
        if self.model is None or row is None:
            return
        field = row.field
        if not field.can_be_several:
            self.dashboard.status.say(f"{field.name} cannot have several values", failed=True)
            return
        self.model.toggle_several(field)
        await self.form.replace_row(row)
        self._changed()
        words = "several values, separated by commas: one job for each" if field.several else "one value"
        self.dashboard.status.say(f"{field.name}: {words}")

    def action_next_field(self, step: int) -> None:
        if step > 0:
            self.screen.focus_next()
        else:
            self.screen.focus_previous()

    def take_typed(self) -> None:
        """Take the texts of all fields: the last letters may still be in the message queue."""
        if self.model is None:
            return
        before = [field.text for field in self.model]
        for row in self.form.rows:
            self.model.set(row.field.section, row.field.name, row.input.value)
        if before != [field.text for field in self.model]:
            self._changed()

    # Answers

    def _changed(self, delay: float = DRY_RUN_DELAY) -> None:
        session = self.session
        if session is None:
            return
        self.workers.cancel_group(self, "partitions")
        session.changed()
        self._refresh()
        if session.model.unread_resource:
            self._ask("resource", session.read_resource)
        self._dry_run(delay)

    def _refresh(self) -> None:
        if self.session is not None:
            self.form.refresh_state(self.session)
            self.preview.show_session(self.session)
        self.post_message(self.Changed())

    def _ask(self, group: str, asking: Callable[[], Awaitable[object]], *, exclusive: bool = False) -> None:
        """Ask something in a worker, then show the answer."""

        async def ask() -> None:
            await asking()
            self._refresh()

        self.run_worker(ask, group=group, exclusive=exclusive)

    @work(group="dry-run", exclusive=True)
    async def _dry_run(self, delay: float = 0) -> None:
        await asyncio.sleep(delay)
        session = self.session
        if session is None or session.fault:
            return
        if session.takes_other_workspace():
            self._ask("workspace", session.list_workspace, exclusive=True)
        self._show_partitions()
        if await session.dry_run(lambda text: self.call_later(self.show_slow, text)):
            await self.form.show_roles(session.model)
            if session.model.lost:
                lost = ", ".join(session.model.lost)
                self.dashboard.status.say(f"no longer in the app, so not changed: {lost}", failed=True)
        if session.model.fill_only_ones():
            self.form.show_known()
            self._changed(_AT_ONCE)
        self._refresh()

    def show_slow(self, text: str) -> None:
        """Show the progress of a component that takes long."""
        if self.session is not None and not self.is_answered:
            self.session.note = f"the component is running: {text}"
            self.preview.show_session(self.session)

    def _show_partitions(self) -> None:
        if self.session is not None and self.preview.tab == "partitions":
            self._ask("partitions", self.session.find_partitions)

    def stop_dry_run(self) -> None:
        """Ignore the answer: it would replace the error of a failed launch."""
        self.workers.cancel_group(self, "dry-run")

    @property
    def is_ready(self) -> bool:
        """Whether the form can be launched."""
        return self.session is not None and self.session.is_ready

    def why_not_ready(self) -> str:
        """Return why the form cannot be launched, and focus the first field with an error."""
        session = self.session
        if session is None:
            return ""
        model = session.model
        if not model.is_whole and not session.config_fault:
            return f"the run options of {model.scheduler} are not known yet"
        self.cover_form(False)
        if (wrong := model.errors()) and (row := self.form.row(wrong[0].section, wrong[0].name)):
            self.screen.set_focus(row.input)
        elif session.config_fault:
            # It may have been corrected.
            self.read_config()
        if len(wrong) == 1:
            return f"{wrong[0].name}: {wrong[0].error}"
        return ", ".join(field.name for field in wrong) or session.config_fault or session.failure

    def show_failure(self, error: str) -> None:
        """Show why a launch failed."""
        if self.session is not None:
            self.session.fail(error)
            self._refresh()

    # The preview

    def action_dry_run(self) -> None:
        """Show the request; hide it again where it covers the form."""
        covers = self.screen.has_class("-previewing") and self.preview.tab == "dry run"
        self.preview.show("dry run")
        self.cover_form(self._is_narrow and not covers)
        self._dry_run()

    def action_next_preview(self) -> None:
        """Show the next tab; the difference first where the preview is hidden."""
        if self._is_narrow and not self.screen.has_class("-previewing"):
            self.preview.show("diff")
            self.cover_form(True)
        else:
            self.preview.next_tab()
        self._show_partitions()

    def show_preview(self, tab: str) -> None:
        """Show a tab of the preview."""
        self.preview.show(tab)
        self._show_partitions()

    @property
    def _is_narrow(self) -> bool:
        return self.app.size.width < 120

    def cover_form(self, covers: bool) -> None:
        """Show the preview instead of the form, or the form with its focus again."""
        if covers == self.screen.has_class("-previewing"):
            return
        self.screen.set_class(covers, "-previewing")
        # A hidden field loses the focus, and the keys of the form act only while it is inside.
        if covers:
            self._covered_focus = self.screen.focused
        self.screen.set_focus(self.preview.body if covers else self._covered_focus)

    def action_copy_command(self) -> None:
        if self.session is not None and not self.session.model.errors():
            self.dashboard.terminal_clipboard.copy(self.session.command, "the command", is_command=True)
