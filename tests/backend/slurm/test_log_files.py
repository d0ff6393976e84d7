"""Where logs are: the patterns of sbatch, per job, per task of an array, and per replica."""

import threading
from pathlib import Path

import pytest
from support.tables import tables
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.runner import Runner
from torchx_tui.backends.slurm.jobs import Job
from torchx_tui.backends.slurm.log_files import log_files
from torchx_tui.backends.slurm.values import expand_nodes
from torchx_tui.backends.types import Stream
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.roles import AppDef, Role

table = tables(__file__)


class Reader(threading.Thread):
    """Reads lines in a thread."""

    def __init__(self, lines):
        super().__init__(daemon=True)
        self._source = lines
        self.lines = []
        self.start()

    def run(self):
        for line in self._source:
            self.lines.append(line)

    def close(self):
        self._source.close()
        self.join(PATIENCE)
        assert not self.is_alive()


JOB = Job("50", name="train", user="alice", work_dir="/home/alice")
TASK = Job("51", array_id="41", tasks="7", name="train", user="alice", work_dir="/home/alice")


# As recorded on 22.05, 24.11 and 26.05, each by a job that wrote the file.
@table("pattern of a log file", "pattern expected")
def test_pattern_of_a_log_file(slurm, commands, pattern, expected):
    commands.queue({"STDOUT": pattern, "RestartCnt": "2", "SLUID": "s275M8D6F7HH00", "WorkDir": "/w"})
    assert slurm.log_files("7", "batch", 0)[Stream.STDOUT] == Path("/w", expected)


def test_pattern_of_an_array_task(slurm, commands):
    task = {"JobID": "51", "ArrayJobID": "41", "ArrayTaskID": "17"}
    commands.queue({**task, "STDOUT": "arr-%A-%a-%b-%j-%3a", "WorkDir": "/w"})
    assert slurm.log_files("41", "task", 17)[Stream.STDOUT] == Path("/w/arr-41-17-7-51-017")


@pytest.mark.parametrize(
    ("stdout", "stderr", "files"),
    [
        ("", "", ("slurm-50.out", None)),
        ("out", "out", ("out", None)),
        ("%j.o", "%j.e", ("50.o", "50.e")),
    ],
)
def test_files(commands, stdout, stderr, files):
    job = Job("50", work_dir="/w", stdout=stdout, stderr=stderr)
    assert log_files(job) == tuple(Path("/w", name) if name else None for name in files)


def test_the_default_of_an_array(commands):
    # squeue before 24.05 shows the default of a job for it.
    for stdout in ("", "/home/alice/slurm-51.out"):
        job = Job("51", array_id="41", tasks="7", work_dir="/home/alice", stdout=stdout)
        assert log_files(job, 7)[0] == Path("/home/alice/slurm-41_7.out")


def test_the_short_host_name_is_looked_for(commands, tmp_path):
    for name in ("login1-50-[a]*.log", "login1-50-other.log"):
        (tmp_path / name).touch()
    # A job's name is no pattern.
    job = Job("50", work_dir=str(tmp_path), stdout="%N-%j-%x.log", name="[a]*")
    assert log_files(job)[0] == tmp_path / "login1-50-[a]*.log"


@table("nodes", "text names")
def test_nodes(text, names):
    assert expand_nodes(text) == names


def test_a_log_that_is_not_there_yet_is_waited_for(slurm, commands, tmp_path):
    job = {"WorkDir": str(tmp_path), "STDOUT": "%j.log"}
    commands.queue({**job, "State": "PENDING", "StartTime": "N/A", "Reason": "Priority"})
    assert list(slurm.log_iter("7", "batch")) == []
    reader = Reader(slurm.log_iter("7", "batch", should_tail=True))
    commands.queue(job)
    (tmp_path / "7.log").write_text("one\n")
    wait_until(lambda: reader.lines == ["one\n"], "the first line")
    with (tmp_path / "7.log").open("a") as file:
        file.write("two\n")
    commands.queue({**job, "State": "COMPLETED", "EndTime": "1795258020"})
    wait_until(lambda: reader.lines == ["one\n", "two\n"] and not reader.is_alive(), "the end")


