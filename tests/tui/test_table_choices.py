"""Columns, order, filter and view of the table, and how they are kept for the next start."""

import json
from dataclasses import replace
from itertools import product

import pytest
from rich.text import Text
from support.canned import NOW
from support.dashboard import make_app
from support.screens import jobs_of
from support.waiting import PATIENCE, wait_until

from torchx_tui.specs.status import AppState
from torchx_tui.tui import ui_state
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.jobs import screen as jobs_screen
from torchx_tui.tui.jobs.columns import ColumnsDialog
from torchx_tui.tui.jobs.table import Sort
from torchx_tui.tui.messages import BackendFailed, JobsChanged, ProgressRead
from torchx_tui.tui.rows import RowProgress
from torchx_tui.tui.ui.job_cells import COLUMNS_BY_KEY, column_widths
from torchx_tui.tui.ui_state import UiState, UiStateFile
from torchx_tui.tui.watch.signals import NO_CHANGE

USUAL = ["STATE", "NAME", "ON", "REPL", "PROGRESS", "ETA", "METRIC", "↓AGE"]


async def test_narrow_table_keeps_names(scheduler, tmp_path):
    scheduler.add("a-long-name-x", AppState.RUNNING, 1)
    async with jobs_of(make_app(scheduler, tmp_path), (40, 20)) as table:
        assert table.header() == ["STATE", "NAME", "↓AGE"]
        await table.shows("a-long-name-x", on="drawn")


async def test_columns_are_chosen_ordered_and_kept(scheduler, tmp_path):
    chosen = ["ON", "NAME", "REPL", "PROGRESS", "ETA", "METRIC", "↓AGE", "RAN"]
    async with jobs_of(make_app(scheduler, tmp_path), (200, 50)) as table:
        assert table.header() == USUAL
        dialog = await table.open(ColumnsDialog, "c")
        await table.shows("space show   J K move   d fit width   enter apply   esc back", on="drawn")
        listed = [row.plain for row in dialog.rows()]
        assert listed[0] == "[x] STATE       the job's state"
        assert listed[-1] == "[ ] HANDLE      scheduler://session/app"
        # Hide STATE, put NAME before ON after it, show RAN.
        await table.press("space", shows="[ ] STATE", on="drawn")
        await table.back("j", "J", *"jjjjjjjjjj", "space", "enter")
        assert table.header() == chosen
    async with jobs_of(make_app(scheduler, tmp_path), (200, 50)) as table:
        assert table.header() == chosen
        await table.open(ColumnsDialog, "c")
        await table.press("d", until=lambda: table.header() == USUAL, what="the usual columns")


async def test_columns_that_do_not_fit_are_left_out(app):
    async with jobs_of(app, (80, 24)) as table:
        table.table.choose_columns(["state", "handle", "image", "user", "why"])
        assert table.header() == ["STATE", "HANDLE", "IMAGE"]
        await table.press("S", shows="no room for USER, WHY", on="title")
        table.table.choose_columns(["nonsense"])
        assert table.header()[:2] == ["STATE", "NAME"]


async def test_state_is_never_cut_for_other_columns():
    for width, columns in product(range(40, 130), [(), ("name", "state", "handle", "image"), ("state", "why", "eta")]):
        for one_backend in (False, True):
            widths = {
                column.key: cells for column, cells in column_widths(width, width, columns, one_backend=one_backend)
            }
            assert widths.get("state", 11) == 11


async def test_jobs_are_sorted_by_their_metric(app):
    app.ui_state.change(sort_column="metric")
    async with jobs_of(app, (200, 50), rows=22) as table:
        first, second, third = (row.handle for row in table.table.rows[:3])
        progress = {second: "1.5", third: "1,200.0", first: "nan"}
        app.on_progress_read(
            ProgressRead({job: RowProgress(1, None, None, "acc", value) for job, value in progress.items()})
        )
        assert [row.handle for row in table.table.rows[:2]] == [second, third]
        app.on_progress_read(ProgressRead({third: RowProgress(1, None, None, "acc", "0.5")}))
        assert [row.handle for row in table.table.rows[:2]] == [third, second]


async def test_click_on_a_header_sorts_and_reverses(app):
    async with jobs_of(app, rows=22) as table:
        for sort in (Sort("name"), Sort("name", True)):
            await table.pilot.click(table.table, offset=(table.lines(0)[0].index("NAME"), 0))
            assert table.table.sort == sort


async def test_wide_value_moves_no_other_column(app, scheduler):
    scheduler.add("many-zq2wmx7v5hkdfd", AppState.RUNNING, 70, replicas=128)
    scheduler.add("long-zq2wmx7v5hkdfd", AppState.UNSUBMITTED, 80)
    async with jobs_of(app, rows=24) as table:
        assert table.lines(0, 2, 3) == [
            "    STATE        NAME                       ON       REPL  ↓AGE",
            "    ● Running    many-zq2wmx7v5hkdfd        local   128/…    1m",
            "    · Unsubmitt  long-zq2wmx7v5hkdfd        local     0/1    1m",
        ]


