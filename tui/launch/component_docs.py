"""A component's documentation: what it does, and a table of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.containers import VerticalScroll
from textual.widgets import Static

from ...components.model import REQUIRED, ComponentDoc, ComponentSummary
from ...components.values import to_text
from ...logs.text.sanitize import plain
from ...specs.status import AppState
from ..format import age, count, cut
from ..ui.job_cells import name_text, state_text
from ..ui.palette import Text
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
        self._content = Static(markup=False)
        self._body = VerticalScroll(self._content, can_focus=False)
        super().__init__("", self._body, id="docs")

    def show(
        self, doc: ComponentDoc, launches: list[LaunchRecord], now: float, edit: Text, *, fills_form: bool
    ) -> None:
        """Show a component: why it cannot be launched, what it does, its last launch, and the key that edits it."""
        glyphs, width = glyphs_of(self.app), max(20, self.size.width - 3)
        broken = any(finding.severity == "error" for finding in doc.findings)
        where = f"  {doc.module or f'{doc.path.name}:{doc.line}'}" if width >= NARROW else ""
        form = f"fill the form{', from the last launch' if fills_form else ''}"
        self._show(
            doc.name,
            f"{doc.kind}{where}",
            _unusable() if broken else "",
            findings_text(doc),
            docs_text(doc, width, glyphs),
            last_launch_text(launches, now, width, glyphs) if launches else "",
            "\n",
            "" if broken else Text.assemble(("enter", "bold $style-accent"), (f" {form}\n", "$style-muted")),
            edit if doc.findings else "",
        )

    def show_error(self, component: ComponentSummary, edit: Text) -> None:
        """Show why a component cannot be read."""
        path = component.path.name
        self._show(
            component.name,
            component.kind,
            _unusable(),
            (plain(f"{path}:{component.line}  ") if component.line else "", "$style-faint"),
            (f"{plain(component.error or '')}\n\n", "$style-muted"),
            edit if path else "",
        )

    def show_nothing(self) -> None:
        """Show that nothing matches."""
        words = "path/train.py, -m package.module, file.py:name and package.module:name are accepted too"
        self._show("", "", ("No component matches\n", "bold $style-text"), (words, "$style-muted"))

    def _show(self, title: str, info: str, *parts: str | Text | tuple[str, str]) -> None:
        self.rule.title, self.rule.info = Text(plain(title)), Text(plain(info))
        self._content.update(Text.assemble(*parts, end=""))
        self._body.scroll_to(y=0, animate=False)


def _unusable() -> Text:
    return Text("This component cannot be used\n", "bold $style-text")


def findings_text(doc: ComponentDoc) -> Text:
    """Format the findings of `validate`: file, line, severity and message."""
    text = Text(end="")
    for finding in doc.findings:
        style = "$style-failed" if finding.severity == "error" else "$style-pending"
        text.append(plain(f"{doc.path.name}:{finding.line}" if finding.line else doc.path.name), "$style-faint")
        text.append(f"  {finding.severity}  ", style).append(f"{plain(finding.description)}\n", "$style-text")
    return text.append("\n") if text else text


def docs_text(doc: ComponentDoc, width: int, glyphs: Glyphs) -> Text:
    """Return the documentation in ``width`` cells."""
    text, style = Text(end=""), "$style-text"
    for part in filter(None, (doc.summary, doc.description)):
        text.append(f"{plain(' '.join(part.split()))}\n", style)
        style = "$style-muted"
    text.append("\n")
    return text.append_text(
        _arguments_table(doc, width, glyphs) if doc.parameters else Text("No arguments\n", "$style-faint")
    )


def _arguments_table(doc: ComponentDoc, width: int, glyphs: Glyphs) -> Text:
    """Return a row for each argument; types are left out where there is little room."""
    rows = [("ARGUMENT", "TYPE", "DEFAULT", "WHAT")]
    for parameter in doc.parameters:
        has_default = parameter.default is not REQUIRED and parameter.default not in (None, "", ())
        default = plain(to_text(parameter.default)) if has_default else "-"
        kind = f"*{parameter.type_text}" if parameter.kind == "var_positional" else parameter.type_text
        rows.append((parameter.name, kind, default, plain(" ".join(parameter.help.split()))))
    limits = (15, 9, 9) if width >= NARROW else (13, 0, 8)
    widths = [min(limit, max(map(len, column))) for limit, column in zip(limits, zip(*rows, strict=True), strict=False)]
    rest = max(8, width - sum(cells + 2 for cells in widths if cells))
    text = Text(end="")
    styles = ("$style-faint",) * 4
    for *row, words in rows:
        for word, cells, style in zip(row, widths, styles, strict=False):
            text.append(f"{cut(word, cells, glyphs.cut):<{cells}}  " if cells else "", style)
        text.append(f"{cut(words, rest, glyphs.cut)}\n", styles[3])
        styles = ("$style-text", "$style-faint", "$style-faint", "$style-muted")
    return text


def last_launch_text(launches: list[LaunchRecord], now: float, width: int, glyphs: Glyphs) -> Text:
    """Return how often a component was launched, and how the last launch went."""
    last = launches[0]
    text = Text(f"\nLaunched {count(len(launches), 'time')}, last {age(now - last.at)} ago: ", "$style-faint", end="")
    if last.state in AppState.__members__:
        text.append_text(state_text(AppState[last.state], glyphs))
    room = width - cell_len(text.plain.strip()) - 2
    name = last.app_id or last.expected_app_id
    if name and room >= _SHORTEST_NAME:
        text.append("  ")
        text.append_text(name_text(plain(name), room, glyphs))
    return text.append("\n")
