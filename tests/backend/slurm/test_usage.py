"""What replicas use, by sstat's answers."""

from types import SimpleNamespace

import pytest

from torchx_tui.backends.slurm import client
from torchx_tui.specs.errors import SchedulerError


def rows(*values):
    return "".join("|".join(row) + "\n" for row in values)


def test_a_script_is_all_of_its_steps(slurm, commands):
    commands.queue({})
    commands.answer("sstat", rows(("7.batch", "1", "00:00:01", "1024K"), ("7.0", "2", "00:01:00", "10M"), ("garbage",)))
    (used,) = slurm.usage("7")
    assert (used.role, used.replica, used.memory, used.memory_total) == ("batch", 0, 21 << 20, 200 << 20)
    # Cores in use are known from the second time on.
    assert (used.cpu, used.cpu_total) == (None, 2.0)


def test_each_job_is_measured_every_half_minute_at_most(slurm, commands, monkeypatch):
    """Also where a person goes to and fro between two jobs, and where it fails: sstat asks the node of every task."""
    clock = [1000.0]
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    commands.queue({}, {"JobID": "8"})
    commands.answer("sstat", rows(("7.batch", "1", "00:00:01", "1M"), ("8.batch", "1", "00:00:01", "1M")))
    for _ in range(3):
        assert [len(slurm.usage(job)) for job in ("7", "8")] == [1, 1]
    assert len(commands.calls("sstat")) == 2
    clock[0] += 30
    commands.answer("sstat", rows(("7.batch", "1", "00:00:16", "1M")))
    assert slurm.usage("7")[0].cpu == 0.5
    assert len(commands.calls("sstat")) == 3
    clock[0] += 30
    commands.answer("sstat", err="sstat: error: slurm_job_sstat: connection refused", code=1)
    for _ in range(3):
        with pytest.raises(SchedulerError, match="refused"):
            slurm.usage("7")
    assert len(commands.calls("sstat")) == 4


def test_of_a_large_array_some_tasks_are_measured(slurm, commands):
    commands.queue(*({"JobID": str(n), "ArrayJobID": "41", "ArrayTaskID": str(n)} for n in range(100, 400)))
    commands.answer("sstat", rows(("100.batch", "1", "00:00:01", "1M")))
    assert len(slurm.usage("41")) == 1
    (call,) = commands.calls("sstat")
    assert len(call[call.index("--jobs") + 1].split(",")) == 100


def test_an_array_has_one_for_each_task_that_runs(slurm, commands):
    commands.queue(
        {"JobID": "41", "ArrayTaskID": "3-9", "State": "PENDING", "StartTime": "N/A"},
        {"JobID": "50", "ArrayJobID": "41", "ArrayTaskID": "1"},
        {"JobID": "51", "ArrayJobID": "41", "ArrayTaskID": "2"},
    )
    commands.answer("sstat", rows(("50.batch", "1", "00:00:01", "1M"), ("51.batch", "1", "00:00:01", "2M")))
    assert [(used.role, used.replica, used.memory) for used in slurm.usage("41")] == [
        ("task", 1, 1 << 20),
        ("task", 2, 2 << 20),
    ]
    assert commands.calls("sstat")[0][-3:] == ["50,51", "--format", "JobID,NTasks,AveCPU,AveRSS"]


def test_somebody_elses_job_tells_nothing(slurm, commands):
    commands.queue({})
    # It exits with 0 and says what is wrong on stderr.
    commands.answer("sstat", err="sstat: error: problem getting step_layout for StepId=7.0: Invalid user id\n")
    assert slurm.usage("7") == []


def test_nothing_is_asked_of_a_job_that_waits(slurm, commands):
    commands.queue({"State": "PENDING", "StartTime": "N/A"})
    assert slurm.usage("7") == []
    assert commands.calls("sstat") == []


def test_a_shell(slurm, commands):
    commands.queue({})
    command = slurm.shell_command("7", "batch", 0)
    assert command[:6] == ["srun", "--jobid", "7", "--overlap", "--nodes=1", "--ntasks=1"]
    assert "--nodelist=n1" in command
    with pytest.raises(SchedulerError, match="no replica 3"):
        slurm.shell_command("7", "batch", 3)
    commands.queue({"State": "PENDING", "StartTime": "N/A"})
    with pytest.raises(SchedulerError, match="is not running"):
        slurm.shell_command("7", "batch", 0)
