"""Rows: arrays, heterogeneous jobs, jobs of TorchX's and of scripts, names and answers of every kind."""

import pytest
from support.slurm_commands import QUEUE_HEAD, queue_record
from support.tables import tables

from torchx_tui.backends.slurm.queue import parse_queue
from torchx_tui.backends.slurm.values import format_duration, parse_duration, parse_tasks
from torchx_tui.backends.types import BY_TORCHX
from torchx_tui.specs.status import AppState

table = tables(__file__)


@pytest.mark.parametrize(
    "name", ["a|b", "two\nlines", "日本語", "tab\there", "\"quoted\" and 'single'", "x" * 300, "a=b c=d"]
)
def test_a_name(slurm, commands, name):
    commands.queue({"Name": name}, {"JobID": "8"})
    assert {row.app_id: row.name for row in slurm.list()} == {"7": name, "8": "train"}


def test_a_record_that_is_not_whole_costs_one_row(slurm, commands):
    whole = queue_record({"JobID": "9"})
    commands.answer("squeue", queue_record({"Name": "a\x1fb"}) + "garbage\x1e\n" + whole + whole[:40])
    assert [row.app_id for row in slurm.list()] == ["9"]


def test_bytes_that_are_no_text(slurm, commands):
    commands.queue({"Name": "a\udcffb"})
    assert [row.name for row in slurm.list()] == ["a\N{REPLACEMENT CHARACTER}b"]


def test_an_array_is_one_row(slurm, commands):
    rest = {
        "JobID": "41",
        "ArrayTaskID": "5-19%2",
        "State": "PENDING",
        "Reason": "JobArrayTaskLimit",
        "StartTime": "N/A",
    }
    tasks = [
        {"JobID": "50", "ArrayJobID": "41", "ArrayTaskID": "1", "State": "COMPLETED", "EndTime": "1795258050"},
        {
            "JobID": "51",
            "ArrayJobID": "41",
            "ArrayTaskID": "2",
            "State": "FAILED",
            "exit_code": "768",
            "EndTime": "1795258050",
        },
        {"JobID": "52", "ArrayJobID": "41", "ArrayTaskID": "3"},
        {"JobID": "53", "ArrayJobID": "41", "ArrayTaskID": "4", "NodeList": "n2"},
    ]
    commands.queue(rest, *tasks)
    (row,) = slurm.list()
    assert (row.app_id, row.state) == ("41", AppState.RUNNING)
    assert (row.replicas_wanted, row.replicas_running, row.replicas_succeeded) == (19, 2, 1)
    assert row.msg.startswith("1 failed, 1 done, 2 running, 15 pending: its array runs as many tasks as it may at once")
    described = slurm.describe("41")
    (status,) = described.roles_statuses
    assert status.role == "task"
    assert [replica.id for replica in status.replicas] == [*range(1, 20)]
    second = status.replicas[1]
    assert (second.state, second.exit_code, second.reason) == (AppState.FAILED, 3, "exit 3")
    assert status.replicas[3].node == "n2"


@pytest.mark.parametrize("seen", [True, False], ids=["seen while it waited", "from accounting"])
def test_tasks_cancelled_before_their_start_are_counted(slurm, commands, seen):
    own = {"ArrayJobID": "41", "EndTime": "1795258050"}
    tasks = [
        {**own, "JobID": "50", "ArrayTaskID": "0", "State": "COMPLETED"},
        {**own, "JobID": "51", "ArrayTaskID": "1", "State": "CANCELLED"},
    ]
    if seen:
        # The second task starts after the last look at the queue.
        commands.queue({"JobID": "41", "ArrayTaskID": "1-19%1", "State": "PENDING", "StartTime": "N/A"}, tasks[0])
        assert [row.replicas_wanted for row in slurm.list()] == [20]
    else:
        ids = {"JobIDRaw": "41", "JobID": "41_[1-19%1]"}
        commands.accounted({**ids, "State": "CANCELLED by 0", "Start": "None", "ElapsedRaw": "0"})
    # squeue tells no longer which tasks those are.
    commands.queue({"JobID": "41", "ArrayTaskID": "N/A", "State": "CANCELLED", "EndTime": "1795258050"}, *tasks)
    for _ in range(2):
        (row,) = slurm.list()
        assert (row.state, row.replicas_wanted, row.replicas_succeeded) == (AppState.CANCELLED, 20, 1)
    described = slurm.describe("41")
    replicas = described.roles_statuses[0].replicas
    assert [replica.id for replica in replicas] == [*range(20)]
    assert {replica.state for replica in replicas[1:]} == {AppState.CANCELLED}


