"""The Jobs screen: what it shows, and what its keys do."""

import threading
from dataclasses import replace

import pytest
from support.canned import CannedScheduler
from support.dashboard import make_app, until
from support.screens import Table, jobs_of
from support.waiting import PATIENCE
from textual.widgets import Input

from torchx_tui.backends.types import BY_TORCHX
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.status import AppState
from torchx_tui.tui.format import clock
from torchx_tui.tui.job.dialogs import delete_dialog
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.logs.screen import LogsScreen
from torchx_tui.tui.messages import ActionDone, BackendFailed, JobsChanged
from torchx_tui.tui.rows import JobRow
from torchx_tui.tui.ui.dialog import AskDialog
from torchx_tui.tui.ui.keys_screen import KeysScreen, bindings_of

NEWEST, SECOND = "qwen2-7b-dpo-d2t5m0xk8wqhzn", "eval-mmlu-h3v9q1zj6pcx0d"
FINISHED, TRAINING = "tokenize-pile-m4c8z2v6q1kd7t", "vit-l16-ft-p0d8s6k2c9xq2v"


async def test_cursor_stays_on_its_job(app, scheduler):
    async with jobs_of(app, rows=22) as table:
        assert table.rows()[:2] == [NEWEST, SECOND]
        # Until it is moved it is on the newest job.
        assert table.at() == NEWEST
        scheduler.add("newer", AppState.RUNNING, 2)
        await table.press("R", until=lambda: table.at() == "newer", what="the newest job")
        await table.press("j", "k")
        scheduler.add("newest", AppState.SUBMITTED, 1)
        await table.press("R")
        await table.first("newest")
        assert table.at() == "newer"


async def test_cursor_stays_on_the_job_whose_log_is_read(app, scheduler):
    async with jobs_of(app) as table:
        await table.press("tab", until=lambda: table.screen.logs.has_focus_within, what="the focus in the logs")
        scheduler.add("newer", AppState.RUNNING, 2)
        app.feed.refresh()
        await table.first("newer")
        assert table.at() == NEWEST


async def test_open_job_stays_watched_when_the_table_below_changes(app, scheduler):
    async with jobs_of(app) as table:
        job = await table.job(TRAINING)
        table.table.move_to(f"local_cwd://torchx/{NEWEST}")
        scheduler.set_state(NEWEST, AppState.RUNNING)
        app.feed.refresh()
        await job.until(lambda: app.jobs.rows[f"local_cwd://torchx/{NEWEST}"].state is AppState.RUNNING)
        scheduler.set_state(TRAINING, AppState.FAILED)
        await job.until(lambda: job.screen.described.state is AppState.FAILED, "the end of the open job")


async def test_hanging_calls_do_not_delay_a_cancel(app, scheduler):
    goes_on = threading.Event()
    async with jobs_of(app) as table:
        try:
            # More than the event loop's own pool has threads.
            for _ in range(40):
                table.screen.run_worker(lambda: goes_on.wait(PATIENCE), thread=True)
            table.to(TRAINING)
            await table.press("x", "y", until=lambda: scheduler.cancelled == [TRAINING], what="the cancel")
        finally:
            goes_on.set()


async def test_dialog_does_not_wait_for_a_scheduler(app, hold):
    async with jobs_of(app) as table:
        held = hold(app.runner, "scheduler")
        await table.dialog(AskDialog, "x")
        assert "listed as Cancelled." in table.dialog_text()
        held.go.set()
        await table.shows("logs are kept", on="dialog_text")


async def test_unforeseen_error_is_shown(app, monkeypatch):
    async with jobs_of(app) as table:
        for node in (table.screen, app):
            node.run_worker(lambda: [][0], thread=True, group="looking", exit_on_error=False)
            await table.shows("looking: IndexError: list index out of range", on="said")
            app.status.clear()
        monkeypatch.setattr("torchx_tui.tui.job.bulk.act_on_jobs", lambda *_, **__: [][0])
        await table.press("x", "y", shows="actions: IndexError: list index out of range", on="said")


async def test_job_has_no_facts_of_the_one_before(app, monkeypatch):
    async with jobs_of(app) as table:
        await table.shows("log dir", on="facts")
        # The next one is not described.
        monkeypatch.setattr(app.feed, "watch", lambda handle: None)
        await table.press("j", shows="eval-mmlu", on="card_title")
        assert "log dir" not in table.facts()


async def test_backends_that_cannot_be_found_are_named(app, monkeypatch):
    def fail():
        raise OSError("the disk is gone")

    app.schedulers = None
    monkeypatch.setattr(app.runner, "watched_schedulers", fail)
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the table")
        table = Table(pilot)
        await table.shows("the disk is gone", on="said")
        await table.shows("The backends cannot be found", on="placeholder")


