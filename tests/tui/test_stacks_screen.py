"""The Stacks screen, by keys, on snapshots of jobs that hung."""

import json
from dataclasses import replace

import pytest
from support.canned import NOW, CannedScheduler, busy_scheduler, let_run_commands
from support.dashboard import make_app
from support.hung import hung_document, hung_snapshot
from support.pictures import RUNNING
from support.screens import jobs_of

from torchx_tui.backends.abilities import RunsCommands
from torchx_tui.backends.shared.bounded_command import CommandOutput
from torchx_tui.diagnosis.stacks import take as take_module
from torchx_tui.diagnosis.stacks.kept import keep_snapshot, kept_snapshots
from torchx_tui.diagnosis.stacks.protocol import from_document
from torchx_tui.settings.config import Settings, WatchSettings
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.status import AppState
from torchx_tui.tui.logs.screen import LogsScreen
from torchx_tui.tui.messages import ProgressRead
from torchx_tui.tui.rows import RowProgress
from torchx_tui.tui.stacks import screen as stacks
from torchx_tui.tui.stacks.screen import StacksScreen

HUNG = "hang-zq2wmx7v5hkdfd"
LEFT_ALONE = Settings(watch=WatchSettings(stacks_of_stalled=False))


def hung(folder, kind=CannedScheduler):
    """Return a scheduler with one running job, whose processes can be looked at."""
    scheduler = kind(logs=folder / "logs")
    if not isinstance(scheduler, RunsCommands):
        let_run_commands(scheduler)
    scheduler.add(HUNG, AppState.RUNNING, 60, replicas=4)
    return scheduler


@pytest.fixture
def take(monkeypatch):
    """Give what sets the stacks that are read; at first those of a job that hangs as it saves a checkpoint."""

    def take(read):
        monkeypatch.setattr(take_module, "take_snapshot", lambda _, handle, **__: replace(read(), handle=handle))

    monkeypatch.setattr(stacks, "PAUSE_S", 0.0)
    take(lambda: hung_snapshot("checkpoint"))
    return take


async def stacks_by(driver, key="b"):
    """Open the stacks, and wait until they are read."""
    screen = await driver.open(StacksScreen, key)
    await driver.until(lambda: screen.is_done, "the stacks")
    return screen


async def draws(driver, *texts):
    """Wait until the screen has these texts, in lines or not."""
    await driver.until(lambda: all(text in " ".join(driver.drawn().split()) for text in texts), f"{texts}")


def refuse():
    raise SchedulerError("it \x1b[31m does not run yet")


def unread():
    document = hung_document("sleep")
    for reply in document["replies"]:
        for line in reply["lines"]:
            if line["kind"] == "process":
                line.update(text="", tried=[["py-spy", "not allowed: ask as root"]])
    return from_document(document)


async def test_stacks_are_read_and_grouped(tmp_path, take):
    async with jobs_of(make_app(hung(tmp_path), tmp_path)) as table:
        take(refuse)
        screen = await stacks_by(table)
        await draws(table, "does not run yet")
        take(unread)
        await table.press("R")
        await draws(table, "not read: rank 0 and 3 more, py-spy: not allowed")
        take(lambda: hung_snapshot("checkpoint"))
        await table.press("R")
        groups = "2 groups", "rank 0 saves a checkpoint, train.py:", "save_checkpoint", "worker server, 4 of 4 ranks"
        await draws(table, *groups, "time.sleep(FOREVER)", "the job hangs.", "Compared with the 3 others")
        await table.resize(80, 24)
        await draws(table, *groups)
        await table.press("j", until=lambda: screen.stack.rank == 1, what="the other group")
        await table.press(">")
        await draws(table, "rank 2, vm", "_engine_run_")
        await table.press("v")
        await draws(table, "of libraries hidden")
        await table.back("escape")


