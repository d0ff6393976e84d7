"""What a launch would do: the request, the difference to the last launch, the command, the shipped files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textual.containers import VerticalScroll

from ...logs.text.sanitize import plain
from ..format import bytes_words, count
from ..ui.palette import Text
from ..ui.pane import Pane
from ..ui.steady_static import SteadyStatic
from ..ui.theme import glyphs_of
from ..ui.title_rule import tabs_text
from ..ui.yaml_text import indented, yaml_text
from .partitions import partitions_text

if TYPE_CHECKING:
    from ...backends.api import WorkspaceListing
    from ...components.sbatch_script import ScriptLine
    from ..ui.glyphs import Glyphs
    from .session import LaunchSession

TABS = ("command", "diff", "dry run", "script", "partitions", "workspace")
# The tabs without columns.
_WRAPPED = ("command", "dry run")
MAX_FILES = 500
MAX_SCRIPT_LINES = 500


class Preview(Pane):
    """Texts behind tabs; the last three tabs exist only where the launch has such."""

    def __init__(self) -> None:
        self._content = SteadyStatic()
        self.body = VerticalScroll(self._content, id="preview-body")
        super().__init__("", self.body, id="preview")
        self._tab = TABS[0]
        self._session: LaunchSession | None = None
        self._drawn: tuple[object, ...] = ()

    def on_mount(self) -> None:
        self._draw()

    def show_session(self, session: LaunchSession) -> None:
        """Draw what a session has now."""
        self._session = session
        self._draw()

    @property
    def tab(self) -> str:
        """The tab on screen."""
        return self._tab if self._tab in self._tabs() else TABS[0]

    def show(self, tab: str) -> None:
        self._tab = tab
        self._draw()

    def next_tab(self) -> None:
        tabs = self._tabs()
        self.show(tabs[(tabs.index(self.tab) + 1) % len(tabs)])

    def _tabs(self) -> list[str]:
        session = self._session
        optional = (session.script_lines, session.has_partitions, session.workspace) if session else (False,) * 3
        return [*TABS[:3], *(tab for tab, exists in zip(TABS[3:], optional, strict=True) if exists)]

    def _draw(self) -> None:
        if not self.is_mounted:
            return
        shown, differences = self.tab, len(self._session.diff) if self._session else 0
        notes = {"diff": str(differences or "")}
        self.rule.title = tabs_text({tab: tab.capitalize() for tab in self._tabs()}, shown, "preview", notes)
        if self._session is None:
            return
        make, *inputs = self._source(shown, self._session)
        width = self.body.scrollable_content_region.width
        # A request of 5,000 lines takes 70 ms: draw it once.
        if (make, *inputs, width) != self._drawn:
            self._drawn = (make, *inputs, width)
            text = make(*inputs)
            self._content.show(indented(text, width) if shown in _WRAPPED else text)

    def on_resize(self) -> None:
        self._draw()

    def _source(self, tab: str, session: LaunchSession) -> tuple[Any, ...]:
        """Return the function that makes the text of a tab, and its arguments."""
        sources: dict[str, tuple[Any, ...]] = {
            "command": (command_text, session.command),
            "diff": (diff_text, session.diff, session.last is not None, session.not_repeated, session.request_diff),
            "dry run": (request_text, session.request, session.note, session.label, session.interpreter),
            "script": (script_text, session.script_lines, glyphs_of(self.app)),
            "partitions": (partitions_text, session.partitions),
            "workspace": (workspace_text, session.listing, session.unreadable),
        }
        return sources[tab]


def request_text(request: str, note: str, label: str, interpreter: str) -> Text:
    """Return a request, under the reason why it is out of date, if any."""
    return Text.assemble(
        (f"{plain(note)}\n" if note else "", "$style-pending"),
        ("The last valid request:\n\n" if note and request else "", "$style-muted"),
        (f"the first of the sweep: {plain(label)}\n\n" if label else "", "$style-faint"),
        (f"component run by {plain(interpreter)}\n\n" if interpreter else "", "$style-faint"),
        yaml_text("\n".join(plain(line) for line in request.splitlines())),
        end="",
    )


def command_text(command: str) -> Text:
    """Return the commands of a form, a paragraph each."""
    lines = [plain(line) for line in command.splitlines()]
    return Text("\n\n".join(line if line.startswith("#") else f"$ {line}" for line in lines), "$style-log")


def workspace_text(listing: WorkspaceListing | None, unreadable: str) -> Text:
    """Return the files of a workspace, the largest first, with their sum and the ignore rules."""
    if unreadable:
        return Text(plain(unreadable), "$style-removed")
    if listing is None:
        return Text("Reading the workspace", "$style-faint")
    more = "" if listing.is_whole else " and more: not all files were counted"
    rules = [f"by {plain(name)}" for name in listing.rules] or ["no ignore file: everything is shipped"]
    left_out = sorted(listing.left.items(), key=lambda item: -item[1])
    largest = sorted(listing.files, key=lambda file: (-file[1], file[0]))
    files = [(f"{bytes_words(size):>10}  ", f"{plain(path)}\n") for path, size in largest[:MAX_FILES]]
    rest = len(largest) - MAX_FILES
    return Text.assemble(
        (f"{count(len(largest), 'file')}, {bytes_words(listing.total)}{more}\n", "$style-text"),
        ("\n".join(rules) + "\n", "$style-faint"),
        ("".join(f"  {number:>6,} left out by {plain(rule)}\n" for rule, number in left_out), "$style-muted"),
        "\n",
        *(part for size, path in files for part in ((size, "$style-faint"), (path, "$style-log"))),
        (f"and {rest:,} smaller ones\n" if rest > 0 else "", "$style-faint"),
        end="",
    )


def script_text(lines: Sequence[ScriptLine], glyphs: Glyphs) -> Text:
    """Return the lines of a script, each with what is submitted instead."""
    parts: list[tuple[str, str]] = []
    for line in lines[:MAX_SCRIPT_LINES]:
        sign = "+" if not line.number else glyphs.differs if line.given else " "
        gap = "   " if line.text and line.given else ""
        parts += [
            (f"{line.number or '':>4} ", "$style-faint"),
            (f"{sign} ", "$style-pending"),
            (f"{plain(line.text)}{gap}", "$style-log" if line.text.startswith("#SBATCH") else "$style-muted"),
            (f"{plain(' '.join(line.given))}\n", "$style-added"),
        ]
    more = len(lines) - MAX_SCRIPT_LINES
    rest = f"and {count(more, 'more line')}\n" if more > 0 else ""
    end = f"{rest}\nThe file itself is not changed: the changes are passed to sbatch."
    return Text.assemble(*parts, (end, "$style-faint"), end="")


def diff_text(
    rows: Sequence[tuple[str, str, str]],
    compared: bool,
    not_repeated: Sequence[str] | None = None,
    request: Sequence[str] = (),
) -> Text:
    """Return what differs from the last launch, or from a job that was not launched here.

    Args:
        rows: name, earlier and present text of each difference.
        compared: whether there was a launch.
        not_repeated: what of a job is not launched again; None if the form is of no such job.
        request: lines of the request, those that are removed with ``-`` and those that are added with ``+`` in front.
    """
    if not compared and not_repeated is None:
        return Text("This component has not been launched here before", "$style-faint")
    parts: list[tuple[str, str]] = [(f"{plain(note)}\n", "$style-pending") for note in not_repeated or ()]
    if not rows:
        same = "Same as the last launch" if compared else "Otherwise the same" if parts else "Same as the job that ran"
        parts.append((same, "$style-faint"))
    for name, before, after in rows:
        parts += [
            (f"{name}\n", "$style-text"),
            (f"  - {plain(before) or 'none'}\n", "$style-removed"),
            (f"  + {plain(after) or 'none'}\n", "$style-added"),
        ]
    if request:
        parts.append(("\nIn the request:\n", "$style-faint"))
    styles = {"-": "$style-removed", "+": "$style-added"}
    parts += [(f"  {plain(line)}\n", styles.get(line[:1], "$style-muted")) for line in request]
    return Text.assemble(*parts, end="")
