"""Advice before a launch and while a job waits: estimates of sbatch, partitions with room, what would start sooner."""

import os
import shutil
import time

import pytest
from support.slurm_commands import FIELD, RECORD
from support.tables import tables

from torchx_tui.backends.slurm.advice import Estimate, parse_estimate
from torchx_tui.backends.slurm.commands import Answer
from torchx_tui.backends.types import Alternative
from torchx_tui.specs.batch_script import BatchScript
from torchx_tui.specs.errors import BackendUnavailableError, SchedulerError
from torchx_tui.specs.roles import AppDef, Role

table = tables(__file__)

# Of the day, so that all processes of a test run have the same.
SOON = (int(time.time()) // 86400 + 2) * 86400
APP = AppDef("app", [Role("r", "", entrypoint="true")])
SCRIPT = "#!/bin/sh\n#SBATCH --time=1-0\nsrun hostname\n"


def told(at, nodes="n[1-2]"):
    """Return what sbatch of 22.05 prints."""
    return f"sbatch: Job 9 to start at {at} using 2 processors on nodes {nodes} in partition main\n"


def script_app(**settings):
    return AppDef("train", [BatchScript(SCRIPT, settings=settings).role()])


def partitions(commands, *rows):
    """Let sinfo print partitions: name, state, nodes, time limit."""
    text = "".join(
        f"{RECORD}{name}{FIELD}{state}{FIELD}{nodes}{FIELD}4000{FIELD}{limit}\n" for name, state, nodes, limit in rows
    )
    commands.answer("sinfo", text)


def asked(commands):
    return commands.calls("sbatch", "--test-only")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (" using", " using"),
        # As 26.05 prints it: a letter behind the time, and a cluster.
        (" using", " a using"),
        (" using", " on cluster c1 using"),
        ("main\n", "main on cluster c1\n"),
    ],
)
def test_what_sbatch_tells(text, printed):
    assert parse_estimate(Answer(0, "", told(SOON).replace(text, printed))) == Estimate(SOON, "n[1-2]")


def test_what_has_no_start():
    # The years 2707 and 4068 are what Slurm says of a job that never starts, and where others have no time limit.
    never = Estimate(None, fault="Slurm gives no estimate of the start")
    assert parse_estimate(Answer(0, "", told(23_263_372_800))) == never
    fault = "Requested node configuration is not available"
    refused = Estimate(None, "", fault, "sbatch refuses it, or it never starts")
    assert parse_estimate(Answer(1, "", f"allocation failure: {fault}\n")) == refused
    assert parse_estimate(Answer(0, "7\n", "")) is None


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("sbatch: error: Invalid --time specification", SchedulerError),
        ("sbatch: error: Batch job submission failed: Unable to contact slurm controller", BackendUnavailableError),
    ],
)
def test_what_is_no_estimate(said, kind):
    with pytest.raises(kind):
        parse_estimate(Answer(1, "", said))


@pytest.mark.parametrize(
    ("err", "code", "level", "what"),
    [
        (told(SOON), 0, "ok", "Slurm would start it at "),
        (told(23_263_372_800), 0, "warning", "Slurm gives no estimate of the start"),
        ("allocation failure: Requested node configuration is not available", 1, "warning", "Requested node"),
        ("allocation failure: Invalid qos specification", 1, "error", "Invalid qos specification"),
        ("sbatch: error: Invalid --time specification", 1, "error", "Invalid --time specification"),
    ],
)
def test_the_estimate_is_a_finding(slurm, commands, err, code, level, what):
    commands.answer("sbatch", err=err, code=code)
    assert [(finding.level, what in finding.what) for finding in slurm.preflight(APP, {})] == [(level, True)]
    # The same request is not asked about again, whatever key its launch would have.
    slurm.preflight(APP, {})
    assert len(asked(commands)) == 1


