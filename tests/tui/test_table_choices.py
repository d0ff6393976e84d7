"""Columns, order, filter and view of the table, and how they are kept for the next start."""

import json
import threading
import time
from dataclasses import replace

import pytest
from rich.text import Text
from support.canned import NOW
from support.dashboard import make_app, screen_text, settled, until
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.history.journal import LaunchRecord
from torchx_tui.specs import AppState
from torchx_tui.specs.files import write_private
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.jobs import screen as jobs_screen
from torchx_tui.tui.jobs.columns import ColumnsDialog
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.jobs.table import Sort
from torchx_tui.tui.messages import BackendFailed, JobsChanged
from torchx_tui.tui.rows import JobRow
from torchx_tui.tui.ui import state as ui_state
from torchx_tui.tui.ui.bars import StatusLine
from torchx_tui.tui.ui.state import UiState, UiStateFile
from torchx_tui.tui.watch.make_rows import history_rows


async def filled(pilot, app, rows=1):
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count >= rows, "rows")
    return app.screen


def header(screen):
    return screen.table.render_line(0).text.split()


async def test_columns_are_chosen_ordered_and_kept(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(200, 50)) as pilot:
        screen = await filled(pilot, app)
        assert header(screen) == ["STATE", "NAME", "ON", "REPL", "PROGRESS", "ETA", "METRIC", "↓AGE"]
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, ColumnsDialog))
        assert isinstance(app.screen, ColumnsDialog)
        assert "space show   J K move   d as fits   enter apply   esc back" in screen_text(app)
        listed = [row.plain for row in app.screen.rows()]
        assert listed[0] == "[x] STATE       the job's state"
        assert listed[-1] == "[ ] HANDLE      scheduler://session/app"
        # Hide STATE, put NAME before ON after it, show RAN.
        await pilot.press("space")
        await until(pilot, lambda: "[ ] STATE" in screen_text(app), "that it is hidden")
        await pilot.press("j", "J", *"jjjjjjjj", "space", "enter")
        await until(pilot, lambda: app.screen is screen)
        assert header(screen) == ["ON", "NAME", "REPL", "PROGRESS", "ETA", "METRIC", "↓AGE", "RAN"]
    again = make_app(scheduler, tmp_path)
    async with again.run_test(size=(200, 50)) as pilot:
        screen = await filled(pilot, again)
        assert header(screen) == ["ON", "NAME", "REPL", "PROGRESS", "ETA", "METRIC", "↓AGE", "RAN"]
        await pilot.press("c")
        await until(pilot, lambda: isinstance(again.screen, ColumnsDialog))
        await pilot.press("d")
        await until(pilot, lambda: header(screen)[0] == "STATE")


async def test_columns_that_do_not_fit_are_left_out_at_the_right(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await filled(pilot, app)
        screen.table.choose_columns(["state", "handle", "image", "user", "why"])
        assert header(screen) == ["STATE", "HANDLE", "IMAGE"]
        screen.table.choose_columns(["nonsense"])
        assert header(screen)[:2] == ["STATE", "NAME"]


async def test_what_does_not_fit_its_column_moves_no_other(scheduler, tmp_path):
    scheduler.add("many-zq2wmx7v5hkdfd", AppState.RUNNING, 70, replicas=128)
    scheduler.add("long-zq2wmx7v5hkdfd", AppState.UNSUBMITTED, 80)
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app, rows=24)
        lines = [screen.table.render_line(y).text for y in (0, 2, 3)]
        assert lines == [
            "    STATE        NAME                       ON       REPL  ↓AGE",
            "    ● Running    many-zq2wmx7v5hkdfd        local   128/…    1m",
            "    · Unsubmitt  long-zq2wmx7v5hkdfd        local     0/1    1m",
        ]


async def test_what_changes_is_drawn(scheduler, tmp_path, monkeypatch):
    # How far jobs are is drawn together with what has changed.
    monkeypatch.setattr(jobs_screen, "PROGRESS_INTERVAL_S", 3600.0)
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(200, 50)) as pilot:
        table = (await filled(pilot, app)).table

        async def drawn(change):
            """Change something; all lines of the screen have to be as they would be drawn anew."""
            await settled(pilot)
            before = dict(table._strips)
            change()
            await settled(pilot)
            assert table._strips != before
            lines = range(table.size.height)
            assert [y for y in lines if table._rendered(y) != table._strips[y]] == []

        rows = table.rows
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
            await drawn(change)
        await pilot.resize_terminal(120, 40)
        await settled(pilot)
        assert [y for y in range(table.size.height) if table._rendered(y) != table._strips[y]] == []


