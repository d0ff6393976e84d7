"""What stands on the Jobs screen before there is a job: three keys, and a line for each backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual.reactive import reactive
from textual.widget import Widget

from ..rows import backend_word
from ..ui.bars import key_of
from ..ui.drawing import guard_render
from ..ui.palette import Text
from ..ui.pane import Pane
from ..ui.theme import glyphs_of

if TYPE_CHECKING:
    from ...backends.api import Finding
    from ..watch.store import Outage

_KEYS = (
    ("jobs.new", "Launch a job", "pick a component, fill a form"),
    ("app.keys", "Keys of this view", "they change with the screen"),
    ("app.commands", "Do anything by name", "commands, jobs, components"),
)


class FirstRun(Pane):
    """The empty state of the Jobs screen."""

    def __init__(self) -> None:
        self._block = LeftBlock()
        super().__init__("Jobs", self._block)
        self.rule.info = Text("0")
        self.rule.active = True

    def show(
        self, schedulers: Sequence[str], findings: Mapping[str, Sequence[Finding]], outages: Mapping[str, Outage]
    ) -> None:
        """Say what the backends found."""
        glyphs = glyphs_of(self.app)
        lines = [Text("No jobs yet", "bold $style-text"), Text()]
        lines += [
            Text.assemble(
                "  ",
                (f"{key_of(self, name):<3} ", "bold $style-accent"),
                (f"{what:<22}", "$style-text"),
                (more, "$style-faint"),
                end="",
            )
            for name, what, more in _KEYS
        ]
        lines += [Text(), Text()]
        for name in schedulers:
            found = findings.get(name, ())
            bad = next((finding for finding in found if finding.level == "error"), None)
            reason = outages[name].reason if name in outages else bad.what if bad else ""
            line = Text.assemble(
                "  ",
                (f"{glyphs.none if reason else glyphs.ok}   ", "$style-faint" if reason else "$style-running"),
                (f"{backend_word(name, long=True):<22}", "$style-muted"),
                (reason or "; ".join(finding.what for finding in found if finding.level == "ok"), "$style-faint"),
                end="",
            )
            lines.append(line)
        self._block.lines = tuple(lines)


class LeftBlock(Widget):
    """Lines aligned with each other, a little above the middle."""

    DEFAULT_CSS = "LeftBlock { height: 1fr; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }"

    lines: reactive[tuple[Text, ...]] = reactive(())

    @guard_render
    def render(self) -> Text:
        """Draw the block left-aligned, a little above the middle."""
        width, height = self.size.width, self.size.height
        block = max((line.cell_len for line in self.lines), default=0)
        left = max(1, min(30, (width - block) // 2))
        top = max(1, (height - len(self.lines)) * 2 // 5)
        return Text("\n" * top).append_text(
            Text("\n").join([Text(" " * left).append_text(line) for line in self.lines])
        )
