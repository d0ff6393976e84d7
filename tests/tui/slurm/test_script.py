"""A user's own batch script, launched by keys."""

import getpass
import time
from pathlib import Path

import pytest
from support.screens import Launch, jobs_of, launch_of, text_of
from support.slurm_commands import FIELD, RECORD

from torchx_tui.backends.slurm.waiting import clock
from torchx_tui.tui.launch.commands import commands_text
from torchx_tui.tui.launch.screen import LaunchScreen
from torchx_tui.tui.ui.dialog import AskDialog

SCRIPT = """#!/bin/bash
# Fine-tunes a model.
#SBATCH --time=10
#SBATCH --partition=main
srun python train.py --config "$1"
"""


@pytest.fixture
def script(app):
    path = Path("train.sbatch")
    path.write_text(SCRIPT)
    Path("jobs").mkdir()
    Path("jobs/run").write_text(SCRIPT)
    return path


def submitted(commands):
    """Return the command of the last launch."""
    return [call for call in commands.calls("sbatch") if "--parsable" in call][-1]


async def answered(launch):
    """Wait for a dry run."""
    await launch.until(lambda: launch.editor.is_answered and "ready" in launch.words(), "a dry run")


async def test_script_is_picked_changed_and_launched_again(app, commands, script):
    async with launch_of(app, "train.sbatch", (160, 45)) as launch:
        await answered(launch)
        # Its own lines take the place of run options; roles have no fields.
        assert launch.model.scheduler == "slurm"
        assert [one.name for one in launch.model.section("option")] == ["job_dir", "sbatch_args"]
        assert launch.model.roles == []
        assert launch.origin("time") == "script"
        launch.editor.preview.show("dry run")
        assert "#SBATCH --time=10" in launch.preview()
        launch.editor.preview.show("command")
        await launch.type(time="2:00:00", arg1="a.yaml")
        await answered(launch)
        command = "torchx-tui run --scheduler slurm train.sbatch --arg1 a.yaml --time 2:00:00"
        assert command in commands_text(launch.model)
        # The script with what is submitted beside it.
        await launch.press("ctrl+t", "ctrl+t", "ctrl+t")
        assert launch.preview().splitlines()[2:5] == [
            "   3 ≠ #SBATCH --time=10   time=2:00:00", "   4   #SBATCH --partition=main",
            '   5 ≠ srun python train.py --config "$1"   arg1=a.yaml',
        ]  # fmt: skip
        table = await launch.submit()
        await launch.until(lambda: app.runner.journal.find("slurm://torchx/7"), "the launch")
        command = submitted(commands)
        assert "--time=2:00:00" in command
        assert command[-2:] == ["/dev/stdin", "a.yaml"]
        assert not [word for word in command if word.startswith("--partition")]
        assert commands.script == SCRIPT

        # Somebody changes the script; a relaunch asks, and the form tells what.
        commands.queue({"Name": "train.sbatch"})
        script.write_text(SCRIPT.replace("--time=10", "--time=20"))
        await table.has(1)
        dialog = await table.dialog(AskDialog, "r")
        assert [" ".join(line.split()) for line in text_of(dialog, "#dialog-details Static").splitlines()] == [
            "train.sbatch line 3", "- #SBATCH --time=10", "+ #SBATCH --time=20",
        ]  # fmt: skip
        await table.open(LaunchScreen, "e")
        launch = Launch(table.pilot)
        await launch.opened()
        await answered(launch)
        await launch.press("ctrl+t")
        assert "line 3 of the script\n  - #SBATCH --time=10\n  + #SBATCH --time=20" in launch.preview()


async def test_job_of_which_not_all_is_known_is_asked_about(app, commands):
    """Nothing is submitted without a yes where quotes may be missing in the sbatch command."""
    commands.queue({"Name": "train.sh", "UserName": getpass.getuser()})
    commands.accounted({"State": "RUNNING", "SubmitLine": "sbatch --gres=gpu:2 train.sh two words"})
    commands.answer("scontrol-write-batch_script-7", "#!/bin/bash\necho $1\n")
    async with jobs_of(app, (100, 30)) as table:
        await table.dialog(AskDialog, "r")
        text = table.dialog_text()
        assert "Some values of its launch are unknown:" in text
        assert "the quotes in its sbatch command\n  - unknown\n  + sbatch --gres=gpu:2 SCRIPT two words\n" in text
        await table.back("escape")
        await table.dialog(AskDialog, "r")
        assert not commands.calls("sbatch")
        await table.press("y", until=lambda: commands.calls("sbatch"), what="the launch")
        assert "--gres=gpu:2" in submitted(commands)


async def test_where_there_is_room_and_when_it_would_start(app, commands, script):
    start = int(time.time()) + 7200
    partitions = ("main*", "infinite"), ("short", "5:00")
    rows = [f"{RECORD}{name}{FIELD}up{FIELD}2{FIELD}4000{FIELD}{limit}\n" for name, limit in partitions]
    commands.answer("sinfo", "".join(rows))
    commands.answer(
        "sbatch", err=f"sbatch: Job 9 to start at {start} using 1 processors on nodes n[1-2] in partition x"
    )
    for name in ("main", "short"):
        node = {"NodeList": "n1", "StateLong": "idle", "CPUsState": "0/4/0/4", "Gres": "gpu:2"}
        commands.nodes(node, partition=name)
    async with launch_of(app, size=(160, 45)) as launch:
        # A script of any name is typed.
        launch.set_search("./jobs/run")
        await launch.choose()
        await answered(launch)
        await launch.type(time="soon")
        assert "`soon` is not a time" in launch.field("time").error
        await launch.type(time="10", arg1="a.yaml")
        await answered(launch)
        assert f"Slurm would start it at {clock(start)} on n[1-2]" in launch.warnings()

        await launch.press("ctrl+t", "ctrl+t", "ctrl+t", "ctrl+t", shows="short", on="preview")
        main, short = (line.split() for line in launch.preview().splitlines()[1:3])
        assert main[:4] == ["main", "1/2", "2/2", "none"]
        assert main[4].startswith(clock(start).split()[0])
        assert (short[:4], short[-2:]) == (["short", "1/2", "2/2", "5m"], ["too", "short"])
