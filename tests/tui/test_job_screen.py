"""The Job screen: why a job ended, its replicas, its timeline and what its keys do."""

import os
import threading
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from support.canned import NOW, CannedScheduler
from support.dashboard import make_app
from support.screens import jobs_of
from support.waiting import PATIENCE

from torchx_tui.backends.api import DescribeAppResponse, PublishedPort, StateChange
from torchx_tui.diagnosis.failure.explain import Explanation
from torchx_tui.diagnosis.frames import Frame
from torchx_tui.diagnosis.recorder.dump import Collective
from torchx_tui.diagnosis.recorder.findings import RankPosition
from torchx_tui.logs.lines.failure import Failure, LoggedError
from torchx_tui.logs.pattern.error_kinds import ErrorKind
from torchx_tui.settings.config import LogSettings, Settings
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.roles import Role
from torchx_tui.specs.status import AppState
from torchx_tui.tui.job import shell
from torchx_tui.tui.job.screen import JobScreen, appdef_yaml
from torchx_tui.tui.job.timeline import Timeline, timeline_text
from torchx_tui.tui.job.why import error_quote
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.messages import SchedulerMade
from torchx_tui.tui.ui.dialog import AskDialog
from torchx_tui.tui.ui.glyphs import UNICODE

FAILED = "llama3-8b-sft-b7n1xk4t9wz0rg"
HANDLE = f"local_cwd://torchx/{FAILED}"
EXPLAIN = "torchx_tui.diagnosis.failure.explain"


@pytest.fixture
def utc(zone):
    zone("UTC")


@pytest.fixture
def copied(app, monkeypatch):
    """Give what is copied, with its name."""
    found = []
    monkeypatch.setattr(app.terminal_clipboard, "copy", lambda text, what: found.append((text, what)))
    return found


@asynccontextmanager
async def failed_job(app, size=(120, 40)):
    """Open the failed job, and wait until its logs were read for the cause."""
    async with jobs_of(app, size) as table:
        job = await table.job(FAILED)
        await job.until(lambda: job.screen.why.explanation is not None, "the cause")
        yield job


@asynccontextmanager
async def job_of(folder, replicas=130, **changes):
    """Open the only job of a dashboard."""
    scheduler = CannedScheduler(logs=folder / "logs")
    scheduler.add("sweep-1", AppState.RUNNING, 60.0, replicas=replicas)
    scheduler.apps["sweep-1"] = replace(scheduler.apps["sweep-1"], **changes)
    async with jobs_of(make_app(scheduler, folder)) as table:
        job = await table.job()
        await job.until(lambda: job.screen.replicas.chosen, "the replicas")
        yield job


@asynccontextmanager
async def running_job(app, size=(160, 45)):
    """Open a running job of several replicas."""
    async with jobs_of(app, size) as table:
        running = next(row for row in app.jobs.rows.values() if row.state is AppState.RUNNING and row.wanted > 3)
        yield await table.job(running.app_id)


async def test_errors_are_cut_on_the_screen_alone(app):
    async with failed_job(app) as job:
        assert [row.split()[1] for row in job.why() if row.endswith("…")] == ["trainer/0", "trainer/1"]
        assert "RuntimeError: Connection closed by peer [10.0.0.3]:31338" in job.screen.why.reason
        await job.resize(240, 50)
        await job.until(lambda: not any(row.endswith("…") for row in job.why()), "the whole errors")


async def test_unknown_times_are_not_shown(tmp_path):
    async with job_of(tmp_path, 1, submitted_at=None, started_at=None) as job:
        assert job.state() == "● Running"


