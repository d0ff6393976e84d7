"""What the dialogs about jobs say, and what they answer with."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.canned import NOW
from support.dashboard import until
from textual.pilot import Pilot
from textual.widgets import Button, Static

from torchx_tui.backends.history.provenance import Changed
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.types import Capabilities, Finding, JobAction
from torchx_tui.specs import AppState
from torchx_tui.tui.format import clock
from torchx_tui.tui.job.actions import lost_logs
from torchx_tui.tui.job.dialogs import CancelDialog, ConfirmDialog, DeleteDialog, QuitDialog, ResultsDialog
from torchx_tui.tui.job.menu import ActionsDialog
from torchx_tui.tui.job.relaunch import RelaunchDialog
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.rows import JobRow
from torchx_tui.tui.ui.dialog import TEXT_WIDTH, Dialog

LONG = "x" * 100
ROW = JobRow(
    "local_cwd://torchx/train-zq2wmx7v5hkdfd", "local_cwd", "train-zq2wmx7v5hkdfd", AppState.RUNNING, running=1,
    wanted=2, submitted_at=NOW - 60, started_at=NOW - 50,
)  # fmt: skip


async def asked(pilot: Pilot[Any], dialog: Dialog[Any], answers: list[Any]) -> list[str]:
    """Open a dialog; return its lines."""
    app: Any = pilot.app
    await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the table")
    app.push_screen(dialog, answers.append)
    await until(pilot, lambda: app.screen is dialog and dialog.query(Button), "the dialog")
    assert all(button.region.height == 1 for button in dialog.query(Button))
    return [line.plain.rstrip() for line in dialog.lines()]


def buttons(dialog: Dialog[Any]) -> list[str]:
    """Return the buttons, and what stands beside them."""
    return [str(button.label) for button in dialog.query(Button)] + [
        str(words.render()) for words in dialog.query("#dialog-buttons > Static").results(Static)
    ]


async def test_quitting_asks_what_becomes_of_the_jobs(app):
    handles = [f"local_cwd://torchx/train-{number}" for number in range(10)]
    names = [handle.rpartition("/")[2] for handle in handles]
    warning = Finding(
        "warning", "jobs end with the session", "`loginctl enable-linger`, once for each machine, as root"
    )
    answers: list[str | None] = []
    ways = [["y"], ["k"], ["enter"], ["right", "enter"], ["escape"]]
    async with app.run_test(size=(120, 40)) as pilot:
        for count, way in zip((10, 8, 1, 1, 1), ways, strict=True):
            dialog = QuitDialog(handles[:count], [warning] if count == 10 else [])
            lines = await asked(pilot, dialog, answers)
            assert lines[0] == f"{count} job{'s' * (count > 1)} launched here, still running on this machine:"
            listed = [*names[: min(count, 8)], *(["and 2 more"] if count == 10 else [])]
            told = ["", *listed, "", "Kept jobs continue without the terminal and are found again."]
            helps = ["What helps: `loginctl enable-linger`, once for each machine,", "as root"]
            warned = ["But jobs end with the session.", *helps] if count == 10 else []
            assert lines[1:] == [*told, *warned, ""]
            assert buttons(dialog) == ["Keep running", "y Cancel them", "esc back"]
            await pilot.press(*way)
            await until(pilot, lambda: isinstance(app.screen, JobsScreen), "an answer")
    assert answers == ["cancel", "keep", "keep", "cancel", None]


@pytest.mark.parametrize(
    ("kind", "verb", "keep", "confirm", "last"),
    [
        (
            CancelDialog,
            "Cancel",
            "Keep running",
            "y Cancel the job",
            "The job stays listed as Cancelled, logs are kept.",
        ),
        (DeleteDialog, "Delete", "Keep", "y Delete", "Logs and history of it are removed. This cannot be undone."),
    ],
)
async def test_jobs_are_shown_before_anything_ends(app, kind, verb, keep, confirm, last):
    answers: list[bool | None] = []
    async with app.run_test(size=(120, 40)) as pilot:
        dialog: ConfirmDialog = kind([replace(ROW, app_id=LONG)])
        await asked(pilot, dialog, answers)
        await until(pilot, lambda: last in [line.plain for line in dialog.lines()], "what becomes of the logs")
        lines = [line.plain for line in dialog.lines()]
        since = f"since {clock(NOW - 50, NOW)}"
        facts = [f"state      ● Running  1m, {since}", "where      local", "replicas   1 of 2 running", ""]
        assert lines[:6] == ["x" * (TEXT_WIDTH - 1) + "…", "", *facts]
        assert lines[-3:] == [last, f"$ torchx-tui {verb.lower()} {ROW.handle}", ""]
        assert (dialog.heading(), buttons(dialog)) == (f"{verb} this job?", [keep, confirm, "esc back"])
        # Both buttons answer, and the key does.
        for way in (["enter"], ["right", "enter"], ["y"], ["escape"]):
            await pilot.press(*way)
            await until(pilot, lambda: isinstance(app.screen, JobsScreen), "an answer")
            await asked(pilot, kind([ROW]), answers)
        assert answers == [False, True, True, None]
        await pilot.press("escape")
        dialog = kind([ROW, replace(ROW, app_id=LONG, state=AppState.FAILED), *[ROW] * 8])
        lines = await asked(pilot, dialog, answers)
        assert lines[:2] == [f"● Running     {ROW.name}", f"✗ Failed      {'x' * (TEXT_WIDTH - 15)}…"]
        assert lines[7:10] == [f"● Running     {ROW.name}", "and 2 more", ""]
        assert dialog.heading() == f"{verb} 10 jobs?"


@pytest.mark.parametrize(
    ("row", "state", "replicas"),
    [
        (replace(ROW, state=AppState.SUCCEEDED, running=2), "✓ Succeeded  20s, ended", "2 of 2 succeeded"),
        (replace(ROW, state=AppState.FAILED), "✗ Failed  20s, ended", "1 of 2 succeeded"),
        (replace(ROW, state=AppState.UNKNOWN, running=0), "? Unknown  20s, ended", "2"),
        (replace(ROW, state=AppState.SUCCEEDED, running=0, history=True), "✓ Succeeded  20s, ended", "2"),
    ],
)
async def test_delete_dialog_says_how_a_job_ended(app, row, state, replicas):
    async with app.run_test(size=(120, 40)) as pilot:
        lines = await asked(pilot, DeleteDialog([replace(row, finished_at=NOW - 30)]), [])
        shown = [f"state      {state} {clock(NOW - 30, NOW)}", "where      local", f"replicas   {replicas}"]
        assert lines[2:5] == shown


def test_what_becomes_of_logs_is_said_for_each_backend():
    able = {"slurm": "They stay.", "local_cwd": "", "kubernetes": "They go with the pods."}
    runner = cast("Runner", SimpleNamespace(capabilities=lambda name: Capabilities(logs_after_cancel=able[name])))
    rows = [replace(ROW, scheduler=name) for name in able]
    assert lost_logs(runner, rows[:1] * 2) == ["They stay."]
    assert lost_logs(runner, rows[1:2]) == []
    assert sorted(lost_logs(runner, rows)) == ["k8s: They go with the pods.", "slurm: They stay."]


async def test_what_else_can_be_done_is_said_of_its_job(scheduler, app):
    acted: list[tuple[str, str]] = []
    scheduler.capabilities = replace(scheduler.capabilities, actions=True)
    scheduler.actions = lambda app_id: []
    scheduler.act = lambda app_id, name, value: acted.append((app_id, name))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count, "rows")
        jobs = app.screen
        await until(pilot, lambda: jobs.can("menu"), "the key")
        name = jobs.table.cursor_row.name
        await pilot.press("A")
        await until(pilot, lambda: app.status.text().plain == f"✗ {name} has ended: no other action is possible")
        # A name of any letters.
        scheduler.actions = lambda app_id: [JobAction("wake {up}", "Wakes it.")]
        await pilot.press("A")
        await until(pilot, lambda: isinstance(app.screen, ActionsDialog), "the list")
        assert [row.plain for row in app.screen.rows()] == ["wake {up} Wakes it."]
        await pilot.press("enter")
        await until(pilot, lambda: app.status.text().plain.endswith(f"wake {{up}}: {name} done"), "the end")
        assert acted == [(jobs.table.cursor_row.app_id, "wake {up}")]


async def test_what_has_changed_is_scrolled(app):
    async with app.run_test(size=(80, 24)) as pilot:
        changes = [Changed(f"image {number}", "a", "b") for number in range(20)]
        dialog = RelaunchDialog([ROW], {ROW.handle: changes})
        await asked(pilot, dialog, [])
        for key, y in (("j", 1), ("down", 2), ("k", 1)):
            await pilot.press(key)
            changed = dialog.query_one("#relaunch-changes")
            await until(pilot, lambda y=y, changed=changed: changed.scroll_offset.y == y, f"{y} rows")


async def test_results_stand_with_those_that_failed_first(app):
    async with app.run_test(size=(120, 40)) as pilot:
        results = [("good", ""), (LONG, "why " * 60), ("bad", "exit 1"), *[("fine", "")] * 40]
        dialog = ResultsDialog(results)
        await asked(pilot, dialog, [])
        reason = f"    {'why ' * 14}".rstrip()
        failed = [f"✗ {'x' * (TEXT_WIDTH - 3)}…", reason, reason, "✗ bad", "    exit 1"]
        assert [line.plain for line in dialog._results()] == [*failed, "✓ good", *["✓ fine"] * 40, ""]
        assert (dialog.heading(), buttons(dialog)) == ("2 of 43 jobs failed", ["Close"])
        scrolled = dialog.query_one("#dialog-results")
        await pilot.press("j", "j")
        await until(pilot, lambda: scrolled.scroll_offset.y == 2, "two rows")
        await pilot.press("k")
        await until(pilot, lambda: scrolled.scroll_offset.y == 1, "one row")
        # Nothing but the button takes the focus.
        await pilot.press("tab")
        assert dialog.focused is dialog.query(Button).first()


def test_a_dialog_without_its_buttons_focuses_nothing():
    """A launch may end, and close its dialog, before the dialog is drawn."""
    assert RelaunchDialog([ROW], {}).first_focus() is None
