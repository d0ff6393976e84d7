"""The Stacks screen, by keys, on takes of jobs that hung."""

import json
from dataclasses import replace

import pytest
from support.canned import NOW, CannedScheduler, busy_scheduler
from support.dashboard import make_app, screen_text, until
from support.hung import hung_take
from support.pictures import RUNNING, at_job

from torchx_tui.backends.api import CommandOutput
from torchx_tui.diagnosis.stacks import stalled
from torchx_tui.diagnosis.stacks.kept import keep_take, kept_takes
from torchx_tui.settings.config import Settings, WatchSettings
from torchx_tui.specs import AppState, SchedulerError
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.logs.screen import LogsScreen
from torchx_tui.tui.messages import ProgressRead
from torchx_tui.tui.rows import RowProgress
from torchx_tui.tui.stacks import screen as stacks
from torchx_tui.tui.stacks.screen import StacksScreen
from torchx_tui.tui.ui.bars import KeyBar


@pytest.fixture
def app(tmp_path, monkeypatch):
    """Give the application with one running job, whose stacks are those of a job that hung."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(stacks, "PAUSE_S", 0.0)
    monkeypatch.setattr(stacks, "take_stacks", lambda _, handle, **__: replace(hung_take("checkpoint"), handle=handle))
    scheduler = CannedScheduler(logs=tmp_path / "logs")
    scheduler.capabilities = replace(scheduler.capabilities, run_beside=True)
    scheduler.add("hang-zq2wmx7v5hkdfd", AppState.RUNNING, 60, replicas=4)
    return make_app(scheduler, tmp_path)


async def opened(pilot, app):
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.jobs.rows, "the jobs")
    await pilot.press("b")
    await until(pilot, lambda: isinstance(app.screen, StacksScreen) and app.screen.is_done, "the stacks")
    return app.screen


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_from_the_key_to_the_groups(app, size):
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot, app)
        await until(pilot, lambda: "2 places" in screen_text(app), "the groups")
        text = screen_text(app)
        assert "rank 0 saves a checkpoint, train.py:" in " ".join(text.split())
        assert "save_checkpoint" in text
        assert "worker server, 4 of 4 ranks" in text
        if size == (120, 40):
            assert "time.sleep(FOREVER)" in text
            assert "it hangs." in " ".join(text.split())
            assert "Against the 3 others" in text
        await pilot.press("j")
        await until(pilot, lambda: screen.stack.rank == 1, "the other group")
        await pilot.press(">")
        await until(pilot, lambda: "rank 2, vm" in screen_text(app), "the next rank of the group")
        assert "_engine_run_" in screen_text(app)
        await pilot.press("v")
        await until(pilot, lambda: "of libraries hidden" in screen_text(app), "the user's own frames")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))


async def test_from_the_job_and_its_logs_and_back(app, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    copied = []
    monkeypatch.setattr(app.terminal_clipboard, "copy", lambda text, what: copied.append(text))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.jobs.rows, "the jobs")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen), "the job")
        assert [hint.word for hint in app.screen.query_one(KeyBar).hints if hint.key == "b"] == ["Stacks"]
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, StacksScreen) and app.screen.is_done, "the stacks")
        await pilot.press("y", "S")
        saved = tmp_path / "hang-zq2wmx7v5hkdfd-stacks.txt"
        await until(pilot, lambda: copied and saved.exists() and saved.read_text() == copied[0], "the file")
        assert 'File "/home/alice/train/train.py"' in copied[0]
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LogsScreen), "the logs")
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, StacksScreen) and app.screen.is_done, "the stacks again")
        # Of the two takes before one is kept, and what both together told.
        assert [pace for _, _, pace in app.screen.kept] == ["hangs"]
        assert screen_text(app).count("2 places   hangs") == 1


@pytest.mark.parametrize("is_wanted", [True, False])
async def test_stacks_of_a_stalled_job_are_there_without_a_key(tmp_path, monkeypatch, is_wanted):
    """They are taken once, in ways that stop no process, and the finding is said."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    asked = []

    class Hung(CannedScheduler):
        def run_beside(self, app_id, role_name, k, argv, timeout_s=0.0):
            asked.append(json.loads(argv[-1]))
            lines = hung_take("checkpoint").replies[k].lines
            return CommandOutput(0, "\n".join(json.dumps(line) for line in lines).encode(), b"")

    scheduler = Hung(logs=tmp_path / "logs")
    scheduler.capabilities = replace(scheduler.capabilities, run_beside=True)
    scheduler.add("hang-zq2wmx7v5hkdfd", AppState.RUNNING, 60, replicas=4)
    settings = Settings(watch=WatchSettings(stacks_of_stalled=is_wanted))
    app = make_app(scheduler, tmp_path, settings=settings)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.jobs.rows, "the jobs")
        (handle,) = app.jobs.rows
        for _ in range(2):
            app.ended_jobs.announce_stall(handle, "no step for 9m", 540.0)
        if is_wanted:
            await until(pilot, lambda: "rank 0 has not reached" in screen_text(app), "the finding")
        await app.workers.wait_for_complete()
    assert [each["stop"] for each in asked] == [False] * 4 * is_wanted
    assert len(kept_takes(handle)) == int(is_wanted)