async def test_number_finds_its_replica(tmp_path):
    async with job_of(tmp_path) as job:
        replicas = job.screen.replicas
        assert job.state() == "● Running   1m"
        assert job.why() == ["Running: the backend gives no reason."]
        await job.press("tab", until=lambda: job.focused() is replicas.grid, what="the grid")
        await job.press("1", "2", "8")
        assert replicas.grid.chosen == 128
        assert "128 " in replicas.grid.render_line(replicas.grid.size.height - 1).text
        # After another key a new number begins.
        await job.press("left", "4")
        assert replicas.grid.chosen == 4
        roles = [Role("trainer", "image", num_replicas=130), Role("reader", "image")]
        replicas.show(DescribeAppResponse("sweep-1", AppState.RUNNING, roles=roles))
        assert replicas.rule.info.plain == "trainer 130  reader 1"


async def test_click_chooses_the_replica_drawn_there(tmp_path):
    async with job_of(tmp_path) as job:
        grid = job.screen.replicas.grid
        # Those further down are seen as soon as one of them is chosen.
        for first in (0, 128):
            grid.action_move(first - grid.chosen)
            numbers = [int(word) for word in grid.render_line(1).text.split() if word.isdecimal()]
            assert await job.pilot.click(grid, offset=(1 + 6 * 2, 1))
            assert grid.chosen == numbers[2] > 2
            await job.until(lambda: job.log_replica() == grid.chosen, "its log")
            # Nothing is at the right of the last one.
            assert await job.pilot.click(grid, offset=(grid.size.width - 2, 1))
            assert grid.chosen == numbers[2]


async def test_error_that_was_not_reported_is_quoted_from_the_logs(app, scheduler):
    scheduler.described[FAILED].structured_error_msg = "<NONE>"
    async with failed_job(app) as job:
        assert "▎ RuntimeError: loss is nan at step 14917" in job.why()


async def test_logs_without_an_error_add_nothing(app, scheduler):
    for k in range(4):
        scheduler.write_log(FAILED, k, [(200, "o", "step 1\n")])
    async with failed_job(app) as job:
        assert "error" not in "\n".join(job.why()).replace("RuntimeError", "")


async def test_first_errors_that_follow_are_listed(app):
    logged = [LoggedError(number - 1, 1, None, f"error {number}", ErrorKind("error", "ERROR")) for number in range(7)]
    cause, *others = logged
    rows = [f"trainer/{number - 1}   error {number}" for number in range(1, 5)]
    async with failed_job(app) as job:
        described = job.screen.described
        for count, words in (
            (0, ["the only error in the logs"]),
            (1, ["first of 2 errors", *rows[:1]]),
            (4, ["first of 5 errors", *rows]),
            (6, ["first of 7 errors", *rows, "and 2 more"]),
        ):
            # Of four replicas, which begin at 0; the job did not report it.
            failure = Failure(cause._replace(replica=4), tuple(others[:count]), is_only=not count)
            job.screen.why.show(described, Explanation(described.reason, failure=failure))
            head = job.why().index("▎ error 0")
            assert job.why()[head:-2] == ["▎ error 0", "", f"replica 4   {words[0]}", *words[1:]]


async def test_failure_of_the_explanation_is_shown(app, monkeypatch):
    monkeypatch.setattr(f"{EXPLAIN}.explain_ranks", lambda *_: [][0])
    async with jobs_of(app) as table:
        app.push_screen(JobScreen(app.jobs.rows[HANDLE]))
        await table.shows("explain-failure stopped: IndexError: list index out of range", on="said")