async def test_threads_end_with_the_app(app):
    before = set(threading.enumerate())
    async with jobs_of(app):
        mine = [thread for thread in threading.enumerate() if thread not in before]
    watching = [thread for thread in mine if thread.name.startswith(("poll-", "watch-"))]
    assert {"poll-local_cwd", "watch-job", "watch-usage"} <= {thread.name for thread in watching}
    for thread in watching:
        thread.join(PATIENCE)
        assert not thread.is_alive()


async def test_cancel_asks_with_the_focus_on_keep(app, scheduler):
    async with jobs_of(app) as table:
        dialog = await table.dialog(AskDialog, "j", "x")
        assert table.focused() is dialog.query_one("#keep")
        await table.shows("listed as Cancelled, logs are kept.", on="dialog_text")
        await table.back("enter")
        assert scheduler.cancelled == []
        scheduler.capabilities = replace(scheduler.capabilities, logs_after_cancel="They go with [b]its pods[/b].")
        await table.dialog(AskDialog, "x")
        await table.shows("listed as Cancelled.\nThey go with [b]its pods[/b].\n", on="dialog_text")
        await table.press("y", until=lambda: scheduler.cancelled == [SECOND], what="the cancel")


async def test_several_jobs_ask_for_their_count(app, scheduler):
    async with jobs_of(app) as table:
        dialog = await table.dialog(AskDialog, "space", "space", "x")
        assert [(field.has_focus, field.region.height) for field in dialog.query(Input)] == [(True, 1)]
        for keys, wrong in (("", "nothing"), ("y3", "3")):
            await table.press(*keys, "enter", shows=f"Type 2 to cancel them: {wrong} was typed", on="drawn")
        await table.shows("enter Cancel 2 jobs", on="drawn")
        await table.press("escape", shows="Nothing cancelled")
        await table.dialog(AskDialog, "x")
        await table.press("2", "enter", until=lambda: len(scheduler.cancelled) == 2, what="both")


async def test_many_jobs_are_cancelled_at_the_same_time(app, scheduler):
    for number in range(40):
        scheduler.add(f"many-{number:02}x", AppState.RUNNING, 1)
    cancel, together = scheduler.cancel, threading.Barrier(8)

    def meets_others(app_id):
        together.wait(PATIENCE)
        cancel(app_id)

    scheduler.cancel = meets_others
    async with jobs_of(app) as table:
        await table.press("slash", *"many", "enter")
        await table.has(40)
        await table.dialog(AskDialog, "asterisk", "x")
        await table.back("y", "4", "0", "enter")
        await table.shows("40 jobs cancelled")
        await table.until(lambda: all(row.is_final for row in table.table.rows), "the table")


async def test_finished_job_cannot_be_cancelled(app):
    async with jobs_of(app) as table:
        table.to(FINISHED)
        await table.until(lambda: table.key_is_enabled("x") is False, "the dimmed key")
        await table.press("x")
        assert isinstance(app.screen, JobsScreen)


async def test_delete(app, scheduler):
    async with jobs_of(app) as table:
        table.to(FINISHED)
        await table.dialog(AskDialog, "D")
        await table.press("escape", shows="Nothing deleted")
        await table.dialog(AskDialog, "D")
        await table.press("y")
        await table.has(21)
        assert FINISHED not in scheduler.apps
        await table.until(lambda: table.said().endswith(f" Deleted {FINISHED}"), "the message")


LIVE = JobRow("local_cwd://torchx/a", "local_cwd", "a", AppState.RUNNING)
ENDED = replace(LIVE, state=AppState.FAILED)
PAST = replace(LIVE, history=True)
OF_TORCHX = replace(ENDED, notes=(BY_TORCHX,))


@pytest.mark.parametrize(
    ("rows", "sentences"),
    [
        ([ENDED], ["Logs and history of it are removed. This cannot be undone."]),
        ([PAST], ["Logs and history of it are removed. This cannot be undone."]),
        ([LIVE], ["1 active job is cancelled first.", ...]),
        ([LIVE, LIVE, PAST], ["2 active jobs are cancelled first.", ...]),
        ([OF_TORCHX], ["The job is no longer shown. Its logs are in TorchX's folder and stay."]),
        ([OF_TORCHX] * 2, ["The jobs are no longer shown. Their logs are in TorchX's folder and stay."]),
        ([ENDED, OF_TORCHX], [..., "The logs of 1 job are in TorchX's folder and stay."]),
    ],
)
def test_delete_dialog_says_what_goes(app, rows, sentences):
    found = [line.plain for line in delete_dialog(app, rows).body if line.plain.endswith(".")]
    assert len(found) == len(sentences)
    assert [each for each, wanted in zip(found, sentences, strict=True) if wanted not in (each, ...)] == []


