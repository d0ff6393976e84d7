"""The Job screen of a failed job: the cause first, then what only follows from it."""

import os
import threading
import time
from dataclasses import replace

import pytest
from support.canned import NOW, CannedScheduler
from support.dashboard import key_bar, make_app, settled, until
from support.waiting import PATIENCE

from torchx_tui.backends.api import DescribeAppResponse, PublishedPort, StateChange
from torchx_tui.diagnosis.failure.explain import Explanation
from torchx_tui.diagnosis.recorder.dump import Collective
from torchx_tui.diagnosis.recorder.verdict import Standing
from torchx_tui.diagnosis.stacks.ended import End
from torchx_tui.diagnosis.stacks.frames import Frame
from torchx_tui.logs.pattern.error_kinds import ErrorKind
from torchx_tui.logs.view.failure import Failure, LoggedError
from torchx_tui.settings.config import LogSettings, Settings
from torchx_tui.specs import AppState, Role, SchedulerError
from torchx_tui.tui.job import shell
from torchx_tui.tui.job.replicas import cells_per_row
from torchx_tui.tui.job.screen import JobScreen, appdef_yaml
from torchx_tui.tui.job.timeline import Timeline, timeline_text
from torchx_tui.tui.job.why import error_quote
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.jobs.table import JobTable
from torchx_tui.tui.messages import CapabilitiesRead
from torchx_tui.tui.ui.glyphs import UNICODE
from torchx_tui.tui.ui.palette import STYLES
from torchx_tui.tui.ui.text_pane import TextPane

ERROR = ErrorKind("error", "ERROR")
FAILED = "llama3-8b-sft-b7n1xk4t9wz0rg"


@pytest.fixture
def utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


async def open_failed(pilot, app):
    """Open the failed job, and wait until its logs were read for the cause."""
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count > 0, "rows")
    app.screen.table.move_to(f"local_cwd://torchx/{FAILED}")
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, JobScreen), "the Job screen")
    screen = app.screen
    await until(pilot, lambda: screen.why.explanation is not None, "the cause")
    return screen


def drawn(screen):
    return screen.why._content.render().plain.splitlines()


async def test_the_errors_that_follow_are_listed_each_in_a_row(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_failed(pilot, app)
        rows = drawn(screen)
        head = next(number for number, row in enumerate(rows) if "first of 3 errors" in row)
        assert rows[head].split()[1:] == ["trainer/2", *["first", "of", "3", "errors,", "2", "follow", "from", "it"]]
        assert [row.split()[1] for row in rows[head + 1 : head + 3]] == ["trainer/0", "trainer/1"]
        assert rows[-2:] == ["", "e edit and relaunch    l logs at this line    y copy the reason    "]
        assert all(row.endswith("…") for row in rows[head + 1 : head + 3])
        # What is copied is not cut.
        assert "RuntimeError: Connection closed by peer [10.0.0.3]:31338" in screen.why.reason
        await until(pilot, lambda: screen.logs.log_pane.status.replica == 2, "its log")
        await pilot.resize_terminal(240, 50)
        await until(pilot, lambda: not any(row.endswith("…") for row in drawn(screen)), "the whole errors")


def sweep_of_130(tmp_path):
    """Return a dashboard with one job of 130 replicas."""
    scheduler = CannedScheduler(logs=tmp_path / "logs")
    scheduler.add("sweep-1", AppState.RUNNING, 60.0, replicas=130)
    return make_app(scheduler, tmp_path)


async def open_sweep(pilot, app) -> JobScreen:
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count > 0, "rows")
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.replicas.chosen, "the replicas")
    assert isinstance(app.screen, JobScreen)
    return app.screen


async def test_where_no_time_is_known_none_is_shown(tmp_path):
    scheduler = CannedScheduler(logs=tmp_path / "logs")
    scheduler.add("sweep-1", AppState.RUNNING, 60.0)
    scheduler.apps["sweep-1"] = replace(scheduler.apps["sweep-1"], submitted_at=None, started_at=None)
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        assert (await open_sweep(pilot, app)).state_line.left.plain == "● Running"