def test_a_controller_that_is_away_is_said(slurm, commands):
    commands.answer("sbatch", err="sbatch: error: Unable to contact slurm controller", code=1)
    (found,) = slurm.preflight(APP, {})
    assert (found.level, found.hint) == ("warning", "limits and the start are not checked")
    assert "Unable to contact slurm controller" in found.what


def test_a_controller_that_is_down_is_waited_for_once(slurm, commands):
    for name in ("scontrol", "sinfo", "sbatch"):
        commands.answer(name, err="Unable to contact slurm controller (connect failure)\n", code=1, seconds=2.5)
    assert [found.level for found in slurm.preflight(APP, {"partition": "main", "qos": "fast"})] == ["warning"]
    assert len([call for name in ("scontrol", "sinfo", "sbatch") for call in commands.calls(name)]) == 1


def test_a_program_that_is_missing_stops_no_other(slurm, commands, monkeypatch, tmp_path):
    partitions(commands, ("main*", "up", 3, "infinite"))
    commands.answer("sbatch", err=told(SOON))
    commands.remove("sacctmgr")
    for name in ("cat", "mv", "sleep", "tr"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", os.environ["PATH"].partition(os.pathsep)[0] + os.pathsep + str(tmp_path))
    assert [found.level for found in slurm.preflight(APP, {})] == ["ok"]


DENIED = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"


@pytest.mark.parametrize(
    ("err", "code", "levels", "hint"),
    [
        (told(SOON), 0, ["warning"], "sbatch would accept it, but it would never start: ask for another number"),
        # The QOS denies what exceeds it, and partitions are enforced.
        (f"sbatch: error: QOSMaxNodePerUserLimit\nallocation failure: {DENIED}", 1, ["error", "warning"],
         "sbatch refuses it: ask for another number of nodes"),
        ("allocation failure: Node count specification invalid", 1, ["error", "warning"], "sbatch refuses it: ask for"),
        # sbatch itself accepts some of these.
        ("allocation failure: Requested node configuration is not available", 1, ["warning"],
         "sbatch refuses it, or it never starts: ask for another number of nodes"),
    ],
)  # fmt: skip
def test_what_becomes_of_a_launch_over_a_limit(slurm, commands, err, code, levels, hint):
    partitions(commands, ("main*", "up", 3, "infinite"))
    commands.answer("scontrol-show-partition-main", "PartitionName=main State=UP MaxTime=UNLIMITED TotalNodes=3")
    commands.answer("sbatch", err=err, code=code)
    found = slurm.preflight(script_app(nodes="9"), {})
    assert [finding.level for finding in found] == levels
    assert found[-1].what == "it asks for 9 nodes, and the partition main allows 1 to 3"
    assert found[-1].hint.startswith(hint)


@table("limits of a script are those of its own options", "settings cfg what")
def test_limits_of_a_script_are_those_of_its_own_options(slurm, commands, settings, cfg, what):
    partitions(commands, ("main*", "up", 3, "1-00:00:00"))
    commands.answer(
        "scontrol-show-partition-main",
        "PartitionName=main AllowAccounts=silver State=UP MaxTime=1-00:00:00 TotalCPUs=12 TotalNodes=3",
    )
    warned = [finding.what for finding in slurm.preflight(script_app(**settings), cfg) if finding.level == "warning"]
    assert [what in text for text in warned] == [True] * bool(what)


def test_where_there_is_room(slurm, commands):
    partitions(
        commands,
        ("main*", "up", 2, "infinite"),
        ("short", "up", 2, "10:00"),
        ("old", "drain", 2, "infinite"),
        ("tiny", "up", 1, "infinite"),
    )
    assert slurm.known_values() == {"partition": ["main", "short", "old", "tiny"]}
    commands.nodes(
        {"NodeList": "n1", "StateLong": "idle", "CPUsState": "0/4/0/4", "Gres": "gpu:2", "GresUsed": "gpu:0"},
        {"NodeList": "n2", "StateLong": "mixed", "CPUsState": "1/3/0/4", "Gres": "gpu:2", "GresUsed": "gpu:1"},
        {"NodeList": "n3", "StateLong": "drained", "CPUsState": "0/0/4/4", "Gres": "gpu:2", "GresUsed": "gpu:0"},
    )
    commands.answer("sbatch", err=told(SOON))
    places = slurm.partitions(script_app(nodes="2", time="1:00:00", partition="short"), {})
    assert [(place.name, place.limit, place.start, place.fault) for place in places] == [
        ("short", 600, None, "too short"),
        ("main", None, SOON, ""),
        ("old", None, None, "closed"),
        ("tiny", None, None, "too few nodes"),
    ]
    first = places[0]
    assert (first.free, first.nodes, first.gpus_free, first.gpus) == (1, 2, 3, 6)
    # Slurm is not asked about what cannot be.
    assert [call[-1] for call in asked(commands)] == ["--partition=main"]


def test_what_would_start_sooner(slurm, commands, tmp_path):
    partitions(commands, ("main*", "up", 4, "infinite"), ("spare", "up", 4, "infinite"))
    commands.answer("scontrol-write-batch_script-7", SCRIPT)
    commands.accounted({"State": "PENDING", "SubmitLine": "sbatch train.sh"})
    commands.queue(
        {
            "State": "PENDING", "Reason": "Priority", "StartTime": str(SOON + 60), "NumNodes": "4",
            "TimeLimit": "2:00:00", "WorkDir": str(tmp_path),
        }
    )  # fmt: skip
    commands.answer("sbatch", err=told(SOON))
    assert slurm.alternatives("7") == [
        Alternative({"partition": "spare"}, SOON),
        Alternative({"time": "1:00:00"}, SOON),
        Alternative({"time": "1:00:00", "nodes": "2"}, SOON),
        Alternative({}, SOON + 60),
    ]


def waiting_script(commands, tmp_path, **fields):
    partitions(commands, ("main*", "up", 4, "infinite"), ("spare", "up", 4, "infinite"))
    commands.answer("scontrol-write-batch_script-7", SCRIPT)
    commands.accounted({"State": "PENDING", "SubmitLine": "sbatch train.sh"})
    commands.queue(
        {
            "State": "PENDING",
            "NumNodes": "4",
            "TimeLimit": "2:00:00",
            "WorkDir": str(tmp_path),
            "NumCPUs": "8",
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("err", "code"), [(told(SOON + 120), 0), (told(SOON + 60), 0), ("allocation failure: Invalid account", 1)]
)
def test_what_starts_no_sooner_is_left_out(slurm, commands, tmp_path, err, code):
    waiting_script(commands, tmp_path, Reason="Priority", StartTime=str(SOON + 60))
    commands.answer("sbatch", err=err, code=code)
    assert slurm.alternatives("7") == [Alternative({}, SOON + 60)]


def test_what_would_start_in_place_of_a_job_that_never_does(slurm, commands, tmp_path):
    waiting_script(
        commands, tmp_path, Reason="QOSGrpCPURunMinutesLimit", StartTime=str(SOON),
        **{"tres-alloc": "cpu=8,mem=800M,node=4,billing=8"},
    )  # fmt: skip
    commands.answer("scontrol-show-assoc_mgr-qos=normal", "QOS=normal(1)\n    GrpTRESRunMins=cpu=500(0)\n")
    commands.answer("sbatch", err=told(SOON))
    # The estimates of sbatch do not know the limit.
    assert slurm.alternatives("7") == [
        Alternative({"time": "1:00:00"}, SOON),
        Alternative({"time": "1:00:00", "nodes": "2"}, SOON),
        Alternative({}, None, "it asks for more time and size than its QOS allows"),
    ]


def test_of_a_job_without_a_script_nothing_is_asked(slurm, commands):
    commands.queue({"State": "PENDING"})
    with pytest.raises(SchedulerError, match="its batch script or its sbatch command is unknown"):
        slurm.alternatives("7")