async def test_job_that_was_not_launched_here_has_no_command(app, monkeypatch):
    async with jobs_of(app) as table:
        await table.press(
            "Y", until=lambda: table.said().endswith(" was not launched from a component here"), what="the reason"
        )
        monkeypatch.setattr("torchx_tui.tui.job.actions.launch_commands", lambda *_: [][0])
        await table.press(
            "Y", until=lambda: table.said().endswith("Command not copied: IndexError: list index out of range")
        )


async def test_filter_while_typing_then_back(app):
    async with jobs_of(app, rows=22) as table:
        await table.press("slash", *"state:failed")
        await table.has(1)
        await table.press("enter")
        assert table.focused() is table.table
        await table.press("escape")
        await table.has(22)
        assert not table.screen.table_pane.filter.display
        await table.press("slash", *"zzzz")
        await table.has(0)
        assert "No job matches zzzz" in table.placeholder()


async def test_silent_backend_keeps_its_rows_and_says_why(app, scheduler):
    async with jobs_of(app, rows=22) as table:
        scheduler.error = OSError("the disk [red] is gone")
        await table.press("R", until=lambda: app.jobs.outages, what="the outage")
        assert (len(table.rows()), table.table.dimmed) == (22, {"local_cwd"})
        assert "the disk [red] is gone" in table.message()
        # The message goes with the outage, without a key.
        scheduler.error = None
        app.feed.refresh()
        await table.until(lambda: not app.jobs.outages and "gone" not in table.message(), "the answer")
        assert table.table.dimmed == frozenset()


@pytest.mark.parametrize("answered_before", [False, True])
async def test_backend_that_is_not_set_up_is_grey_and_last(scheduler, tmp_path, answered_before):
    scheduler.error = OSError("no engine here")
    app = make_app(scheduler, tmp_path, more={"local_docker": CannedScheduler()})
    app.jobs.answered_before = frozenset(["local_cwd"] if answered_before else [])
    async with jobs_of(app, rows=0) as table:
        await table.until(lambda: app.jobs.outages and app.jobs.answered, "both answers")
        names = ["local_cwd", "local_docker"] if answered_before else ["local_docker", "local_cwd"]
        assert app.jobs.schedulers == names
        assert ("no engine here" in table.message()) is answered_before
        await table.press(str(names.index("local_cwd") + 1))
        what = "does not answer" if answered_before else "is not set up here"
        assert table.placeholder().startswith(f"local {what}   no engine here")
        scheduler.error = None
        await table.press("R", until=lambda: "local_cwd" in app.ui_state.state.backends, what="its answer")


async def test_backends_path_and_tabs_answer_to_clicks(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path, more={"local_docker": CannedScheduler()})
    async with jobs_of(app, rows=22) as table:
        await table.until(lambda: "docker 0" in table.top_bar(), "the other backend")
        for word, backend in (("docker", "local_docker"), ("all", None)):
            await click(table, word)
            await table.until(lambda backend=backend: table.screen.view.backend == backend, word)
        job = await table.job()
        await click(job, "AppDef")
        await job.shows("entrypoint", on="drawn")
        await click(job, "Overview")
        await job.until(lambda: not job.screen.query_one("#appdef").display, "the overview")
        await job.open(LogsScreen, "l")
        await click(job, "Jobs")
        await job.until(lambda: app.screen is table.screen, "the table")


async def click(driver, word):
    """Click a word on the screen."""
    await driver.shows(word, on="drawn")
    lines = driver.drawn().splitlines()
    y = next(number for number, line in enumerate(lines) if word in line)
    await driver.pilot.click(offset=(lines[y].index(word), y))


async def test_end_of_a_job_on_screen_covers_nothing(app, scheduler):
    async with jobs_of(app, rows=22) as table:
        scheduler.set_state(SECOND, AppState.SUCCEEDED)
        await table.press("R", shows=f"{SECOND} succeeded")
        assert not app._notifications
        # Elsewhere it is a toast.
        await table.open(KeysScreen, "question_mark")
        scheduler.set_state(NEWEST, AppState.FAILED)
        app.feed.refresh()
        await table.until(lambda: [note.message for note in app._notifications] == [f"{NEWEST} failed"], "the toast")