async def test_a_number_finds_its_replica(tmp_path):
    app = sweep_of_130(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_sweep(pilot, app)
        assert screen.state_line.left.plain == "● Running   1m"
        assert drawn(screen) == ["Running: nothing to explain."]
        await pilot.press("tab")
        await until(pilot, lambda: screen.focused is screen.replicas.grid, "the grid")
        await pilot.press("1", "2", "8")
        assert screen.replicas.grid.chosen == 128
        assert "128 " in screen.replicas.grid.render_line(screen.replicas.grid.size.height - 1).text
        # One that was moved begins anew.
        await pilot.press("left", "4")
        assert screen.replicas.grid.chosen == 4
        roles = [Role("trainer", "image", num_replicas=130), Role("reader", "image")]
        screen.replicas.show(DescribeAppResponse("sweep-1", AppState.RUNNING, roles=roles))
        assert screen.replicas.rule.info.plain == "trainer 130  reader 1"


async def test_a_click_chooses_the_replica_that_is_drawn_there(tmp_path):
    app = sweep_of_130(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_sweep(pilot, app)
        grid = screen.replicas.grid
        # Those further down are seen as soon as one of them is chosen.
        for first in (0, 128):
            grid.action_move(first - grid.chosen)
            numbers = [int(word) for word in grid.render_line(1).text.split() if word.isdecimal()]
            assert await pilot.click(grid, offset=(1 + 6 * 2, 1))
            assert grid.chosen == numbers[2] > 2
            await until(pilot, lambda: screen.logs.log_pane.status.replica == grid.chosen, "its log")
            # Nothing is at the right of the last one.
            assert await pilot.click(grid, offset=(grid.size.width - 2, 1))
            assert grid.chosen == numbers[2]


async def test_an_error_that_the_job_did_not_report_is_quoted_from_its_logs(scheduler, tmp_path):
    scheduler.described[FAILED].structured_error_msg = "<NONE>"
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_failed(pilot, app)
        assert "▎ RuntimeError: loss is nan at step 14917" in drawn(screen)


async def test_logs_without_an_error_add_nothing(scheduler, tmp_path):
    for k in range(4):
        scheduler.write_log(FAILED, k, [(200, "o", "step 1\n")])
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_failed(pilot, app)
        assert "error" not in "\n".join(drawn(screen)).replace("RuntimeError", "")


FOLLOWERS = [f"trainer/{number - 1}   error {number}" for number in range(1, 5)]


@pytest.mark.parametrize(
    ("followers", "words"),
    [
        (0, ["   the only error in the logs"]),
        (1, ["   first of 2 errors, 1 follows from it", "trainer/0   error 1"]),
        (4, ["   first of 5 errors, 4 follow from it", *FOLLOWERS]),
        (
            6,
            [
                "   first of 7 errors, 6 follow from it",
                *FOLLOWERS,
                "and 2 more",
            ],
        ),
    ],
)
async def test_the_first_errors_that_follow_are_listed(scheduler, tmp_path, followers, words):
    cause, *others = [LoggedError(number - 1, 1, None, f"error {number}", ERROR) for number in range(7)]
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_failed(pilot, app)
        failure = Failure(cause._replace(replica=4), tuple(others[:followers]), is_only=not followers)
        screen.why.show(screen.described, Explanation(screen.described.reason, failure=failure))
        rows = drawn(screen)
        # Of four replicas, which begin at 0.
        head = rows.index(f"replica 4{words[0]}")
        assert rows[head:-2] == [f"replica 4{words[0]}", *words[1:]]
        # The job did not report it.
        assert rows[head - 3 : head] == ["", "▎ error 0", ""]


async def test_what_explains_an_end_and_fails_is_heard(scheduler, tmp_path, monkeypatch):
    monkeypatch.setattr("torchx_tui.diagnosis.failure.explain.explain_end", lambda *_: 1 / 0)
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: f"local_cwd://torchx/{FAILED}" in app.jobs.rows, "rows")
        app.push_screen(JobScreen(app.jobs.rows[f"local_cwd://torchx/{FAILED}"]))
        words = "explain-failure stopped: ZeroDivisionError: division by zero"
        await until(pilot, lambda: words in app.status.text().plain, "the words")


async def test_where_the_ranks_stood_comes_first(scheduler, tmp_path, utc, monkeypatch):
    def called(seq, group="default_pg"):
        return Collective("tp", group, seq, "all_reduce")

    waits = [
        Standing((rank, rank + 1, 90 + rank), called(17 + rank, "tensors") if rank < 12 else None, "w" * 40)
        for rank in range(0, 21, 3)
    ]
    standings = (Standing((7,), called(16), "done", int(NOW) * 1_000_000_000, is_culprit=True), *waits)
    stack = (Frame("main", "train.py", 7), Frame("save", "train.py", 9))
    end = End(("rank 7 was late", "it hung", "then it failed"), standings, "by its recorder", stack, "It stood in:")
    # However often the job is explained.
    found = [Explanation(end.sentences[0], end)]
    monkeypatch.setattr("torchx_tui.diagnosis.failure.explain.explain_job", lambda *_, **__: found[-1])
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_failed(pilot, app)
        told = ["it hung", "then it failed", "", "It stood in:"]
        stack = ['▎ File "train.py", line 7, in main', '▎ File "train.py", line 9, in save', ""]
        others = [
            f"{ranks:<10}  all_reduce #{seq} of tp  {'w' * 24}…"
            for ranks, seq in (("0-1, 90", 17), ("3-4, 93", 20), ("6-7, 96", 23), ("9-10, 99", 26))
        ]
        others.append(f"12-13, 102{' ' * 24}{'w' * 24}…")
        rows = drawn(screen)
        assert rows[:2] == ["rank 7 was late", ""]
        assert rows[2] == f"RANK        LAST COLLECTIVE       STATE{' ' * 22}SINCE"
        assert rows[3] == f"7           all_reduce #16        done{' ' * 23}10:58:52"
        assert rows[4:11] == [*others, "and 2 more", "by its recorder"]
        assert rows[11:20] == ["", *told, *stack, "RuntimeError: loss is nan: trainer/2, exit 1"]
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: drawn(screen)[2] != rows[2], "the rows of a narrow screen")
        assert drawn(screen)[2:11] == [
            "RANK      LAST COLLECTIVE    STATE     SINCE",
            "7         all_reduce #16     done      10:58:52",
            "0-1, 90   all_reduce #17 o…  wwwwwww…",
            "3-4, 93   all_reduce #20 o…  wwwwwww…",
            "6-7, 96   all_reduce #23 o…  wwwwwww…",
            "9-10, 99  all_reduce #26 o…  wwwwwww…",
            f"12-13,…{' ' * 22}wwwwwww…",
            "and 2 more",
            "by its recorder",
        ]
        found.append(Explanation(end.sentences[0], replace(end, standings=())))
        screen.why.show(screen.described, found[-1])
        assert drawn(screen)[:9] == ["rank 7 was late", *told, *stack, "RuntimeError: loss is nan: trainer/2, exit 1"]


