"""What the dialogs about jobs say, and what they answer with."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.canned import NOW
from support.screens import Table, jobs_of, text_of
from textual.widgets import Button, Static

from torchx_tui.backends.history.provenance import Changed
from torchx_tui.backends.types import Capabilities, Finding, JobAction
from torchx_tui.specs.status import AppState
from torchx_tui.tui.format import clock
from torchx_tui.tui.job.actions import lost_logs
from torchx_tui.tui.job.dialogs import cancel_dialog, delete_dialog, quit_dialog, results_dialog
from torchx_tui.tui.job.menu import ActionsDialog
from torchx_tui.tui.job.relaunch import relaunch_dialog
from torchx_tui.tui.rows import JobRow
from torchx_tui.tui.ui.dialog import TEXT_WIDTH, AskDialog

LONG = "x" * 100
ROW = JobRow(
    "local_cwd://torchx/train-zq2wmx7v5hkdfd", "local_cwd", "train-zq2wmx7v5hkdfd", AppState.RUNNING, running=1,
    wanted=2, submitted_at=NOW - 60, started_at=NOW - 50,
)  # fmt: skip


def lines(dialog):
    return [line.plain.rstrip() for line in dialog.lines()]


async def asked(table: Table, dialog, answers):
    """Open a dialog; return its lines."""
    table.app.push_screen(dialog, answers.append)
    await table.until(lambda: table.app.screen is dialog and dialog.query(Button), "the dialog")
    assert {button.region.height for button in dialog.query(Button)} == {1}
    return lines(dialog)


def buttons(dialog):
    """Return the buttons, and what stands beside them."""
    beside = dialog.query("#dialog-buttons > Static").results(Static)
    return [*(str(button.label) for button in dialog.query(Button)), *map(text_of, beside)]


async def test_quitting_asks_what_becomes_of_the_jobs(app):
    names = [f"train-{number}" for number in range(10)]
    warning = Finding(
        "warning", "jobs end with the session", "`loginctl enable-linger`, once for each machine, as root"
    )
    helps = ["To prevent it: `loginctl enable-linger`, once for each", "machine, as root"]
    warned = ["Warning: jobs end with the session.", *helps]
    answers = []
    async with jobs_of(app) as table:
        for way, count, listed, findings, said in (
            ("y", 10, [*names[:8], "and 2 more"], [warning], warned),
            ("k", 8, names[:8], [], []),
            ("enter", 1, names[:1], [], []),
            ("right enter", 1, names[:1], [], []),
            ("escape", 1, names[:1], [], []),
        ):
            dialog = quit_dialog(app, [f"local_cwd://torchx/{name}" for name in names[:count]], findings)
            assert await asked(table, dialog, answers) == [
                f"{count} job{'s' * (count > 1)} launched here, still running on this machine:",
                *("", *listed, "", "Jobs that you keep continue; the next start lists them.", *said, ""),
            ]
            assert buttons(dialog) == ["Keep running", "y Cancel them", "esc back"]
            await table.back(*way.split())
    assert answers == ["y", "k", "k", "y", ""]


@pytest.mark.parametrize(
    ("kind", "verb", "labels", "last"),
    [
        (
            cancel_dialog,
            "Cancel",
            ["Keep running", "y Cancel the job"],
            "The job stays listed as Cancelled, logs are kept.",
        ),
        (delete_dialog, "Delete", ["Keep", "y Delete"], "Logs and history of it are removed. This cannot be undone."),
    ],
)
async def test_jobs_are_shown_before_anything_ends(app, kind, verb, labels, last):
    answers = []
    async with jobs_of(app) as table:
        dialog = kind(app, [replace(ROW, app_id=LONG)])
        await asked(table, dialog, answers)
        await table.until(lambda: last in lines(dialog), "what becomes of the logs")
        since = f"since {clock(NOW - 50, NOW)}"
        facts = [f"state      ● Running  1m, {since}", "where      local", "replicas   1 of 2 running", ""]
        assert lines(dialog)[:6] == ["x" * (TEXT_WIDTH - 1) + "…", "", *facts]
        assert lines(dialog)[-3:] == [last, f"$ torchx-tui {verb.lower()} {ROW.handle}", ""]
        assert (dialog.heading(), buttons(dialog)) == (f"{verb} this job?", [*labels, "esc back"])
        # Both buttons answer, and the key does.
        for way in (["enter"], ["right", "enter"], ["y"], ["escape"]):
            await table.back(*way)
            await asked(table, kind(app, [ROW]), answers)
        assert answers == ["", "y", "y", ""]
        await table.back("escape")
        dialog = kind(app, [ROW, replace(ROW, app_id=LONG, state=AppState.FAILED), *[ROW] * 8])
        rows = await asked(table, dialog, answers)
        assert rows[:2] == [f"● Running     {ROW.name}", f"✗ Failed      {'x' * (TEXT_WIDTH - 15)}…"]
        assert rows[7:10] == [f"● Running     {ROW.name}", "and 2 more", ""]
        assert dialog.heading() == f"{verb} 10 jobs?"


async def test_dialogs_say_how_jobs_ended_and_scroll(app):
    async with jobs_of(app) as table:
        for state, row, replicas in (
            ("✓ Succeeded", replace(ROW, running=2), "2 of 2 succeeded"),
            ("✗ Failed", ROW, "1 of 2 succeeded"),
            ("? Unknown", replace(ROW, running=0), "2"),
            ("✓ Succeeded", replace(ROW, running=0, history=True), "2"),
        ):
            ended = replace(row, state=AppState[state[2:].upper()], finished_at=NOW - 30)
            shown = await asked(table, delete_dialog(app, [ended]), [])
            assert shown[2:5] == [
                f"state      {state}  20s, ended {clock(NOW - 30, NOW)}",
                "where      local",
                f"replicas   {replicas}",
            ]
            await table.back("escape")
        # What failed comes first.
        dialog = results_dialog(app, [("good", ""), (LONG, "why " * 60), ("bad", "exit 1"), *[("fine", "")] * 40])
        await asked(table, dialog, [])
        reason = f"    {'why ' * 14}".rstrip()
        failed = [f"✗ {'x' * (TEXT_WIDTH - 3)}…", reason, reason, "✗ bad", "    exit 1"]
        assert text_of(dialog, "#dialog-details Static").splitlines() == [*failed, "✓ good", *["✓ fine"] * 40]
        assert (dialog.heading(), buttons(dialog)) == ("2 of 43 jobs failed", ["Close"])
        await scrolled(table, "#dialog-details")
        # Nothing but the button takes the focus.
        await table.press("tab")
        assert dialog.focused is dialog.query(Button).first()
        await table.back("escape")
        await table.resize(80, 24)
        changes = [Changed(f"image {number}", "a", "b") for number in range(20)]
        await asked(table, relaunch_dialog(app, [ROW], {ROW.handle: changes}), [])
        await scrolled(table, "#dialog-details")


async def scrolled(table, selector):
    """Scroll a part of the dialog by keys."""
    for key, y in (("j", 1), ("down", 2), ("k", 1)):
        await table.press(key)
        # Drawn anew with what is found out meanwhile.
        await table.until(lambda y=y: table.app.screen.query_one(selector).scroll_offset.y == y, f"{y} rows")


def test_what_becomes_of_logs_is_said_for_each_backend():
    able = {"slurm": "They stay.", "local_cwd": "", "kubernetes": "They go with the pods."}
    runner: Any = SimpleNamespace(
        scheduler=lambda name: SimpleNamespace(capabilities=Capabilities(logs_after_cancel=able[name]))
    )
    rows = [replace(ROW, scheduler=name) for name in able]
    assert lost_logs(runner, rows[:1] * 2) == ["They stay."]
    assert lost_logs(runner, rows[1:2]) == []
    assert sorted(lost_logs(runner, rows)) == ["k8s: They go with the pods.", "slurm: They stay."]


async def test_what_else_can_be_done_is_said_of_its_job(scheduler, app):
    acted = []
    scheduler.actions = lambda app_id: []
    scheduler.act = lambda app_id, name, value: acted.append((app_id, name))
    async with jobs_of(app) as table:
        name = table.table.cursor_row.name
        await table.press("A", shows=f"✗ No other actions for {name}", on="said")
        # A name of any letters.
        scheduler.actions = lambda app_id: [JobAction("wake {up}", "Wakes it.")]
        dialog = await table.open(ActionsDialog, "A")
        assert [row.plain for row in dialog.rows()] == ["wake {up} Wakes it."]
        await table.press("enter", shows=f"wake {{up}}: {name} done", on="said")
        assert acted == [(table.at(), "wake {up}")]
        # Of several jobs with those that have it.
        actions = {table.rows()[0]: [], table.rows()[1]: [JobAction("hold", "Holds it.", ends_job=True)]}
        scheduler.actions = lambda app_id: actions.get(app_id, [JobAction("hold", "Holds it.", ends_job=True)])
        await table.press("space", "space", "space")
        dialog = await table.open(ActionsDialog, "A")
        assert [row.plain for row in dialog.rows()] == ["hold      2 of 3: Holds it."]
        asked = await table.dialog(AskDialog, "enter")
        assert asked.heading() == "Hold 2 jobs?"
        await table.press("2", "enter", shows="hold: 2 jobs done", on="said")
        assert sorted(acted[1:]) == sorted((app_id, "hold") for app_id in table.rows()[1:3])


def test_dialog_without_its_buttons_focuses_nothing():
    """A launch may end, and close its dialog, before the dialog is drawn."""
    assert AskDialog("Quit?", [], {"": "Keep"}).first_focus() is None


async def test_dialogs_are_readable_on_forty_by_twelve(app):
    async with jobs_of(app) as table:
        dialog = await table.dialog(AskDialog, "x")
        await table.resize(40, 12)
        await table.shows("Keep running", "y Cancel the job", "esc back", on="drawn")
        seen = table.drawn()
        for _ in range(3):
            await table.press("pageup")
            await table.settled()
            seen += table.drawn()
        for word in " ".join(lines(dialog)).split():
            assert word in seen or word.startswith("local_cwd://"), word
