"""A chain of jobs by dependency: one row, a row a link, and which links are cancelled."""

from __future__ import annotations

import pytest
from support.dashboard import screen_text, until
from textual.widgets import Button

from torchx_tui.tui.job.dialogs import ChainDialog
from torchx_tui.tui.jobs.screen import JobsScreen

ME = {"UserName": "root"}
LINKS = (
    {**ME, "JobID": "7", "State": "COMPLETED", "EndTime": "1795258050"},
    {**ME, "JobID": "8", "SubmitTime": "1795258001", "Dependency": "afterok:7(unfulfilled)"},
    {
        **ME, "JobID": "9", "SubmitTime": "1795258002", "Dependency": "afterany:8(unfulfilled)", "State": "PENDING",
        "StartTime": "N/A", "Reason": "Dependency",
    },
)  # fmt: skip
OTHER = {**ME, "JobID": "20", "Name": "alone"}


async def shown(pilot, app, expected: list[tuple[str, str]]) -> JobsScreen:
    """Wait until the table has these jobs, by id and link."""

    def rows():
        return sorted((row.app_id, row.link) for row in app.screen.table.rows)

    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and rows() == expected, f"{expected}")
    return app.screen


async def test_a_chain_is_one_row_that_unfolds(app, commands) -> None:
    commands.queue(*LINKS, OTHER)
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await shown(pilot, app, [("20", ""), ("8", "2/3")])
        screen.table.move_to("slurm://torchx/8")
        await pilot.press("plus")
        await shown(pilot, app, [("20", ""), ("7", "1/3"), ("8", "2/3"), ("9", "3/3")])
        await until(pilot, lambda: "after train 8" in screen_text(app), "what it waits for")
        assert screen.table.cursor_row
        assert screen.table.cursor_row.app_id == "8"
        await pilot.press("plus")
        await shown(pilot, app, [("20", ""), ("8", "2/3")])


async def test_the_cursor_follows_the_chain(app, commands) -> None:
    commands.queue(*LINKS, OTHER)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await shown(pilot, app, [("20", ""), ("8", "2/3")])
        screen.table.move_to("slurm://torchx/8")
        ended = {**LINKS[1], "State": "COMPLETED", "EndTime": "1795258090", "Dependency": "(null)"}
        commands.queue(LINKS[0], ended, {**LINKS[2], "State": "RUNNING", "StartTime": "1795258091"}, OTHER)
        app.feed.refresh()
        await shown(pilot, app, [("20", ""), ("9", "3/3")])
        assert screen.table.cursor_row
        assert screen.table.cursor_row.app_id == "9"


@pytest.mark.parametrize(("keys", "expected"), [(["y"], ["8"]), (["a"], ["8", "9"]), (["enter"], []), (["escape"], [])])
async def test_cancelling_asks_which_links(app, commands, keys, expected) -> None:
    commands.queue(*LINKS)
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot, app, [("8", "2/3")])
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ChainDialog), "the dialog")
        assert [str(button.label) for button in app.screen.query(Button)] == [
            "Keep running",
            "y This link",
            "a All 2 links",
        ]
        await pilot.press(*keys)
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "an answer")
        await until(pilot, lambda: sorted(words[-1] for words in commands.calls("scancel")) == expected, "scancel")
