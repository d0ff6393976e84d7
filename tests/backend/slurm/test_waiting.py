"""Why a job waits: a sentence for each of Slurm's reasons, and what Slurm says of it beside."""

from __future__ import annotations

import os
import time

import pytest
from support.slurm_commands import SlurmCommands

from torchx_tui.backends.slurm.reasons import reason
from torchx_tui.backends.slurm.scheduler import SlurmScheduler
from torchx_tui.backends.slurm.waiting import clock

# As `scontrol --oneliner show partition` of 22.05 prints it.
PARTITION = (
    "PartitionName=main AllowGroups=ALL AllowAccounts=gold AllowQos=fast AllocNodes=ALL Default=YES QoS=N/A "
    "DefaultTime=01:00:00 DisableRootJobs=NO MaxNodes=2 MaxTime=00:30:00 MinNodes=1 LLN=NO MaxCPUsPerNode=UNLIMITED "
    "Nodes=n[1-3] State=DOWN TotalCPUs=12 TotalNodes=3 SelectTypeParameters=NONE JobDefaults=(null)\n"
)
# As `scontrol show assoc_mgr` prints it; the user's own limits follow the account's.
ACCOUNT = (
    "Current Association Manager state\nAssociation Records\n"
    "ClusterName=ref Account=root UserName= Partition= GrpJobs=9(9) GrpTRES=cpu=99(99)\n"
    "ClusterName=ref Account=silver UserName= Partition= SharesRaw/Norm/Level/Factor=1/0.25/4/0.00 GrpJobs=3(3) "
    "GrpSubmitJobs=N(2) GrpWall=N(2.21) GrpTRES=cpu=4(3),mem=N(0),gres/gpu=8(8) GrpTRESMins=cpu=1(8),mem=N(825) "
    "GrpTRESRunMins=cpu=100(90) MaxJobs= MaxWallPJ=30 MaxTRESPJ=cpu=2 MaxTRESMinsPJ=cpu=60 MinPrioThresh=\n"
    "ClusterName=ref Account=silver UserName=alice(1000) Partition= GrpJobs=N(0) GrpTRES=cpu=N(0) MaxJobs=2(2) "
    "MaxWallPJ=30 MaxTRESPJ= MaxTRESMinsPJ=\n"
    "ClusterName=ref Account=silver UserName=bob(1001) Partition= GrpJobs=1(1) MaxJobs=1(1)\n"
)
QOS = f"""Current Association Manager state

QOS Records

QOS=other(2)
    GrpJobs=1(1) GrpTRES=cpu=1(1)
    MaxWallPJ=1
QOS=normal(1)
    UsageRaw=0.000000
    GrpJobs=5(5) GrpJobsAccrue=N(0) GrpSubmitJobs=N(0) GrpWall=N(0.00)
    GrpTRES=cpu=6(6),mem=N(0),gres/gpu=N(0)
    MaxWallPJ=10
    MaxTRESPJ=cpu=2
    MinTRESPJ=gres/gpu=1
    Account Limits
      silver
        MaxJobsPA=N(0) MaxTRESPA=cpu=3(3)
    User Limits
      {os.getuid()}
        MaxJobsPU=4(4) MaxSubmitJobsPU=N(0)
        MaxTRESPU=cpu=2(2),mem=N(0),gres/gpu=N(0)
      65534
        MaxJobsPU=1(1)
        MaxTRESPU=cpu=1(1)
"""

OTHERS = """
    AssocGrpNodeLimit AssocGrpBilling AssocGrpLicense AssocGrpGRESMinutes AssocGrpMemMinutes AssocGrpBillingMinutes
    AssocGrpWallLimit AssocGrpSubmitJobsLimit AssocMaxSubmitJobLimit AssocMaxNodePerJobLimit AssocMaxGRESPerJob
    AssocMaxMemPerJob AssocMaxGRESPerNode QOSMaxGRESPerUser QOSMaxNodePerUserLimit QOSMaxSubmitJobPerUserLimit
    QOSGrpGRES QOSGrpNodeLimit QOSGrpMemLimit QOSGrpSubmitJobsLimit QOSGrpCPUMinutesLimit QOSGrpGRESMinutes
    QOSMaxNodePerJobLimit QOSMaxGRESPerJob QOSMaxMemoryPerJob QOSMinCpuNotSatisfied QOSMinMemory QOSMinNode
    MaxCpuPerAccount MaxGRESPerAccount MaxJobsPerAccount SchedDefer ReservationInvalid BurstBufferResources
"""


