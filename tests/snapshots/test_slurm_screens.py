"""Pictures of a queue of Slurm: arrays, chains, reasons; the numbers of jobs stand behind their names."""

import pytest
from support.canned import HOUR, MINUTE, NOW
from support.dashboard import slurm_app
from support.pictures import SIZES
from support.screens import form_of, table_of
from support.slurm_commands import SlurmCommands

from torchx_tui.base.files import user_name

CHAIN = "slurm://torchx/184311"


def job(number, name, state="RUNNING", *, minutes, **more):
    """Return what squeue prints of a job that was submitted so many minutes ago, and started a minute later."""
    times = {"SubmitTime": f"{NOW - minutes * MINUTE:.0f}", "StartTime": f"{NOW - (minutes - 1) * MINUTE:.0f}"}
    waits = {"StartTime": "N/A", "NodeList": ""} if state == "PENDING" else {}
    return {"JobID": str(number), "Name": name, "UserName": user_name(), "State": state, **times, **waits, **more}


def array(number, tasks, **more):
    of_array = {"ArrayJobID": "184350", "ArrayTaskID": tasks, "minutes": 18}
    return job(number, "eval-sweep", **of_array, **more)


QUEUE = (
    *(array(184400 + task, str(task), state="COMPLETED", EndTime=f"{NOW - 2 * MINUTE:.0f}") for task in range(62)),
    *(array(184400 + task, str(task)) for task in range(62, 70)),
    array(184350, "70-99%8", state="PENDING", Reason="JobArrayTaskLimit"),
    job(184360, "vit-l16-ft", "PENDING", minutes=34, Reason="QOSMaxGRESPerUser"),
    job(184305, "llama3-8b-sft", minutes=41, TimeLimit="6:00:00"),
    job(184299, "mixtral-8x7b", "PENDING", minutes=130, Reason="Priority", StartTime=f"{NOW + 3 * HOUR:.0f}"),
    job(184311, "pretrain", minutes=590, StartTime=f"{NOW - 3 * HOUR:.0f}", TimeLimit="4:00:00"),
    job(184312, "pretrain", "PENDING", minutes=580, Reason="Dependency", Dependency="afterany:184311(unfulfilled)"),
    job(184313, "pretrain", "PENDING", minutes=570, Reason="Dependency", Dependency="afterany:184312(unfulfilled)"),
    job(184314, "nightly-eval", "PENDING", minutes=300, Reason="BeginTime", StartTime=f"{NOW + 5 * HOUR:.0f}"),
    job(184315, "debug-nccl", "PENDING", minutes=660, Reason="JobHeldUser"),
    job(184290, "sdxl-ft", "TIMEOUT", minutes=430, TimeLimit="6:00:00", EndTime=f"{NOW - HOUR:.0f}"),
)


@pytest.fixture
def app(tmp_path, monkeypatch):
    SlurmCommands(tmp_path / "slurm", monkeypatch).queue(*QUEUE)
    with slurm_app(tmp_path, monkeypatch) as made:
        yield made


def at_row(handle, *keys):
    async def run_before(pilot):
        table = await table_of(pilot, 8)
        screen, app_id = table.screen, handle.rpartition("/")[2]
        await table.press("1")
        table.to(app_id)
        await table.until(lambda: screen.described is not None and screen.described.app_id == app_id, "its words")
        await table.press(*keys)

    return run_before


def test_queue(snap_compare, app):
    assert snap_compare(app, sizes=SIZES, run_before=at_row(CHAIN))


def test_chain_unfolded(snap_compare, app):
    assert snap_compare(app, terminal_size=(120, 40), run_before=at_row(CHAIN, "plus"))


def test_tasks_of_an_array(snap_compare, app):
    """The card has a sign for each."""
    run_before = at_row(CHAIN.replace("184311", "184350"))
    assert snap_compare(app, terminal_size=(120, 40), run_before=run_before)


SCRIPT = """\
#!/bin/bash
# Fine-tunes llama3-8b with torchrun, a task a node.
#SBATCH --job-name=llama3-8b-sft
#SBATCH --partition=a100
#SBATCH --nodes=16
#SBATCH --gres=gpu:8
#SBATCH --time=2-00:00:00
set -euo pipefail
LR=${LR:-1e-5}
srun torchrun --nnodes $SLURM_NNODES train.py --config "$1" --lr "$LR"
"""


def test_form_of_a_script(snap_compare, app, tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    (tmp_path / "home" / "train.sbatch").write_text(SCRIPT)

    async def filled(pilot):
        launch = await form_of(pilot, "train.sbatch")
        await launch.type(nodes="8", partition="h100", qos="high", LR="2e-5", arg1="sft.yaml")
        await launch.until(lambda: launch.editor.is_answered, "a dry run")
        await pilot.press("ctrl+t", "ctrl+t", "ctrl+t")

    assert snap_compare(app, sizes={"160x45": (160, 45), "120x40": (120, 40)}, run_before=filled)
