"""The Jobs screen: what it shows, and what its keys do."""

import threading
from dataclasses import replace

import pytest
from support.canned import CannedScheduler
from support.dashboard import make_app, screen_text, until
from support.waiting import PATIENCE
from textual.widgets import Button, Input, Static

from torchx_tui.backends.types import BY_TORCHX
from torchx_tui.specs import AppState, SchedulerError
from torchx_tui.tui.job.dialogs import CancelDialog, DeleteDialog, ResultsDialog
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.jobs.row_order import RowOrder
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.logs.screen import LogsScreen
from torchx_tui.tui.rows import JobRow
from torchx_tui.tui.ui.bars import KeyBar, StatusLine, TopBar
from torchx_tui.tui.ui.keys_screen import KeysScreen, bindings_of


async def filled(pilot, app):
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count > 0, "rows")
    return app.screen


async def test_newest_first_and_the_cursor_stays_with_its_job(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        newest = [row.app_id for row in screen.table.rows][:2]
        assert newest == ["qwen2-7b-dpo-d2t5m0xk8wqhzn", "eval-mmlu-h3v9q1zj6pcx0d"]
        await pilot.press("j", "j", "j")
        handle = screen.table.cursor_row.handle
        scheduler.add("brand-new-zq2wmx7v5hkdfx", AppState.SUBMITTED, 1)
        await pilot.press("R")
        await until(pilot, lambda: screen.table.row_count == 23, "the new row")
        assert screen.table.cursor_row.handle == handle
        assert screen.table.rows[0].app_id == "brand-new-zq2wmx7v5hkdfx"


async def test_the_cursor_is_on_the_newest_job_until_it_is_moved(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        assert screen.table.cursor_row.app_id == "qwen2-7b-dpo-d2t5m0xk8wqhzn"
        scheduler.add("newer-zq2wmx7v5hkdfx", AppState.RUNNING, 2)
        await pilot.press("R")
        await until(pilot, lambda: screen.table.cursor_row.app_id == "newer-zq2wmx7v5hkdfx", "the newest job")
        await pilot.press("j", "k")
        scheduler.add("newest-zq2wmx7v5hkdfx", AppState.RUNNING, 1)
        await pilot.press("R")
        await until(pilot, lambda: screen.table.rows[0].app_id == "newest-zq2wmx7v5hkdfx", "the new row")
        assert screen.table.cursor_row.app_id == "newer-zq2wmx7v5hkdfx"


async def test_the_cursor_stays_on_the_job_whose_log_is_read(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        await until(pilot, lambda: screen._logs is not None and screen._logs.log_pane.is_mounted, "the logs")
        await pilot.press("tab")
        await until(pilot, lambda: screen.logs.has_focus_within, "the focus in the logs")
        scheduler.add("newer-zq2wmx7v5hkdfx", AppState.RUNNING, 2)
        app.feed.refresh()
        await until(pilot, lambda: screen.table.rows[0].app_id == "newer-zq2wmx7v5hkdfx", "the new row")
        assert screen.table.cursor_row.app_id == "qwen2-7b-dpo-d2t5m0xk8wqhzn"


async def test_the_table_below_does_not_take_the_watch_from_an_open_job(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        await filled(pilot, app)
        row = app.jobs.rows["local_cwd://torchx/vit-l16-ft-p0d8s6k2c9xq2v"]
        app.push_screen(JobScreen(row))
        await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.described, "the job")
        # The job at the table's cursor changes, and with it what is highlighted there.
        scheduler.set_state("qwen2-7b-dpo-d2t5m0xk8wqhzn", AppState.RUNNING)
        app.feed.refresh()
        await until(
            pilot, lambda: app.jobs.rows["local_cwd://torchx/qwen2-7b-dpo-d2t5m0xk8wqhzn"].state.name == "RUNNING"
        )
        await pilot.pause()
        scheduler.set_state("vit-l16-ft-p0d8s6k2c9xq2v", AppState.FAILED)
        await until(pilot, lambda: app.screen.described.state is AppState.FAILED, "what became of the open job")


async def test_keys_do_not_sort_the_marked_rows_to_be_drawn(app, scheduler, monkeypatch):
    for number in range(300):
        scheduler.add(f"job-{number:03}", AppState.RUNNING, 60 + number)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        await pilot.press("asterisk")
        await until(pilot, lambda: len(screen.table.marks) == screen.table.row_count)
        looked_up, index = [], RowOrder.index
        monkeypatch.setattr(RowOrder, "index", lambda self, handle: looked_up.append(handle) or index(self, handle))
        await pilot.press("j", "j", "k")
        assert len(looked_up) < 100


async def test_what_a_forgotten_job_went_through_is_forgotten_too(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        await filled(pilot, app)
        handle = "local_cwd://torchx/eval-mmlu-h3v9q1zj6pcx0d"
        scheduler.set_state("eval-mmlu-h3v9q1zj6pcx0d", AppState.PENDING)
        await pilot.press("R")
        await until(pilot, lambda: len(app.jobs.changes(handle)) == 2, "both states")
        scheduler.apps.pop("eval-mmlu-h3v9q1zj6pcx0d")
        await pilot.press("R")
        await until(pilot, lambda: handle not in app.jobs.rows, "the job gone")
        assert app.jobs.changes(handle) == []


async def test_calls_that_hang_do_not_keep_a_cancel_back(app, scheduler):
    goes_on = threading.Event()
    async with app.run_test(size=(120, 40)) as pilot:
        try:
            screen = await filled(pilot, app)
            # More than the event loop's own pool has threads.
            for _ in range(40):
                screen.run_worker(lambda: goes_on.wait(PATIENCE), thread=True)
            screen.table.move_to("local_cwd://torchx/vit-l16-ft-p0d8s6k2c9xq2v")
            await pilot.press("x", "y")
            await until(pilot, lambda: scheduler.cancelled == ["vit-l16-ft-p0d8s6k2c9xq2v"], "the cancel")
        finally:
            goes_on.set()


async def test_a_dialog_does_not_wait_for_a_scheduler(app, scheduler, monkeypatch):
    goes_on = threading.Event()
    known = app.runner.capabilities

    def slow(name):
        goes_on.wait(PATIENCE)
        return known(name)

    async with app.run_test(size=(120, 40)) as pilot:
        await filled(pilot, app)
        monkeypatch.setattr(app.runner, "capabilities", slow)
        await pilot.press("x")
        try:
            await until(pilot, lambda: isinstance(app.screen, CancelDialog), "the dialog")
            assert "listed as Cancelled." in app.screen.query_one("#dialog-text", Static).render().plain
        finally:
            goes_on.set()
        await until(pilot, lambda: "logs are kept" in app.screen.query_one("#dialog-text", Static).render().plain)


async def test_a_worker_that_fails_is_heard(app):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        for node in (screen, app):
            node.run_worker(lambda: 1 / 0, thread=True, group="looking", exit_on_error=False)
            await until(pilot, lambda: "looking: ZeroDivisionError: division by zero" in app.status.text().plain)
            app.status.clear()


async def test_an_action_that_fails_as_nobody_foresaw_is_heard(app, monkeypatch):
    monkeypatch.setattr("torchx_tui.tui.job.bulk.act_on_jobs", lambda *_, **__: 1 / 0)
    async with app.run_test(size=(120, 40)) as pilot:
        await filled(pilot, app)
        await pilot.press("x", "y")
        await until(pilot, lambda: "actions: ZeroDivisionError: division by zero" in app.status.text().plain)


async def test_a_job_has_no_facts_of_the_one_before(app, monkeypatch):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        await until(pilot, lambda: any("log dir" in line.plain for line in screen.card.body.facts), "the facts")
        # The next one is not described.
        monkeypatch.setattr(app.feed, "watch", lambda handle: None)
        await pilot.press("j")
        await until(pilot, lambda: screen.card.rule.title.plain.startswith("eval-mmlu"), "the next job")
        assert not any("log dir" in line.plain for line in screen.card.body.facts)


async def test_backends_that_cannot_be_found_are_said(app, monkeypatch):
    def fail():
        raise OSError("the disk is gone")

    app.schedulers = None
    monkeypatch.setattr(app.runner, "watched_schedulers", fail)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "the disk is gone" in app.status.text().plain, "the reason")
        await until(pilot, lambda: "The backends cannot be found" in app.screen.table.placeholder.plain, "the table")


async def test_the_card_has_the_whole_name_as_soon_as_there_is_room(app):
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await filled(pilot, app)
        # The card is not shown: it has no width yet.
        assert screen.card.size.width == 0
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: screen.table.cursor_row.name in screen.card.rule.title.plain, "the whole name")


async def test_the_threads_end_with_the_app(app):
    before = set(threading.enumerate())
    async with app.run_test(size=(120, 40)) as pilot:
        await filled(pilot, app)
        mine = [thread for thread in threading.enumerate() if thread not in before]
    watching = [thread for thread in mine if thread.name.startswith(("poll-", "watch-"))]
    assert {"poll-local_cwd", "watch-job", "watch-usage"} <= {thread.name for thread in watching}
    for thread in watching:
        thread.join(PATIENCE)
        assert not thread.is_alive()


async def test_a_state_change_reaches_the_row(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        scheduler.set_state("eval-mmlu-h3v9q1zj6pcx0d", AppState.FAILED)
        await pilot.press("R")
        await until(pilot, lambda: app.jobs.rows["local_cwd://torchx/eval-mmlu-h3v9q1zj6pcx0d"].is_final)
        shown = {row.app_id: row.state for row in screen.table.rows}
        assert shown["eval-mmlu-h3v9q1zj6pcx0d"] is AppState.FAILED


async def test_cancel_asks_and_the_focus_is_on_the_harmless_button(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        await filled(pilot, app)
        await pilot.press("j", "x")
        await until(pilot, lambda: isinstance(app.screen, CancelDialog))
        assert app.focused is app.screen.query(Button).first()
        assert app.focused.id == "keep"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        assert scheduler.cancelled == []
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, CancelDialog))
        await pilot.press("y")
        await until(pilot, lambda: scheduler.cancelled == ["eval-mmlu-h3v9q1zj6pcx0d"])


async def test_the_dialog_says_what_the_backend_says_of_logs(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        await filled(pilot, app)
        await pilot.press("j", "x")
        await until(pilot, lambda: isinstance(app.screen, CancelDialog))
        await until(pilot, lambda: "listed as Cancelled, logs are kept." in dialog_text(app), "that they are kept")
        await pilot.press("escape")
        scheduler.capabilities = replace(scheduler.capabilities, logs_after_cancel="They go with [b]its pods[/b].")
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, CancelDialog))
        words = "listed as Cancelled.\nThey go with [b]its pods[/b].\n"
        await until(pilot, lambda: words in dialog_text(app), "what becomes of them")


def dialog_text(app) -> str:
    return str(app.screen.query_one("#dialog-text", Static).content)


async def test_several_jobs_ask_for_their_count(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        await filled(pilot, app)
        await pilot.press("space", "space", "x")
        await until(pilot, lambda: isinstance(app.screen, CancelDialog))
        assert [(field.has_focus, field.region.height) for field in app.screen.query(Input)] == [(True, 1)]
        await pilot.press("enter")
        assert "Type 2 to continue: nothing was typed" in screen_text(app)
        await pilot.press("y", "3", "enter")
        assert "Type 2 to continue: 3 was typed" in screen_text(app)
        await pilot.press("backspace", "2", "enter")
        await until(pilot, lambda: len(scheduler.cancelled) == 2)


async def test_many_jobs_are_cancelled_side_by_side_and_said_in_a_sentence(app, scheduler):
    for number in range(40):
        scheduler.add(f"many-{number:02}x", AppState.RUNNING, 1)
    cancel, together = scheduler.cancel, threading.Barrier(8)

    def meets_others(app_id):
        together.wait(PATIENCE)
        cancel(app_id)

    scheduler.cancel = meets_others
    said: list[str] = []
    app.notify = lambda text, **_: said.append(text)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        await pilot.press("slash", *"many", "enter")
        await until(pilot, lambda: screen.table.row_count == 40)
        await pilot.press("asterisk", "x")
        await until(pilot, lambda: isinstance(app.screen, CancelDialog))
        await pilot.press("y", "4", "0", "enter")
        await until(pilot, lambda: "Cancelling 40 jobs" in screen.query_one(StatusLine).left.plain)
        await until(pilot, lambda: said, "the last of them to end")
        await until(pilot, lambda: all(row.is_final for row in screen.table.rows), "the table")
        assert said == ["40 jobs ended: all that were cancelled together"]


async def test_a_final_job_cannot_be_cancelled_and_its_key_is_dimmed(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        screen.table.move_to("local_cwd://torchx/tokenize-pile-m4c8z2v6q1kd7t")
        await pilot.pause()
        cancel = next(hint for hint in screen.query_one(KeyBar).hints if hint.key == "x")
        assert not cancel.enabled
        await pilot.press("x")
        assert isinstance(app.screen, JobsScreen)


async def test_no_command_of_what_was_not_launched_here(app, monkeypatch):
    async with app.run_test(size=(120, 40)) as pilot:
        await filled(pilot, app)
        await pilot.press("Y")
        said = " was not launched from a component here"
        await until(pilot, lambda: app.status.text().plain.endswith(said), said)
        monkeypatch.setattr("torchx_tui.tui.job.actions._commands", lambda *_: 1 / 0)
        await pilot.press("Y")
        said = " no command: ZeroDivisionError: division by zero"
        await until(pilot, lambda: app.status.text().plain.endswith(said), said)


async def test_delete(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        screen.table.move_to("local_cwd://torchx/tokenize-pile-m4c8z2v6q1kd7t")
        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, DeleteDialog))
        await pilot.press("y")
        await until(pilot, lambda: screen.table.row_count == 21)
        assert "tokenize-pile-m4c8z2v6q1kd7t" not in scheduler.apps
        # The backend may have told before that it is gone.
        said = " Deleted tokenize-pile-m4c8z2v6q1kd7t"
        await until(pilot, lambda: app.status.text().plain.endswith(said), said)


def test_to_delete_a_job_of_torchxs_leaves_its_logs():
    ours, theirs = (JobRow(f"local_cwd://torchx/{name}", "local_cwd", name, AppState.FAILED) for name in "ab")
    theirs = replace(theirs, notes=(BY_TORCHX,))
    assert DeleteDialog([theirs]).consequence() == [
        "The job is no longer shown. Its logs are in TorchX's folder and stay."
    ]
    assert DeleteDialog([ours]).consequence() == ["Logs and history of it are removed. This cannot be undone."]
    assert DeleteDialog([ours, theirs]).consequence()[-1] == "The logs of 1 job are in TorchX's folder and stay."
    assert DeleteDialog([theirs, theirs]).consequence() == [
        "The jobs are no longer shown. Their logs are in TorchX's folder and stay."
    ]


def test_what_runs_is_cancelled_before_it_is_deleted():
    live = JobRow("local_cwd://torchx/a", "local_cwd", "a", AppState.RUNNING)
    past = replace(live, history=True)
    assert DeleteDialog([live]).consequence()[0] == "1 active job is cancelled first."
    assert DeleteDialog([live, live, past]).consequence()[0] == "2 active jobs are cancelled first."
    assert DeleteDialog([past]).consequence() == ["Logs and history of it are removed. This cannot be undone."]


async def test_filter_while_typing_then_back(app):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        await pilot.press("slash", *"state:failed")
        await until(pilot, lambda: screen.table.row_count == 1)
        await pilot.press("enter")
        assert app.focused is screen.table
        await pilot.press("escape")
        await until(pilot, lambda: screen.table.row_count == 22)
        assert not screen.table_pane.filter.display
        await pilot.press("slash", *"zzzz")
        await until(pilot, lambda: screen.table.row_count == 0)
        assert "No job matches zzzz" in screen.table.placeholder.plain


async def test_a_silent_backend_keeps_its_rows_and_says_why(app, scheduler):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        scheduler.error = OSError("the disk [red] is gone")
        await pilot.press("R")
        await until(pilot, lambda: app.jobs.outages)
        assert screen.table.row_count == 22
        assert screen.table.dimmed == {"local_cwd"}
        assert "the disk [red] is gone" in screen.query_one(StatusLine).left.plain
        # It comes back by itself, and the message goes with the outage, without a key.
        scheduler.error = None
        app.feed.refresh()
        await until(pilot, lambda: not app.jobs.outages)
        assert screen.table.dimmed == frozenset()
        await until(pilot, lambda: "gone" not in screen.query_one(StatusLine).left.plain, "the message to go")


async def test_missing_jobs_are_marked_and_said(app, scheduler):
    scheduler.missing_jobs = lambda: "jobs that have left the queue since 12:03 may be missing: [red] is down"
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        assert "may be missing: [red] is down" in screen.query_one(StatusLine).left.plain
        assert "some missing" in screen.query_one(TopBar).middle.plain
        assert screen.table.dimmed == frozenset()
        scheduler.missing_jobs = lambda: ""
        app.feed.refresh()
        await until(pilot, lambda: "some missing" not in screen.query_one(TopBar).middle.plain, "the mark to go")
        assert "missing" not in screen.query_one(StatusLine).left.plain


async def test_progress_says_nothing_of_a_silent_backend(app, scheduler):
    asked = set()
    describe = scheduler.describe

    def fail(app_id):
        if threading.current_thread().name != "watch-progress":
            return describe(app_id)
        asked.add(app_id)
        raise OSError("the disk is gone")

    scheduler.describe = fail
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        # What there is to say of the first one is said before the next one is asked for.
        await until(pilot, lambda: len(asked) > 1, "the progress of two jobs")
        await pilot.pause()
        assert "gone" not in screen.query_one(StatusLine).left.plain


async def test_jobs_are_not_counted_before_backends_answer(scheduler, tmp_path):
    """An empty backend that answers first does not make the whole list empty."""
    answers = threading.Event()
    listed = scheduler.list
    scheduler.list = lambda cfg=None: (answers.wait(PATIENCE), listed(cfg))[1]
    app = make_app(scheduler, tmp_path, more={"local_docker": CannedScheduler()})
    async with app.run_test(size=(120, 40)) as pilot:
        try:
            await until(pilot, lambda: "local_docker" in app.jobs.answered, "the first answer")
            screen = app.screen
            assert isinstance(screen, JobsScreen)
            assert screen.query_one(TopBar).middle.plain.split() == ["0", "all", "1", "local", "2", "docker", "0"]
            assert not screen.first_run.display
            assert screen.table.placeholder.plain == "Asking local"
            assert not any(word.isdecimal() for word in screen.table_pane.rule.info.plain.split())
        finally:
            answers.set()
        await until(pilot, lambda: screen.table.row_count == 22, "the rows")
        assert screen.query_one(TopBar).middle.plain.split()[:5] == ["0", "all", "22", "1", "local"]


async def test_hostile_names_are_text(app, scheduler):
    scheduler.add("evil[/red]\x1b]0;pwned\x07-name", AppState.RUNNING, 1, why="[bold]\x1b[2J")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        await until(pilot, lambda: screen.table.row_count == 23)
        drawn = "".join(segment.text for y in range(12) for segment in screen.table.render_line(y))
        assert "evil[/red]" in drawn
        assert "\x1b" not in drawn
        assert "\x07" not in drawn
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen))