def why(slurm: SlurmScheduler, commands: SlurmCommands, text: str, *others: dict[str, str], **fields: str) -> str:
    """Return what a job's description says when it waits for a reason."""
    waits = {"State": "PENDING", "Reason": text, "StartTime": "N/A", "NodeList": "", **fields}
    commands.queue(waits, *others)
    described = slurm.describe("7")
    assert described is not None
    assert described.state.name == "PENDING"
    rows = {row.app_id: row for row in slurm.list()}
    # The row says the same after Slurm's own word, without what is asked beside; of a dependency it has the names.
    word, _, sentence = rows["7"].msg.partition(": ")
    assert described.msg.startswith((rows["7"].msg, sentence or "none")) or word.startswith("after ")
    return described.msg


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("None", "the scheduler has not considered it yet"),
        ("Dependency", "it waits for other jobs"),
        ("JobHeldUser", "it is held by its user: release it"),
        ("JobHeldAdmin", "it is held by an administrator: ask them to release it"),
        (
            "JobHoldMaxRequeue",
            "its launch failed several times, and it is held: check its nodes, then release it",
        ),
        ("job requeued in held state", "it is held by its user: release it"),
        ("launch failed requeued held", "its launch failed several times, and it is held"),
        ("ReservationDeleted", "its reservation was deleted: cancel it, and choose another reservation"),
        ("InvalidAccount", "its account is no longer valid: choose another account"),
        ("InvalidQOS", "its QOS is no longer valid: choose another QOS"),
        ("QOSUsageThreshold", "its QOS requires a higher fair share than it has"),
        ("MaxMemPerLimit", "it asks for more memory per CPU than is allowed: ask for less memory"),
        ("Cleaning", "its last run is being cleaned up"),
        ("Prolog", "its nodes are being prepared"),
        ("BurstBufferStageIn", "its data is being copied to the burst buffer"),
        ("SomethingOfTomorrow", "Slurm says SomethingOfTomorrow"),
        # Control characters of a reason do not reach the screen.
        ("odd\x1b[31m", "Slurm says odd"),
    ],
)
def test_a_sentence(slurm: SlurmScheduler, commands: SlurmCommands, text: str, sentence: str) -> None:
    assert why(slurm, commands, text).startswith(sentence)


@pytest.mark.parametrize(
    ("text", "fields", "told"),
    [
        ("PartitionTimeLimit", {}, "it asks for 1h, and main allows 30m"),
        ("PartitionNodeLimit", {"NumNodes": "9"}, "it asks for 9 nodes, and main allows 1 to 2 of its 3"),
        ("PartitionConfig", {"NumCPUs": "99"}, "it asks for 99 CPUs on 1 nodes, and main has 12 on 3"),
        ("PartitionDown", {}, "its partition is down: choose another partition; the partition main is DOWN"),
        ("PartitionInactive", {}, "the partition main is DOWN"),
        ("AccountNotAllowed", {}, "main allows gold, not silver"),
        (
            "Job's account not permitted to use this partition (goldonly allows gold not silver)",
            {},
            "its account may not use this partition: choose another account or partition; main allows gold, not silver",
        ),
        ("QOSNotAllowed", {}, "main allows fast, not normal"),
        ("BadConstraints", {"Feature": "v100"}, "it asks for v100"),
    ],
)
def test_partition(
    slurm: SlurmScheduler, commands: SlurmCommands, text: str, fields: dict[str, str], told: str
) -> None:
    commands.answer("scontrol-show-partition-main", PARTITION)
    assert told in why(slurm, commands, text, **fields)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("AssocGrpCpuLimit", "GrpTRES of the account silver: 3 of 4 CPUs in use"),
        ("AssocGrpJobsLimit", "GrpJobs of the account silver: 3 of 3 jobs in use"),
        ("AssocGrpGRES", "GrpTRES of the account silver: 8 of 8 GPUs in use"),
        ("AssocGrpCPUMinutesLimit", "GrpTRESMins of the account silver: 8 of 1 CPUs minutes in use"),
        ("AssocGrpCPURunMinutesLimit", "GrpTRESRunMins of the account silver: 90 of 100 CPUs minutes in use"),
        ("AssocMaxJobsLimit", "MaxJobs of the account silver: 2 of 2 jobs in use"),
        ("AssocMaxWallDurationPerJobLimit", "MaxWallPJ of the account silver: 30 minutes"),
        ("AssocMaxCpuPerJobLimit", "MaxTRESPJ of the account silver: 2 CPUs"),
        ("AssocMaxCpuMinutesPerJobLimit", "MaxTRESMinsPJ of the account silver: 60 CPUs minutes"),
        ("QOSGrpJobsLimit", "GrpJobs of the QOS normal: 5 of 5 jobs in use"),
        ("QOSGrpCpuLimit", "GrpTRES of the QOS normal: 6 of 6 CPUs in use"),
        ("QOSMaxCpuPerUserLimit", "MaxTRESPU of the QOS normal: 2 of 2 CPUs in use"),
        ("QOSMaxJobsPerUserLimit", "MaxJobsPU of the QOS normal: 4 of 4 jobs in use"),
        ("QOSMaxWallDurationPerJobLimit", "MaxWallPJ of the QOS normal: 10 minutes"),
        ("QOSMaxCpuPerJobLimit", "MaxTRESPJ of the QOS normal: 2 CPUs"),
        ("QOSMinGRES", "MinTRESPJ of the QOS normal: 1 GPUs"),
        # A limit that is hidden from the user is not guessed.
        ("AssocGrpMemLimit", "the jobs of its account use as much memory as it allows"),
        ("QOSMaxMemoryPerUser", "your jobs use as much memory as its QOS allows you"),
    ],
)
def test_limits(slurm: SlurmScheduler, commands: SlurmCommands, text: str, told: str) -> None:
    commands.answer("scontrol-show-assoc_mgr-accounts=silver", ACCOUNT)
    commands.answer("scontrol-show-assoc_mgr-qos=normal", QOS)
    assert told in why(slurm, commands, text)


