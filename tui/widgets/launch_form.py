"""The form: a row for each argument and run option, the help of the one with the focus, and Submit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Button, Static

from ...backends.endings import some_of
from ...backends.logs.sanitize import plain
from ..job_rows import backend_word
from ..theme import palette_of, signs_of
from ..words import count
from .form_rows import ChoiceField, FieldRow
from .title_rule import TitleRule

if TYPE_CHECKING:
    from ...backends.api import Finding
    from ..form_model import Field, FormModel


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

    def compose(self) -> ComposeResult:
        """Yield the sections; the rows come with `show`."""
        yield self.rule
        with VerticalScroll(id="form-scroll", can_focus=False):
            yield Vertical(id="argument-rows")
            yield self._options_rule
            with Horizontal(classes="field-line"):
                yield self._scheduler_label
                yield self.scheduler
            yield Vertical(id="option-rows")
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

    def on_descendant_blur(self, _event: events.DescendantBlur) -> None:
        """Dim the title."""
        self.rule.active = self.has_focus_within
        self._draw_scheduler_label()

    def _draw_scheduler_label(self) -> None:
        """Draw the label as those of the fields, with the bar of the focus."""
        colors, signs = palette_of(self.app), signs_of(self.app)
        focused = self.scheduler.has_focus
        label = Text(signs.focus_bar if focused else " ", colors.accent, no_wrap=True, end="")
        label.append("scheduler", f"bold {colors.text}" if focused else colors.text)
        self._scheduler_label.update(label)

    async def show(self, model: FormModel, schedulers: Sequence[str]) -> None:
        """Show a form."""
        self.rule.info = Text(plain(model.doc.name))
        self.scheduler.choices = tuple(schedulers)
        self.scheduler._words = {name: backend_word(name, long=True) for name in schedulers}
        with self.prevent(ChoiceField.Changed):
            self.scheduler.value = model.scheduler
        rows = self.query_one("#argument-rows")
        await rows.remove_children()
        self.rows = [FieldRow(one) for one in model.section("argument")]
        await rows.mount_all(self.rows)
        await self.show_options(model)

    async def show_options(self, model: FormModel) -> None:
        """Show the run options of another scheduler."""
        self._options_rule.info = Text(backend_word(model.scheduler, long=True))
        self._draw_scheduler_label()
        rows = self.query_one("#option-rows")
        await rows.remove_children()
        options = [FieldRow(one) for one in model.section("option")]
        self.rows = [row for row in self.rows if row.field.section == "argument"] + options
        await rows.mount_all(options)
        self.refresh_state(model, "", [])

    def row(self, section: str, name: str) -> FieldRow | None:
        """Return a field's row."""
        return next((row for row in self.rows if (row.field.section, row.field.name) == (section, name)), None)

    def show_known(self, model: FormModel) -> None:
        """Offer what the backend knows of the run options."""
        for row in self.rows:
            row.show_known()
            if row.input.has_focus:
                self.show_help(model.get(row.field.section, row.field.name))

    def focus_first(self) -> None:
        """Put the focus where something is missing, else on the first field."""
        wrong = next((row for row in self.rows if row.field.error), None)
        chosen = wrong or (self.rows[0] if self.rows else None)
        (chosen.input if chosen else self.scheduler).focus()

    def show_help(self, field: Field | None) -> None:
        """Show the help of the focused field."""
        colors = palette_of(self.app)
        if field is None:
            self._help_rule.title, self._help_rule.info = Text(), Text()
            self._help.update("")
            return
        self._help_rule.title = Text(field.name)
        default = f", default {plain(field.default)}" if field.default else ", required" if field.required else ""
        self._help_rule.info = Text(f"{field.type_words}{default}")
        text = Text(plain(" ".join(field.help.split())) or "No help is written for it", colors.text2)
        if field.known:
            text.append(f"\nhere: {some_of(field.known, most=8)}", colors.text)
        self._help.update(text)

    def refresh_state(self, model: FormModel, failure: str, findings: Sequence[Finding]) -> None:
        """Draw the rows, the warnings and whether the form can be submitted.

        Args:
            model: the form.
            failure: why no request could be made, where it is no single field's fault.
            findings: what the backend warns of.
        """
        colors, signs = palette_of(self.app), signs_of(self.app)
        for row in self.rows:
            row.refresh_field()
        errors = model.errors()
        words = Text(end="")
        if errors:
            names = ", ".join(one.name for one in errors[:3])
            missing = all(one.error == "required" for one in errors)
            words.append(
                f"{names} {'is' if len(errors) == 1 else 'are'} missing"
                if missing
                else f"{count(len(errors), 'error')}, in {names}",
                colors.removed,
            )
            words.append("   ctrl+s waits for it", colors.text3)
        elif failure:
            words.append("the request could not be made", colors.removed)
        else:
            words.append("ready", colors.running)
            words.append("   ctrl+s submits", colors.text3)
        self._submit_words.update(words)
        self.submit.disabled = bool(errors or failure)
        notes = Text(end="")
        if failure and not errors:
            notes.append(f"{signs.bad} {plain(failure)}", colors.removed)
        for finding in findings:
            if finding.level != "ok":
                notes.append("\n" if notes else "")
                notes.append(f"! {plain(finding.what)}", colors.pending)
                notes.append(f"  {plain(finding.hint)}" if finding.hint else "", colors.text3)
        self._warnings.update(notes)
        self._warnings.display = bool(notes)