async def test_screens_open_and_esc_goes_back(app):
    async with app.run_test(size=(120, 40)) as pilot:
        await filled(pilot, app)
        for key, kind in (("enter", JobScreen), ("l", LogsScreen), ("n", LaunchScreen), ("question_mark", KeysScreen)):
            await pilot.press(key)
            await until(pilot, lambda kind=kind: isinstance(app.screen, kind), kind.__name__)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, JobsScreen), "back")


async def test_many_jobs_get_a_result_each(app, scheduler, monkeypatch):
    stubborn = {"eval-mmlu-h3v9q1zj6pcx0d", "qwen2-7b-dpo-d2t5m0xk8wqhzn"}
    cancel = scheduler.cancel

    def some(app_id):
        if app_id in stubborn:
            raise SchedulerError("the engine said no: [bold]try[/] again")
        cancel(app_id)

    monkeypatch.setattr(scheduler, "cancel", some)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        await pilot.press("asterisk", "x")
        asked = screen.app.screen
        assert isinstance(asked, CancelDialog)
        active = len(asked.rows)
        await pilot.press(*str(active), "enter")
        await until(pilot, lambda: isinstance(app.screen, ResultsDialog), "the results")
        assert app.status.text().plain.endswith(f"Cancelling {active - 2} jobs, 2 failed")
        assert app.screen.heading() == f"2 of {active} jobs failed"
        shown = "\n".join(line.plain for line in app.screen._results())
        assert shown.count("the engine said no: [bold]try[/] again") == 2
        assert len(scheduler.cancelled) == active - 2
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "back")


