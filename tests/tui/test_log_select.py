"""Selecting lines by keys and by mouse, and what is copied of them."""

import pytest
from log_app import logs_of, numbered, written
from textual.events import MouseScrollUp

from torchx_tui.logs.lines.merge import Bounds
from torchx_tui.tui.logs import export
from torchx_tui.tui.logs.selection import LogSelection
from torchx_tui.tui.logs.view import LogView
from torchx_tui.tui.ui.palette import ANSI, NO_COLOR


@pytest.fixture
def writer(tmp_path):
    return numbered(tmp_path, 100)


def lines(*span):
    return [f"line {number}" for number in range(*span)]


async def copied(logs, *lines):
    """Wait until these lines are the last that were copied."""
    what = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
    await logs.until(lambda: logs.app.copies[-1:] == [("\n".join(lines), what)], f"a copy of {what}")


async def test_motions_extend_a_selection(writer, monkeypatch):
    async with logs_of(writer, count=100) as logs:
        # Without a selection the screen is copied.
        await logs.press("y")
        await copied(logs, *lines(90, 100))
        await logs.press("v")
        await logs.selects("line 99")
        assert logs.bar().startswith("Selecting  1 line of 100")
        assert logs.bar().endswith("y copy   esc leave")
        await logs.press("k", "up", "k", "j")
        await logs.selects(*lines(97, 100))
        await logs.press("y")
        await copied(logs, *lines(97, 100))
        await logs.selects()
        assert logs.status.state == "paused"
        await logs.press("G", "v")
        for keys, count, top in (
            (["pageup"], 10, None), (["ctrl+u"], 14, None), (["ctrl+d", "pagedown"], 1, None), (["g"], 100, 0),
            (["j"], 99, None), (["G"], 1, 90),
        ):  # fmt: skip
            await logs.press(*keys)
            await logs.to_be(selected=count)
            assert top is None or logs.lines() == lines(top, top + 10)
        monkeypatch.setattr(export, "MOST_COPIED", 50)
        await logs.press(
            "g", "y", until=lambda: logs.app.said == ["100 lines are more than 50 B: save them to a file instead"]
        )
        assert len(logs.app.copies) == 2


async def test_search_and_filters_with_a_selection(writer):
    async with logs_of(writer, count=100) as logs:
        await logs.type("5")
        await logs.finds("line 95")
        await logs.press("y")
        await copied(logs, "line 95")
        await logs.press("v")
        await logs.selects("line 95")
        await logs.press("N")
        await logs.to_be(selected=11)
        # Esc leaves the selection first.
        await logs.press("escape")
        await logs.to_be(state="paused")
        assert logs.field.display
        await logs.press("escape", until=lambda: not logs.field.display, what="the end of the search")
        await logs.type("7", "ampersand")
        await logs.counted(19)
        await logs.last("line 97")
        await logs.settled()
        await logs.press("v", "k", "k", "y")
        await copied(logs, "line 79", "line 87", "line 97")


async def test_new_lines_and_the_wheel_change_no_selection(writer):
    async with logs_of(writer, count=100) as logs:
        await logs.press("v", "k")
        writer.write(b"new\n" * 50)
        await logs.counted(150)
        assert logs.selected() == lines(98, 100)
        for _ in range(9):
            await logs.pilot._post_mouse_events([MouseScrollUp], LogView, button=0)
        await logs.first("line 63")
        assert logs.selected() == []
        await logs.press("y")
        await copied(logs, *lines(98, 100))


async def test_mouse_selects_lines_also_beyond_the_edge(writer):
    async with logs_of(writer, count=100) as logs:
        # A click alone selects nothing and ends a selection.
        await logs.press("v")
        await logs.to_be(state="selecting")
        await logs.pilot.click(LogView, offset=(5, 3))
        await logs.to_be(state="paused")
        assert logs.selected() == []
        await logs.pilot.mouse_down(LogView, offset=(5, 6))
        await logs.pilot.hover(LogView, offset=(9, 3))
        await logs.selects(*lines(93, 97))
        # A pointer that rests beyond the edge scrolls on.
        logs.view.drag_to(-1)
        await logs.until(lambda: logs.status.selected > 12, "more lines")
        await logs.pilot.mouse_up(LogView, offset=(9, 0))
        await logs.until(lambda: logs.view.dragged_from is None, "the end of the drag")
        count = logs.status.selected
        await logs.press("y")
        await copied(logs, *lines(97 - count, 97))


async def test_copy_is_safe_text_and_whole_where_the_screen_cuts(tmp_path):
    text = "\x1b]52;c;ZXZpbA==\x07\x1b[31mred\x1b[0m\x1b[2J\n" + "x" * 300_000 + "\n"
    async with logs_of(written(tmp_path, text), count=2) as logs:
        await logs.press("y")
        await copied(logs, "red", "x" * 300_000)


@pytest.mark.parametrize("palette", [ANSI, NO_COLOR], ids=["16 colours", "no colour"])
async def test_selected_rows_are_plain_reverse_where_colours_are_few(tmp_path, palette):
    async with logs_of(written(tmp_path, "one\n\x1b[31mtwo\x1b[0m ERROR\n"), theme=palette.name, count=2) as logs:
        await logs.press("v")
        await logs.selects("two ERROR")
        colors = {segment.style.color for segment in logs.view.render_line(1) if segment.style}
        assert colors <= {None, logs.view.rich_style.color}


async def test_wrapped_lines_are_selected_as_a_whole(tmp_path):
    text = "".join(f"{number % 10}" * 100 + "\n" for number in range(20))
    async with logs_of(written(tmp_path, text), count=20) as logs:
        await logs.press("w", "v", until=lambda: len(logs.selected()) == 2, what="the two rows of a line")
        await logs.press(*"k" * 8)
        await logs.to_be(selected=9)
        assert logs.lines()[0] == "1" * 57
        await logs.press("j", "y")
        await copied(logs, *(f"{number}" * 100 for number in range(2, 10)))


def test_selection_keeps_to_lines_that_are_known():
    # Some were dropped.
    selection = LogSelection(-10, -5)
    for first, selected in ((-100, range(-10, -4)), (-7, range(-7, -4)), (3, range(3, -4))):
        assert selection.numbers(Bounds(first, 50, True)) == selected
    selection.move(1, Bounds(3, 50, True))
    assert selection.cursor == 4
    # The first line stays selected while older ones become known.
    selection = LogSelection(-1, -1)
    selection.move(float("-inf"), Bounds(-10, 0, False))
    assert selection.numbers(Bounds(-500, 0, True)) == range(-500, 0)