async def test_table_and_headline_show_the_sentence_of_the_pane(scheduler, tmp_path, monkeypatch):
    found = Explanation("rank 2 failed: exit 1, ValueError: loss is nan", End(("rank 2 failed: exit 1",)))
    monkeypatch.setattr("torchx_tui.diagnosis.failure.explain.explain_job", lambda *_, **__: found)
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_failed(pilot, app)
        assert drawn(screen)[0] == found.sentence
        assert found.sentence in screen.state_line.left.plain
        assert app.jobs.rows[f"local_cwd://torchx/{FAILED}"].why == found.sentence
        # What the backend says meanwhile does not replace it.
        app.feed.refresh()
        await settled(pilot)
        assert app.jobs.rows[f"local_cwd://torchx/{FAILED}"].why == found.sentence


async def test_errors_of_the_settings_count(scheduler, tmp_path):
    for k in range(4):
        scheduler.write_log(FAILED, k, [(200, "o", f"PANIC in {k}\n")])
    settings = Settings(logs=LogSettings(error_patterns=("^PANIC",)))
    app = make_app(scheduler, tmp_path, settings=settings)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_failed(pilot, app)
        assert "PANIC in 2" in screen.why.reason


async def test_a_backend_that_keeps_no_timeline_gets_what_was_seen(scheduler, tmp_path):
    handle = "local_cwd://torchx/mixtral-8x7b-pt-w5zj0r7tn2bqcls"
    described = scheduler.described[handle.rpartition("/")[2]]
    described.timeline = []
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count > 0, "rows")
        for state in (AppState.RUNNING, AppState.PENDING, AppState.RUNNING):
            scheduler.set_state(described.app_id, state)
            await pilot.press("R")
            await until(pilot, lambda state=state: app.jobs.rows[handle].state is state, state.name)
        app.query_one(JobTable).move_to(handle)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.query_one(Timeline).changes)
        changes = app.screen.query_one(Timeline).changes
        assert [change.state.name for change in changes] == ["PENDING", "RUNNING", "PENDING", "RUNNING"]
        assert [change.at for change in changes[1:]] == sorted(change.at for change in changes[1:])
        # The head follows the job, too.
        screen = app.screen
        assert isinstance(screen, JobScreen)
        scheduler.set_state(described.app_id, AppState.CANCELLED)
        await pilot.press("R")
        await until(pilot, lambda: "Cancelled" in screen.state_line.left.plain, "the new state")


