"""Drivers of the dashboard, its table of jobs, its logs and its launch screen: keys in, what a user reads out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from rich.style import Style
from support.dashboard import key_bar, screen_text, settled, until
from textual import events
from textual.pilot import Pilot
from textual.widget import Widget
from textual.widgets import Button, Static

from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch.form_field import Field, role_section
from torchx_tui.tui.launch.role_rule import RoleRule
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.logs.pane import LogPane
from torchx_tui.tui.logs.search import LogSearch
from torchx_tui.tui.logs.status import LogStatus, StatusRow
from torchx_tui.tui.logs.view import LogView
from torchx_tui.tui.ui.bars import KeyBar, StatusLine, TopBar
from torchx_tui.tui.ui.choice_field import ChoiceField
from torchx_tui.tui.ui.palette import DARK

WIDE = (120, 40)


def text_of(widget: Any, selector: str = "") -> str:
    """Return the text of a Static, or of the Static that a selector finds in a widget."""
    static = widget.query_one(selector, Static) if selector else widget
    return str(static.render())


class Driver:
    """The dashboard as a user handles it.

    Attributes:
        screen: the screen that the driver is about; another one may be on top of it.
    """

    def __init__(self, pilot: Pilot[Any]) -> None:
        self.pilot = pilot
        self.app: TorchXTuiApp = pilot.app  # type: ignore[assignment]
        self.screen: Any = self.app.screen

    async def press(
        self,
        *keys: str,
        until: Callable[[], object] | None = None,
        what: str = "",
        shows: str | tuple[str, ...] = (),
        on: str = "message",
    ) -> None:
        """Press keys, and wait for a condition, see `until`, or for texts, see `shows`."""
        await self.pilot.press(*keys)
        if until:
            await self.until(until, what)
        if shows:
            await self.shows(*([shows] if isinstance(shows, str) else shows), on=on)

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        await until(self.pilot, condition, what)

    async def settled(self) -> None:
        await settled(self.pilot)

    async def resize(self, width: int, height: int) -> None:
        await self.pilot.resize_terminal(width, height)

    async def shows(self, *texts: str, on: str = "message") -> None:
        """Wait until a part of the screen, named by a method, has all these texts."""
        part = getattr(self, on)
        await self.until(lambda: all(text in part() for text in texts), f"{texts} in {on}")

    async def open(self, kind: type, *keys: str) -> Any:
        """Press keys, and wait for a screen; return it."""
        await self.press(*keys)
        await self.until(lambda: isinstance(self.app.screen, kind), kind.__name__)
        return self.app.screen

    async def dialog(self, kind: type, *keys: str) -> Any:
        """Press keys, and wait for a dialog with its buttons; return it."""
        dialog = await self.open(kind, *keys)
        await self.until(lambda: dialog.query(Button), "its buttons")
        return dialog

    async def back(self, *keys: str) -> None:
        """Press keys, and wait until the driver's own screen is on top."""
        await self.press(*keys)
        await self.until(lambda: self.app.screen is self.screen, "the screen below")

    def message(self) -> str:
        """Return the message of the screen on top, if it has one yet."""
        return "".join(line.left.plain for line in self.app.screen.query(StatusLine))

    def said(self) -> str:
        """Return the last message with its glyph, also under a dialog."""
        status = self.app.status
        return f"{'✗' if status.failed else '✓'} {status.message}" if status.message else ""

    def counts(self) -> str:
        return self.app.screen.query_one(StatusLine).right.plain

    def top_bar(self) -> str:
        return self.app.screen.query_one(TopBar).middle.plain

    def key_hints(self) -> list[str]:
        """Return the keys of the key bar, each with its word."""
        return key_bar(self.app)

    def key_is_enabled(self, key: str) -> bool | None:
        """Return whether a key of the key bar does something now; None if it is not there."""
        return next((hint.enabled for hint in self.app.screen.query_one(KeyBar).hints if hint.key == key), None)

    def drawn(self) -> str:
        """Return the text of the whole screen."""
        return screen_text(self.app)

    def dialog_text(self) -> str:
        """Return the texts of the dialog on top."""
        return "\n".join(text_of(static) for static in self.app.screen.query(Static))

    def focused(self) -> Widget | None:
        return self.app.screen.focused