async def test_every_column_draws_and_sorts_every_job(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(200, 50)) as pilot:
        screen = await filled(pilot, app)
        table = screen.table
        table.choose_columns(["state", "duration", "user", "started", "image", "handle"])
        text = "\n".join(table.render_line(y).text for y in range(1, 24))
        assert "alice" in text
        assert "2026-11-2" in text
        table.choose_columns(["state", "handle"])
        assert "local_cwd://torchx/eval-mmlu" in "\n".join(table.render_line(y).text for y in range(1, 24))
        handles = {row.handle for row in table.rows}
        for column, _ in table._columns:
            table.sort = Sort(column.key)
            assert {row.handle for row in table.rows} == handles
        table.sort = Sort("duration")
        seconds = [row.duration_seconds for row in table.rows if row.is_final and row.duration_seconds is not None]
        assert seconds == sorted(seconds, reverse=True)


async def test_a_page_ends_with_the_row_that_the_next_begins_with(app):
    async with app.run_test(size=(120, 13)) as pilot:
        table = (await filled(pilot, app)).table
        order = [row.handle for row in table.rows]
        rows = table.size.height - 1
        assert 2 < rows < len(order) / 2
        table.move_to(order[0])
        await pilot.press("pagedown")
        assert table.cursor_row.handle == order[rows]
        await pilot.press("ctrl+u")
        assert table.cursor_row.handle == order[rows - round(rows / 2)]
        table.move_to(order[rows + 1])
        await pilot.press("pageup")
        assert table.cursor_row.handle == order[1]


@pytest.mark.parametrize(("at", "then"), [(0, 0), (3, 3), (-1, -1)], ids=["first", "among others", "last"])
async def test_where_the_cursors_job_goes_the_next_takes_its_place(app, at, then):
    async with app.run_test(size=(120, 40)) as pilot:
        table = (await filled(pilot, app)).table
        # A job that was chosen, not just the newest one.
        await pilot.press("j", "k")
        rows = table.rows
        table.move_to(rows[at].handle)
        table.change_rows([], {rows[at].handle: None})
        left = [row for row in rows if row is not rows[at]]
        assert table.cursor_row == left[then]


async def test_order_and_filter_are_kept(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        screen.table.sort = Sort("name", True)
        await pilot.press("slash", *"state:failed,running", "enter", "u")
        await until(pilot, lambda: screen.view.user)
    again = make_app(scheduler, tmp_path)
    async with again.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, again, rows=0)
        assert screen.table.sort == Sort("name", True)
        assert (screen.view.filter, bool(screen.view.user)) == ("state:failed,running", True)
        assert screen.table_pane.filter.display
        await pilot.press("u")
        await until(pilot, lambda: screen.table.row_count == 4, "everybody's jobs")
        await pilot.press("escape")
        await until(pilot, lambda: screen.table.row_count == 22, "all jobs")


async def test_only_mine_and_only_torchx(scheduler, tmp_path, monkeypatch):
    monkeypatch.setattr("torchx_tui.tui.jobs.screen.user_name", lambda: "bob")
    scheduler.apps["eval-mmlu-h3v9q1zj6pcx0d"].user = "bob"
    scheduler.add("stranger", AppState.RUNNING, 5)
    scheduler.apps["stranger"].foreign = True
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        assert screen.table.row_count == 22
        await pilot.press("T")
        await until(pilot, lambda: screen.table.row_count == 23)
        await pilot.press("u")
        await until(pilot, lambda: [row.user for row in screen.table.rows] == ["bob"])
        assert "only bob's, not only TorchX's" in screen.table_pane.rule.info.plain


async def test_a_filter_that_is_none_is_said_and_changes_nothing(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        await pilot.press("slash", *"name~(")
        await until(pilot, lambda: "not a regular expression" in app.status.text().plain)
        assert screen.table.row_count == 22


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1, "columns": 7, "filter": 3}', '{"sort_column": "x"}'])
def test_a_damaged_file_is_as_none(tmp_path, text):
    path = tmp_path / "screen.json"
    path.write_text(text)
    assert UiStateFile(path).state == UiState()


def test_a_newer_file_is_left_alone(tmp_path):
    path = tmp_path / "screen.json"
    path.write_text(json.dumps({"format": 99, "filter": "x", "sparkles": True}))
    before = path.read_bytes()
    kept = UiStateFile(path)
    assert kept.state.filter == "x"
    kept.change(filter="y")
    kept.flush()
    assert path.read_bytes() == before


def test_what_changes_is_written_without_being_asked(tmp_path):
    path = tmp_path / "folder" / "screen.json"
    kept = UiStateFile(path)
    kept.change(filter="abc")
    deadline = time.monotonic() + PATIENCE
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert UiStateFile(path).state == UiState(filter="abc")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("flushed", [False, True])
def test_a_change_while_an_earlier_change_is_written_is_written_as_well(tmp_path, monkeypatch, flushed):
    path = tmp_path / "screen.json"
    writing, go_on = threading.Event(), threading.Event()

    def write_slowly(*arguments):
        writing.set()
        go_on.wait(PATIENCE)
        write_private(*arguments)

    monkeypatch.setattr(ui_state, "write_private", write_slowly)
    kept = UiStateFile(path)
    kept.change(filter="first")
    assert writing.wait(PATIENCE)
    kept.change(filter="second")
    go_on.set()
    if flushed:
        kept.flush()
    wait_until(lambda: path.exists() and UiStateFile(path).state.filter == "second", "the second change")