def test_the_last_task_has_the_id_of_its_array(slurm, commands):
    commands.queue(
        {"JobID": "50", "ArrayJobID": "41", "ArrayTaskID": "0", "State": "COMPLETED"},
        {"JobID": "41", "ArrayTaskID": "1", "State": "RUNNING"},
    )
    (row,) = slurm.list()
    assert (row.app_id, row.replicas_wanted, row.replicas_running) == ("41", 2, 1)


def test_a_job_of_torchx(slurm, commands):
    parts = {"HetJobID": "42", "Command": "/tmp/x/torchx-sbatch.sh"}
    commands.queue(
        {**parts, "JobID": "43", "HetJobOffset": "1", "Name": "my-role-1", "NodeList": "n2"},
        {**parts, "JobID": "42", "HetJobOffset": "0", "Name": "my-role-0"},
    )
    (row,) = slurm.list()
    assert (row.app_id, row.name, row.replicas_wanted, row.replicas_running) == ("42", "my-role", 2, 2)
    assert row.notes == [BY_TORCHX]
    described = slurm.describe("42")
    (status,) = described.roles_statuses
    assert (status.role, [replica.node for replica in status.replicas]) == ("my-role", ["n1", "n2"])
    files = slurm.log_files("42", "my-role", 1)
    assert {stream.value: path.name for stream, path in files.items()} == {
        "stdout": "slurm-42-my-role-1.out", "stderr": "slurm-42-my-role-1.err",
    }  # fmt: skip


def test_a_script_of_the_users_is_foreign(slurm, commands):
    commands.queue({"Name": "train-1"})
    (row,) = slurm.list()
    assert (row.name, row.foreign, row.replicas_wanted, row.user) == ("train-1", True, 1, "alice")


def test_foreign_variables_change_nothing(slurm, commands, monkeypatch):
    for name in ("SQUEUE_STATES", "SACCT_FORMAT", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT", "SBATCH_WAIT"):
        monkeypatch.setenv(name, "x")
    from torchx_tui.backends.slurm.commands import clean_environment, submit_environment

    made = clean_environment()
    assert not {"SQUEUE_STATES", "SACCT_FORMAT", "SLURM_CLUSTERS"} & set(made)
    assert made["SLURM_TIME_FORMAT"] == "%s"
    assert not {"SBATCH_WAIT", "SLURM_TIME_FORMAT"} & set(submit_environment())
    assert "SLURM_CONF" in made


@table("tasks", "text numbers")
def test_tasks(text, numbers):
    assert parse_tasks(text) == numbers


@table("durations", "text seconds")
def test_durations(text, seconds):
    assert parse_duration(text) == seconds


def test_a_duration_as_text():
    assert [format_duration(value) for value in (0, 90, 5400, 93784)] == ["0s", "1m 30s", "1h 30m", "1d 2h 3m 4s"]


def test_ten_thousand_jobs_are_parsed():
    text = QUEUE_HEAD + "".join(queue_record({"JobID": str(number)}) for number in range(10_000))
    jobs = parse_queue(text)
    assert len(jobs) == 10_000
    # What did not change is not read again.
    again = parse_queue(text + queue_record({"JobID": "10000"}), jobs)
    assert len(again) == 10_001
    assert all(again[record] is job for record, job in jobs.items())