async def test_rank_positions_come_first(app, utc, monkeypatch):
    def called(seq, group="default_pg", **more):
        return Collective("tp", group, seq, "all_reduce", **more)

    waits = [
        RankPosition((rank, rank + 1, 90 + rank), called(17 + rank, "tensors", state="w" * 40) if rank < 12 else None)
        for rank in range(0, 21, 3)
    ]
    blocking = RankPosition((7,), called(16, is_done=True), int(NOW) * 1_000_000_000, is_blocking=True)
    stack = (Frame("main", "train.py", 7), Frame("save", "train.py", 9))
    details = ("it hung", "then it failed")
    end = Explanation("rank 7 was late", details, (blocking, *waits), "by its recorder", stack, "Its stack:")
    # However often the job is explained.
    found = [end]
    monkeypatch.setattr(f"{EXPLAIN}.explain_job", lambda *_, **__: found[-1])
    below = [
        *("it hung", "then it failed", "", "Its stack:"),
        *('▎ File "train.py", line 7, in main', '▎ File "train.py", line 9, in save', ""),
        "RuntimeError: loss is nan: trainer/2, exit 1",
    ]
    async with failed_job(app) as job:
        rows = job.why()
        others = [
            f"{ranks:<10}  all_reduce #{seq} of tp  {'w' * 24}…"
            for ranks, seq in (("0-1, 90", 17), ("3-4, 93", 20), ("6-7, 96", 23), ("9-10, 99", 26))
        ]
        assert rows[:20] == [
            "rank 7 was late",
            "",
            f"RANK        LAST COLLECTIVE       STATE{' ' * 22}SINCE",
            f"7           all_reduce #16        done, idle{' ' * 17}10:58:52",
            *others,
            f"12-13, 102{' ' * 24}no flight recorder",
            "and 2 more",
            "by its recorder",
            "",
            *below,
        ]
        await job.resize(80, 24)
        await job.until(lambda: job.why()[2] != rows[2], "the rows of a narrow screen")
        assert job.why()[2:11] == [
            "RANK      LAST COLLECTIVE    STATE     SINCE",
            "7         all_reduce #16     done, i…  10:58:52",
            "0-1, 90   all_reduce #17 o…  wwwwwww…",
            "3-4, 93   all_reduce #20 o…  wwwwwww…",
            "6-7, 96   all_reduce #23 o…  wwwwwww…",
            "9-10, 99  all_reduce #26 o…  wwwwwww…",
            f"12-13,…{' ' * 22}no flig…",
            "and 2 more",
            "by its recorder",
        ]
        found.append(replace(end, positions=()))
        job.screen.why.show(job.screen.described, found[-1])
        assert job.why()[:9] == ["rank 7 was late", *below]


async def test_table_and_headline_have_the_sentence_of_the_pane(app, monkeypatch):
    found = Explanation("rank 2 failed: exit 1, ValueError: loss is nan")
    monkeypatch.setattr(f"{EXPLAIN}.explain_job", lambda *_, **__: found)
    async with failed_job(app) as job:
        assert job.why()[0] == found.sentence
        assert found.sentence in job.state()
        # What the backend says meanwhile does not replace it.
        app.feed.refresh()
        await job.settled()
        assert app.jobs.rows[HANDLE].why == found.sentence


async def test_error_patterns_of_the_settings_count(scheduler, tmp_path):
    for k in range(4):
        scheduler.write_log(FAILED, k, [(200, "o", f"PANIC in {k}\n")])
    settings = Settings(logs=LogSettings(error_patterns=("^PANIC",)))
    async with failed_job(make_app(scheduler, tmp_path, settings=settings)) as job:
        assert "PANIC in 2" in job.screen.why.reason


async def test_timeline_has_the_states_that_were_seen(app, scheduler):
    app_id = "mixtral-8x7b-pt-w5zj0r7tn2bqcls"
    scheduler.described[app_id].timeline = []
    async with jobs_of(app) as table:
        for state in (AppState.RUNNING, AppState.PENDING, AppState.RUNNING):
            scheduler.set_state(app_id, state)
            await table.press(
                "R", until=lambda state=state: app.jobs.rows[f"local_cwd://torchx/{app_id}"].state is state
            )
        job = await table.job(app_id)
        timeline = job.screen.query_one(Timeline)
        await job.until(lambda: timeline.changes, "the timeline")
        assert [change.state.name for change in timeline.changes] == ["PENDING", "RUNNING", "PENDING", "RUNNING"]
        times = [change.at for change in timeline.changes[1:]]
        assert times == sorted(times)
        # The headline changes, too.
        scheduler.set_state(app_id, AppState.CANCELLED)
        await job.press("R", shows="Cancelled", on="state")