async def open_running(pilot, app):
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count > 0, "rows")
    running = next(row for row in app.jobs.rows.values() if row.state is AppState.RUNNING and row.wanted > 3)
    app.screen.table.move_to(running.handle)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.described is not None, "the Job screen")
    return app.screen


async def test_published_ports_come_with_the_command_that_reaches_them(scheduler, tmp_path, monkeypatch):
    for app_id, described in scheduler.described.items():
        scheduler.described[app_id] = replace(
            described,
            ports=[
                PublishedPort("trainer", 0, "tensor[red]board", 6006, "", 49153),
                PublishedPort("trainer", 1, "tensorboard", 6006, "gpu7", 49154),
                PublishedPort("trainer", 1, "profiler", 6007, "gpu7", 49155),
                PublishedPort("trainer", 2, "tensorboard", 6006, "", 6006, "kubectl port-forward pod/p 6006:6006"),
            ],
        )
    monkeypatch.setenv("LOGNAME", "alice")
    app = make_app(scheduler, tmp_path)
    copied = []
    monkeypatch.setattr(app.terminal_clipboard, "copy", lambda text, what: copied.append((text, what)))
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await open_running(pilot, app)
        lines = [line.plain for line in screen.replicas.facts.lines]
        assert "port     49153 for 6006  tensor[red]board" in lines
        screen.replicas.grid.focus()
        await pilot.press("y")
        host = os.uname().nodename
        assert copied == [(f"ssh -N -L 6006:127.0.0.1:49153 alice@{host}", "the ssh command")]
        await pilot.press("right", "y")
        # Of an engine elsewhere, the machine that it is on.
        both = "ssh -N -L 6006:127.0.0.1:49154 gpu7\nssh -N -L 6007:127.0.0.1:49155 gpu7"
        assert copied[-1] == (both, "the ssh commands")
        await pilot.press("right", "y")
        # Of a pod, what its cluster's client is to do.
        assert copied[-1] == ("kubectl port-forward pod/p 6006:6006", "the kubectl command")
        assert "port     6006 for 6006 of the pod  tensorboard" in [line.plain for line in screen.replicas.facts.lines]
        await pilot.press("right", "y")
        assert len(copied) == 3
        assert "publishes no port" in app.status.text().plain


