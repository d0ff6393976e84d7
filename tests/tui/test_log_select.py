"""Selecting lines by keys and by mouse, and what is copied of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_app import LogApp
from log_writing import LogWriter
from support.dashboard import settled
from textual.events import MouseScrollUp
from textual.pilot import Pilot

from torchx_tui.logs.view.merge import Bounds, MergedLog
from torchx_tui.tui.logs import output as log_copy
from torchx_tui.tui.logs.pane import LogPane
from torchx_tui.tui.logs.selection import LogSelection
from torchx_tui.tui.logs.view import LogView
from torchx_tui.tui.ui.palette import ANSI_DARK, DARK, NO_COLOR

SIZE = (60, 11)


class CopyApp(LogApp):
    """Keeps what the pane wants to be copied, and what it says."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.copies: list[tuple[str, str]] = []
        self.said: list[str] = []

    def on_log_pane_copied(self, message: LogPane.Copied) -> None:
        self.copies.append((message.text, message.what))

    def on_log_pane_said(self, message: LogPane.Said) -> None:
        self.said.append(message.text)

    def selected(self) -> list[str]:
        """The rows on screen that are drawn as selected ones, without the gutter."""
        rows = []
        for y in range(self.view.size.height):
            strip = self.view.render_line(y)
            styles = [segment.style for segment in strip if segment.style]
            color = all(style.bgcolor is not None and style.bgcolor.name == DARK.sel for style in styles)
            if styles and (color or all(style.reverse for style in styles)):
                rows.append(strip.text.rstrip().partition("│ ")[2])
        return rows


@pytest.fixture
def writer(tmp_path: Path) -> LogWriter:
    writer = LogWriter(tmp_path)
    writer.write(b"".join(b"line %d\n" % number for number in range(100)))
    return writer


@pytest.fixture
def app(writer: LogWriter) -> CopyApp:
    return CopyApp([writer.log])


def lines(*span: int) -> list[str]:
    return [f"line {number}" for number in range(*span)]


async def filled(pilot: Pilot, app: CopyApp) -> None:
    await app.until(lambda: app.rows()[-1:] == [" │ line 99"] and app.pane.status.exact)
    await pilot.pause()