async def test_ports_come_with_the_command_that_reaches_them(app, scheduler, copied, monkeypatch):
    ports = [
        PublishedPort("trainer", 0, "tensor[red]board", 6006, "", 49153),
        PublishedPort("trainer", 1, "tensorboard", 6006, "gpu7", 49154),
        PublishedPort("trainer", 1, "profiler", 6007, "gpu7", 49155),
        PublishedPort("trainer", 2, "tensorboard", 6006, "", 6006, "kubectl port-forward pod/p 6006:6006"),
    ]
    for app_id, described in scheduler.described.items():
        scheduler.described[app_id] = replace(described, ports=ports)
    monkeypatch.setenv("LOGNAME", "alice")
    async with running_job(app) as job:
        assert "port     49153 for 6006  tensor[red]board" in job.facts()
        job.screen.replicas.grid.focus()
        await job.press("y")
        await job.press("right", "y")
        await job.press("right", "y")
        assert copied == [
            (f"ssh -N -L 6006:127.0.0.1:49153 alice@{os.uname().nodename}", "the ssh command"),
            # Of an engine elsewhere: the machine that it is on.
            (
                "ssh -N -L 6006:127.0.0.1:49154 gpu7\nssh -N -L 6007:127.0.0.1:49155 gpu7",
                "the ssh commands",
            ),
            # Of a pod: what its cluster's client is to do.
            ("kubectl port-forward pod/p 6006:6006", "the kubectl command"),
        ]
        assert "port     6006 for 6006 of the pod  tensorboard" in job.facts()
        await job.press("right", "y")
        assert len(copied) == 3
        assert "publishes no port" in job.said()


@asynccontextmanager
async def job_with_a_shell(app, scheduler, monkeypatch, command):
    """Open a running job whose backend can open a shell, at its second replica."""
    async with running_job(app) as job:
        assert not job.screen.can("shell")
        monkeypatch.setattr(scheduler, "shell_command", command, raising=False)
        app.post_message(SchedulerMade("local_cwd", scheduler))
        await job.until(lambda: job.screen.can("shell"), "the key")
        job.screen.replicas.grid.focus()
        await job.press("right")
        yield job


async def test_refused_shell_says_why(app, scheduler, monkeypatch):
    asked = []

    def refuse(app_id, role, k):
        asked.append(k)
        raise SchedulerError(f"{role}/{k} of {app_id} has [no] shell")

    async with job_with_a_shell(app, scheduler, monkeypatch, refuse) as job:
        await job.press("exclamation_mark", shows="no shell: trainer/1 of", on="said")
        assert app.status.failed
        # Two presses at once ask once.
        for _ in range(2):
            job.screen.action_shell()
        await job.settled()
        assert asked == [1, 1]


async def test_one_shell_is_opened(app, scheduler, monkeypatch):
    asked, found, opened = [], threading.Event(), []

    def look(*_):
        asked.append(len(asked))
        assert found.wait(PATIENCE)
        return ["true"]

    async with job_with_a_shell(app, scheduler, monkeypatch, look) as job:
        with monkeypatch.context() as patched:
            patched.setattr(shell, "run_outside", lambda *about: (opened.append(about), (0, ""))[1])
            # The second press comes while a slow backend looks for the first.
            for number in (1, 2):
                await job.press("exclamation_mark", until=lambda number=number: len(asked) == number, what="the look")
            found.set()
            await job.settled()
            assert len(opened) == 1
        # A terminal under test cannot be left; in a real one it is, see tests/e2e.
        await job.press("exclamation_mark", shows="cannot be suspended for a shell", on="said")
        app.runner.read_only = True
        assert not job.screen.can("shell")


