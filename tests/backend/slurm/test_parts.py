"""Tasks of arrays and steps of jobs by ids of their own, as Slurm names them, and jobs whose script is not known."""

import pytest
from support.command import command_runner

from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.status import AppState

HANDLE = "slurm://torchx/"


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return command_runner(capsys, monkeypatch)


@pytest.fixture
def array(commands, tmp_path):
    """An array that sbatch submitted: its first task runs, two have ended, the rest waits."""
    common = {"ArrayJobID": "41", "WorkDir": str(tmp_path), "STDOUT": f"{tmp_path}/slurm-%A_%a.out", "NodeList": "n1"}
    commands.queue(
        {**common, "JobID": "51", "ArrayTaskID": "0", "State": "RUNNING"},
        {**common, "JobID": "52", "ArrayTaskID": "3", "State": "FAILED", "exit_code": "3:0", "EndTime": "1795258900"},
        {**common, "JobID": "41", "ArrayTaskID": "7-9%1", "State": "PENDING", "Reason": "JobArrayTaskLimit"},
    )
    for number in (0, 3):
        (tmp_path / f"slurm-41_{number}.out").write_text(f"line of {number}\n")
    return tmp_path


def test_log_prints_all_tasks_of_an_array(command, array):
    ended = command("log", f"{HANDLE}41")
    assert (ended.code, sorted(ended.out.splitlines())) == (0, ["task/0 line of 0", "task/3 line of 3"])
    assert command("log", f"{HANDLE}41/task/3").out == "task/3 line of 3\n"
    ended = command("log", f"{HANDLE}41/task/4")
    assert (ended.code, "Valid: 0, 3, 7 to 9" in ended.err) == (2, True)


@pytest.mark.parametrize("app_id", ["41_3", "52"])
def test_a_task_is_a_job_of_its_own(command, array, slurm, app_id):
    described = slurm.describe(app_id)
    assert (described.app_id, described.state) == (app_id, AppState.FAILED)
    assert [replica.id for status in described.roles_statuses for replica in status.replicas] == [3]
    assert command("log", f"{HANDLE}{app_id}").out == "task/3 line of 3\n"
    assert "State: FAILED" in command("status", f"{HANDLE}{app_id}").out


def test_a_task_that_waits_has_no_log(command, array):
    ended = command("log", f"{HANDLE}41_8")
    assert (ended.code, ended.out) == (0, "")
    assert f"{HANDLE}41_8 has not started and has no log yet: " in ended.err


def test_a_task_alone_is_cancelled(array, slurm, commands):
    slurm.cancel("41_0")
    slurm.cancel("41_3")
    slurm.cancel("41_9")
    assert commands.calls("scancel") == [["41_0"], ["41_9"]]
    with pytest.raises(SchedulerError, match="41_0 is a part of the job 41, which can be deleted as a whole only"):
        slurm.delete("41_0")
    assert slurm.describe("41_5") is None


def test_a_step_is_a_part_of_its_job(command, commands, tmp_path):
    job = {"JobIDRaw": "7", "JobID": "7", "WorkDir": str(tmp_path), "NodeList": "n1"}
    commands.queue({"State": "COMPLETED", "EndTime": "1795258110", "WorkDir": str(tmp_path), "STDOUT": "%j.out"})
    commands.accounted(
        job, {**job, "JobIDRaw": "7.batch", "JobID": "7.batch"},
        {**job, "JobIDRaw": "7.0", "JobID": "7.0", "JobName": "train", "NTasks": "2"},
    )  # fmt: skip
    commands.answer("scontrol-write-batch_script-7", "#!/bin/bash\nsrun -n2 -o step-%t.out train\n")
    (tmp_path / "7.out").write_text("of the script\n")
    for number in (0, 1):
        (tmp_path / f"step-{number}.out").write_text(f"of {number}\n")
    assert sorted(command("log", f"{HANDLE}7").out.splitlines()) == [
        "batch/0 of the script", "step0/0 of 0", "step0/1 of 1",
    ]  # fmt: skip
    assert sorted(command("log", f"{HANDLE}7.0").out.splitlines()) == ["step0/0 of 0", "step0/1 of 1"]
    assert command("log", f"{HANDLE}7.batch").out == "batch/0 of the script\n"


def test_the_log_of_a_job_whose_script_is_not_known(command, commands, tmp_path):
    """As of another user, or of a job that the controller has forgotten."""
    commands.queue()
    commands.accounted({"JobIDRaw": "9", "JobID": "9", "WorkDir": str(tmp_path), "SubmitLine": "sbatch -o %x.log x.sh"})
    commands.answer("scontrol", err="job script retrieval failed: Invalid job id specified\n", code=1)
    (tmp_path / "train.log").write_text("line\n")
    ended = command("log", f"{HANDLE}9")
    assert (ended.code, ended.out, ended.err) == (0, "batch/0 line\n", "")