class Table(Driver):
    """The jobs screen: its rows, its cursor, and what is beside the table."""

    def __init__(self, pilot: Pilot[Any]) -> None:
        super().__init__(pilot)
        self.table = self.screen.table

    def rows(self) -> list[str]:
        return [row.app_id for row in self.table.rows]

    def at(self) -> str:
        """Return the job at the cursor."""
        row = self.table.cursor_row
        return row.app_id if row else ""

    def to(self, app_id: str) -> None:
        """Put the cursor on a job."""
        self.table.move_to(next(row.handle for row in self.table.rows if row.app_id == app_id))

    def lines(self, *numbers: int) -> list[str]:
        """Return lines of the table as they are drawn; all if no number is given."""
        return [self.table.render_line(y).text for y in numbers or range(self.table.size.height)]

    def header(self) -> list[str]:
        return self.lines(0)[0].split()

    def placeholder(self) -> str:
        return self.table.placeholder.plain

    def title(self) -> str:
        """Return what stands in the rule above the table."""
        return self.screen.table_pane.rule.info.plain

    def card_title(self) -> str:
        return self.screen.card.rule.title.plain

    def facts(self) -> str:
        """Return the card below the table."""
        return "\n".join(line.plain for line in self.screen.card.body.facts)

    async def has(self, count: int) -> None:
        """Wait until the table has so many rows."""
        await self.until(lambda: self.table.row_count == count, f"{count} rows")

    async def first(self, app_id: str) -> None:
        """Wait until a job is in the first row."""
        await self.until(lambda: self.rows()[0] == app_id, app_id)

    async def job(self, app_id: str = "") -> Job:
        """Open the job at the cursor, or another one."""
        if app_id:
            self.to(app_id)
        screen = await self.open(JobScreen, "enter")
        await self.until(lambda: screen.described is not None, "its description")
        return Job(self.pilot)

    async def picker(self) -> Launch:
        """Open the launch screen, and wait for all components."""
        screen = await self.open(LaunchScreen, "n")
        await self.until(lambda: screen.picker.components, "the components")
        # The builtins come first, those of files behind them.
        await self.app.workers.wait_for_complete([one for one in self.app.workers if one.group == "components"])
        await self.pilot.pause()
        return Launch(self.pilot)

    async def edit(self, key: str = "e") -> Launch:
        """Open the form of the job at the cursor."""
        screen = await self.open(LaunchScreen, key)
        await self.until(lambda: screen.editor.form.rows, "the form")
        return Launch(self.pilot)


class Job(Driver):
    """The screen of one job."""

    def why(self) -> list[str]:
        """Return the lines that explain how the job ended, or why it waits."""
        return text_of(self.screen.why.body, "Static").splitlines()

    def state(self) -> str:
        return self.screen.state_line.left.plain

    def facts(self) -> list[str]:
        """Return the facts of the chosen replica."""
        return [line.plain for line in self.screen.replicas.facts.lines]

    def tab(self, name: str) -> str:
        """Return the text behind a tab."""
        return text_of(self.screen.query_one(f"#{name}").body, "Static")

    def log_replica(self) -> int:
        """Return the replica whose log is shown."""
        return self.screen.logs.log_pane.status.replica


class Logs(Driver):
    """A log pane, on the logs screen or with nothing around it.

    Its rows are as they are drawn; its lines are those without what stands before each.
    """

    app: Any

    def __init__(self, pilot: Pilot[Any]) -> None:
        super().__init__(pilot)
        self.pane = self.screen.query_one(LogPane)
        self.view = self.screen.query_one(LogView)
        self.field = self.screen.query_one(LogSearch)

    @property
    def status(self) -> LogStatus:
        return self.pane.status

    def rows(self) -> list[str]:
        """Return the rows on screen, without the blank ones at the end."""
        rows = [self.view.render_line(y).text.rstrip() for y in range(self.view.size.height)]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def lines(self) -> list[str]:
        return [row.partition("│ ")[2] for row in self.rows()]

    def selected(self) -> list[str]:
        """Return the lines on screen that are drawn as selected."""
        strips = [self.view.render_line(y) for y in range(self.view.size.height)]
        styles = [[segment.style for segment in strip if segment.style] for strip in strips]
        return [
            strip.text.rstrip().partition("│ ")[2]
            for strip, each in zip(strips, styles, strict=True)
            if each and (all(style.reverse for style in each) or all(_fill(style) == DARK.sel for style in each))
        ]

    def matches(self) -> list[str]:
        """Return the texts on screen that are drawn as matches, the current one with a sign."""
        segments = [segment for y in range(self.view.size.height) for segment in self.view.render_line(y)]
        signs = {DARK.accent_fill.split()[-1]: ">", DARK.match_row.split()[-1]: ""}
        return [signs[_fill(style)] + text for text, style, _ in segments if _fill(style) in signs]

    def bar(self) -> str:
        """Return the row of the log's state."""
        return self.screen.query_one(StatusRow).render().plain

    def words(self) -> str:
        """Return what stands beside the search field, if that is there."""
        words = [text_of(self.field, f"#pattern-{part}") for part in ("words", "kind")]
        return "  ".join(words) if self.field.display else ""

    async def has(self, *lines: str) -> None:
        """Wait until just these lines are on screen."""
        await self.until(lambda: self.lines() == list(lines), f"{lines}")

    async def first(self, line: str) -> None:
        await self.until(lambda: self.lines()[:1] == [line], line)

    async def last(self, line: str) -> None:
        await self.until(lambda: self.lines()[-1:] == [line], line)

    async def finds(self, text: str) -> None:
        """Wait until a text is on screen."""
        await self.until(lambda: any(text in row for row in self.rows()), text)

    async def selects(self, *lines: str) -> None:
        """Wait until just these lines on screen are selected."""
        await self.until(lambda: self.selected() == list(lines), f"{lines}")

    async def counted(self, lines: int) -> None:
        """Wait until the log is read to its start, and has so many lines."""
        await self.until(lambda: self.status.exact and self.status.line_count == lines, f"{lines} lines")

    async def to_be(self, **values: object) -> None:
        """Wait until the status has these values."""
        await self.until(lambda: values == {name: getattr(self.status, name) for name in values}, f"{values}")

    async def ask(self, key: str) -> None:
        """Open the field."""
        await self.press(key)
        await self.until(lambda: self.field.input.has_focus, "the field")

    async def type(self, text: str, key: str = "slash") -> None:
        """Search, filter or jump, depending on the key."""
        await self.ask(key)
        self.field.input.value = text
        await self.press("enter")