async def test_message_of_a_failed_description_goes_with_the_next(app, scheduler, monkeypatch):
    async with failed_job(app) as job:
        asked, describe = [], scheduler.describe
        monkeypatch.setattr(app.feed, "explain", lambda *about: asked.append(about))

        def fails(app_id):
            raise SchedulerError("the server is away")

        scheduler.describe = fails
        app.feed.watch(HANDLE)
        await job.shows("the server is away", on="said")
        scheduler.describe = describe
        app.feed.watch(HANDLE)
        await job.until(lambda: not job.said(), "the message to go")
        # The cause is looked for once.
        assert asked == []


async def test_copy_key_depends_on_the_pane(app, copied):
    async with failed_job(app, (160, 45)) as job:
        for what, text, name in (
            ("reason", job.screen.why.reason, "the reason"),
            ("handle", HANDLE, f"the handle of {FAILED}"),
        ):
            acting = ["l Logs", "p Metrics", "r Relaunch", "D Delete", "e Edit"]
            others = ["tab Next pane", "] [ Tabs", "z Zoom"]
            assert job.key_hints() == [*acting, f"y Copy {what}", *others, "esc Back", "? Keys"]
            await job.press("y", "tab")
            assert copied[-1] == (text, name)


async def test_page_of_a_deleted_job_is_closed(app, scheduler):
    async with failed_job(app) as job:
        await job.dialog(AskDialog, "D")
        await job.press("y", until=lambda: isinstance(app.screen, JobsScreen), what="the table")
        assert FAILED not in scheduler.apps


async def test_esc_leaves_tab_and_zoom_before_the_job(app):
    async with failed_job(app) as job:
        screen = job.screen
        bodies = {
            "AppDef": screen.query_one("#appdef").body,
            "Backend": screen.query_one("#native").body,
            "Overview": screen.why.body,
        }

        async def shows_tab(key, tab):
            """Press a key, and wait until a tab is shown with the focus, and its name stands out."""
            await job.press(key)
            body, title = bodies[tab], screen.title_rule.right
            await job.until(lambda: body.region.height > 0 and job.focused() is body, tab)
            underlined = [span for span in title.spans if "underline" in str(span.style)]
            assert [title.plain[span.start : span.end] for span in underlined] == [tab]

        await shows_tab("right_square_bracket", "AppDef")
        assert "entrypoint: python3" in job.tab("appdef")
        await shows_tab("i", "Backend")
        await job.until(lambda: FAILED in job.tab("native"), "what the backend says")
        await shows_tab("i", "Overview")
        await shows_tab("left_square_bracket", "Backend")
        await shows_tab("escape", "Overview")
        await job.press("z", until=lambda: screen.logs.size.height > 30, what="the logs alone")
        await job.press("escape", until=lambda: screen.why.body.region.height > 0, what="the reason beside them")
        await job.press("escape", until=lambda: app.screen is not screen, what="the table")


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
def test_timeline_shows_how_long_each_state_took(changes, width, rows, utc):
    assert timeline_text(changes, width, UNICODE, NOW).plain.split("\n") == rows


@pytest.mark.parametrize(("name", "shown"), [("train", "name: train\n"), ("", "name: train-x\n")])
def test_appdef_is_named_as_the_job(name, shown):
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
def test_reported_error_is_quoted(reported, quote):
    assert error_quote(reported) == quote


async def test_page_of_a_job_deleted_elsewhere_says_so(tmp_path):
    scheduler = CannedScheduler(logs=tmp_path / "logs")
    scheduler.add("sweep-1", AppState.RUNNING, 60.0)
    app = make_app(scheduler, tmp_path)
    async with jobs_of(app) as table:
        job = await table.job()
        await job.until(lambda: job.state().startswith("● Running"), "its state")
        del scheduler.apps["sweep-1"], scheduler.described["sweep-1"]
        app.feed.refresh()
        await job.until(lambda: "was deleted" in job.state(), "that it is gone")
        assert job.state().startswith("? Unknown")
        assert job.why() == ["local no longer has this job: it was deleted"]
        assert job.key_is_enabled("x") is not True
