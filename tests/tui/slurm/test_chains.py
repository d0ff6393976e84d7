"""A chain of jobs by dependency: one row, a row a link, and which links are cancelled."""

from __future__ import annotations

from dataclasses import replace

from support.screens import jobs_of
from textual.widgets import Button

from torchx_tui.specs.status import AppState
from torchx_tui.tui.jobs.chains import Chains
from torchx_tui.tui.rows import JobRow
from torchx_tui.tui.ui.dialog import AskDialog

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


async def has(table, links):
    """Wait until the table has these jobs beside the other one, each with its link."""
    expected = {"20": "", **links}
    await table.until(lambda: {row.app_id: row.link for row in table.table.rows} == expected, f"{expected}")


async def test_chain_is_one_row_that_unfolds_and_the_cursor_follows(app, commands):
    commands.queue(*LINKS, OTHER)
    async with jobs_of(app, (160, 45)) as table:
        await has(table, {"8": "2/3"})
        table.to("8")
        await table.press("plus")
        await has(table, {"7": "1/3", "8": "2/3", "9": "3/3"})
        await table.shows("after train 8", on="drawn")
        assert table.at() == "8"
        await table.press("plus")
        await has(table, {"8": "2/3"})
        ended = {**LINKS[1], "State": "COMPLETED", "EndTime": "1795258090", "Dependency": "(null)"}
        commands.queue(LINKS[0], ended, {**LINKS[2], "State": "RUNNING", "StartTime": "1795258091"}, OTHER)
        app.feed.refresh()
        await has(table, {"9": "3/3"})
        assert table.at() == "9"


async def test_cancelling_asks_which_links(app, commands):
    commands.queue(*LINKS, OTHER)
    async with jobs_of(app, (80, 24)) as table:
        await has(table, {"8": "2/3"})
        table.to("8")
        cancelled = []
        for keys, links in (
            ("enter", []),
            ("escape", []),
            ("y", ["8"]),
            ("a", ["8", "9"]),
            ("right right enter", ["8", "9"]),
        ):
            dialog = await table.dialog(AskDialog, "x")
            labels = [str(button.label) for button in dialog.query(Button)]
            assert labels == ["Keep running", "y This link", "a All 2 links"]
            await table.back(*keys.split())
            cancelled = sorted(cancelled + links)
            await table.until(lambda c=cancelled: sorted(words[-1] for words in commands.calls("scancel")) == c, keys)


def link(number, *after, state=AppState.PENDING, why=""):
    """Return a job that is queued behind others, all submitted in the order of their numbers."""
    handles = tuple(f"slurm://torchx/{each}" for each in after)
    name = f"slurm://torchx/{number}"
    return JobRow(name, "slurm", str(number), state, submitted_at=float(number), after=handles, why=why)


def kept(*links):
    rows = {row.handle: row for row in links}
    return rows, Chains(rows)


def fold(chains, rows, is_wanted=lambda row: True):
    """Return the rows that are shown, each with its link and why, and those that are not."""
    shown, hidden = chains.fold(rows.values(), is_wanted)
    return [f"{row.app_id} {row.link} {row.why}".strip() for row in shown], {
        handle.rpartition("/")[2]: head and head.rpartition("/")[2] for handle, head in hidden.items()
    }


def test_the_row_of_a_chain_is_that_of_the_link_that_acts():
    ended, runs, waits = link(1, state=AppState.SUCCEEDED), link(2, 1, state=AppState.RUNNING), link(3, 2, why="held")
    rows, chains = kept(link(9), waits, runs, ended)
    assert fold(chains, rows) == (["9", "2 2/3"], {"1": "2", "3": "2"})
    # Of those that the view shows; without one it is not there at all.
    assert fold(chains, rows, lambda row: row is not runs) == (["9", "3 3/3 held"], {"1": "3", "2": "3"})
    assert fold(chains, rows, lambda row: row is ended) == (["1 1/3"], {"9": None, "2": "1", "3": "1"})
    assert fold(chains, rows, lambda row: False) == ([], dict.fromkeys("9123"))
    done = replace(runs, state=AppState.FAILED), replace(waits, state=AppState.CANCELLED)
    rows, chains = kept(ended, *done)
    assert fold(chains, rows) == (["3 3/3 held"], {"1": "3", "2": "3"})
    assert chains.is_folded(ended)
    assert not chains.is_folded(link(9))


def test_an_unfolded_chain_says_what_each_link_waits_for():
    rows, chains = kept(link(1, why="held"), link(2, 1, why="after 1"), link(3, 1, 2, why="low priority"), link(9))
    assert [row.app_id for row in chains.toggle(rows["slurm://torchx/3"])] == ["1", "2", "3"]
    unfolded = ["1 1/3 the first link; held", "2 2/3 after 1", "3 3/3 after 1, 2; low priority", "9"]
    assert fold(chains, rows) == (unfolded, {})
    assert fold(chains, rows, lambda row: row.app_id != "2") == ([unfolded[0], *unfolded[2:]], {"2": None})
    assert chains.toggle(rows["slurm://torchx/9"]) == []
    chains.toggle(rows["slurm://torchx/2"])
    assert fold(chains, rows)[0] == ["1 1/3 held", "9"]


def test_chains_change_as_jobs_come_and_go():
    rows, chains = kept(link(2, 1), link(9))

    def take(*changed, removed=()):
        gone = [f"slurm://torchx/{number}" for number in removed]
        for handle in gone:
            rows.pop(handle)
        rows.update((row.handle, row) for row in changed)
        return [row.app_id for row in chains.take(changed, gone)]

    assert chains.links(rows["slurm://torchx/2"]) == []
    # The job comes that another was queued behind.
    assert take(link(1)) == ["1", "2"]
    assert [row.app_id for row in chains.links(rows["slurm://torchx/2"])] == ["1", "2"]
    assert take(link(9, why="held")) == ["9"]
    # What changes of one link changes the row of all.
    assert sorted(take(link(1, state=AppState.RUNNING))) == ["1", "2"]
    # Two chains are joined by a job that was queued behind both.
    assert take(link(4), link(5, 4)) == ["4", "5"]
    assert sorted(take(link(6, 2, 5))) == ["1", "2", "4", "5", "6"]
    assert [row.app_id for row in chains.links(rows["slurm://torchx/4"])] == ["1", "2", "4", "5", "6"]
    assert sorted(take(removed=(6,))) == ["1", "2", "4", "5"]
    assert [row.app_id for row in chains.links(rows["slurm://torchx/4"])] == ["4", "5"]
    assert take(removed=(4,)) == ["5"]
    assert chains.links(rows["slurm://torchx/5"]) == []
    # In the order in which they were submitted.
    take(link(10, 9))
    assert [row.app_id for row in chains.links(rows["slurm://torchx/9"])] == ["9", "10"]
    # A dependency that is no more.
    assert sorted(take(link(2))) == ["1", "2"]
    assert chains.links(rows["slurm://torchx/2"]) == []