@pytest.mark.parametrize(
    "code",
    OTHERS.split(),
)
def test_every_other_code_of_slurm_is_a_sentence(code: str) -> None:
    assert not reason(code).sentence.startswith("Slurm says")


def test_resources(slurm: SlurmScheduler, commands: SlurmCommands) -> None:
    commands.nodes(
        {
            "NodeList": "n1",
            "StateLong": "mixed",
            "CPUsState": "3/1/0/4",
            "Gres": "gpu:a100:2",
            "GresUsed": "gpu:a100:2(IDX:0-1)",
        },
        {"NodeList": "n2", "StateLong": "drained*", "CPUsState": "0/0/4/4", "Gres": "gpu:a100:2", "Reason": "bad fan"},
        {
            "NodeList": "n3",
            "StateLong": "allocated",
            "CPUsState": "4/0/0/4",
            "Gres": "gpu:a100:2",
            "GresUsed": "gpu:a100:1(IDX:0)",
        },
    )
    start = time.time() + 3600
    told = why(
        slurm,
        commands,
        "Resources",
        StartTime=f"{start:.0f}",
        SchedNodes="n1",
        NumCPUs="4",
        **{"tres-per-node": "gres:gpu:2"},
    )
    assert "1 of 8 CPUs of main are free, and it asks for 4" in told
    assert "1 of 4 GPUs are free" in told
    assert "n2 is drained (bad fan)" in told
    assert f"Slurm expects to start it at {clock(start)} on n1" in told


def test_times_of_today_have_no_date() -> None:
    now = time.time()
    assert clock(now) == time.strftime("%H:%M", time.localtime(now))
    assert clock(now + 2 * 86400).startswith(time.strftime("%Y-%m-%d ", time.localtime(now + 2 * 86400)))


def test_no_estimate_of_centuries_ahead(slurm: SlurmScheduler, commands: SlurmCommands) -> None:
    assert "expects" not in why(slurm, commands, "Priority", StartTime="23250000000")
    # Nor one that has passed.
    assert "expects" not in why(slurm, commands, "Priority", StartTime="1795258000")


def test_named_nodes_are_down(slurm: SlurmScheduler, commands: SlurmCommands) -> None:
    commands.nodes(
        {"NodeList": "n1", "StateLong": "down", "CPUsState": "0/0/4/4", "Reason": "Not responding"},
        {"NodeList": "n2", "StateLong": "drained", "CPUsState": "0/0/4/4", "Reason": "bad fan"},
    )
    told = why(slurm, commands, "ReqNodeNotAvail, UnavailableNodes:n2")
    assert "n2 is drained (bad fan)" in told
    assert "n1" not in told