async def test_from_the_job_and_its_logs_and_back(tmp_path, take, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app, copied = make_app(hung(tmp_path), tmp_path), []
    monkeypatch.setattr(app.terminal_clipboard, "copy", lambda text, what: copied.append(text))
    async with jobs_of(app) as table:
        job = await table.job()
        assert "b Stacks" in job.key_hints()
        await stacks_by(job)
        await job.press("y", "S")
        saved = tmp_path / f"{HUNG}-stacks.txt"
        await job.until(lambda: copied and saved.exists() and saved.read_text() == copied[0], "the file")
        assert 'File "/home/alice/train/train.py"' in copied[0]
        await job.press("j", "greater_than_sign")
        logs = await job.open(LogsScreen, "l")
        await job.until(lambda: logs.logs.log_pane.status.replica == 2, "the log of rank 2")
        screen = await stacks_by(job)
        # Of the two earlier snapshots the second is kept, with their comparison.
        assert [pace for _, _, pace in screen.kept] == ["hangs"]
        assert job.drawn().count("2 groups   hangs") == 1


@pytest.mark.parametrize("is_wanted", [True, False])
async def test_stacks_of_a_stalled_job_are_there_without_a_key(tmp_path, is_wanted):
    """They are taken once, in ways that stop no process, and the finding is said."""
    asked = []

    class Hung(CannedScheduler):
        def run_beside(self, app_id, role_name, k, argv, timeout_s=0.0):
            asked.append(json.loads(argv[-1])["stop"])
            lines = hung_snapshot("checkpoint").replies[k].lines
            return CommandOutput(0, "\n".join(json.dumps(line) for line in lines).encode(), b"")

    app = make_app(hung(tmp_path, Hung), tmp_path, settings=Settings() if is_wanted else LEFT_ALONE)
    async with jobs_of(app) as table:
        (handle,) = app.jobs.rows
        for _ in range(2):
            app.alerts.announce_stall(handle, "no step for 9m", 540.0)
        if is_wanted:
            await draws(table, "rank 0 has not reached")
        await app.workers.wait_for_complete()
    assert asked == [False] * 4 * is_wanted
    assert len(kept_snapshots(handle)) == int(is_wanted)


async def test_the_finding_stands_with_the_stalled_job(tmp_path, monkeypatch):
    """In its pane and on its card, also of a dashboard that is opened later, which takes nothing again."""
    taken_once = [replace(hung_snapshot("checkpoint"), handle=RUNNING, at=NOW - 5)]
    monkeypatch.setattr(take_module, "take_snapshot", lambda *_, **__: taken_once.pop())
    scheduler = busy_scheduler(tmp_path / "logs")
    card = "! rank 0 has not reached"
    for _ in range(2):
        app = make_app(scheduler, tmp_path)
        async with jobs_of(app) as table:
            table.table.move_to(RUNNING)
            job = await table.job()
            await draws(job, "worker server, 4 of 4 ranks", "Stacks ", "rank 0 saves a checkpoint, train.py:")
            await table.back("escape")
            without_step = RowProgress(4, 0.5, None, "loss", "0.871", "no step for 9m", 540.0)
            app.on_progress_read(ProgressRead({RUNNING: without_step}))
            await draws(table, card)
            app.on_progress_read(ProgressRead({RUNNING: without_step._replace(stalled="")}))
            await table.until(lambda: card not in table.drawn(), "the card as it was")
    assert taken_once == []


async def test_stacks_from_before_a_stall_are_not_its_finding(tmp_path, take):
    keep_snapshot(replace(hung_snapshot("checkpoint"), handle=RUNNING, at=NOW - 86400))
    scheduler = let_run_commands(busy_scheduler(tmp_path / "logs"))
    app = make_app(scheduler, tmp_path, settings=LEFT_ALONE)
    async with jobs_of(app) as table:
        table.table.move_to(RUNNING)
        job = await table.job()
        await draws(job, "Stalled")
        await app.workers.wait_for_complete()
        await job.pilot.pause()
        assert "4 of 4 ranks" not in job.drawn()
        # What a person takes is shown, whatever is configured.
        take(lambda: replace(hung_snapshot("sleep"), at=NOW))
        await stacks_by(job)
        await job.back("escape")
        await draws(job, "4 of 4 ranks")


async def test_no_key_where_nothing_can_be_read(tmp_path):
    scheduler = CannedScheduler()
    scheduler.add("plain-zq2wmx7v5hkdfd", AppState.RUNNING, 60)
    app = make_app(scheduler, tmp_path)
    async with jobs_of(app) as table:
        await table.press("b")
        await table.pilot.pause()
        assert app.screen is table.screen