def _fill(style: Style | None) -> str:
    return style.bgcolor.name if style and style.bgcolor else ""


class Launch(Driver):
    """The launch screen: the picker and the form.

    A field is named by its name; those that are no arguments of the component with their section.
    """

    def __init__(self, pilot: Pilot[Any]) -> None:
        super().__init__(pilot)
        self.editor = self.screen.editor
        self.form = self.screen.editor.form

    # The picker

    def components(self) -> list[str]:
        """Return the names of the components that are listed."""
        return [one.name for one in self.screen.picker.shown]

    def picker_rows(self) -> list[str]:
        """Return the rows of the list, the spaces between name and right side made one."""
        options = self.screen.picker.list
        rows = [options.get_option_at_index(number).prompt for number in range(options.option_count)]
        return [" ".join(str(row).split()) for row in rows]

    def highlighted(self) -> str:
        one = self.screen.picker.highlighted
        return one.name if one is not None else ""

    def search(self) -> str:
        return self.screen.picker.search.value

    def set_search(self, text: str) -> None:
        self.screen.picker.search.value = text

    def search_has_focus(self) -> bool:
        return self.screen.picker.search.has_focus

    def docs(self) -> str:
        """Return the documentation of the highlighted component."""
        return text_of(self.screen.docs, "VerticalScroll Static")

    def docs_title(self) -> str:
        return self.screen.docs.rule.title.plain

    async def lists(self, *names: str) -> None:
        """Wait until just these components are listed."""
        await self.until(lambda: self.components() == list(names), f"{names}")

    async def finds(self, name: str) -> None:
        """Wait until a component is highlighted."""
        await self.until(lambda: self.highlighted() == name, name)

    async def pick(self, text: str) -> None:
        """Search for a component, choose it, and wait for its form."""
        self.set_search(text)
        await self.finds(text)
        await self.choose()

    async def choose(self, *keys: str) -> None:
        """Choose what is highlighted, and wait for its form."""
        await self.press(*keys, "enter")
        await self.opened()

    async def opened(self) -> None:
        """Wait for the form."""
        await self.until(lambda: self.editor.model is not None and self.form.rows, "the form")

    def component(self) -> str:
        """Return the component whose form is open; empty if none is."""
        return "" if self.editor.model is None else self.editor.model.doc.name

    # The form

    @property
    def model(self) -> Any:
        return self.editor.model

    def row(self, name: str, section: str = "argument") -> Any:
        found = self.form.row(section, name)
        assert found is not None, name
        return found

    def field(self, name: str, section: str = "argument") -> Field:
        return self.row(name, section).field

    def fields(self, origin: str) -> dict[str, str]:
        """Return the texts of the fields of an origin, by name."""
        return {row.field.name: row.field.text for row in self.form.rows if row.field.origin.word == origin}

    def value(self, name: str, section: str = "argument") -> str:
        """Return the text that a field shows."""
        return self.row(name, section).input.value

    def values(self, *names: str) -> tuple[str, ...]:
        return tuple(self.value(name) for name in names)

    def error(self, name: str, section: str = "argument") -> str:
        """Return the error under a field; empty if there is none."""
        return self.row(name, section).error

    def origin(self, name: str) -> str:
        """Return the word beside a field."""
        return self.row(name).origin

    def at(self) -> str:
        """Return the field with the focus."""
        return next((row.field.name for row in self.form.rows if row.input.has_focus), "")

    def preview(self) -> str:
        return text_of(self.screen, "#preview-body Static")

    def tabs(self) -> str:
        """Return the names of the preview's tabs."""
        return self.editor.preview.rule.title.plain

    def tab(self) -> str:
        return self.editor.preview.tab

    def words(self) -> str:
        """Return what stands beside Submit."""
        return text_of(self.screen, "#submit-words")

    def warnings(self) -> str:
        return text_of(self.screen, "#form-warnings")

    def help(self) -> str:
        return text_of(self.screen, "#field-help")

    def can_submit(self) -> bool:
        return not self.form.submit.disabled

    def set(self, name: str, text: str, section: str = "argument") -> None:
        """Put a text into a field at once, or take a choice."""
        field = self.row(name, section).input
        if isinstance(field, ChoiceField):
            at = field.choices.index(field.value) if field.value in field.choices else -1
            field.action_turn(field.choices.index(text) - at)
        else:
            field.value = text

    async def focus(self, name: str, section: str = "argument") -> None:
        field = self.row(name, section).input
        field.focus()
        await self.until(lambda: field.has_focus, name)

    async def type(self, section: str = "argument", /, **texts: str) -> None:
        """Replace texts of fields of a section: the last letter is typed, what is before it pasted, as people do."""
        for name, text in texts.items():
            await self.focus(name, section)
            await self.press("end", "ctrl+u")
            if text[:-1]:
                self.row(name, section).input.post_message(events.Paste(text[:-1]))
            if text:
                await self.press(text[-1])
            await self.has(section, **{name: text})

    async def has(self, section: str = "argument", /, **texts: str) -> None:
        """Wait until fields show these texts."""
        await self.until(lambda: texts == {name: self.value(name, section) for name in texts}, f"{texts}")

    async def ready(self) -> None:
        """Wait for a dry run of what the form has."""

        def is_ready() -> bool:
            return self.editor.is_answered and "ready" in self.words() and self.editor.session.request

        await self.until(is_ready, "a dry run")

    async def open_role(self, name: str) -> str:
        """Open the fields of a role; return their section."""
        await self.until(lambda: name in [rule.role for rule in self.screen.query(RoleRule)], "the roles")
        next(rule for rule in self.screen.query(RoleRule) if rule.role == name).focus()
        await self.press("enter")
        await self.until(lambda: self.form.row(role_section(name), "args"), "its fields")
        return role_section(name)

    async def refused(self, *texts: str) -> None:
        """Submit, and wait for the reasons why nothing is launched."""
        self.app.status.clear()
        await self.press("ctrl+s")
        await self.shows("Not launched: ", *texts)

    async def submit(self) -> Table:
        """Submit, and wait for the jobs."""
        await self.open(JobsScreen, "ctrl+s")
        return Table(self.pilot)