async def test_v_selects_lines_that_motions_extend_and_y_copies_them(app: CopyApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await filled(pilot, app)
        await pilot.press("v")
        await app.until(lambda: app.selected() == ["line 99"])
        assert app.status_row().startswith("Selecting  1 line of 100")
        assert app.status_row().endswith("y copy   esc leave")
        await pilot.press("k", "up", "k", "j")
        await app.until(lambda: app.selected() == lines(97, 100))
        await pilot.press("y")
        await app.until(lambda: app.copies == [("line 97\nline 98\nline 99", "3 lines")])
        await app.until(lambda: app.selected() == [])
        assert app.pane.status.state == "paused"


async def test_pages_and_ends_extend_too(app: CopyApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await filled(pilot, app)
        await pilot.press("v", "pageup")
        await app.until(lambda: app.pane.status.selected == 10)
        await pilot.press("ctrl+u")
        await app.until(lambda: app.pane.status.selected == 14)
        await pilot.press("ctrl+d", "pagedown")
        await app.until(lambda: app.pane.status.selected == 1)
        await pilot.press("g")
        await app.until(lambda: app.pane.status.selected == 100)
        assert app.rows()[0] == " │ line 0"
        await pilot.press("j")
        await app.until(lambda: app.pane.status.selected == 99)
        await pilot.press("G")
        await app.until(lambda: app.pane.status.selected == 1)
        assert app.rows()[-1] == " │ line 99"


async def test_matches_extend_it_and_esc_leaves_it_first(app: CopyApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await filled(pilot, app)
        await pilot.press("slash", *"5", "enter")
        await app.until(lambda: app.search.current == -5)
        await pilot.press("v")
        await app.until(lambda: app.selected() == ["line 95"])
        await pilot.press("N")
        await app.until(lambda: app.pane.status.selected == 11)
        await pilot.press("escape")
        await app.until(lambda: app.pane.status.state == "paused")
        assert app.search.display
        await pilot.press("escape")
        await app.until(lambda: not app.search.display)


async def test_new_lines_and_leaving_the_screen_change_no_selection(app: CopyApp, writer: LogWriter) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await filled(pilot, app)
        await pilot.press("v", "k")
        writer.write(b"new\n" * 50)
        await app.until(lambda: app.pane.status.line_count == 150)
        assert app.selected() == ["line 98", "line 99"]
        # The wheel scrolls and leaves the selection as it is.
        for _ in range(9):
            await pilot._post_mouse_events([MouseScrollUp], LogView, button=0)
        await app.until(lambda: app.rows()[0] == " │ line 63")
        assert app.selected() == []
        await pilot.press("y")
        await app.until(lambda: app.copies == [("line 98\nline 99", "2 lines")])


async def test_without_a_selection_the_current_line_is_copied_else_the_screen(app: CopyApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await filled(pilot, app)
        await pilot.press("y")
        await app.until(lambda: app.copies[-1:] == [("\n".join(lines(90, 100)), "10 lines")])
        await pilot.press("slash", *"98", "enter")
        await app.until(lambda: app.search.current is not None)
        await pilot.press("y")
        await app.until(lambda: app.copies[-1:] == [("line 98", "1 line")])


async def test_dragging_selects_lines_also_beyond_the_edge(app: CopyApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await filled(pilot, app)
        await pilot.mouse_down(LogView, offset=(5, 6))
        await pilot.hover(LogView, offset=(9, 3))
        await app.until(lambda: app.selected() == lines(93, 97))
        # A pointer that rests beyond the edge scrolls on.
        app.view.drag.move(-1, 10, app.view.set_interval)
        await app.until(lambda: app.pane.status.selected > 12)
        await pilot.mouse_up(LogView, offset=(9, 0))
        await app.until(lambda: app.view.drag.anchor is None)
        count = app.pane.status.selected
        await pilot.press("y")
        await app.until(lambda: app.copies and app.copies[0][0].splitlines() == lines(97 - count, 97))


async def test_a_click_alone_selects_nothing_and_ends_a_selection(app: CopyApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await filled(pilot, app)
        await pilot.press("v")
        await app.until(lambda: app.pane.status.state == "selecting")
        await pilot.click(LogView, offset=(5, 3))
        await app.until(lambda: app.pane.status.state == "paused")
        assert app.selected() == []


async def test_filtered_lines_are_copied_as_they_are_shown(app: CopyApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await filled(pilot, app)
        await pilot.press("ampersand", *"7", "enter")
        await app.until(lambda: app.pane.status.line_count == 19)
        await settled(pilot)
        await pilot.press("v", "k", "k", "y")
        await app.until(lambda: app.copies == [("line 79\nline 87\nline 97", "3 lines")])


async def test_a_copy_is_safe_text_and_whole_where_the_screen_cuts(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"\x1b]52;c;ZXZpbA==\x07\x1b[31mred\x1b[0m\x1b[2J\n" + b"x" * 300_000 + b"\n")
    app = CopyApp([writer.log])
    async with app.run_test(size=SIZE) as pilot:
        await app.until(lambda: len(app.rows()) == 2)
        await pilot.press("y")
        await app.until(lambda: app.copies)
        assert app.copies[0][0] == "red\n" + "x" * 300_000


async def test_too_much_is_not_copied_and_says_what_to_do(app: CopyApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_copy, "MOST", 50)
    async with app.run_test(size=SIZE) as pilot:
        await filled(pilot, app)
        await pilot.press("v", "g", "y")
        await app.until(lambda: app.said == ["100 lines are more than 50 B: S saves them to a file"])
        assert app.copies == []


@pytest.mark.parametrize("palette", [ANSI_DARK, NO_COLOR])
async def test_without_colours_selected_rows_are_plain_reverse(tmp_path: Path, palette: object) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"one\n\x1b[31mtwo\x1b[0m ERROR\n")
    app = CopyApp([writer.log], theme=palette.name)  # type: ignore[attr-defined]
    async with app.run_test(size=SIZE) as pilot:
        await app.until(lambda: len(app.rows()) == 2)
        await pilot.press("v")
        await app.until(lambda: app.selected() == ["two ERROR"])
        [*_, row] = [app.view.render_line(y) for y in range(2)]
        assert {segment.style.color for segment in row if segment.style} <= {None, app.view.rich_style.color}


async def test_wrapped_lines_are_selected_as_a_whole(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path)
    writer.write(b"".join(b"%d" % (number % 10) * 100 + b"\n" for number in range(20)))
    app = CopyApp([writer.log])
    async with app.run_test(size=SIZE) as pilot:
        await app.until(lambda: len(app.rows()) == 10)
        await pilot.press("w", "v")
        await app.until(lambda: len(app.selected()) == 2)
        for _ in range(8):
            await pilot.press("k")
        await app.until(lambda: app.pane.status.selected == 9)
        assert app.rows()[0] == " │ " + "1" * 57
        await pilot.press("j", "y")
        await app.until(lambda: app.copies and app.copies[0][1] == "8 lines")


def test_lines_that_were_dropped_are_selected_no_more() -> None:
    selection = LogSelection(-10, -5)
    assert selection.numbers(Bounds(-100, 50, True)) == range(-10, -4)
    assert selection.numbers(Bounds(-7, 50, True)) == range(-7, -4)
    assert not selection.numbers(Bounds(3, 50, True))
    selection.move(1, Bounds(3, 50, True))
    assert selection.cursor == 4


def test_the_first_line_stays_selected_while_older_ones_become_known() -> None:
    selection = LogSelection(-1, -1)
    selection.move(float("-inf"), Bounds(-10, 0, False))
    assert selection.numbers(Bounds(-500, 0, True)) == range(-500, 0)


def test_copying_stops_when_the_log_is_closed(tmp_path: Path, writer: LogWriter) -> None:
    log = MergedLog([writer.log])
    log.open()
    while log.read_older(1):
        pass
    steps = log_copy.copy(log, range(-100, 0))
    steps.close()
    with pytest.raises(StopIteration):
        next(steps)