def test_a_launch_that_another_program_wrote_badly_costs_itself_alone():
    good = LaunchRecord("1", 1.0, "local_cwd", "torchx", {"name": "a", "roles": []}, app_id="good-x")
    odd = LaunchRecord("2", 2.0, "local_cwd", "torchx", {"name": "a", "roles": 3}, app_id="odd-x")
    typed = LaunchRecord("3", 3.0, "local_cwd", "torchx", {"name": "a"}, app_id="typed-x", arguments={"lr": 1})
    rows = history_rows([odd, typed, good], frozenset())
    assert [(row.app_id, row.arguments) for row in rows] == [("typed-x", "--lr 1"), ("good-x", "")]


@pytest.mark.parametrize(("width", "shown"), [(160, "local  3 running"), (159, "4 running")])
async def test_counts_of_each_backend_where_there_is_room(scheduler, tmp_path, width, shown):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(width, 50)) as pilot:
        screen = await filled(pilot, app)
        app.jobs.set_schedulers(["local_cwd", "local_docker"])
        row = JobRow("local_docker://torchx/a-x", "local_docker", "a-x", AppState.RUNNING, submitted_at=1.0)
        app.on_jobs_changed(JobsChanged("local_docker", {row.handle: row}, set()))
        text = screen.counts().plain
        assert text.startswith(shown)
        # They are drawn at once.
        assert screen.query_one(StatusLine).right.plain == text
        assert text.endswith("     docker  1 running" if width == 160 else "failed")
        await pilot.press("2")
        assert screen.counts().plain == "1 running"


async def test_a_backend_without_rows_says_what_it_waits_for(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        app.jobs.set_schedulers(["local_cwd", "local_docker", "kubernetes"])
        screen.jobs_updated()
        assert screen.table.placeholder.plain == "Asking docker, kubernetes"
        await pilot.press("2")
        assert screen.table.placeholder.plain == "Asking docker"
        app.on_backend_failed(BackendFailed("local_docker", "no \x1b[31mengine", 5.0, 9.0))
        assert screen.table.placeholder.plain == "docker does not answer   no engine   R asks now"
        app.on_jobs_changed(JobsChanged("local_docker", {}, set()))
        assert screen.table.placeholder.plain == "No jobs here"
        app.jobs.set_schedulers([])
        screen.jobs_updated()
        assert screen.table.placeholder.plain == "Asking the backends"


async def test_the_card_tells_how_long_a_job_runs_by_now(app):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        screen.table.move_to("local_cwd://torchx/vit-l16-ft-p0d8s6k2c9xq2v")
        await until(pilot, lambda: "  52m, since" in screen.card.body.facts[0].plain, "the job")
        app.now = lambda: NOW + 3600
        # Nothing of the job itself has changed.
        app.on_jobs_changed(JobsChanged("local_cwd", {}, set()))
        assert "  1h, since" in screen.card.body.facts[0].plain


async def test_the_job_at_the_cursor_is_asked_about_anew_only_where_it_is_another(app, monkeypatch):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        await settled(pilot)
        watched: list[str | None] = []
        monkeypatch.setattr(app.feed, "watch", watched.append)
        other = replace(screen.table.rows[3], why="held")
        app.on_jobs_changed(JobsChanged("local_cwd", {other.handle: other}, set()))
        await pilot.pause()
        assert watched == []
        screen.choose_view(replace(screen.view, filter="nothing"))
        await until(pilot, lambda: watched == [None], "that no job is asked about")


async def test_escape_takes_the_message_away_after_everything_else(app):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        app.status.say("copied")
        await pilot.press("space", "escape")
        assert (screen.table.marks, app.status.text().plain) == (set(), "✓ copied")
        await pilot.press("escape")
        assert not app.status.text()


async def test_a_click_chooses_a_row_and_one_more_opens_it(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        rows = screen.table.rows
        for y, chosen in ((3, rows[2]), (0, rows[2]), (24, rows[2]), (23, rows[2]), (22, rows[21])):
            assert await pilot.click(screen.table, offset=(10, y))
            assert app.screen is screen
            assert screen.table.cursor_row is chosen
        assert await pilot.click(screen.table, offset=(10, 22))
        await until(pilot, lambda: isinstance(app.screen, JobScreen), "the job")
        assert isinstance(app.screen, JobScreen)
        assert app.screen.row is rows[21]


async def test_one_backend_shows_how_far_its_jobs_are(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    usual, one = ["STATE", "NAME", "ON", "REPL", "↓AGE"], ["STATE", "NAME", "PROGRESS", "↓AGE"]
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        assert header(screen) == usual
        await pilot.press("1")
        assert header(screen) == one
        await pilot.resize_terminal(160, 45)
        await until(pilot, lambda: header(screen)[:5] == [*usual[:4], "PROGRESS"], "the columns of a wide screen")
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: header(screen) == one, "those of a narrow one")
        await pilot.press("0")
        assert header(screen) == usual