async def test_a_shell_is_offered_where_the_backend_can(scheduler, tmp_path, monkeypatch):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await open_running(pilot, app)
        assert not screen.can("shell")
        able = replace(scheduler.capabilities, shell=True)
        monkeypatch.setattr(scheduler, "capabilities", able)
        app.post_message(CapabilitiesRead("local_cwd", able))
        await until(pilot, lambda: screen.can("shell"), "the key")

        asked = []

        def refuse(app_id, role, k):
            asked.append(k)
            raise SchedulerError(f"{role}/{k} of {app_id} has [no] shell")

        monkeypatch.setattr(scheduler, "shell_command", refuse, raising=False)
        screen.replicas.grid.focus()
        await pilot.press("right", "exclamation_mark")
        await until(pilot, lambda: "no shell: trainer/1 of" in app.status.text().plain, "the words")
        assert app.status.text().spans[-1].style == STYLES.failed
        # Asked for twice at once, one is opened.
        for _ in range(2):
            screen.action_shell()
        await settled(pilot)
        assert asked == [1, 1]
        monkeypatch.setattr(scheduler, "shell_command", lambda *_: ["true"])
        await pilot.press("exclamation_mark")
        # A terminal under test cannot be left; in a real one it is, see tests/e2e.
        await until(pilot, lambda: "cannot be suspended for a shell" in app.status.text().plain, "the words")
        # Asked for again while a slow backend looks for it, one is opened.
        looks, found, opened = [], threading.Event(), []

        def look(*_):
            looks.append(len(looks))
            assert found.wait(PATIENCE)
            return ["shell", str(looks)]

        monkeypatch.setattr(scheduler, "shell_command", look)
        monkeypatch.setattr(shell, "run_shell", lambda _, message: opened.append(message))
        for number in (1, 2):
            await pilot.press("exclamation_mark")
            await until(pilot, lambda: len(looks) == number, "the look")  # noqa: B023
        found.set()
        await until(pilot, lambda: not any(worker.is_running for worker in app.workers), "the end of both looks")
        await settled(pilot)
        assert len(opened) == 1
        app.runner.read_only = True
        assert not screen.can("shell")


async def test_what_a_description_failed_of_goes_once_there_is_one_again(scheduler, tmp_path, monkeypatch):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_failed(pilot, app)
        asked = []
        monkeypatch.setattr(app.feed, "explain", lambda *about: asked.append(about))
        describe = scheduler.describe

        def fails(app_id):
            raise SchedulerError("the server is away")

        scheduler.describe = fails
        app.feed.watch(screen.row.handle)
        await until(pilot, lambda: "the server is away" in app.status.text().plain, "the failure")
        scheduler.describe = describe
        app.feed.watch(screen.row.handle)
        await until(pilot, lambda: not app.status.text(), "the message to go")
        # What ended it is looked for once.
        assert asked == []


async def test_what_the_keys_copy_depends_on_the_pane(scheduler, tmp_path, monkeypatch):
    app = make_app(scheduler, tmp_path)
    copied = []
    monkeypatch.setattr(app.terminal_clipboard, "copy", lambda text, what: copied.append((text, what)))
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await open_failed(pilot, app)
        acting, others = ["l Logs", "r Relaunch", "e Edit", "D Delete"], ["tab Next pane", "] [ Tabs", "z Zoom"]
        assert key_bar(app) == [*acting, "y Copy reason", *others, "esc Back", "? Keys"]
        await pilot.press("y")
        assert copied == [(screen.why.reason, "the reason")]
        await pilot.press("tab")
        assert key_bar(app) == [*acting, "y Copy handle", *others, "esc Back", "? Keys"]
        await pilot.press("y")
        assert copied[-1] == (f"local_cwd://torchx/{FAILED}", f"the handle of {FAILED}")


