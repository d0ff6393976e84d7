"""The Doctor screen: what is wrong here and what to do about it, then what is in order."""

from __future__ import annotations

import asyncio
from itertools import zip_longest
from textwrap import wrap

from textual import events, work
from textual.app import ComposeResult
from textual.binding import Binding

from ...backends.types import Finding
from ...base.errors import describe_error
from ...doctor.checks import Diagnosed, diagnose
from ...logs.text.sanitize import plain
from ..format import count
from ..ui.bars import Hint
from ..ui.base import BaseScreen
from ..ui.palette import Text
from ..ui.text_pane import TextPane

_SUBJECT_WIDTH = 14
_FAULTS = ("error", "warning")


class DoctorScreen(BaseScreen):
    """Everything that the command ``doctor`` tells, as it is found out."""

    HELP_TITLE = "Doctor"
    BINDINGS = [
        Binding("R", "look", "Check again", id="doctor.look"),
        Binding("y", "copy_report", "Copy the report", id="doctor.copy"),
        Binding("escape", "back", "Back", id="doctor.back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._pane = TextPane("Doctor", id="doctor")
        self._found: list[Diagnosed] = []
        self.is_done = False
        """Whether everything was asked."""

    def compose_body(self) -> ComposeResult:
        """Yield the pane."""
        yield self._pane

    def on_mount(self) -> None:
        """Begin to look."""
        self._pane.body.focus()
        self.action_look()

    def action_look(self) -> None:
        """Look at everything again."""
        self._found, self.is_done = [], False
        self._draw()
        self._look()

    def on_resize(self, event: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    @work(group="doctor", exclusive=True)
    async def _look(self) -> None:
        dashboard = self.dashboard
        items = diagnose(dashboard.settings, dashboard.runner, dashboard.config_file)
        try:
            while (item := await asyncio.to_thread(next, items, None)) is not None:
                self._found.append(item)
                self._draw()
        except Exception as error:
            # What looks at a broken machine is not broken by it.
            self._found.append(Diagnosed("doctor", Finding("error", f"some checks failed: {describe_error(error)}")))
        self.is_done = True
        self._draw()

    def _draw(self) -> None:
        faults = [item for item in self._found if item.finding.level in _FAULTS]
        fine = [item for item in self._found if item.finding.level not in _FAULTS]
        text = Text()
        if faults:
            text.append("   To fix\n", "bold $style-text")
            for level in _FAULTS:
                self._add([fault for fault in faults if fault.finding.level == level], text)
            text.append("\n")
        if fine:
            text.append("   In order\n", "bold $style-text")
            self._add(fine, text)
        self._pane.show_text(text)
        self._pane.rule.info = self._sum(faults)
        self.refresh_bars()

    def _sum(self, faults: list[Diagnosed]) -> Text:
        if not self.is_done:
            return Text("looking", "$style-pending")
        if not faults:
            return Text("nothing to fix", "$style-running")
        errors = sum(fault.finding.level == "error" for fault in faults)
        words = Text()
        if errors:
            words.append(count(errors, "error"), "$style-removed")
        if len(faults) > errors:
            words.append(f"{', ' if errors else ''}{count(len(faults) - errors, 'warning')}", "$style-pending")
        return words

    def _add(self, found: list[Diagnosed], text: Text) -> None:
        glyphs = self.glyphs
        looks = {"error": (glyphs.bad, "$style-removed"), "warning": ("!", "$style-pending")}
        room = max(20, self._pane.body.scrollable_content_region.width - _SUBJECT_WIDTH - 4)
        for item in found:
            glyph, color = looks.get(item.finding.level, (glyphs.ok, "$style-running"))
            is_fault = item.finding.level in _FAULTS
            subject, what = wrap(plain(item.subject), _SUBJECT_WIDTH), wrap(plain(item.finding.what), room)
            for first, second in zip_longest(subject, what, fillvalue=""):
                text.append(f" {glyph:<2}", color)
                text.append(f"{first:<{_SUBJECT_WIDTH}} ", "$style-text" if is_fault else "$style-faint")
                text.append(f"{second}\n", "$style-text" if is_fault else "$style-muted")
                glyph = ""
            # What is in order needs no advice.
            if is_fault:
                hint = wrap(plain(item.finding.hint or ""), room)
                text.append("".join(f"{'':<{_SUBJECT_WIDTH + 4}}{line}\n" for line in hint), "$style-muted")

    def action_copy_report(self) -> None:
        """Copy everything, to be sent to somebody who can help."""
        lines = []
        for item in self._found:
            hint = f" ({item.finding.hint})" if item.finding.hint else ""
            lines.append(plain(f"{item.finding.level}: {item.subject}: {item.finding.what}{hint}"))
        self.dashboard.terminal_clipboard.copy("\n".join(lines), "the report")

    def path(self) -> list[str]:
        """Return the way to this screen."""
        return ["Jobs", "Doctor"]

    def hints(self) -> list[Hint]:
        """Return the keys."""
        return [
            Hint("doctor.look", "Check again"),
            Hint("doctor.copy", "Copy report"),
            Hint("", "Scroll", key="j k"),
            Hint("doctor.back", "Back"),
        ]

    def action_back(self) -> None:
        """Go back."""
        self.dismiss()
