"""What is shown of jobs of Slurm, and what is done with them, by keys."""

import time
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.screens import Launch, jobs_of, text_of
from support.slurm_commands import FIELD, RECORD

from torchx_tui.backends.api import DescribeAppResponse
from torchx_tui.backends.history.launch_record import LaunchOrigin, LaunchRecord
from torchx_tui.components.build import build_app
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.specs.roles import Role
from torchx_tui.specs.status import AppState
from torchx_tui.tui.job.continuation import find_continuation, resume_argument
from torchx_tui.tui.job.menu import ActionsDialog
from torchx_tui.tui.job.sooner import SoonerDialog
from torchx_tui.tui.launch.form_field import Origin
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.rows import JobRow
from torchx_tui.tui.ui.dialog import TEXT_WIDTH, AskDialog

SCRIPT = "#!/bin/sh\n#SBATCH --time=2:00:00\nsrun hostname\n"
ME = {"UserName": "root", "Name": "train"}
WAITING = {**ME, "State": "PENDING", "StartTime": "N/A"}


@asynccontextmanager
async def job_of(app):
    """Open the screen of the only job."""
    async with jobs_of(app) as table:
        yield await table.job()


async def choose(driver, name):
    """Choose an action in the list."""
    dialog = await driver.open(ActionsDialog, "A")
    await driver.shows("enter do it   esc back", on="drawn")
    await driver.press(*["j"] * [action.name for action in dialog.actions].index(name))
    assert dialog.chosen.name == name
    await driver.press("enter")


async def called(driver, commands, *words):
    """Wait until scontrol was called."""
    await driver.until(lambda: list(words) in commands.calls("scontrol"), f"scontrol {words}")


async def form_by(driver, action, *keys):
    """Choose an action, and open the form; return what is typed there."""
    if action:
        await choose(driver, action)
    await driver.open(LaunchScreen, *keys)
    launch = Launch(driver.pilot)
    await launch.opened()
    return {one.name: one.text for one in launch.model if one.origin is Origin.TYPED}


async def test_actions_on_a_job_are_done(app, commands):
    commands.queue(WAITING)
    async with jobs_of(app) as table:
        name = table.table.cursor_row.name
        for action, reason in (("hold", "None"), ("release", "JobHeldUser")):
            commands.queue({**WAITING, "Reason": reason})
            await table.press(
                "R", until=lambda reason=reason: ("held" in table.facts()) is (reason != "None"), what="why it waits"
            )
            await choose(table, action)
            await called(table, commands, action, "7")
            await table.shows(f"{action}: {name} done", on="said")
        commands.queue(ME)
        await table.press(
            "R", until=lambda: app.jobs.rows["slurm://torchx/7"].state is AppState.RUNNING, what="its start"
        )
        job = await table.job()
        # A time limit is typed.
        await choose(job, "limit")
        field = app.screen._input
        await job.until(lambda: job.focused() is field, "the field")
        # At once: the next key may be here already.
        app.screen.action_back()
        assert job.focused() is None
        await job.press("enter", until=lambda: job.focused() is field, what="the field again")
        # The list stays where it is.
        await job.press("down", "pagedown", *"1:30:00", "enter")
        await called(job, commands, "update", "JobId=7", "TimeLimit=1:30:00")
        await job.until(lambda: app.screen is job.screen, "the job")
        # What ends a job is asked about first; the harmless button has the focus.
        for key in ("enter", "y"):
            assert ["requeue", "7"] not in commands.calls("scontrol")
            await choose(job, "requeue")
            await job.dialog(AskDialog)
            await job.back(key)
        await called(job, commands, "requeue", "7")


async def test_why_a_job_waits_is_said_with_its_evidence(app, commands):
    commands.queue({**WAITING, "Reason": "PartitionTimeLimit", "TimeLimit": "2:00:00"})
    commands.answer("scontrol-show-partition-main", "PartitionName=main MaxTime=01:00:00 State=UP")
    async with job_of(app) as job:
        reason = job.screen.why.reason.splitlines()
        assert reason[:2] == [
            "its time limit exceeds that of its partition: ask for less time",
            "  it asks for 2h, and the partition main allows 1h",
        ]
        assert {"partition     main", "time limit    2h"} <= {*map(str.rstrip, reason)}


async def test_time_limit_of_a_job_that_runs(app, commands):
    started = int(app.now()) - 600
    commands.queue({**ME, "StartTime": str(started), "TimeLimit": "1:00:00"})
    async with jobs_of(app, (200, 50)) as table:
        assert table.table.cursor_row.limit_at == started + 3600
        await table.shows("limit ", on="drawn")
        assert "time limit in 50m" in (await table.job()).state()