def test_a_log_that_a_requeue_cut_is_read_from_its_beginning(slurm, commands, tmp_path):
    commands.queue({"WorkDir": str(tmp_path), "STDOUT": "%j.log"})
    (tmp_path / "7.log").write_text("a long line of the first run\n")
    reader = Reader(slurm.log_iter("7", "batch", should_tail=True))
    wait_until(lambda: len(reader.lines) == 1, "the first line")
    (tmp_path / "7.log").write_text("again\n")
    wait_until(lambda: reader.lines[-1:] == ["again\n"], "the second run")
    reader.close()


def test_a_missing_log_names_its_file_and_node(slurm, commands, tmp_path):
    commands.queue({"State": "COMPLETED", "EndTime": "1795258020", "WorkDir": str(tmp_path), "STDOUT": "%j.log"})
    with pytest.raises(SchedulerError, match=r"7\.log: it was removed or never written, or n1 keeps it"):
        slurm.log_iter("7", "batch")


def logs_of(slurm, journal):
    """Return what the screens read of the job: role, number and file of each log."""
    with Runner(journal=journal, schedulers={"slurm": slurm}) as runner:
        described = slurm.describe("7")
        assert described is not None
        found = runner.job("slurm://torchx/7").replica_logs(described)
        assert sum(described.replica_counts.values()) >= len(found)
        return [(log.role, log.replica, log.stdout.name if log.stdout else "") for log in found]


ARRAY = {"State": "PENDING", "StartTime": "N/A", "ArrayTaskID": "5,8-9%2", "STDOUT": "(null)"}


def test_the_logs_of_an_array_are_those_of_its_tasks(slurm, commands, journal):
    commands.queue(ARRAY, {"JobID": "9", "ArrayJobID": "7", "ArrayTaskID": "6", "STDOUT": "(null)"})
    commands.answer("scontrol-write-batch_script-7", "#!/bin/sh\nsleep 1\n")
    expected = [("task", number, f"slurm-7_{number}.out") for number in (5, 6, 8, 9)]
    assert logs_of(slurm, journal) == expected


def test_logs_of_an_array_are_those_of_its_tasks(slurm, commands, journal):
    # Its AppDef has a role with one replica.
    assert slurm.submit(AppDef("job", [Role("worker", "", entrypoint="true")]), {"array": "5,6,8-9"}) == "7"
    launched = {"Comment": commands.comment}
    task = {"JobID": "9", "ArrayJobID": "7", "ArrayTaskID": "6", "STDOUT": "(null)"}
    commands.queue({**ARRAY, **launched}, {**task, **launched})
    assert logs_of(slurm, journal) == [("worker", number, f"slurm-7-worker-{number}.out") for number in (5, 6, 8, 9)]


def test_one_file_has_both_streams(slurm, commands, tmp_path):
    commands.queue({"WorkDir": str(tmp_path), "STDOUT": "%j.log"})
    (tmp_path / "7.log").write_text("one\n")
    assert list(slurm.log_iter("7", "batch", streams=Stream.STDOUT)) == ["one\n"]
    with pytest.raises(ValueError, match="go to one file"):
        slurm.log_iter("7", "batch", streams=Stream.STDERR)


SCRIPT = """#!/bin/bash
#SBATCH -J train --output=ignored-%j.txt
#SBATCH --output "logs/%x %j.txt" --error=%j.err # the last one counts
#SBATCH --time 5
echo hi
#SBATCH --output=not-this-one.txt
"""
SCRIPT_HEAD = f"Batch Script for 7\n{'-' * 80}\n"
NO_SCRIPT = f"{SCRIPT_HEAD}NONE\n\n"