def test_the_rank_in_the_queue(slurm: SlurmScheduler, commands: SlurmCommands) -> None:
    commands.queue({"State": "PENDING", "Reason": "Priority", "StartTime": "N/A"})
    # The same program answers both questions.
    told = slurm._facts._kept
    asked = "squeue --noheader --local --states=PENDING --partition main --sort=-p --format %A"
    told[tuple(asked.split())] = time.monotonic(), "3\n5\n7\n9\n"
    described = slurm.describe("7")
    assert described is not None
    assert "2 of the 4 jobs that wait in main are ahead of it" in described.msg


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("        310|       9894|      6000|0|0|0|0|cpu=10,gres/gpu=20|100\n",
         "1,000: age 310, fair share 9,894, size 6,000, resources 30, nice 100"),
        ("310|nan|6000|0|0|0|0||-5\n", "1,000: age 310, size 6,000, nice -5"),
        ("310|9894\n", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_factors_of_a_priority(slurm: SlurmScheduler, commands: SlurmCommands, printed: str, expected: str) -> None:
    commands.answer("sprio", printed)
    assert why(slurm, commands, "Priority").partition("its priority is ")[2] == expected


def test_an_earliest_start(slurm: SlurmScheduler, commands: SlurmCommands) -> None:
    told = why(slurm, commands, "BeginTime", EligibleTime="1827000000", StartTime="1827000000")
    assert "its begin time has not come; it may start at 2027-11-" in told


def test_the_limit_of_an_array(slurm: SlurmScheduler, commands: SlurmCommands) -> None:
    told = why(slurm, commands, "JobArrayTaskLimit", ArrayTaskID="2-19%2")
    assert told == "its array runs as many tasks as it may at once: raise the array's limit (%N); 2 at once"


def test_licences(slurm: SlurmScheduler, commands: SlurmCommands) -> None:
    commands.answer("scontrol-show-licenses", "LicenseName=matlab Total=1 Used=1 Free=0 Reserved=0 Remote=no\n")
    told = why(slurm, commands, "Licenses", Licenses="matlab:1,none:2")
    assert told.endswith("0 of 1 licences matlab are free, and it asks for 1")


def test_a_reservation(slurm: SlurmScheduler, commands: SlurmCommands) -> None:
    commands.answer(
        "scontrol-show-reservation-nightly",
        "ReservationName=nightly StartTime=1827000000 EndTime=1827003600 Duration=01:00:00 Nodes=n2 State=INACTIVE\n",
    )
    assert "the reservation nightly begins at 2027-11-" in why(slurm, commands, "Reservation", Reservation="nightly")


def test_dependencies_by_name_and_state(slurm: SlurmScheduler, commands: SlurmCommands) -> None:
    told = why(
        slurm, commands, "Dependency", {"JobID": "3", "Name": "prepare"},
        Dependency="afterok:3(unfulfilled),afterany:99_*(unfulfilled),singleton(unfulfilled)",
    )  # fmt: skip
    assert told.endswith(
        "until prepare (3), which is RUNNING, has succeeded and job 99 has ended and "
        "its other jobs named train have ended"
    )


def test_one_that_never_starts(slurm: SlurmScheduler, commands: SlurmCommands) -> None:
    told = why(
        slurm, commands, "DependencyNeverSatisfied", {"JobID": "3", "Name": "prepare", "State": "FAILED"},
        Dependency="afterok:3(failed)",
    )  # fmt: skip
    assert "so it never starts: cancel it" in told
    assert "prepare (3), which is FAILED, has succeeded" in told


def test_what_cannot_be_asked_is_left_out(slurm: SlurmScheduler, commands: SlurmCommands) -> None:
    commands.answer("scontrol", err="slurm_load_assoc_mgr error: Access/permission denied\n", code=1)
    assert why(slurm, commands, "AssocGrpCpuLimit") == "the jobs of its account use as many CPUs as it allows"


def test_what_is_asked_beside_is_asked_once_a_minute(slurm: SlurmScheduler, commands: SlurmCommands) -> None:
    commands.answer("scontrol-show-partition-main", PARTITION)
    for _ in range(3):
        why(slurm, commands, "PartitionTimeLimit")
    assert len([call for call in commands.calls("scontrol") if "partition" in call]) == 1


def test_a_row_names_the_jobs_that_it_waits_for(slurm: SlurmScheduler, commands: SlurmCommands) -> None:
    commands.queue(
        {"JobID": "3", "Name": "prepare"},
        {"State": "PENDING", "Reason": "Dependency", "Dependency": "afterok:3(unfulfilled),afterany:4(unfulfilled)"},
    )
    assert [row.msg for row in slurm.list() if row.app_id == "7"] == ["after prepare 3, 4"]