async def test_the_finding_stands_with_the_stalled_job(tmp_path, monkeypatch):
    """In its pane and on its card, also of a dashboard that is opened later, which takes nothing again."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    taken_once = [replace(hung_take("checkpoint"), handle=RUNNING, at=NOW - 5)]
    monkeypatch.setattr(stalled, "take_stacks", lambda *_, **__: taken_once.pop())
    scheduler = busy_scheduler(tmp_path / "logs")

    async def sees_it(app):
        async with app.run_test(size=(120, 40)) as pilot:
            await at_job(RUNNING, "enter")(pilot)
            await until(pilot, lambda: "worker server, 4 of 4 ranks" in screen_text(app), "the finding")
            assert isinstance(app.screen, JobScreen)
            text = screen_text(app)
            assert "Stacks " in text
            assert "rank 0 saves a checkpoint, train.py:" in " ".join(text.split())
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the table")
            without_step = RowProgress(4, 0.5, None, "loss", "0.871", "no step for 9m", 540.0)
            app.on_progress_read(ProgressRead({RUNNING: without_step}))
            await until(pilot, lambda: "! rank 0 has not reached" in screen_text(app), "the card")
            app.on_progress_read(ProgressRead({RUNNING: without_step._replace(stalled="")}))
            await until(pilot, lambda: "! rank 0 has not reached" not in screen_text(app), "the card as it was")

    await sees_it(make_app(scheduler, tmp_path))
    await sees_it(make_app(scheduler, tmp_path))
    assert taken_once == []


async def test_stacks_from_before_a_stall_are_not_its_finding(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    keep_take(replace(hung_take("checkpoint"), handle=RUNNING, at=NOW - 86400))
    settings = Settings(watch=WatchSettings(stacks_of_stalled=False))
    scheduler = busy_scheduler(tmp_path / "logs")
    scheduler.capabilities = replace(scheduler.capabilities, run_beside=True)
    app = make_app(scheduler, tmp_path, settings=settings)
    async with app.run_test(size=(120, 40)) as pilot:
        await at_job(RUNNING, "enter")(pilot)
        await until(pilot, lambda: "Stalled" in screen_text(app), "that it is stalled")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "4 of 4 ranks" not in screen_text(app)
        # What a person takes is shown, whatever is configured.
        monkeypatch.setattr(stacks, "PAUSE_S", 0.0)
        monkeypatch.setattr(stacks, "take_stacks", lambda *_, **__: replace(hung_take("sleep"), handle=RUNNING, at=NOW))
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, StacksScreen) and app.screen.is_done, "the stacks")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, JobScreen) and "4 of 4 ranks" in screen_text(app), "it")


async def test_what_cannot_be_read_is_said(app, monkeypatch):
    def refuse(*_, **__):
        raise SchedulerError("it \x1b[31m does not run yet")

    monkeypatch.setattr(stacks, "take_stacks", refuse)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, app)
        await until(pilot, lambda: "does not run yet" in screen_text(app), "the reason")
        unread = hung_take("sleep")
        for reply in unread.replies:
            for line in reply.lines:
                if line["kind"] == "process":
                    line.update(text="", tried=[["py-spy", "not allowed: ask as root"]])
        monkeypatch.setattr(stacks, "take_stacks", lambda *_, **__: unread)
        await pilot.press("R")
        await until(
            pilot, lambda: "not read: rank 0 and 3 more, py-spy: not allowed" in screen_text(app), "who and why"
        )


async def test_no_key_where_nothing_can_be_read(tmp_path):
    scheduler = CannedScheduler()
    scheduler.add("plain-zq2wmx7v5hkdfd", AppState.RUNNING, 60)
    app = make_app(scheduler, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.jobs.rows, "the jobs")
        await pilot.press("b")
        await pilot.pause()
        assert isinstance(app.screen, JobsScreen)