async def test_end_of_a_job_waits_behind_the_refusal_of_a_key(app, scheduler):
    async with jobs_of(app, rows=22) as table:
        app.status.say("it has no shell", failed=True)
        scheduler.set_state(SECOND, AppState.SUCCEEDED)
        app.feed.refresh()
        await table.until(lambda: "Succeeded" in table.lines(2)[0], "the state in its row")
        await table.settled()
        assert table.message() == "✗ it has no shell"
        await table.press("j", shows=f"{SECOND} succeeded")
        assert not app.status.failed


async def test_missing_jobs_are_marked(app, scheduler):
    scheduler.missing_jobs = lambda: "jobs that have left the queue since 12:03 may be missing: [red] is down"
    async with jobs_of(app) as table:
        await table.shows("may be missing: [red] is down")
        await table.shows("some missing", on="top_bar")
        assert table.table.dimmed == frozenset()
        scheduler.missing_jobs = lambda: ""
        app.feed.refresh()
        await table.until(lambda: "missing" not in table.top_bar() + table.message(), "the mark to go")


async def test_progress_of_a_silent_backend_is_no_message(app, scheduler):
    asked, describe = set(), scheduler.describe

    def fail(app_id):
        if threading.current_thread().name != "watch-progress":
            return describe(app_id)
        asked.add(app_id)
        raise OSError("the disk is gone")

    scheduler.describe = fail
    async with jobs_of(app) as table:
        # A message about the first would come before the next one is asked for.
        await table.until(lambda: len(asked) > 1, "the progress of two jobs")
        await table.settled()
        assert "gone" not in table.message()


async def test_jobs_are_not_counted_before_backends_answer(scheduler, tmp_path, hold):
    held = hold(scheduler, "list")
    app = make_app(scheduler, tmp_path, more={"local_docker": CannedScheduler()})
    async with jobs_of(app, rows=0) as table:
        await table.until(lambda: "local_docker" in app.jobs.answered, "the first answer")
        assert table.top_bar().split() == ["0", "all", "1", "local", "2", "docker", "0"]
        assert not table.screen.first_run.display
        assert table.placeholder() == "Asking local"
        assert not any(word.isdecimal() for word in table.title().split())
        held.go.set()
        await table.has(22)
        await table.until(lambda: table.top_bar().split()[:5] == ["0", "all", "22", "1", "local"], "the counts")


async def test_hostile_name_is_text(app, scheduler):
    scheduler.add("evil[/red]\x1b]0;pwned\x07-name", AppState.RUNNING, 1, why="[bold]\x1b[2J")
    async with jobs_of(app, rows=23) as table:
        drawn = "".join(table.lines())
        assert "evil[/red]" in drawn
        assert not {"\x1b", "\x07"} & set(drawn)
        await table.open(JobScreen, "enter")


async def test_many_jobs_get_a_result_each(app, scheduler, monkeypatch):
    cancel = scheduler.cancel

    def cancel_others(app_id):
        if app_id in {NEWEST, SECOND}:
            raise SchedulerError("the engine said no: [bold]try[/] again")
        cancel(app_id)

    monkeypatch.setattr(scheduler, "cancel", cancel_others)
    async with jobs_of(app, rows=22) as table:
        active = (await table.dialog(AskDialog, "asterisk", "x")).count
        await table.press(*str(active), "enter", shows=f"2 of {active} jobs failed", on="drawn")
        assert table.said().endswith(f"Cancelling {active - 2} jobs, 2 failed")
        assert table.dialog_text().count("the engine said no: [bold]try[/] again") == 2
        assert len(scheduler.cancelled) == active - 2
        await table.back("enter")


async def test_read_only_takes_the_keys_away(scheduler, tmp_path):
    async with jobs_of(make_app(scheduler, tmp_path, read_only=True)) as table:
        await table.press("j", "x", "D", "r", "n")
        assert isinstance(table.app.screen, JobsScreen)
        assert {table.key_is_enabled(key) for key in "nrex"} == {None}
        assert scheduler.cancelled == []
        enabled = {row.keys: row.enabled for rows in bindings_of(table.screen).values() for row in rows}
        assert [key for key in "nrexDly/" if enabled[key]] == ["l", "y", "/"]


async def test_sort_and_marks(app):
    async with jobs_of(app, rows=22) as table:
        await table.press("S")
        assert table.rows()[0].startswith("eval-arc")
        await table.press("s")
        assert table.title() == "22  by state"
        for marked in (22, 0, 22):
            await table.press("*")
            assert len(table.table.marks) == marked
        await table.press("escape")
        assert not table.table.marks