async def test_tabs_and_the_zoom_are_left_before_the_job_is(scheduler, tmp_path):
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await open_failed(pilot, app)
        appdef, native = (screen.query_one(f"#{name}", TextPane) for name in ("appdef", "native"))

        async def shown(body, tab):
            """Wait until a tab is shown and has the focus, and its name stands out."""
            await until(pilot, lambda: body.region.height > 0 and screen.focused is body, tab)
            title = screen.title_rule.right
            assert [title.plain[span.start : span.end] for span in title.spans if "underline" in span.style] == [tab]

        await pilot.press("right_square_bracket")
        await shown(appdef.body, "AppDef")
        assert "entrypoint: python3" in appdef._content.render().plain
        await pilot.press("i")
        await shown(native.body, "Backend")
        await until(pilot, lambda: FAILED in native._content.render().plain, "what the backend says")
        await pilot.press("i")
        await shown(screen.why.body, "Overview")
        await pilot.press("left_square_bracket")
        await shown(native.body, "Backend")
        await pilot.press("escape")
        await shown(screen.why.body, "Overview")
        await pilot.press("z")
        await until(pilot, lambda: screen.logs.size.height > 30, "the logs alone")
        await pilot.press("escape")
        await until(pilot, lambda: screen.why.body.region.height > 0, "the reason beside them")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the table")


SUBMITTED, RUNNING, ENDED = (
    StateChange(state, NOW - ago)
    for state, ago in ((AppState.SUBMITTED, 3690), (AppState.RUNNING, 3600), (AppState.FAILED, 0))
)


@pytest.mark.parametrize(
    ("changes", "width", "rows"),
    [
        ([], 80, ["", "", ""]),
        ([SUBMITTED], 9, ["· ───", "Submitted", "09:57:22"]),
        (
            [SUBMITTED, RUNNING], 80,
            ["·─────────── 1m 30s ────────────● ───", f"Submitted{' ' * 23}Running", f"09:57:22{' ' * 24}09:58:52"],
        ),
        (
            [SUBMITTED, RUNNING, ENDED], 32,
            ["·─ 1m 30s ──●─ 1h 00m ──✗", "Submitted   Running     Failed", "09:57:22    09:58:52    10:58:52"],
        ),
        (
            [SUBMITTED, RUNNING, ENDED],
            31,
            ["·─ 1m 30s ─●─ 1h 00m ─✗", "Submitted  Running    Failed", "09:57:22   09:58:52   10:58:52"],
        ),
        (
            [SUBMITTED, RUNNING, ENDED], 26,
            ["●──── 1h 00m ─────✗", "Running           Failed", "09:58:52          10:58:52"],
        ),
    ],
)  # fmt: skip
def test_the_timeline_tells_how_long_each_state_took(changes, width, rows, utc):
    assert timeline_text(changes, width, UNICODE, NOW).plain.split("\n") == rows


@pytest.mark.parametrize(("name", "shown"), [("train", "name: train\n"), ("", "name: train-x\n")])
def test_the_appdef_is_named_as_the_job(name, shown):
    assert shown in appdef_yaml(DescribeAppResponse("train-x", AppState.RUNNING, name=name))


@pytest.mark.parametrize(
    ("reported", "quote"),
    [
        ("", ""),
        ("<NONE>", ""),
        ("exit 1 {", "exit 1 {"),
        ('{"message": "flat"}', "flat"),
        ('{"message": {"message": "nested"}}', "nested"),
        ('{"message": {"message": "nested", "extraInfo": {"py_callstack": "the stack"}}}', "the stack"),
        ('{"message": {"message": "nested", "extraInfo": 7}}', "nested"),
        ('{"code": 7}', '{\n "code": 7\n}'),
        ("[7]", "[7]"),
    ],
)
def test_the_error_that_a_job_reported_is_quoted(reported, quote):
    assert error_quote(reported) == quote


@pytest.mark.parametrize(
    ("width", "cells"), [(0, 1), (12, 2), (23, 3), (24, 4), (48, 8), (59, 8), (60, 10), (95, 10), (96, 16), (300, 16)]
)
def test_rows_of_replicas_have_a_number_of_cells_that_is_easy_to_count(width, cells):
    assert cells_per_row(width) == cells
