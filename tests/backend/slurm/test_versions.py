"""Answers of newer versions of Slurm give the same rows as those of 22.05.

Constructed after the sources of each version, not recorded: what is said of a job differs in its exit code, its log
file and its states; new fields and words come.
"""

from pathlib import Path

import pytest
from support.slurm_commands import FIELD, RECORD
from support.tables import tables

from torchx_tui.backends.api import Stream
from torchx_tui.backends.slurm.cluster import limits_in, parse_nodes, parse_pairs, parse_partitions, parse_qos
from torchx_tui.backends.slurm.versions import LATER_FIELDS
from torchx_tui.specs.status import AppState

table = tables(__file__)

VERSIONS = ("22.05", "23.02", "23.11", "24.05", "24.11", "25.05", "25.11", "26.05")


def squeue_job(version, **more):
    """Return what squeue of a version says of a job otherwise."""
    # The raw status of wait() before 23.02; StdOut is (null) without --expand-patterns from 24.05.
    code = "768" if version == "22.05" else "3:0"
    stdout = "/home/alice/slurm-7.out" if version < "24.05" else "(null)"
    # What is not there is N/A or (null), by version.
    nothing = "N/A" if version < "24.11" else "(null)"
    return {
        "exit_code": code,
        "STDOUT": stdout,
        "STDERR": nothing,
        "tres-per-node": nothing,
        "HetJobID": nothing,
        **more,
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_job_that_failed_in_the_queue(slurm, commands, version):
    commands.queue(squeue_job(version, State="FAILED", EndTime="1795258110", Reason="NonZeroExitCode"))
    described = slurm.describe("7")
    assert described.state is AppState.FAILED
    assert described.metadata["batch output"] == "/home/alice/slurm-7.out"
    (status,) = described.roles_statuses
    assert [(replica.exit_code, replica.reason) for replica in status.replicas] == [(3, "exit 3")]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_array_in_the_queue(slurm, commands, version):
    stdout = "/home/alice/slurm-41.out" if version < "24.05" else "/home/alice/slurm-%A_%a.out"
    rest = {
        "JobID": "41",
        "ArrayTaskID": "2-9%2",
        "State": "PENDING",
        "StartTime": "N/A",
        "Reason": "JobArrayTaskLimit",
    }
    task = {"JobID": "50", "ArrayJobID": "41", "ArrayTaskID": "1"}
    commands.queue(*(squeue_job(version, **{**job, "STDOUT": stdout, "exit_code": "0"}) for job in (rest, task)))
    (row,) = slurm.list()
    assert (row.app_id, row.replicas_wanted, row.replicas_running) == ("41", 9, 1)
    assert slurm.log_files("41", "task", 1)[Stream.STDOUT] == Path("/home/alice/slurm-41_1.out")


@pytest.mark.parametrize("version", ["20.11", *VERSIONS])
def test_a_job_in_accounting(slurm, commands, version):
    commands.set_version(version)
    # 25.11 adds a reason for a script that died of a signal; before 23.02 that was a launch that failed.
    reason = "RaisedSignal:9(Killed)" if version >= "23.02" else "JobLaunchFailure"
    node = {"FailedNode": "n2"} if version >= "23.02" else {}
    commands.accounted(
        {"State": "NODE_FAIL", **node},
        {"JobIDRaw": "8", "State": "FAILED", "ExitCode": "0:9", "DerivedExitCode": "0:9", "Reason": reason},
        {"JobIDRaw": "9", "State": "CANCELLED by 0"},
    )
    rows = {row.app_id: row for row in slurm.list()}
    assert [rows[app_id].state for app_id in ("7", "8", "9")] == [
        AppState.FAILED, AppState.FAILED, AppState.CANCELLED,
    ]  # fmt: skip
    assert ("the node n2 failed" if node else "a node failed (it ran on n1)") in rows["7"].msg
    assert "SIGKILL" in rows["8"].msg
    assert rows["9"].msg.startswith("cancelled by root")


@table("states", "word state is_explained")
def test_a_state(slurm, commands, word, state, is_explained):
    commands.queue({"State": word})
    (row,) = slurm.list()
    assert (row.state.name, bool(row.msg)) == (state, is_explained)


@pytest.mark.parametrize("more", ["", " Topology=block QosList=(null)", " ResumeTimeout=GLOBAL\tSuspendTimeout=GLOBAL"])
def test_fields_that_come_in_scontrol(more):
    pairs = parse_pairs(f"PartitionName=main AllowAccounts=ALL MaxTime=1-00:00:00{more} State=UP TotalNodes=3")
    assert (pairs["MaxTime"], pairs["State"], pairs["TotalNodes"]) == ("1-00:00:00", "UP", "3")


def test_limits_in_scontrol_with_fields_that_come():
    # 24.11 has a line of relative use, 25.05 limits by minutes of each account.
    text = (
        "QOS=normal(1)\n    UsageRaw=0.0 Relative=N\n    GrpJobs=3(3) GrpTRES=cpu=4(3),gres/gpu:a100=N(0)\n"
        "    MaxTRESRunMinsPA=cpu=N(0) MaxTRESPU=cpu=2(2)\n    User Limits\n      0\n        MaxJobsPU=N(1)\n"
    )
    found = parse_qos(text, "normal", "root", "lab")
    assert limits_in(found["GrpJobs"]) == {"": ("3", "3")}
    assert limits_in(found["MaxTRESPU"])["cpu"] == ("2", "2")


@table("states of nodes", "state is_usable")
def test_states_of_nodes(state, is_usable):
    values = ("n1", "main", state, "2/2/0/4", "gpu:a100:4(S:0-1)", "gpu:a100:1(IDX:0)", "4000", "0", "none")
    (node,) = parse_nodes(FIELD.join(values) + RECORD + "\n")
    free = (2, {"a100": (3, 4)}) if is_usable else (0, {"a100": (0, 4)})
    assert (node.is_usable, (node.cpus_free, node.gpus)) == (is_usable, free)


def test_partitions_with_a_state_that_is_no_word_of_22_05():
    rows = (("main*", "up", "3", "4000+", "1-00:00:00"), ("old", "inact", "1", "1", "infinite"))
    text = "".join(f"{RECORD}{FIELD.join(row)}\n" for row in rows)
    assert [(each.name, each.is_up, each.memory, each.max_time) for each in parse_partitions(text)] == [
        ("main", True, 4000, 86400), ("old", False, 1, None),
    ]  # fmt: skip


@table("fields that sacct is asked for", "version expected")
def test_fields_that_sacct_is_asked_for(slurm, commands, version, expected):
    commands.set_version(version)
    commands.accounted({})
    assert [row.app_id for row in slurm.list()] == ["7"]
    assert [name for name in commands.calls("sacct")[-1][-1].split(",") if name in LATER_FIELDS["sacct"]] == expected


def test_an_upgrade_is_noticed(slurm, commands):
    for version, is_asked in (("22.05", False), ("26.05", True)):
        commands.set_version(version)
        commands.queue({})
        slurm.list()
        assert ("SLUID" in commands.calls("squeue")[-1][-1]) is is_asked


def test_squeue_without_a_list_of_fields(slurm, commands):
    # Before 24.05.
    commands.refuse_help("squeue")
    commands.queue({})
    assert [row.app_id for row in slurm.list()] == ["7"]
