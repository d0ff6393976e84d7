"""A user's own batch script, launched by keys."""

from __future__ import annotations

import getpass
import time
from pathlib import Path

import pytest
from support.dashboard import until
from support.launching import drawn, form_of, model_of, preview, row_of, type_into, words
from support.slurm_commands import FIELD, RECORD, SlurmCommands

from torchx_tui.backends.slurm.waiting import clock
from torchx_tui.tui.app import TorchXTuiApp
from torchx_tui.tui.job.relaunch import RelaunchDialog
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.launch.commands import commands_text
from torchx_tui.tui.launch.screen import LaunchScreen

SCRIPT = """#!/bin/bash
# Fine-tunes a model.
#SBATCH --time=10
#SBATCH --partition=main
srun python train.py --config "$1"
"""


@pytest.fixture
def script(app: TorchXTuiApp) -> Path:
    path = Path("train.sbatch")
    path.write_text(SCRIPT)
    Path("jobs").mkdir()
    Path("jobs/run").write_text(SCRIPT)
    return path


def submitted(commands: SlurmCommands) -> list[str]:
    """Return the command of the last launch."""
    return [call for call in commands.calls("sbatch") if "--parsable" in call][-1]


async def answered(pilot, screen: LaunchScreen) -> None:
    await until(pilot, lambda: screen.editor.dry_run.is_answered and "ready" in words(screen), "a dry run")


async def test_a_script_is_picked_changed_and_launched_again(app, commands, script) -> None:
    async with app.run_test(size=(160, 45)) as pilot:
        screen = await form_of(pilot, app, "train.sbatch")
        await answered(pilot, screen)
        model = model_of(screen)
        # Its own lines take the place of run options; roles have no fields.
        assert model.scheduler == "slurm"
        assert [one.name for one in model.section("option")] == ["job_dir", "sbatch_args"]
        assert model.roles == []
        assert str(row_of(screen, "time")._origin.render()) == "script"
        assert "#SBATCH --time=10" in preview(screen)
        await type_into(pilot, screen, "time", "2:00:00")
        await type_into(pilot, screen, "arg1", "a.yaml")
        await answered(pilot, screen)
        assert "torchx-tui run --scheduler slurm train.sbatch --arg1 a.yaml --time 2:00:00" in commands_text(
            model_of(screen)
        )
        # The script with what is submitted beside it.
        await pilot.press("ctrl+t", "ctrl+t", "ctrl+t")
        shown = preview(screen).splitlines()
        assert shown[2:5] == [
            "   3 ≠ #SBATCH --time=10   time=2:00:00", "   4   #SBATCH --partition=main",
            '   5 ≠ srun python train.py --config "$1"   arg1=a.yaml',
        ]  # fmt: skip
        await pilot.press("ctrl+s")
        await until(pilot, lambda: app.runner.journal.find("slurm://torchx/7"), "the launch")
        command = submitted(commands)
        assert "--time=2:00:00" in command
        assert command[-2:] == ["/dev/stdin", "a.yaml"]
        assert not [word for word in command if word.startswith("--partition")]
        assert commands.script == SCRIPT

        # Somebody changes the script; the form tells what, and a relaunch asks.
        commands.queue({"Name": "train.sbatch"})
        script.write_text(SCRIPT.replace("--time=10", "--time=20"))
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count == 1, "the job")
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, RelaunchDialog), "the question")
        assert [(one.what, one.then, one.now) for one in app.screen._changes["slurm://torchx/7"]] == [
            ("train.sbatch line 3", "#SBATCH --time=10", "#SBATCH --time=20")
        ]
        await until(pilot, lambda: app.screen.query("Button"), "its buttons")
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.editor.model, "the form")
        await answered(pilot, app.screen)
        await pilot.press("ctrl+t")
        assert "line 3 of the script\n  - #SBATCH --time=10\n  + #SBATCH --time=20" in preview(app.screen)


async def test_a_job_of_which_not_all_is_known_is_asked_about(app, commands) -> None:
    """Nothing is submitted without a yes where Slurm does not tell how the job was submitted."""
    commands.queue({"Name": "train.sh", "UserName": getpass.getuser(), "tres-per-node": "gres:gpu:2"})
    commands.answer("scontrol-write-batch_script-7", "#!/bin/bash\necho $1\n")
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.screen.table.row_count == 1, "the job")
        await pilot.press("r")
        await until(pilot, lambda: app.screen.query("RelaunchDialog Button"), "the question")
        told = "\n".join(str(static.render()) for static in app.screen.query("Static"))
        assert "Parts of its launch are unknown:" in told
        assert "the arguments of its script\n  - unknown\n  + none\n" in told
        assert "+ --job-name=train.sh --nodes=1 --ntasks=1 --gres=gpu:2\n    --account=silver" in told
        assert not commands.calls("sbatch")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen), "the jobs")
        await pilot.press("r")
        await until(pilot, lambda: app.screen.query("RelaunchDialog Button"), "the question again")
        await pilot.press("y")
        await until(pilot, lambda: commands.calls("sbatch"), "the launch")
        assert "--gres=gpu:2" in submitted(commands)


@pytest.mark.parametrize("width", [120, 160])
async def test_where_there_is_room_and_when_it_would_start(app, commands, script, width: int) -> None:
    start = int(time.time()) + 7200
    told = [
        f"{RECORD}{name}{FIELD}up{FIELD}2{FIELD}4000{FIELD}{limit}\n"
        for name, limit in (("main*", "infinite"), ("short", "5:00"))
    ]
    commands.answer("sinfo", "".join(told))
    commands.answer(
        "sbatch", err=f"sbatch: Job 9 to start at {start} using 1 processors on nodes n[1-2] in partition x"
    )
    for name in ("main", "short"):
        node = {"NodeList": "n1", "StateLong": "idle", "CPUsState": "0/4/0/4", "Gres": "gpu:2"}
        commands.nodes(node, partition=name)
    async with app.run_test(size=(width, 45)) as pilot:
        screen = await form_of(pilot, app, "train.sbatch")
        await type_into(pilot, screen, "arg1", "a.yaml")
        await answered(pilot, screen)
        assert f"Slurm would start it at {clock(start)} on n[1-2]" in drawn(screen, "#form-warnings")
        if width < 160:
            await pilot.press("ctrl+t", "ctrl+t", "ctrl+t", "ctrl+t")

        def places() -> str:
            return preview(screen) if width < 160 else drawn(screen, "#places-panel")

        await until(pilot, lambda: "short" in places(), "the partitions")
        rows = [line.split() for line in places().splitlines()[1:3]]
        assert [row[:4] for row in rows] == [["main", "1/2", "2/2", "none"], ["short", "1/2", "2/2", "5m"]]
        assert rows[0][4] == "in" if width == 160 else rows[0][4].startswith(clock(start).split()[0])
        assert rows[1][-2:] == ["too", "short"]


async def test_a_script_is_typed_and_its_faults_are_said(app, commands, script) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.jobs.answered, "the jobs")
        await pilot.press("n")
        await until(
            pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen.chooser.picker.components, "the list"
        )
        screen = app.screen
        screen.chooser.picker.search.value = "./jobs/run"
        await pilot.press("enter")
        await until(pilot, lambda: screen.editor.model is not None and screen.editor.form.rows, "the form")
        await answered(pilot, screen)
        await type_into(pilot, screen, "time", "soon")
        assert "`soon` is not a time" in row_of(screen, "time").field.error