async def test_read_only_takes_the_keys_away(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path, read_only=True)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        await pilot.press("j", "x", "D", "r", "n")
        await pilot.pause()
        assert isinstance(app.screen, JobsScreen)
        assert {"n", "r", "e", "x"}.isdisjoint(hint.key for hint in screen.query_one(KeyBar).hints)
        assert scheduler.cancelled == []
        rows = {row.keys: row for rows in bindings_of(screen).values() for row in rows}
        assert not any(rows[key].enabled for key in "nrexD")
        assert all(rows[key].enabled for key in "ly/")


async def test_sort_marks_and_zoom(app):
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        await pilot.press("S")
        assert screen.table.rows[0].app_id.startswith("eval-arc")
        await pilot.press("s")
        assert screen.table.sort.column == "state"
        assert screen.table_pane.rule.info.plain == "22  by state"
        for marked in (22, 0, 22):
            await pilot.press("*")
            assert len(screen.table.marks) == marked
        await pilot.press("escape")
        assert not screen.table.marks
        await pilot.press("z")
        await until(pilot, lambda: screen.table.size.width > 100)
        assert screen.logs.region.width == 0
        # It is undone by the same key, and by the one that undoes.
        for back in ("z", "escape"):
            await pilot.press(back)
            await until(pilot, lambda: screen.logs.size.width > 0)
            await pilot.press("z")
            await until(pilot, lambda: screen.table.size.width > 100)


