"""What is shown of jobs of Slurm, and what is done with them, by keys."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.dashboard import screen_text, until
from support.launching import model_of
from support.slurm_commands import FIELD, RECORD
from textual.widgets import Static

from torchx_tui.backends.api import DescribeAppResponse
from torchx_tui.backends.history.launch_record import LaunchOrigin, LaunchRecord
from torchx_tui.components import build_app
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.specs import AppState, Role
from torchx_tui.tui.job.continuation import find_continuation, resume_argument
from torchx_tui.tui.job.menu import ActionsDialog, EndingDialog
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.job.sooner import SoonerDialog
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.rows import JobRow
from torchx_tui.tui.ui.dialog import TEXT_WIDTH

SCRIPT = "#!/bin/sh\n#SBATCH --time=2:00:00\nsrun hostname\n"
ME = {"UserName": "root", "Name": "train"}


async def opened(pilot, app) -> JobScreen:
    """Open the screen of the only job."""
    await jobs(pilot, app, 1)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.described, "the job")
    return app.screen


async def jobs(pilot, app, count: int) -> JobsScreen:
    await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count == count, "the jobs")
    return app.screen


async def choose(pilot, app, name: str) -> None:
    """Choose an action in the list."""
    await pilot.press("A")
    await until(pilot, lambda: "enter do it   esc back" in screen_text(app), "the actions")
    assert isinstance(app.screen, ActionsDialog)
    for _ in app.screen.actions:
        if app.screen.chosen.name == name:
            break
        await pilot.press("j")
    assert app.screen.chosen.name == name
    await pilot.press("enter")


async def called(pilot, commands, program: str, *words: str) -> None:
    await until(pilot, lambda: list(words) in commands.calls(program), f"{program} {words}")


@pytest.mark.parametrize(
    ("job", "action", "program", "words"),
    [
        ({"State": "PENDING", "StartTime": "N/A"}, "hold", "scontrol", ["hold", "7"]),
        ({"State": "PENDING", "StartTime": "N/A", "Reason": "JobHeldUser"}, "release", "scontrol", ["release", "7"]),
    ],
)
async def test_an_action_without_a_value(app, commands, job, action, program, words) -> None:
    commands.queue({**ME, **job})
    async with app.run_test(size=(120, 40)) as pilot:
        await jobs(pilot, app, 1)
        (row,) = app.jobs.rows.values()
        await choose(pilot, app, action)
        await called(pilot, commands, program, *words)
        said = f"{action}: {row.name} done"
        await until(pilot, lambda: app.status.text().plain.endswith(said), said)


async def test_a_time_limit_is_typed(app, commands) -> None:
    commands.queue(ME)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        await choose(pilot, app, "limit")
        await until(pilot, lambda: app.screen.focused is app.screen._input, "the field")
        # At once: the next key may be here already.
        app.screen.action_back()
        assert app.screen.focused is None
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.focused is app.screen._input, "the field again")
        # The list stays where it is.
        await pilot.press("down", "pagedown", *"1:30:00", "enter")
        await called(pilot, commands, "scontrol", "update", "JobId=7", "TimeLimit=1:30:00")


async def test_what_ends_a_job_is_asked_about_first(app, commands) -> None:
    commands.queue(ME)
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        await choose(pilot, app, "requeue")
        await until(pilot, lambda: isinstance(app.screen, EndingDialog) and app.screen.query("Button"), "the question")
        # The harmless button has the focus.
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, JobScreen), "the job")
        assert ["requeue", "7"] not in commands.calls("scontrol")
        await choose(pilot, app, "requeue")
        await until(pilot, lambda: isinstance(app.screen, EndingDialog) and app.screen.query("Button"), "the question")
        await pilot.press("y")
        await called(pilot, commands, "scontrol", "requeue", "7")


async def test_why_it_waits_with_its_evidence_and_what_slurm_has_beside(app, commands) -> None:
    commands.queue(
        {**ME, "State": "PENDING", "Reason": "PartitionTimeLimit", "StartTime": "N/A", "TimeLimit": "2:00:00"}
    )
    commands.answer("scontrol-show-partition-main", "PartitionName=main MaxTime=01:00:00 State=UP")
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await opened(pilot, app)
        assert screen.why.reason.splitlines()[:2] == [
            "its time limit exceeds that of its partition: ask for less time",
            "  it asks for 2h, and main allows 1h",
        ]
        assert "partition     main" in screen.why.reason
        assert "time limit    2h" in screen.why.reason


async def test_the_time_limit_of_a_job_that_runs(app, commands) -> None:
    started = int(app.now()) - 600
    commands.queue({**ME, "StartTime": str(started), "TimeLimit": "1:00:00"})
    async with app.run_test(size=(200, 50)) as pilot:
        screen = await jobs(pilot, app, 1)
        (row,) = app.jobs.rows.values()
        assert row.limit_at == started + 3600
        await until(pilot, lambda: "limit " in screen_text(app), "the limit")
        screen = await opened(pilot, app)
        assert "time limit in 50m" in screen.state_line.left.plain


async def test_what_would_start_sooner_opens_the_form(app, commands, tmp_path: Path, monkeypatch) -> None:
    start = int(time.time()) + 7200
    commands.queue(
        {
            **ME, "State": "PENDING", "Reason": "Priority", "StartTime": str(start), "TimeLimit": "2:00:00",
            "WorkDir": str(tmp_path),
        }
    )  # fmt: skip
    commands.answer("scontrol-write-batch_script-7", SCRIPT)
    told = [f"{RECORD}{name}{FIELD}up{FIELD}3{FIELD}4000{FIELD}infinite\n" for name in ("main*", "spare")]
    commands.answer("sinfo", "".join(told))
    commands.answer(
        "sbatch", err=f"sbatch: Job 9 to start at {start - 3600} using 1 processors on nodes n1 in partition x"
    )
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        await choose(pilot, app, "sooner")
        await until(pilot, lambda: isinstance(app.screen, SoonerDialog) and app.screen.alternatives, "the estimates")
        assert [dict(each.changes) for each in app.screen.alternatives] == [
            {"partition": "spare"}, {"time": "1:00:00"}, {},
        ]  # fmt: skip
        # In columns, of which the first is cut.
        parts = [(row.plain[:19], row.plain[19:23], row.plain[23:]) for row in app.screen.rows()]
        assert [more for _, _, more in parts] == ["partition spare", "time 1:00:00", "as it is"]
        assert {gap for _, gap, _ in parts} == {"~   "}
        dialog = app.screen
        words = dialog.query_one("#dialog-text", Static)
        assert str(words.render()).strip() == "train 7"
        found = dialog.alternatives
        dialog.alternatives = [replace(found[0], start=None, fault=fault) for fault in ("", "no such partition")]
        assert [row.plain[:17].rstrip() for row in dialog.rows()] == ["not known", "no such partition"]
        dialog.alternatives = [replace(found[0], changes={"qos": "x" * 100})]
        assert dialog.rows()[0].plain[23:] == f"qos {'x' * (TEXT_WIDTH - 29)}~"
        with monkeypatch.context() as patched:
            patched.setattr(app.runner.scheduler("slurm"), "alternatives", lambda _: 1 / 0)
            await pilot.press("R")
            await until(
                pilot, lambda: "ZeroDivisionError: division by zero" in str(words.render()), "why there are none"
            )
        await pilot.press("R")
        await until(pilot, lambda: dialog.alternatives, "the estimates again")
        assert "e edit with this   R ask again   esc back" in screen_text(app)
        await pilot.press("j", "e")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.editor.form.rows, "the form")
        model = model_of(app.screen)
        assert [(one.name, one.text) for one in model if one.origin == "typed"] == [("time", "1:00:00")]


async def test_everybodys_jobs_by_a_key(app, commands) -> None:
    commands.queue(ME, {"JobID": "8", "UserName": "bob", "Name": "theirs"})
    async with app.run_test(size=(120, 40)) as pilot:
        # Jobs of others that a backend lists are not TorchX's.
        await jobs(pilot, app, 1)
        assert not [call for call in commands.calls("squeue") if "--user" not in call]
        await pilot.press("u")
        screen = await jobs(pilot, app, 2)
        await until(pilot, lambda: [call for call in commands.calls("squeue") if "--user" not in call], "the question")
        assert screen.view.words[0] == "everybody's"
        await pilot.press("u")
        await jobs(pilot, app, 1)
        assert screen.view.user == "root"
        await pilot.press("u")
        await until(pilot, lambda: not screen.view.user and not screen.view.everybody, "all that is listed")


@pytest.fixture
def launched(app, commands) -> str:
    """Launch a script that has written a checkpoint; return that."""
    script = Path("train.sbatch")
    script.write_text('#!/bin/sh\n#SBATCH --time=10\nresume=${1:-none}\nsrun python train.py --resume "$resume"\n')
    checkpoint = Path("out", "checkpoint-20")
    checkpoint.mkdir(parents=True)
    commands.queue({**ME, "WorkDir": str(Path.cwd())})
    app.runner.run(build_app(str(script), {}), "slurm", {}, origin=LaunchOrigin(str(script)))
    return str(checkpoint.absolute())


async def test_a_job_that_goes_on_after_this_one(app, launched) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await opened(pilot, app)
        await choose(pilot, app, "continue")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.editor.form.rows, "the form")
        typed = {one.name: one.text for one in model_of(app.screen) if one.origin == "typed"}
        assert typed == {"dependency": "afterany:7", "resume": launched}


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
def test_the_argument_of_a_checkpoint_is_found_by_its_name(names, found) -> None:
    assert resume_argument(names) == found


UNNAMED = "checkpoint-20: no argument is named for it"


@pytest.mark.parametrize(
    ("state", "component", "has_checkpoint", "dependency", "words"),
    [
        (
            AppState.RUNNING,
            "utils.echo",
            True,
            {"dependency": "afterany:7"},
            UNNAMED,
        ),
        (AppState.FAILED, "", True, {}, UNNAMED),
        (AppState.FAILED, "gone.py:job", False, {}, "no checkpoint was found in its folder or its logs"),
    ],
)
def test_a_continuation_without_a_checkpoint(tmp_path, state, component, has_checkpoint, dependency, words) -> None:
    if has_checkpoint:
        (tmp_path / "checkpoint-20").mkdir()
    described = DescribeAppResponse("7", state, log_dir=str(tmp_path))
    told = []
    runner = SimpleNamespace(describe=lambda _: described, replica_log=None)
    app = SimpleNamespace(runner=runner, post_from_thread=told.append)
    row = JobRow("slurm://torchx/7", "slurm", "7", state)
    record = LaunchRecord("1", 0.0, "slurm", "torchx", {}, component=component)
    assert find_continuation(app, row, record) == dependency  # type: ignore[arg-type]
    assert told[0].text.endswith(words)
    assert len(told) == 1


def test_the_checkpoint_that_a_log_tells_of_is_found(tmp_path: Path) -> None:
    saved, log = tmp_path / "step_5.pt", tmp_path / "stdout.log"
    saved.touch()
    log.write_text(f"saved checkpoint to {saved}\n")
    described = DescribeAppResponse("7", AppState.FAILED, roles=[Role("r", "")])
    told = []
    runner = SimpleNamespace(describe=lambda _: described, replica_log=lambda *_: ReplicaLog("r", 0, stdout=log))
    app = SimpleNamespace(runner=runner, post_from_thread=told.append)
    row = JobRow("slurm://torchx/7", "slurm", "7", AppState.FAILED)
    assert find_continuation(app, row, None) == {}  # type: ignore[arg-type]
    assert told[0].text == f"its newest checkpoint is {saved}: no argument is named for it"