def forgotten(commands, tmp_path, line, script=NO_SCRIPT, **more):
    """Let a job be known to accounting alone, of a version that keeps the command line but no log files."""
    commands.set_version("22.05")
    commands.queue()
    commands.accounted({"SubmitLine": line, "WorkDir": str(tmp_path), **more})
    # It exits with 0.
    commands.answer("scontrol-write-batch_script", err="job script retrieval failed: Invalid job id specified\n")
    commands.answer("sacct-7", script)


@pytest.mark.parametrize(
    ("stdout", "name"),
    [
        # 26.05 keeps a default without its folder, 24.11 with it.
        ("slurm-%j.out", "slurm-7.out"),
        ("/w/logs/%x-%j.out", "/w/logs/train-7.out"),
        ("r-%j-%r-%S.out", "r-7-1-s275M8D6F7HH00.out"),
        ("with space %j.out", "with space 7.out"),
    ],
)
def test_log_file_that_accounting_keeps(slurm, commands, tmp_path, stdout, name):
    commands.accounted({
        "StdOut": stdout, "StdErr": "%j.err", "WorkDir": str(tmp_path), "Restarts": "1", "SLUID": "s275M8D6F7HH00",
        "SubmitLine": "sbatch -o another.out train.sh",
    })  # fmt: skip
    assert slurm.log_files("7", "batch", 0)[Stream.STDOUT] == tmp_path / name
    assert slurm.log_files("7", "batch", 0)[Stream.STDERR] == tmp_path / "7.err"


@table("log file by the command counts if it exists", "line files expected")
def test_log_file_by_the_command_counts_if_it_exists(slurm, commands, tmp_path, line, files, expected):
    (tmp_path / "logs").mkdir()
    for name in files:
        (tmp_path / name).write_text("hi\n")
    forgotten(commands, tmp_path, line)
    if expected is not None:
        assert slurm.log_files("7", "batch", 0)[Stream.STDOUT] == tmp_path / expected
        return
    with pytest.raises(SchedulerError, match="it is not known where the log of 7 is"):
        slurm.log_files("7", "batch", 0)


def test_log_file_by_the_script_that_accounting_keeps(slurm, commands, tmp_path):
    (tmp_path / "slurm-7.out").touch()
    forgotten(commands, tmp_path, "sbatch -J train train.sh", SCRIPT_HEAD + SCRIPT + "\n")
    assert slurm.log_files("7", "batch", 0)[Stream.STDOUT] == tmp_path / "logs/train 7.txt"
    assert slurm.log_files("7", "batch", 0)[Stream.STDERR] == tmp_path / "7.err"
    assert slurm.describe("7").metadata["batch output"] == str(tmp_path / "logs/train 7.txt")
    assert len(commands.calls("sacct", "--batch-script")) == 1


@pytest.mark.parametrize("line", ["srun -n1 hostname", "/usr/bin/salloc -N 1 bash"])
def test_an_interactive_job_has_no_log(slurm, commands, tmp_path, line):
    (tmp_path / "slurm-7.out").touch()
    commands.accounted({"SubmitLine": line, "WorkDir": str(tmp_path)})
    with pytest.raises(SchedulerError, match="7 has no log: srun or salloc wrote its output to a terminal"):
        slurm.log_iter("7", "batch")


def test_an_interactive_job_in_the_queue_has_no_log(slurm, commands):
    # Before 24.05 squeue shows a default for it.
    commands.queue({"BatchFlag": "0", "STDOUT": "/home/alice/slurm-7.out"})
    with pytest.raises(SchedulerError, match="7 has no log: srun or salloc wrote its output to a terminal"):
        slurm.log_files("7", "batch", 0)


def test_output_that_went_nowhere(slurm, commands):
    commands.accounted({"StdOut": "/dev/null"})
    with pytest.raises(SchedulerError, match="the output of 7 went to /dev/null: it has no log"):
        slurm.log_iter("7", "batch")
