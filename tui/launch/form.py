"""The form: a row for each argument and run option, the help of the one with the focus, and Submit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Button, Static

from ...backends.shared.exit_reasons import some_of
from ...logs.text.sanitize import plain
from ..format import count
from ..rows import backend_word
from ..ui.choice_field import ChoiceField
from ..ui.palette import STYLES
from ..ui.theme import glyphs_of
from ..ui.title_rule import TitleRule
from .form_field import ARGUMENT, LAUNCH, OPTION, role_of, role_section
from .form_rows import FieldRow
from .role_rule import RoleRule

if TYPE_CHECKING:
    from ...backends.api import Finding
    from .form_field import Field
    from .form_model import FormModel

_PLACES = {ARGUMENT: "#argument-rows", OPTION: "#option-rows", LAUNCH: "#option-rows"}
ROLE_HELP = (
    "Enter shows what can be changed in this role, whatever its component gave: replicas, image, resources, "
    "environment, mounts, retries, workspace, program."
)
SCHEDULER_HELP = "Where the job runs. Space and the arrows choose the next."


class _Fields(VerticalScroll, inherit_bindings=False):
    """Keeps the field with the focus in sight when help or warnings below take some of the rows."""

    HELP_TITLE = "Form"
    # Up and down lead to the field before or after.
    BINDINGS = [
        Binding("pageup", "page_up", "Scroll a page up", id="launch.page_up", show=False),
        Binding("pagedown", "page_down", "Scroll a page down", id="launch.page_down", show=False),
    ]

    def on_resize(self) -> None:
        """Scroll to it, once all have their places."""
        focused = self.screen.focused
        if focused is not None and self in focused.ancestors:
            self.call_after_refresh(self.scroll_to_widget, focused, animate=False)


class LaunchForm(Vertical):
    """The fields of a `FormModel`."""

    DEFAULT_CSS = "LaunchForm { width: 1fr; height: 1fr; }"

    def __init__(self) -> None:
        super().__init__(id="form")
        self.rule = TitleRule("Arguments")
        self._options_rule = TitleRule("Run options")
        self._help_rule = TitleRule()
        self._help = Static(markup=False, id="field-help")
        self._submit_words = Static(markup=False, id="submit-words")
        self._warnings = Static(markup=False, id="form-warnings")
        self.submit = Button("Submit", compact=True, id="submit")
        self.scheduler = ChoiceField((), "", id="scheduler")
        self._scheduler_label = Static(classes="field-label", markup=False)
        self.rows: list[FieldRow] = []
        self._open_roles: set[str] = set()
        self._reasons: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        """Yield the sections; the rows come with `show`."""
        yield self.rule
        with _Fields(id="form-scroll", can_focus=False):
            yield Vertical(id="argument-rows")
            yield self._options_rule
            with Horizontal(classes="field-line"):
                yield self._scheduler_label
                yield self.scheduler
            yield Vertical(id="option-rows")
            yield Vertical(id="role-rows")
        yield self._help_rule
        yield self._help
        yield self._warnings
        with Horizontal(id="submit-line"):
            yield self.submit
            yield self._submit_words

    def on_descendant_focus(self, _event: events.DescendantFocus) -> None:
        """Light the title."""
        self.rule.active = self.has_focus_within
        self._draw_scheduler_label()
        if self.scheduler.has_focus or self.submit.has_focus:
            self._show_scheduler_help()
        rule = next((rule for rule in self.query(RoleRule) if rule.has_focus), None)
        if rule is not None:
            self._show_role_help(rule.role)

    def on_descendant_blur(self, _event: events.DescendantBlur) -> None:
        """Dim the title."""
        self.rule.active = self.has_focus_within
        self._draw_scheduler_label()

    def _draw_scheduler_label(self) -> None:
        """Draw the label as those of the fields, with the bar of the focus."""
        glyphs = glyphs_of(self.app)
        focused = self.scheduler.has_focus
        label = Text(glyphs.focus_bar if focused else " ", STYLES.accent, no_wrap=True, end="")
        label.append("scheduler", f"bold {STYLES.text}" if focused else STYLES.text)
        self._scheduler_label.update(label)

    async def show(self, model: FormModel, schedulers: Sequence[str]) -> None:
        """Show a form."""
        self._open_roles = set()
        self.rule.title = Text("Arguments" if model.base is None else "Job")
        self.rule.info = Text(plain(model.doc.name or (model.base.name if model.base else "")))
        self.scheduler.choices = tuple(schedulers)
        self.scheduler._words = {name: backend_word(name, long=True) for name in schedulers}
        with self.prevent(ChoiceField.Changed):
            self.scheduler.value = model.scheduler
        await self._fill("#argument-rows", ARGUMENT, model)
        await self.show_options(model)

    async def show_options(self, model: FormModel) -> None:
        """Show the run options of another scheduler."""
        self._options_rule.info = Text(backend_word(model.scheduler, long=True))
        self._draw_scheduler_label()
        await self._fill("#option-rows", OPTION, model)
        await self.show_roles(model)
        self.refresh_state(model, "", [])

    async def show_roles(self, model: FormModel) -> None:
        """Show the roles, and the fields of those that are open or that something is wrong with."""
        rows = self.query_one("#role-rows")
        focused = next((rule.role for rule in self.query(RoleRule) if rule.has_focus), "")
        if model.base is not None:
            self._open_roles |= set(model.roles)
        wrong = {role_of(field.section) for field in model if field.error} - {""}
        shown = [role for role in model.roles if role in self._open_roles | wrong]
        await rows.remove_children()
        self.rows = [row for row in self.rows if not role_of(row.field.section)]
        for role in model.roles:
            rule = RoleRule(role)
            await rows.mount(rule)
            if role in shown:
                made = [FieldRow(field) for field in model.section(role_section(role))]
                self.rows += made
                await rows.mount_all(made)
            if role == focused:
                rule.focus(scroll_visible=False)
                # At the top where it was opened, so that its fields are in sight; once they have their places.
                self.call_after_refresh(rule.scroll_visible, animate=False, top=role in shown)
        self._refresh_roles(model)

    async def toggle_role(self, model: FormModel, role: str) -> None:
        """Show the fields of a role, or hide them."""
        self._open_roles ^= {role}
        await self.show_roles(model)

    def _refresh_roles(self, model: FormModel) -> None:
        for row in self.rows:
            # What a component gives changes with its arguments; where somebody types, nothing is put in place of it.
            if role_of(row.field.section) and not row.input.has_focus and row.input.value != row.field.text:
                row.set_text(row.field.text)
        shown = {role_of(row.field.section) for row in self.rows}
        for rule in self.query(RoleRule):
            rule.show_fields(model.section(role_section(rule.role)), shown=rule.role in shown)

    async def _fill(self, place: str, section: str, model: FormModel) -> None:
        rows = self.query_one(place)
        sections = (section, LAUNCH) if section == OPTION else (section,)
        await rows.remove_children()
        made = [FieldRow(field) for field in model if field.section in sections]
        self.rows = [row for row in self.rows if row.field.section not in sections]
        # In the order of the form, for the focus and for what is missing first.
        self.rows = made + self.rows if section == ARGUMENT else self.rows + made
        await rows.mount_all(made)

    async def replace_row(self, row: FieldRow) -> FieldRow:
        """Show a field anew whose kind of input has changed; return its row."""
        made = FieldRow(row.field)
        self.rows[self.rows.index(row)] = made
        place = self.query_one(_PLACES.get(row.field.section, "#role-rows"))
        await place.mount(made, after=row)
        await row.remove()
        made.input.focus()
        return made

    def row(self, section: str, name: str) -> FieldRow | None:
        """Return a field's row."""
        return next((row for row in self.rows if (row.field.section, row.field.name) == (section, name)), None)

    def focused_row(self) -> FieldRow | None:
        """Return the row that has the focus."""
        return next((row for row in self.rows if row.input.has_focus), None)

    def show_scheduler(self, name: str) -> None:
        """Show which scheduler is chosen."""
        with self.prevent(ChoiceField.Changed):
            self.scheduler.value = name

    def show_known(self) -> None:
        """Show every field's text as it is now, and offer what the backend knows of the run options."""
        for row in self.rows:
            row.show_known()
        if (focused := self.focused_row()) is not None:
            self.show_help(focused.field)

    def focus_first(self) -> None:
        """Put the focus where something is missing, else on the first field."""
        wrong = next((row for row in self.rows if row.field.error), None)
        chosen = wrong or (self.rows[0] if self.rows else None)
        (chosen.input if chosen else self.scheduler).focus()

    def show_help(self, field: Field | None) -> None:
        """Show the help of the focused field."""
        if field is None:
            self._show_scheduler_help()
            return
        self._help_rule.title = Text(field.name)
        default = f", default {plain(field.default)}" if field.default else ", required" if field.required else ""
        self._help_rule.info = Text(f"{field.type_words}{default}")
        text = Text(plain(" ".join(field.help.split())) or "This field has no help", STYLES.muted)
        if field.source:
            text.append(f"\nfrom {plain(field.source)}", STYLES.faint)
        if field.known:
            text.append(f"\nhere: {some_of(field.known, most=8)}", STYLES.text)
        self._help.update(text)

    def _show_scheduler_help(self) -> None:
        """Say of the schedulers which cannot be used now, and why."""
        focused = self.scheduler.has_focus
        self._help_rule.title = Text("scheduler" if focused else "")
        self._help_rule.info = Text(backend_word(self.scheduler.value, long=True) if focused else "")
        text = Text(SCHEDULER_HELP if focused else "", STYLES.muted)
        for name, reason in self._reasons.items() if focused else ():
            text.append(f"\n{backend_word(name, long=True)}: {plain(reason)}", STYLES.pending)
        self._help.update(text)

    def _show_role_help(self, role: str) -> None:
        """Say what can be changed in a role."""
        self._help_rule.title, self._help_rule.info = Text(plain(role)), Text("role")
        self._help.update(Text(ROLE_HELP, STYLES.muted))

    def show_reasons(self, reasons: Mapping[str, str]) -> None:
        """Note why schedulers cannot be used, by name."""
        self._reasons = dict(reasons)
        if self.scheduler.has_focus:
            self._show_scheduler_help()

    def refresh_state(self, model: FormModel, failure: str, findings: Sequence[Finding]) -> None:
        """Draw the rows, the warnings and whether the form can be submitted.

        Args:
            model: the form.
            failure: why no request could be made, where it is no single field's fault.
            findings: what the backend warns of.
        """
        glyphs = glyphs_of(self.app)
        for row in self.rows:
            row.refresh_field()
        self._refresh_roles(model)
        errors = model.errors()
        words = Text(end="")
        launches = model.launch_count()
        if errors:
            names = ", ".join(error.name for error in errors[:3])
            missing = all(error.error == "required" for error in errors)
            words.append(
                f"{names} {'is' if len(errors) == 1 else 'are'} missing"
                if missing
                else f"{count(len(errors), 'error')}, in {names}",
                STYLES.removed,
            )
            words.append("   ctrl+s goes there", STYLES.faint)
        elif failure:
            words.append("the request could not be made", STYLES.removed)
        elif not model.is_whole:
            words.append(f"the run options of {model.scheduler} are not known yet", STYLES.muted)
        else:
            words.append("ready", STYLES.running)
            words.append(f"   ctrl+s submits {count(launches, 'job') if launches > 1 else ''}".rstrip(), STYLES.faint)
        self._submit_words.update(words)
        self.submit.disabled = bool(errors or failure or not model.is_whole)
        notes = Text(end="")
        if failure and not errors:
            notes.append(f"{glyphs.bad} {plain(failure)}", STYLES.removed)
        warnings = [finding for finding in findings if finding.level != "ok"]
        for finding in warnings:
            notes.append("\n" if notes else "")
            notes.append(f"! {plain(finding.what)}", STYLES.pending)
            # What to do about each would push the others out of sight.
            if finding.hint and len(warnings) == 1:
                notes.append(f"  {plain(finding.hint)}", STYLES.faint)
        for finding in findings:
            if finding.level == "ok":
                notes.append("\n" if notes else "").append(plain(finding.what), STYLES.muted)
        self._warnings.update(notes)
        self._warnings.display = bool(notes)