async def test_every_change_is_drawn(app, monkeypatch):
    # How far jobs are is drawn together with what has changed.
    monkeypatch.setattr(jobs_screen, "PROGRESS_INTERVAL_S", 3600.0)
    async with jobs_of(app, (200, 50), rows=22) as driver:
        table, rows = driver.table, driver.table.rows

        def differing():
            """Return the lines that are drawn otherwise than they would be anew; what is drawn has no public name."""
            return [y for y in range(table.size.height) if table._rendered(y) != table._strips[y]]

        for change in (
            lambda: table.action_move(1),
            lambda: table.action_edge(1),
            # The cursor does not move on.
            table.action_mark,
            table.action_mark_all,
            table.clear_marks,
            table.action_sort,
            table.action_reverse,
            lambda: table.choose_columns(["state", "name"]),
            lambda: table.set_dimmed(frozenset({"local_cwd"})),
            lambda: table.set_rows([rows[1], *rows[3:]]),
            lambda: table.set_rows([rows[1], *rows[2:-1]]),
            lambda: table.change_rows([replace(rows[1], state=AppState.UNKNOWN)], {}),
            lambda: table.change_rows([], {rows[1].handle: None}),
            lambda: app.screen.set_focus(None),
            lambda: app.screen.set_focus(table),
            lambda: table.set_rows([]),
            lambda: setattr(table, "placeholder", Text("none")),
        ):
            await driver.settled()
            before = dict(table._strips)
            change()
            await driver.settled()
            assert table._strips != before
            assert differing() == []
        await driver.resize(120, 40)
        await driver.settled()
        assert differing() == []


async def test_every_column_draws_and_sorts_every_job(app):
    async with jobs_of(app, (200, 50), rows=22) as driver:
        table = driver.table
        table.choose_columns(["state", "duration", "user", "started", "image", "handle"])
        text = "\n".join(driver.lines())
        assert "alice" in text
        assert "2026-11-2" in text
        table.choose_columns(["state", "handle"])
        assert "local_cwd://torchx/eval-mmlu" in "\n".join(driver.lines())
        jobs = sorted(driver.rows())
        for column in COLUMNS_BY_KEY:
            table.sort = Sort(column)
            assert sorted(driver.rows()) == jobs
        table.sort = Sort("duration")
        seconds = [row.duration_seconds for row in table.rows if row.is_final and row.duration_seconds is not None]
        assert seconds == sorted(seconds, reverse=True)


async def test_page_begins_with_the_last_row_of_the_one_before(app):
    async with jobs_of(app, (120, 13), rows=22) as table:
        order, rows = table.rows(), table.table.size.height - 1
        assert 2 < rows < len(order) / 2
        for start, key, then in (
            (0, "pagedown", rows),
            (rows, "ctrl+u", rows - round(rows / 2)),
            (rows + 1, "pageup", 1),
        ):
            table.to(order[start])
            await table.press(key)
            assert table.at() == order[then]


@pytest.mark.parametrize(("at", "then"), [(0, 0), (3, 3), (-1, -1)], ids=["first", "among others", "last"])
async def test_next_job_gets_the_cursor_of_one_that_goes(app, at, then):
    async with jobs_of(app, rows=22) as table:
        # A job that was chosen, not just the newest one.
        await table.press("j", "k")
        jobs = table.rows()
        gone = jobs.pop(at)
        table.to(gone)
        table.table.change_rows([], {f"local_cwd://torchx/{gone}": None})
        assert table.at() == jobs[then]


async def test_order_and_filter_are_kept(scheduler, tmp_path):
    async with jobs_of(make_app(scheduler, tmp_path)) as table:
        table.table.sort = Sort("name", True)
        await table.press(
            "slash", *"state:failed,running", "enter", "u", until=lambda: table.screen.view.user, what="the view"
        )
    async with jobs_of(make_app(scheduler, tmp_path), rows=0) as table:
        assert table.table.sort == Sort("name", True)
        view = table.screen.view
        assert (view.filter, bool(view.user)) == ("state:failed,running", True)
        assert table.screen.table_pane.filter.display
        await table.press("u")
        await table.has(4)
        await table.press("escape")
        await table.has(22)


async def test_only_mine_and_only_torchx(app, scheduler, monkeypatch):
    monkeypatch.setattr("torchx_tui.tui.jobs.screen.user_name", lambda: "bob")
    scheduler.apps["eval-mmlu-h3v9q1zj6pcx0d"].user = "bob"
    scheduler.add("stranger", AppState.RUNNING, 5)
    scheduler.apps["stranger"].foreign = True
    async with jobs_of(app) as table:
        await table.has(22)
        await table.press("T")
        await table.has(23)
        await table.press("u", until=lambda: [row.user for row in table.table.rows] == ["bob"], what="bob's")
        assert "only bob's, not only TorchX's" in table.title()


async def test_wrong_filter_changes_nothing(app):
    async with jobs_of(app, rows=22) as table:
        await table.press("slash", *"name~(", shows="not a regular expression", on="said")
        assert len(table.rows()) == 22


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1, "columns": 7, "filter": 3}', '{"sort_column": "x"}'])
def test_damaged_file_is_ignored(tmp_path, text):
    path = tmp_path / "screen.json"
    path.write_text(text)
    assert UiStateFile(path).state == UiState()