async def test_stacked_below_120_columns(app):
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await filled(pilot, app)
        await until(pilot, lambda: screen.logs.region.y > screen.table.region.y)
        assert screen.logs.region.width == 80
        assert screen.logs.log_pane.compact
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: not screen.logs.log_pane.compact, "both side by side")


async def test_ten_thousand_rows_are_drawn_by_the_screen_only(app, scheduler):
    for number in range(10_000):
        scheduler.add(f"job-{number:05d}", AppState.SUCCEEDED, 14 * 86_400 + number)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await filled(pilot, app)
        await until(pilot, lambda: screen.table.row_count == 10_022)
        await pilot.press("G")
        assert screen.table.cursor_row.app_id == "job-09999"
        assert "job-09999" in screen.table.render_line(screen.table.size.height - 1).text
        await pilot.press("g")
        assert "qwen2-7b-dpo" in screen.table.render_line(1).text
        assert screen.table.cursor_row.app_id == "qwen2-7b-dpo-d2t5m0xk8wqhzn"
        # The last row in sight; one more scrolls by one.
        screen.table.action_move(screen.table.size.height - 2)
        assert screen.table.scroll_offset.y == 0
        await pilot.press("j")
        assert screen.table.scroll_offset.y == 1


@pytest.mark.parametrize("key", [*"nlrexDyYRHz0123456789", "slash"])
def test_the_keys_that_people_rely_on_are_bound(key):
    bindings = JobsScreen._merged_bindings
    assert bindings is not None
    assert key in bindings.key_to_bindings