async def test_what_would_start_sooner_opens_the_form(app, commands, tmp_path, monkeypatch):
    start = int(time.time()) + 7200
    commands.queue(
        {**WAITING, "Reason": "Priority", "StartTime": f"{start}", "TimeLimit": "2:00:00", "WorkDir": f"{tmp_path}"}
    )
    commands.answer("scontrol-write-batch_script-7", SCRIPT)
    commands.accounted({"State": "PENDING", "SubmitLine": "sbatch train.sh"})
    rows = [f"{RECORD}{name}{FIELD}up{FIELD}3{FIELD}4000{FIELD}infinite\n" for name in ("main*", "spare")]
    commands.answer("sinfo", "".join(rows))
    commands.answer(
        "sbatch", err=f"sbatch: Job 9 to start at {start - 3600} using 1 processors on nodes n1 in partition x"
    )
    async with job_of(app) as job:
        await choose(job, "sooner")
        dialog = await job.open(SoonerDialog)
        await job.until(lambda: dialog.alternatives, "the estimates")
        found = dialog.alternatives
        assert [dict(each.changes) for each in found] == [{"partition": "spare"}, {"time": "1:00:00"}, {}]
        # In columns, of which the first is cut.
        parts = [row.plain[19:] for row in dialog.rows()]
        assert parts == ["~   partition spare", "~   time 1:00:00", "~   as it is"]

        def words():
            return text_of(dialog, "#dialog-text").strip()

        assert words() == "train 7"
        dialog.alternatives = [replace(found[0], start=None, fault=fault) for fault in ("", "no such partition")]
        assert [row.plain[:17].rstrip() for row in dialog.rows()] == ["not known", "no such partition"]
        dialog.alternatives = [replace(found[0], changes={"qos": "x" * 100})]
        assert dialog.rows()[0].plain[23:] == f"qos {'x' * (TEXT_WIDTH - 29)}~"
        with monkeypatch.context() as patched:
            patched.setattr(app.runner.scheduler("slurm"), "alternatives", lambda _: 1 / 0)
            await job.press(
                "R", until=lambda: "ZeroDivisionError: division by zero" in words(), what="why there are none"
            )
        await job.press("R", until=lambda: dialog.alternatives, what="the estimates again")
        assert "e edit with this   R ask again   esc back" in job.drawn()
        assert await form_by(job, "", "j", "e") == {"time": "1:00:00"}


async def test_everybodys_jobs_by_a_key(app, commands):
    def asked_for_all():
        return [call for call in commands.calls("squeue") if "--user" not in call]

    commands.queue(ME, {"JobID": "8", "UserName": "bob", "Name": "theirs"})
    async with jobs_of(app) as table:
        # Jobs of others that a backend lists are not TorchX's.
        assert table.rows() == ["7"]
        assert not asked_for_all()
        await table.press("u")
        await table.has(2)
        await table.until(asked_for_all, "the question")
        assert table.screen.view.words[0] == "everybody's"
        await table.press("u")
        await table.has(1)
        assert table.screen.view.user == "root"
        await table.press(
            "u", until=lambda: not (table.screen.view.user or table.screen.view.everybody), what="all that is listed"
        )


@pytest.fixture
def checkpoint(app, commands):
    """Launch a script that has written a checkpoint; return that."""
    script, checkpoint = Path("train.sbatch"), Path("out", "checkpoint-20")
    script.write_text('#!/bin/sh\n#SBATCH --time=10\nresume=${1:-none}\nsrun python train.py --resume "$resume"\n')
    checkpoint.mkdir(parents=True)
    commands.queue({**ME, "WorkDir": str(Path.cwd())})
    app.runner.run(build_app(str(script), {}), "slurm", {}, origin=LaunchOrigin(str(script)))
    return str(checkpoint.absolute())


async def test_job_that_goes_on_after_this_one(app, checkpoint):
    async with job_of(app) as job:
        assert await form_by(job, "continue") == {"dependency": "afterany:7", "resume": checkpoint}


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["lr", "resume_from"], "resume_from"),
        (["checkpoint", "init_ckpt", "Resume"], "Resume"),
        (["checkpoint", "load_checkpoint"], "load_checkpoint"),
        (["checkpoint_dir", "lr", "from-ckpt"], "from-ckpt"),
        (["checkpoint_dir", "checkpoint"], "checkpoint"),
        (["ckpt_dir", "CKPT"], "CKPT"),
        (["lr", "checkpoint_dir"], ""),
        ([], ""),
    ],
)
def test_argument_of_a_checkpoint_is_found_by_its_name(names, found):
    assert resume_argument(names) == found


UNNAMED = "The component has no argument for a checkpoint"


@pytest.fixture
def continued(tmp_path):
    """Give what continues a job, and returns the run options and the only message."""

    def continued(state, record=None, **logs):
        described = DescribeAppResponse("7", state, roles=[Role("r", "")] if logs else [], log_dir=str(tmp_path))
        said = []
        found = [ReplicaLog("r", 0, **logs)] if logs else []
        job = SimpleNamespace(describe=lambda: described, replica_logs=lambda _: found)
        app: Any = SimpleNamespace(runner=SimpleNamespace(job=lambda _: job), post_from_thread=said.append)
        options = find_continuation(app, JobRow("slurm://torchx/7", "slurm", "7", state), record)
        (message,) = said
        return options, message.text

    return continued


@pytest.mark.parametrize(
    ("state", "component", "has_checkpoint", "dependency", "words"),
    [
        (AppState.RUNNING, "utils.echo", True, {"dependency": "afterany:7"}, f"checkpoint-20. {UNNAMED}"),
        (AppState.FAILED, "", True, {}, f"checkpoint-20. {UNNAMED}"),
        (AppState.FAILED, "gone.py:job", False, {}, "No checkpoint was found in the job's folder or its logs"),
    ],
)
def test_continuation_without_a_checkpoint(continued, tmp_path, state, component, has_checkpoint, dependency, words):
    if has_checkpoint:
        (tmp_path / "checkpoint-20").mkdir()
    record = LaunchRecord("1", 0.0, "slurm", "torchx", {}, component=component)
    options, text = continued(state, record)
    assert (options, text.endswith(words)) == (dependency, True)


def test_checkpoint_that_a_log_names_is_found(continued, tmp_path):
    saved, log = tmp_path / "step_5.pt", tmp_path / "stdout.log"
    saved.touch()
    log.write_text(f"saved checkpoint to {saved}\n")
    assert continued(AppState.FAILED, stdout=log) == ({}, f"Newest checkpoint: {saved}. {UNNAMED}")