def test_newer_file_is_left_alone(tmp_path):
    path = tmp_path / "screen.json"
    path.write_text(json.dumps({"format": 99, "filter": "x", "sparkles": True}))
    before = path.read_bytes()
    kept = UiStateFile(path)
    assert kept.state.filter == "x"
    kept.change(filter="y")
    kept.flush()
    assert path.read_bytes() == before


def test_change_is_written(tmp_path):
    path = tmp_path / "folder" / "screen.json"
    kept = UiStateFile(path)
    kept.change(filter="abc")
    wait_until(path.exists, "the file")
    assert UiStateFile(path).state == UiState(filter="abc")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("flushed", [False, True])
def test_change_during_a_write_is_written_as_well(tmp_path, hold, flushed):
    path = tmp_path / "screen.json"
    held = hold(ui_state, "write_private")
    kept = UiStateFile(path)
    kept.change(filter="first")
    assert held.begun.wait(PATIENCE)
    kept.change(filter="second")
    held.go.set()
    if flushed:
        kept.flush()
    wait_until(lambda: path.exists() and UiStateFile(path).state.filter == "second", "the second change")


async def test_backend_without_rows_says_what_it_waits_for(app):
    async with jobs_of(app) as table:
        app.jobs.set_schedulers(["local_cwd", "local_docker", "kubernetes"])
        app.signals.rows.publish(NO_CHANGE)
        assert table.placeholder() == "Asking docker, kubernetes"
        await table.press("2")
        assert table.placeholder() == "Asking docker"
        app.on_backend_failed(BackendFailed("local_docker", "no \x1b[31mengine", 5.0, 9.0))
        assert table.placeholder() == "docker is not set up here   no engine   R asks now"
        app.on_jobs_changed(JobsChanged("local_docker", {}, set()))
        assert table.placeholder() == "No jobs here"
        app.jobs.set_schedulers([])
        app.signals.rows.publish(NO_CHANGE)
        assert table.placeholder() == "Asking the backends"


async def test_card_has_the_time_of_now(app):
    async with jobs_of(app) as table:
        table.to("vit-l16-ft-p0d8s6k2c9xq2v")
        await table.shows("  52m, since", on="facts")
        app.now = lambda: NOW + 3600
        # Nothing of the job itself has changed.
        app.on_jobs_changed(JobsChanged("local_cwd", {}, set()))
        assert "  1h, since" in table.facts()


async def test_job_at_the_cursor_is_described_once(app, monkeypatch):
    async with jobs_of(app) as table:
        await table.settled()
        watched = []
        monkeypatch.setattr(app.feed, "watch", watched.append)
        other = replace(table.table.rows[3], why="held")
        app.on_jobs_changed(JobsChanged("local_cwd", {other.handle: other}, set()))
        await table.settled()
        assert watched == []
        table.screen.choose_view(replace(table.screen.view, filter="nothing"))
        await table.until(lambda: watched == [None], "that no job is described")


async def test_escape_takes_marks_away_then_the_message(app):
    async with jobs_of(app) as table:
        app.status.say("copied")
        await table.press("space", "escape")
        assert (table.table.marks, table.said()) == (set(), "✓ copied")
        await table.press("escape")
        assert not table.said()


async def test_click_chooses_a_row_and_one_more_opens_it(app):
    async with jobs_of(app, rows=22) as table:
        jobs = table.rows()
        for y, chosen in ((3, 2), (24, 2), (23, 2), (22, 21)):
            assert await table.pilot.click(table.table, offset=(10, y))
            assert app.screen is table.screen
            assert table.at() == jobs[chosen]
        assert await table.pilot.click(table.table, offset=(10, 22))
        await table.until(lambda: isinstance(app.screen, JobScreen), "the job")
        assert app.screen.row.app_id == jobs[21]


async def test_one_backend_shows_how_far_its_jobs_are(app):
    all_of_them, one = ["STATE", "NAME", "ON", "REPL", "↓AGE"], ["STATE", "NAME", "PROGRESS", "↓AGE"]
    async with jobs_of(app) as table:
        assert table.header() == all_of_them
        await table.press("1")
        assert table.header() == one
        for size, columns in (((160, 45), USUAL[:5]), ((80, 24), one)):
            await table.resize(*size)
            await table.until(lambda columns=columns: table.header()[: len(columns)] == columns, f"{size}")
        await table.press("0")
        assert table.header() == [*all_of_them[:4], "PROGRESS", all_of_them[4]]


@pytest.mark.parametrize("size", [(10, 3), (8, 3), (1, 1)])
async def test_columns_dialog_survives_any_size(size, app):
    async with jobs_of(app) as table:
        dialog = await table.open(ColumnsDialog, "c")
        await table.resize(*size)
        await table.settled()
        await table.resize(80, 24)
        await table.shows("[x] STATE", on="drawn")
        assert app.screen is dialog