async def table_of(pilot: Pilot[Any], rows: int = 0) -> Table:
    """Wait until a backend has answered, and the table has at least so many rows."""
    app: Any = pilot.app
    await until(
        pilot,
        lambda: isinstance(app.screen, JobsScreen) and app.jobs.answered and app.screen.table.row_count >= rows,
        "the jobs",
    )
    return Table(pilot)


@asynccontextmanager
async def jobs_of(app: TorchXTuiApp, size: tuple[int, int] = WIDE, rows: int = 1) -> AsyncIterator[Table]:
    """Start the dashboard, and wait for the table with at least so many rows."""
    async with app.run_test(size=size) as pilot:
        yield await table_of(pilot, rows)


async def form_of(pilot: Pilot[Any], name: str) -> Launch:
    """Open the form of a component over the jobs."""
    launch = await (await table_of(pilot)).picker()
    await launch.pick(name)
    await launch.until(launch.at, "the focus on a field")
    return launch


@asynccontextmanager
async def launch_of(app: TorchXTuiApp, component: str = "", size: tuple[int, int] = WIDE) -> AsyncIterator[Launch]:
    """Start the dashboard, and open the form of a component, or the picker."""
    async with jobs_of(app, size, 0) as table:
        yield await form_of(table.pilot, component) if component else await table.picker()
