"""Texts of several lines that are pasted into fields of one line."""

from __future__ import annotations

import pytest
from support.dashboard import make_app, until
from textual import events

from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.terminal.paste import one_line


@pytest.mark.parametrize(
    ("text", "line", "left_out"),
    [
        ("", "", 0),
        ("  a b ", "  a b ", 0),
        ("a\n", "a", 0),
        ("\n\na\n\n", "a", 0),
        ("a\nb\n\nc", "a", 2),
        ("a\rb\r", "a", 1),
        ("run \\\n    --lr 3 \\\r\n\t--steps 4", "run --lr 3 --steps 4", 0),
        ("abc\\\ndef", "abcdef", 0),
        ("run \\\n  a\nrun b", "run a", 1),
        ("C:\\x", "C:\\x", 0),
        ("a\\", "a\\", 0),
    ],
)
def test_one_line_of_pasted_text(text, line, left_out):
    assert one_line(text) == (line, left_out)


async def test_paste_says_what_it_leaves_out(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    notes: list[str] = []
    app.notify = lambda text, **_: notes.append(text)  # type: ignore[method-assign,assignment]
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count > 0, "rows")
        await pilot.press("slash")
        screen = app.screen
        assert isinstance(screen, JobsScreen)
        field = screen.table_pane.filter
        app.post_message(events.Paste("state:failed \\\n  !eval"))
        await until(pilot, lambda: field.value == "state:failed !eval", "both lines")
        assert notes == []
        app.post_message(events.Paste(" one\ntwo\nthree"))
        await until(pilot, lambda: field.value == "state:failed !eval one", "the first line")
        assert notes
        assert notes[0].startswith("Pasted the first of 3 lines")
        # What was copied here is inserted in the same way.
        app.copy_to_clipboard("four\nfive")
        await pilot.press("ctrl+v")
        await until(pilot, lambda: field.value.endswith("onefour"), "the first line of the copy")
        assert len(notes) == 2
