"""The form: a row for each argument and run option, the help of the one with the focus, and Submit."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Button

from ...backends.shared.exit_reasons import some_of
from ...backends.shared.secrets import mask_text
from ...logs.text.sanitize import plain
from ..dashboard import OnDashboard
from ..format import count
from ..rows import backend_word
from ..ui.bars import key_of
from ..ui.choice_field import ChoiceField
from ..ui.palette import Text
from ..ui.steady_static import SteadyStatic
from ..ui.theme import glyphs_of
from ..ui.title_rule import TitleRule
from .form_field import ARGUMENT, LAUNCH, OPTION, role_section
from .form_rows import FieldRow
from .role_rule import RoleRule

if TYPE_CHECKING:
    from .form_field import Field
    from .form_model import FormModel
    from .session import LaunchSession

_ARGUMENTS, _OPTIONS, _ROLES = "argument-rows", "option-rows", "role-rows"
_ROLE_FIELDS = "replicas, image, resources, environment, mounts, retries, workspace or program"
# A thousand fields take seconds to lay out.
_MOST_ROWS = 100
# More rows of arguments than a screen shows are mounted in steps, with seconds between them for keys.
_FIRST_ROWS, _ROWS_A_STEP, _PAUSE = 30, 10, 0.05
# Warnings about a script that are shown below the form.
_MOST_UNREAD = 2


class _Fields(VerticalScroll, inherit_bindings=False):
    """The scrolling part; it keeps the focused field visible when help or warnings below grow."""

    HELP_TITLE = "Form"
    # Up and down lead to the field before or after.
    BINDINGS = [
        Binding("pageup", "page_up", "Scroll a page up", id="launch.page_up"),
        Binding("pagedown", "page_down", "Scroll a page down", id="launch.page_down"),
    ]

    def on_resize(self) -> None:
        focused = self.screen.focused
        if focused is not None and self in focused.ancestors:
            self.call_after_refresh(self.scroll_to_widget, focused, animate=False)


class LaunchForm(OnDashboard, Vertical):
    """The fields of a `FormModel`, the help of the one with the focus, and Submit."""

    DEFAULT_CSS = "LaunchForm { width: 1fr; height: 1fr; }"

    def __init__(self) -> None:
        super().__init__(id="form")
        self.rule = TitleRule("Arguments")
        self._options_rule = TitleRule("Run options")
        self._help_rule = TitleRule()
        self._help = SteadyStatic(id="field-help")
        self._submit_words = SteadyStatic(id="submit-words")
        self._warnings = SteadyStatic(id="form-warnings")
        self.submit = Button("Submit", compact=True, id="submit")
        self.scheduler = ChoiceField((), "", id="scheduler")
        self._scheduler_label = SteadyStatic(classes="field-label")
        self._model: FormModel | None = None
        self._rows: dict[str, list[FieldRow]] = {_ARGUMENTS: [], _OPTIONS: [], _ROLES: []}
        self._rules: list[RoleRule] = []
        self._open_roles: set[str] = set()
        self._unusable: Mapping[str, str] = {}
        self._left_out = 0
        # Rows of two workers must not be mounted at the same time.
        self._mounting = asyncio.Lock()

    def compose(self) -> ComposeResult:
        yield self.rule
        with _Fields(id="form-scroll", can_focus=False):
            yield Vertical(id=_ARGUMENTS)
            yield self._options_rule
            with Horizontal(classes="field-line"):
                yield self._scheduler_label
                yield self.scheduler
            yield Vertical(id=_OPTIONS)
            yield Vertical(id=_ROLES)
        yield self._help_rule
        yield self._help
        yield self._warnings
        with Horizontal(id="submit-line"):
            yield self.submit
            yield self._submit_words

    # Rows

    @property
    def rows(self) -> list[FieldRow]:
        """The rows in the order of the screen."""
        return [row for rows in self._rows.values() for row in rows]

    def row(self, section: str, name: str) -> FieldRow | None:
        return next((row for row in self.rows if (row.field.section, row.field.name) == (section, name)), None)

    def focused_row(self) -> FieldRow | None:
        return next((row for row in self.rows if row.input.has_focus), None)

    async def show(self, model: FormModel, schedulers: Sequence[str]) -> None:
        """Show a form."""
        await self._mount_whole(self._mount_form(model, schedulers))

    async def show_options(self, model: FormModel) -> None:
        """Show the scheduler and its run options."""
        await self._mount_whole(self._mount_options(model))

    async def show_roles(self, model: FormModel) -> None:
        """Show the roles, and the fields of those that are open or have an error."""
        await self._mount_whole(self._mount_roles(model))

    async def on_role_rule_toggled(self, message: RoleRule.Toggled) -> None:
        self._open_roles ^= {message.role}
        if self._model is not None:
            await self.show_roles(self._model)

    async def _mount_whole(self, mounting: Coroutine[Any, Any, None]) -> None:
        """Mount rows to the end even if the worker is cancelled: no later dry run would mount the others."""

        async def mount() -> None:
            async with self._mounting:
                await mounting

        await asyncio.shield(mount())

    async def _mount_form(self, model: FormModel, schedulers: Sequence[str]) -> None:
        self._model, self._open_roles = model, set()
        self.rule.title = Text("Arguments" if model.base is None else "Job")
        self.rule.info = Text(plain(model.doc.name or (model.base.name if model.base else "")))
        self.scheduler.choices = tuple(schedulers)
        self.scheduler._words = {name: backend_word(name, long=True) for name in schedulers}
        fields = [field for field in model.section(ARGUMENT) if not field.is_of_launch]
        late = [field for field in fields[_MOST_ROWS:] if field.is_given or field.error or field.editor == "words"]
        self._left_out = len(fields[_MOST_ROWS:]) - len(late)
        shown = [*fields[:_MOST_ROWS], *late]
        # The first error gets the focus.
        first_error = next((number for number, field in enumerate(shown, 1) if field.error), 0)
        first = max(_FIRST_ROWS, first_error)
        await self._mount_rows(_ARGUMENTS, shown[:first])
        if shown[first:]:
            await self._mount_rows(_OPTIONS, ())
            self.call_after_refresh(self._mount_others, model, shown[first:])
        else:
            await self._mount_options(model)

    @work(group="rows", exclusive=True)
    async def _mount_others(self, model: FormModel, fields: Sequence[Field]) -> None:
        await asyncio.sleep(_PAUSE)
        if self._model is model:
            await self.show_options(model)
        for start in range(0, len(fields), _ROWS_A_STEP):
            await asyncio.sleep(_PAUSE)
            await self._mount_whole(self._add_arguments(model, fields[start : start + _ROWS_A_STEP]))

    async def _add_arguments(self, model: FormModel, fields: Sequence[Field]) -> None:
        if self._model is model:
            rows = [FieldRow(field) for field in fields]
            self._rows[_ARGUMENTS] += rows
            await self.query_one(f"#{_ARGUMENTS}").mount_all(rows)

    async def _mount_options(self, model: FormModel) -> None:
        self._options_rule.info = Text(backend_word(model.scheduler, long=True))
        with self.prevent(ChoiceField.Changed):
            self.scheduler.value = model.scheduler
        self._draw_scheduler_label()
        of_launch = [field for field in model.section(ARGUMENT) if field.is_of_launch]
        await self._mount_rows(_OPTIONS, [*of_launch, *model.section(LAUNCH), *model.section(OPTION)])
        await self._mount_roles(model)

    async def _mount_rows(self, place: str, fields: Sequence[Field]) -> None:
        container = self.query_one(f"#{place}")
        await container.remove_children()
        self._rows[place] = [FieldRow(field) for field in fields]
        await container.mount_all(self._rows[place])

    async def _mount_roles(self, model: FormModel) -> None:
        container = self.query_one(f"#{_ROLES}")
        focused = next((rule.role for rule in self._rules if rule.has_focus), "")
        if model.base is not None:
            self._open_roles |= set(model.roles)
        opened = self._open_roles | {field.role for field in model if field.error}
        await container.remove_children()
        self._rows[_ROLES], self._rules = [], []
        for role in model.roles:
            self._rules.append(rule := RoleRule(role))
            await container.mount(rule)
            if role in opened:
                rows = [FieldRow(field) for field in model.section(role_section(role))]
                self._rows[_ROLES] += rows
                await container.mount_all(rows)
            if role == focused:
                rule.focus(scroll_visible=False)
                # Once all have their positions: at the top where it was opened, so that its fields are visible.
                self.call_after_refresh(rule.scroll_visible, animate=False, top=role in opened)
        self._refresh_roles(model)

    def _refresh_roles(self, model: FormModel) -> None:
        for row in self._rows[_ROLES]:
            # The values from the component change with its arguments, except in the field being edited.
            if not row.input.has_focus and row.input.value != row.field.text:
                row.set_text(row.field.text)
        shown = {row.field.role for row in self._rows[_ROLES]}
        for rule in self._rules:
            rule.show_fields(model.section(role_section(rule.role)), shown=rule.role in shown)

    async def replace_row(self, row: FieldRow) -> None:
        """Show a field with another kind of input."""
        made = FieldRow(row.field)
        rows = next(rows for rows in self._rows.values() if row in rows)
        rows[rows.index(row)] = made
        await self.query_one("#form-scroll").mount(made, after=row)
        await row.remove()
        made.input.focus()

    def focus_first(self) -> None:
        """Focus the first field with an error, else the first field."""
        rows = self.rows
        chosen = next((row for row in rows if row.field.error), rows[0] if rows else None)
        # At once: its help takes a part of the first frame.
        self.screen.set_focus(chosen.input if chosen else self.scheduler)

    # Help

    def on_descendant_focus(self) -> None:
        self.rule.active = self.has_focus_within
        self._draw_scheduler_label()
        self._show_help()

    on_descendant_blur = on_descendant_focus

    def _draw_scheduler_label(self) -> None:
        focused = self.scheduler.has_focus
        label = Text(glyphs_of(self.app).focus_bar if focused else " ", "$style-accent", no_wrap=True, end="")
        self._scheduler_label.show(label.append("scheduler", "bold $style-text" if focused else "$style-text"))

    def _show_help(self) -> None:
        """Show the help of what has the focus in the form."""
        if not self.has_focus_within:
            return
        title, info, text = "", "", Text()
        row = self.focused_row()
        rule = next((rule for rule in self._rules if rule.has_focus), None)
        if row is not None:
            field = row.field
            default = f", default {plain(field.default)}" if field.default else ", required" if field.required else ""
            title, info = field.name, f"{field.type_words}{default}"
            text = Text(plain(" ".join(field.help.split())) or "No help for this field", "$style-muted")
            if field.source:
                text.append(f"\nfrom {plain(field.source)}", "$style-faint")
            if field.known:
                text.append(f"\nvalid here: {some_of(field.known, most=8)}", "$style-text")
        elif rule is not None:
            title, info, text = plain(rule.role), "role", Text(style="$style-muted")
            text.append(f"Press {key_of(rule, 'role.show')} to change this role's {_ROLE_FIELDS}.")
        elif self.scheduler.has_focus:
            title, info = "scheduler", backend_word(self.scheduler.value, long=True)
            keys = [key_of(self.scheduler, f"choice.{way}") for way in ("next", "previous")]
            text = Text(f"Where the job runs. Press {' or '.join(keys)} to choose another one.", "$style-muted")
            for name, reason in self._unusable.items():
                text.append(f"\n{backend_word(name, long=True)}: {plain(reason)}", "$style-pending")
        self._help_rule.title, self._help_rule.info = Text(title), Text(info)
        self._help.show(text)

    def show_known(self) -> None:
        """Show the present text of each field, and offer the values that the backend knows."""
        for row in self.rows:
            row.show_known()
        self._show_help()

    # State

    def refresh_state(self, session: LaunchSession) -> None:
        """Draw the rows, the warnings and whether the form can be submitted."""
        model, failure = session.model, session.config_fault or session.failure
        self._unusable = session.unusable
        for row in self.rows:
            row.refresh_field()
        self._refresh_roles(model)
        self._show_help()
        errors, jobs = model.errors(), model.launch_count()
        words = Text(end="")
        if errors:
            names = ", ".join(error.name for error in errors[:3])
            missing = f"{names} {'is' if len(errors) == 1 else 'are'} missing"
            is_missing = all(error.error == "required" for error in errors)
            words.append(missing if is_missing else f"{count(len(errors), 'error')}, in {names}", "$style-removed")
            words.append(f"   {key_of(self, 'launch.submit')} goes there", "$style-faint")
        elif failure:
            words.append("the request could not be made", "$style-removed")
        elif not model.is_whole:
            words.append(f"the run options of {model.scheduler} are not known yet", "$style-muted")
        else:
            words.append("ready", "$style-running")
            what = f" {count(jobs, 'job')}" if jobs > 1 else ""
            words.append(f"   {key_of(self, 'launch.submit')} submits{what}", "$style-faint")
        self._submit_words.show(words)
        self.submit.disabled = bool(errors or failure or not model.is_whole)
        doubts = [mask_text(field.name, field.sweep_warning) for field in model if field.sweep_warning]
        lines = [Text(f"! {plain(doubt)}", "$style-pending") for doubt in doubts]
        if failure and not errors:
            lines.append(Text(f"{glyphs_of(self.app).bad} {plain(failure)}", "$style-removed"))
        warnings = [finding for finding in session.findings if finding.level != "ok"]
        for finding in warnings:
            line = Text.assemble((f"! {plain(finding.what)}", "$style-pending"))
            # The hints of several would push the others out of sight.
            if finding.hint and len(warnings) == 1:
                line.append(f"  {plain(finding.hint)}", "$style-faint")
            lines.append(line)
        unread = [finding for finding in model.doc.findings if finding.severity == "warning"]
        if self._left_out:
            words = (
                f"! {count(self._left_out, 'more argument')} without a field: give them in args, as on a command line"
            )
            lines.append(Text(words, "$style-pending"))
        lines += [Text(f"! {plain(one.description)}", "$style-pending") for one in unread[:_MOST_UNREAD]]
        if len(unread) > _MOST_UNREAD:
            lines.append(Text(f"  and {len(unread) - _MOST_UNREAD} more: esc goes back to all of them", "$style-faint"))
        lines += [Text(plain(one.what), "$style-muted") for one in session.findings if one.level == "ok"]
        self._warnings.show(Text("\n", end="").join(lines))
        self._warnings.display = bool(lines)
