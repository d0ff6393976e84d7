"""Texts of several lines that are pasted into fields of one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.dashboard import make_app, until
from support.screens import table_of
from support.tables import toml_table
from textual import events

from torchx_tui.tui.terminal.paste import one_line

ROWS = toml_table(Path(__file__).with_name("paste.toml"))


@pytest.mark.parametrize(("text", "line", "left_out"), ROWS["lines"])
def test_one_line_of_pasted_text(text, line, left_out):
    assert one_line(text) == (line, left_out)


async def test_paste_says_what_it_leaves_out(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    notes: list[str] = []
    app.notify = lambda text, **_: notes.append(text)  # type: ignore[method-assign,assignment]
    async with app.run_test(size=(80, 24)) as pilot:
        table = await table_of(pilot, 1)
        await table.press("slash")
        field = table.screen.table_pane.filter
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
