"""What can be done with a job, by its state; and what Slurm says where it is not allowed."""

import pytest
from support.tables import tables

from torchx_tui.backends.runner import Runner
from torchx_tui.backends.slurm.scheduler import SlurmScheduler
from torchx_tui.specs.errors import NotAllowedError, ReadOnlyError, SchedulerError

table = tables(__file__)


@table("offered", "fields names")
def test_what_is_offered(slurm, commands, fields, names):
    commands.queue(fields)
    assert [action.name for action in slurm.actions("7")] == names


@table("action", "action value program words")
def test_an_action(slurm, commands, action, value, program, words):
    commands.queue({})
    slurm.act("7", action, value)
    assert words in commands.calls(program)


@table("what is refused here", "action value")
def test_what_is_refused_here(slurm, commands, action, value):
    commands.queue({})
    with pytest.raises(SchedulerError):
        slurm.act("7", action, value)
    assert commands.calls("scontrol") == commands.calls("scancel") == []


def test_tasks_of_an_array(slurm, commands):
    commands.queue({"State": "PENDING", "StartTime": "N/A", "Reason": "Priority", "ArrayTaskID": "0-9%2"})
    slurm.act("7", "end tasks", "5-8,9")
    slurm.act("7", "at once", "0")
    assert commands.calls("scancel") == [["7_[5-8,9]"]]
    assert commands.calls("scontrol")[-1] == ["update", "JobId=7", "ArrayTaskThrottle=0"]
    for action, value in (("end tasks", "5]; x"), ("end tasks", ""), ("at once", "many")):
        with pytest.raises(SchedulerError, match="number"):
            slurm.act("7", action, value)
    assert len(commands.calls("scancel")) == 1


def test_what_slurm_does_not_allow(slurm, commands):
    commands.queue({})
    commands.answer("scontrol", err="slurm_update error: Access/permission denied\n", code=1)
    with pytest.raises(NotAllowedError, match=r"Slurm does not allow you to limit 7: .*Access/permission denied"):
        slurm.act("7", "limit", "2:00:00")
    commands.answer("scancel", err="scancel: error: Kill job error on job id 7: Access/permission denied\n", code=210)
    with pytest.raises(NotAllowedError, match="Slurm does not allow you to cancel 7"):
        slurm.cancel("7")


def test_a_runner_that_may_change_nothing(slurm, commands, journal):
    commands.queue({})
    with Runner(journal=journal, read_only=True, schedulers={"slurm": slurm}) as runner:
        assert [action.name for action in runner.job("slurm://torchx/7").actions()] == ["requeue", "limit", "signal"]
        with pytest.raises(ReadOnlyError):
            runner.job("slurm://torchx/7").act("requeue")
    assert commands.calls("scontrol") == []


def test_deleted_job_is_hidden_a_new_one_of_its_id_is_not(slurm, commands):
    done = {"State": "COMPLETED", "EndTime": "1795258020"}
    commands.queue(done, {"JobID": "8"})
    slurm.delete("7")
    assert [row.app_id for row in slurm.list()] == ["8"]
    assert not slurm.exists("7")
    # Nothing was cancelled: it had ended.
    assert commands.calls("scancel") == []
    assert [row.app_id for row in SlurmScheduler("torchx").list()] == ["8"]
    commands.queue({**done, "SubmitTime": "1895258000"}, {"JobID": "8"})
    assert {row.app_id for row in slurm.list()} == {"7", "8"}


def test_the_native_description_has_the_script_and_no_secrets(slurm, commands):
    commands.queue({"Comment": "x --token=hunter2"})
    commands.answer("scontrol-show-job-7", "JobId=7 JobName=train\n   Comment=x --token=hunter2\n")
    commands.answer(
        "scontrol-write-batch_script-7", "#!/bin/bash\nexport API_KEY=hunter2\npython train.py --token \\\n  hunter2\n"
    )
    text = slurm.describe_native("7")
    assert "JobId=7 JobName=train" in text
    assert "python train.py" in text
    assert "hunter2" not in text
