"""A component's documentation: what it does, and a table of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from ...components.model import REQUIRED, ComponentDoc, ComponentSummary
from ...components.values import to_text
from ...logs.text.sanitize import plain
from ...specs.status import AppState
from ..format import age, count, cut
from ..ui.job_cells import name_text, state_text
from ..ui.palette import STYLES
from ..ui.pane import Pane
from ..ui.theme import glyphs_of

# Cells under which the table of arguments has no column for types, and the title no module.
NARROW = 60
# A job's name in fewer cells says nothing.
_SHORTEST_NAME = 8

if TYPE_CHECKING:
    from ...backends.history.journal import LaunchRecord
    from ..ui.glyphs import Glyphs


class ComponentDocs(Pane):
    """The documentation of the highlighted component."""

    def __init__(self) -> None:
        super().__init__(id="docs")
        self._content = Static(markup=False)
        self._body = VerticalScroll(self._content)

    def compose_body(self) -> ComposeResult:
        """Yield the text."""
        self._body.can_focus = False
        yield self._body

    def show(self, doc: ComponentDoc, launches: list[LaunchRecord], now: float) -> None:
        """Show a component: what keeps it from being launched, what it does, and how its last launch went."""
        glyphs = glyphs_of(self.app)
        width = max(20, self.size.width - 3)
        self.rule.title = Text(plain(doc.name))
        where = f"  {doc.module or f'{doc.path.name}:{doc.line}'}" if width >= NARROW else ""
        self.rule.info = Text(doc.kind + plain(where))
        broken = any(finding.severity == "error" for finding in doc.findings)
        text = Text(end="")
        if broken:
            text.append("This component cannot be used\n", f"bold {STYLES.text}")
        text.append_text(findings_text(doc))
        text.append_text(docs_text(doc, width, glyphs))
        if launches:
            text.append_text(last_launch_text(launches, now, width, glyphs))
        text.append("\n")
        if not broken:
            words = "fill the form, from the last launch" if launches else "fill the form"
            text.append_text(Text.assemble(("enter", f"bold {STYLES.accent}"), (f" {words}\n", STYLES.muted)))
        if doc.findings:
            text.append_text(self._edit_hint())
        self._show(text)

    def show_error(self, component: ComponentSummary) -> None:
        """Say why a component cannot be shown, and where."""
        self.rule.title, self.rule.info = Text(plain(component.name)), Text(component.kind)
        text = Text("This component cannot be used\n", f"bold {STYLES.text}", end="")
        if component.line:
            text.append(plain(f"{component.path.name}:{component.line}  "), STYLES.faint)
        text.append(plain(component.error or "") + "\n\n", STYLES.muted)
        if component.path.name:
            text.append_text(self._edit_hint())
        self._show(text)

    def _edit_hint(self) -> Text:
        return Text.assemble(("ctrl+e", f"bold {STYLES.accent}"), (" open the file in your editor\n", STYLES.muted))

    def _show(self, text: Text) -> None:
        self._content.update(text)
        self._body.scroll_to(y=0, animate=False)

    def show_nothing(self) -> None:
        """Say that nothing matches."""
        self.rule.title, self.rule.info = Text(), Text()
        text = Text("No component matches\n", f"bold {STYLES.text}")
        text.append("file.py:name and package.module:name are accepted too", STYLES.muted)
        self._show(text)


def findings_text(doc: ComponentDoc) -> Text:
    """Format the findings of `validate`: file, line, severity and message."""
    text = Text(end="")
    for finding in doc.findings:
        style = STYLES.failed if finding.severity == "error" else STYLES.pending
        text.append(plain(f"{doc.path.name}:{finding.line}"), STYLES.faint)
        text.append(f"  {finding.severity}  ", style)
        text.append(plain(finding.description) + "\n", STYLES.text)
    return text.append("\n") if text else text


def docs_text(doc: ComponentDoc, width: int, glyphs: Glyphs) -> Text:
    """Return the documentation in ``width`` cells."""
    text = Text(end="")
    for number, paragraph in enumerate(part for part in (doc.summary, doc.description) if part):
        style = STYLES.text if number == 0 else STYLES.muted
        text.append(plain(" ".join(paragraph.split())) + "\n", style)
    text.append("\n")
    if not doc.parameters:
        text.append("No arguments\n", STYLES.faint)
        return text
    text.append_text(_arguments_table(doc, width, glyphs))
    return text


def _arguments_table(doc: ComponentDoc, width: int, glyphs: Glyphs) -> Text:
    """Return a row for each argument; types go first where there is little room."""
    rows = [("ARGUMENT", "TYPE", "DEFAULT", "WHAT")]
    for parameter in doc.parameters:
        default = (
            "-"
            if parameter.default is REQUIRED or parameter.default in (None, "", ())
            else plain(to_text(parameter.default))
        )
        kind = f"*{parameter.type_text}" if parameter.kind == "var_positional" else parameter.type_text
        rows.append((parameter.name, kind, default, plain(" ".join(parameter.help.split()))))
    limits = (15, 9, 9) if width >= NARROW else (13, 0, 8)
    widths = [min(limit, max(len(row[i]) for row in rows)) for i, limit in enumerate(limits)]
    text = Text(end="")
    for number, row in enumerate(rows):
        styles = (STYLES.faint,) * 4 if number == 0 else (STYLES.text, STYLES.faint, STYLES.faint, STYLES.muted)
        for i, cell_width in enumerate(widths):
            if cell_width:
                text.append(f"{cut(row[i], cell_width, glyphs.cut):<{cell_width}}  ", styles[i])
        rest = width - sum(cells + 2 for cells in widths if cells)
        text.append(cut(row[3], max(8, rest), glyphs.cut) + "\n", styles[3])
    return text


def last_launch_text(launches: list[LaunchRecord], now: float, width: int, glyphs: Glyphs) -> Text:
    """Return how often a component was launched, and how the last launch went."""
    last = launches[0]
    text = Text(f"\nLaunched {count(len(launches), 'time')}, last {age(now - last.at)} ago: ", STYLES.faint, end="")
    if last.state in AppState.__members__:
        text.append_text(state_text(AppState[last.state], glyphs))
    room = width - cell_len(text.plain.strip()) - 2
    name = last.app_id or last.expected_app_id
    if name and room >= _SHORTEST_NAME:
        text.append("  ")
        text.append_text(name_text(plain(name), room, glyphs))
    return text.append("\n")