async def test_filter_hides_marks_and_gives_them_back(app, scheduler):
    async with jobs_of(app, rows=22) as table:
        await table.press("space", "space", "slash", *SECOND[:9], "enter")
        await table.has(1)
        assert (table.table.marks, app.jobs.marked) == ({table.table.rows[0].handle}, table.table.rows)
        assert "1 marked, 1 hidden" in table.title()
        await table.press("escape", until=lambda: len(app.jobs.marked) == 2, what="both")
        assert "  2 marked  " in table.title()
        # A job that is deleted is marked no longer.
        scheduler.delete(SECOND)
        await table.press("R", until=lambda: [row.app_id for row in app.jobs.marked] == [NEWEST], what="the other one")
        await table.press("escape")
        assert not table.table.marks | table.table.hidden_marks


async def test_key_for_one_job_names_it_among_marked_ones(app):
    async with jobs_of(app, rows=22) as table:
        await table.press("space", "space")
        await table.open(LogsScreen, "l")
        await table.shows(f"Logs of {NEWEST} only, not of 1 other marked job", on="said")


@pytest.mark.parametrize("back", ["z", "escape"])
async def test_zoom_and_back(app, back):
    async with jobs_of(app) as table:
        await table.press("z", until=lambda: table.table.size.width > 100, what="the wide table")
        assert table.screen.logs.region.width == 0
        await table.press(back, until=lambda: table.screen.logs.size.width > 0, what="the logs")


async def test_panes_and_card_follow_a_wider_screen(app):
    async with jobs_of(app, size=(80, 24)) as table:
        logs = table.screen.logs.log_pane
        await table.until(lambda: logs.compact, "the logs below")
        # The card is not shown: it has no width yet.
        assert table.screen.card.size.width == 0
        await table.resize(120, 40)
        await table.shows(table.table.cursor_row.name, on="card_title")
        await table.until(lambda: not logs.compact, "both side by side")


async def test_table_of_ten_thousand_jobs(app, scheduler):
    for number in range(10_000):
        scheduler.add(f"job-{number:05d}", AppState.SUCCEEDED, 14 * 86_400 + number)
    async with jobs_of(app, rows=10_022) as table:
        height = table.table.size.height
        await table.press("G")
        assert table.at() == "job-09999"
        assert "job-09999" in table.lines()[-1]
        await table.press("g")
        assert table.at() == NEWEST
        assert "qwen2-7b-dpo" in table.lines(1)[0]
        # From the last row in sight the table scrolls by one.
        for down, scrolled in ((height - 2, 0), (1, 1)):
            await table.press(*["j"] * down)
            assert table.table.scroll_offset.y == scrolled


async def test_help_lists_the_most_used_keys_first(app):
    async with jobs_of(app, rows=22) as table:
        listed = bindings_of(table.screen)
        assert [row.keys for row in listed["Jobs"]][:3] == ["n", "l", "p o"]
        assert list(listed)[-1] == "Everywhere"
        await table.job()
        listed = bindings_of(app.screen)
        what = [row.what for rows in listed.values() for row in rows]
        assert len(what) == len(set(what))
        # No motions of Textual's.
        assert not [words for words in what if words.startswith(("Scroll", "Page "))]


async def test_message_of_an_outage_names_each_next_try(app, scheduler):
    async with jobs_of(app, rows=22) as table:
        for seconds in (1.0, 20.0):
            at = app.now() + seconds
            app.post_message(BackendFailed("local_cwd", "it is away", app.now(), at))
            await table.shows(f"it is away   next try at {clock(at, app.now())}")


async def test_typed_count_reaches_its_box_from_a_button(app):
    async with jobs_of(app, rows=22) as table:
        await table.press("asterisk")
        dialog = await table.dialog(AskDialog, "D")
        await table.press("tab", "2", "2")
        assert dialog.query_one("#dialog-count", Input).value == "22"


async def test_cancel_of_a_job_that_has_ended_says_nothing(app):
    async with jobs_of(app, rows=22) as table:
        row = next(row for row in app.jobs.rows.values() if row.state is AppState.RUNNING)
        # Its end comes before the answer to the request, both in one turn of the loop.
        ended = replace(row, state=AppState.CANCELLED, finished_at=app.now())
        app.post_message(JobsChanged(row.scheduler, {row.handle: ended}, set()))
        app.post_message(ActionDone(f"Cancelling {row.name}", handles=(row.handle,), is_cancel=True))
        await table.until(lambda: not app.jobs.is_live(row.handle), "its end")
        await table.settled()
        assert "Cancelling" not in app.status.message
        app.post_message(ActionDone("Cancelling b", handles=(row.handle,)))
        await table.until(lambda: app.status.message == "Cancelling b", "another message")
