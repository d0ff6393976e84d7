"""Why a job waits: a sentence for each of Slurm's reasons, and what Slurm says of it beside."""

import os
import time
from pathlib import Path

import pytest
from support.slurm_commands import FIELD, RECORD
from support.tables import tables

from torchx_tui.backends.slurm.reasons import reason
from torchx_tui.backends.slurm.waiting import clock
from torchx_tui.base.files import user_name

table = tables(__file__)

RECORDINGS = Path(__file__).with_name("recordings")

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
    "GrpSubmitJobs=N(2) GrpWall=N(2.21) GrpTRES=cpu=4(3),mem=N(0),gres/gpu=8(8) GrpTRESMins=cpu=1000(8),mem=N(825) "
    "GrpTRESRunMins=cpu=1000(900) MaxJobs= MaxWallPJ=30 MaxTRESPJ=cpu=2 MaxTRESMinsPJ=cpu=60 MinPrioThresh=\n"
    f"ClusterName=ref Account=silver UserName={user_name()}(1000) Partition= GrpJobs=N(0) GrpTRES=cpu=N(0) "
    "MaxJobs=2(2) MaxWallPJ=30 MaxTRESPJ= MaxTRESMinsPJ=\n"
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
    MaxNodePerAccount MaxMemoryPerAccount MaxLicensePerAccount MaxBillingPerAccount MaxBBPerAccount MaxEnergyPerAccount
    MaxSubmitJobsPerAccount MaxCpuRunMinsPerUser MaxGRESRunMinsPerAccount MaxUnknownRunMinsPerUser MaxPoweredUpNodes
    MpiPortsBusy RaisedSignal AssociationJobLimit QOSResourceLimit AssocMaxBBPerNode QOSMinEnergy FedJobLock
    QOSMaxQuantumPerUser MaxQuantumRunMinsPerAccount
"""


@pytest.fixture
def why(slurm, described):
    """Return what returns a job's message when it waits for a reason."""

    def find(text, *others, **fields):
        shown = described(text, *others, **fields)
        rows = {row.app_id: row for row in slurm.list()}
        # The row says the same after Slurm's own word, without what is asked beside; of a dependency it has the names.
        word, _, sentence = rows["7"].msg.partition(": ")
        assert shown.startswith((rows["7"].msg, sentence or "none")) or word.startswith("after ")
        return shown

    return find


@pytest.fixture
def described(slurm, commands):
    """Return what returns the same without a look at the row, which asks nothing beside."""

    def describe(text, *others, **fields):
        waits = {"State": "PENDING", "Reason": text, "StartTime": "N/A", "NodeList": "", **fields}
        commands.queue(waits, *others)
        told = slurm.describe("7")
        assert told.state.name == "PENDING"
        return told.msg

    return describe


def row_of(slurm, commands, text, **fields):
    commands.queue({"State": "PENDING", "Reason": text, **fields})
    return slurm.list()[0].msg


@table("sentence", "text sentence")
def test_a_sentence(why, text, sentence):
    assert why(text).startswith(sentence)


@table("partition", "text fields told")
def test_partition(commands, why, text, fields, told):
    commands.answer("scontrol-show-partition-main", PARTITION)
    assert told in why(text, **fields)


@table("limits", "text told")
def test_limits(commands, why, text, told):
    commands.answer("scontrol-show-assoc_mgr-accounts=silver", ACCOUNT)
    commands.answer("scontrol-show-assoc_mgr-qos=normal", QOS)
    assert told in why(text, UserName=user_name())


@pytest.mark.parametrize(
    "code",
    OTHERS.split(),
)
def test_every_other_code_of_slurm_is_a_sentence(code):
    assert not reason(code).sentence.startswith("Slurm says")


def test_resources(commands, why):
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
    start = int(time.time()) + 3600
    told = why(
        "Resources",
        StartTime=f"{start:.0f}",
        SchedNodes="n1",
        NumCPUs="4",
        **{"tres-per-node": "gres:gpu:2"},
    )
    assert "1 of 8 CPUs of main are free, and 0 of 2 whole nodes; it asks for 4 CPUs on 1 node" in told
    assert "1 of 4 GPUs are free" in told
    assert "n2 is drained (bad fan)" in told
    assert f"Slurm expects to start it at {clock(start)} on n1" in told


def test_times_of_today_have_no_date():
    now = time.time()
    assert clock(now) == time.strftime("%H:%M", time.localtime(now))
    assert clock(now + 2 * 86400).startswith(time.strftime("%Y-%m-%d ", time.localtime(now + 2 * 86400)))


def test_no_estimate_of_centuries_ahead(why):
    assert "expects" not in why("Priority", StartTime="23250000000")
    # Nor one that has passed.
    assert "expects" not in why("Priority", StartTime="1795258000")


def test_named_nodes_are_down(commands, why):
    commands.nodes(
        {"NodeList": "n1", "StateLong": "down", "CPUsState": "0/0/4/4", "Reason": "Not responding"},
        {"NodeList": "n2", "StateLong": "drained", "CPUsState": "0/0/4/4", "Reason": "bad fan"},
    )
    told = why("ReqNodeNotAvail, UnavailableNodes:n2")
    assert "n2 is drained (bad fan)" in told
    assert "n1" not in told


def test_the_rank_in_the_queue(slurm, commands):
    commands.queue({"State": "PENDING", "Reason": "Priority", "StartTime": "N/A"})
    commands.answer("squeue-%A-main", "3\n5\n7\n9\n")
    assert "2 of the 4 jobs that wait in main are ahead of it" in slurm.describe("7").msg


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
def test_the_factors_of_a_priority(commands, why, printed, expected):
    commands.answer("sprio", printed)
    assert why("Priority").partition("its priority is ")[2] == expected


def test_an_earliest_start(why):
    told = why("BeginTime", EligibleTime="1827000000", StartTime="1827000000")
    assert "its begin time has not come; it may start at 2027-11-" in told


def test_the_limit_of_an_array(why):
    told = why("JobArrayTaskLimit", ArrayTaskID="2-19%2")
    assert told == "its array runs as many tasks as it may at once: raise the array's limit (%N); 2 at once"


def test_licences(commands, why):
    commands.answer("scontrol-show-licenses", "LicenseName=matlab Total=1 Used=1 Free=0 Reserved=0 Remote=no\n")
    told = why("Licenses", Licenses="matlab:1,none:2")
    assert told.endswith("0 of 1 licences matlab are free, and it asks for 1")


def test_a_reservation(commands, why):
    commands.answer(
        "scontrol-show-reservation-nightly",
        "ReservationName=nightly StartTime=1827000000 EndTime=1827003600 Duration=01:00:00 Nodes=n2 State=INACTIVE\n",
    )
    assert "the reservation nightly begins at 2027-11-" in why("Reservation", Reservation="nightly")


def test_dependencies_by_name_and_state(why):
    told = why("Dependency", {"JobID": "3", "Name": "prepare"},
        Dependency="afterok:3(unfulfilled),afterany:99_*(unfulfilled),singleton(unfulfilled)",
    )  # fmt: skip
    assert told.endswith(
        "until prepare (3), which is RUNNING, has succeeded and job 99 has ended and "
        "its other jobs named train have ended"
    )


def test_one_that_never_starts(why):
    told = why("DependencyNeverSatisfied", {"JobID": "3", "Name": "prepare", "State": "FAILED"},
        Dependency="afterok:3(failed)",
    )  # fmt: skip
    assert "so it never starts: cancel it" in told
    assert "prepare (3), which is FAILED, has succeeded" in told


def test_what_cannot_be_asked_is_left_out(commands, why):
    commands.answer("scontrol", err="slurm_load_assoc_mgr error: Access/permission denied\n", code=1)
    assert why("AssocGrpCpuLimit") == "the jobs of its account with this one need more CPUs than it allows"


def test_what_is_asked_beside_is_asked_once_a_minute(commands, why):
    commands.answer("scontrol-show-partition-main", PARTITION)
    for _ in range(3):
        why("PartitionTimeLimit")
    assert len(commands.calls("scontrol", "partition")) == 1


def test_a_row_names_the_jobs_that_it_waits_for(slurm, commands):
    commands.queue(
        {"JobID": "3", "Name": "prepare"},
        {"State": "PENDING", "Reason": "Dependency", "Dependency": "afterok:3(unfulfilled),afterany:4(unfulfilled)"},
    )
    assert [row.msg for row in slurm.list() if row.app_id == "7"] == ["after prepare 3, 4"]


def recorded(commands, version):
    """Let scontrol print limits as a version does, whose user stands for this one."""
    text = (RECORDINGS / f"assoc_mgr_{version}.txt").read_text().replace("alice", user_name())
    accounts, _, rest = text.partition("QOS Records\n")
    commands.answer("scontrol-show-assoc_mgr-accounts=tiny", accounts)
    commands.answer("scontrol-show-assoc_mgr-accounts=nlp", accounts)
    commands.answer("scontrol-show-assoc_mgr", rest)


@pytest.mark.parametrize("version", ["24.11", "26.05"])
@table("limits as newer versions print them", "text fields told")
def test_limits_as_newer_versions_print_them(commands, why, version, text, fields, told):
    recorded(commands, version)
    assert told in why(text, UserName=user_name(), **fields)


def test_limits_of_an_account_in_a_qos(commands, why):
    commands.answer("scontrol-show-assoc_mgr-qos=normal", QOS.replace("MaxTRESPA=cpu=3(3)", "MaxTRESPA=cpu=3(2)"))
    assert "MaxTRESPA of the QOS normal: 2 of 3 CPUs in use" in why("MaxCpuPerAccount")
    assert "MaxTRESPA" not in why("MaxCpuPerAccount", Account="gold")


def test_limits_of_accounts_above(commands, why):
    line = "ClusterName=ref Account={} UserName= Partition= ParentAccount={} GrpTRES={}\n"
    commands.answer("scontrol-show-assoc_mgr-accounts=silver", line.format("silver", "lab(3)", "cpu=N(4)"))
    commands.answer("scontrol-show-assoc_mgr-accounts=lab", line.format("lab", "root(1)", "cpu=4(4)"))
    assert "GrpTRES of the account lab: 4 of 4 CPUs in use" in why("AssocGrpCpuLimit")
    # What is further up is not asked for.
    assert not commands.calls("scontrol", "accounts=root")


def test_limits_of_the_qos_of_the_partition(commands, why):
    commands.answer("scontrol-show-assoc_mgr-qos=part", "QOS=part(9)\n    GrpTRES=cpu=6(5)\n")
    commands.answer("scontrol-show-partition-main", PARTITION.replace("QoS=N/A", "QoS=part"))
    told = why("QOSGrpCpuLimit")
    assert told.endswith("GrpTRES of the QOS part of the partition: 5 of 6 CPUs in use")


ALONE = "QOS=normal(1)\n GrpTRES=cpu=6(2),mem=1000(0),gres/gpu=2(0)\n GrpTRESRunMins=cpu=100(0)\n GrpWall=30(0.00)\n"
TRES = "cpu=8,mem=4G,node=1,billing=8,gres/gpu=4"


@table("limit that the job alone exceeds", "code told")  # fmt: skip
def test_a_limit_that_the_job_alone_exceeds(commands, described, code, told):
    commands.answer("scontrol-show-assoc_mgr-qos=normal", ALONE)
    soon = f"{time.time() + 600:.0f}"
    shown = described(code, NumCPUs="8", StartTime=soon, **{"tres-alloc": TRES})
    assert told in shown
    assert "expects" not in shown


@table("rows of jobs that are not planned have no start", "code is_planned")  # fmt: skip
def test_rows_of_jobs_that_are_not_planned_have_no_start(slurm, commands, code, is_planned):
    told = row_of(slurm, commands, code, StartTime=f"{time.time() + 600:.0f}")
    assert told.startswith(f"{code}, start " if is_planned else f"{code}: ")


def test_a_start_after_a_job_without_a_time_limit_is_none(slurm, commands):
    # Slurm takes a year for it.
    assert "start" not in row_of(slurm, commands, "Priority", StartTime=f"{time.time() + 365 * 86400:.0f}")


DOWN = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"


@pytest.mark.parametrize(
    ("allows", "told"),
    [
        ("AllowAccounts=gold AllowQos=ALL", "its account may not use this partition: choose another account or "
         "partition; the partition main does not allow the account silver, only gold"),
        ("AllowAccounts=ALL AllowQos=vip", "its QOS may not use this partition: choose another QOS or partition; "
         "the partition main does not allow the QOS normal, only vip"),
        ("AllowAccounts=ALL DenyQos=normal", "its QOS may not use this partition: choose another QOS or partition; "
         "the partition main does not allow the QOS normal"),
        ("AllowAccounts=ALL AllowQos=ALL", "no node is open to it: they are down, drained"),
    ],
)  # fmt: skip
def test_what_may_not_use_the_partition_is_not_said_of_nodes(commands, described, allows, told):
    commands.answer("scontrol-show-partition-main", f"PartitionName=main {allows} State=UP\n")
    soon = f"{time.time() + 600:.0f}"
    shown = described(DOWN, StartTime=soon)
    assert shown.startswith(told)
    assert ("expects" in shown) is told.startswith("no node")


def test_free_cpus_and_whole_nodes(commands, why):
    commands.nodes(
        *({"NodeList": f"n{number}", "StateLong": "mixed", "CPUsState": f"{4 - idle}/{idle}/0/4"}
          for number, idle in ((1, 0), (2, 4), (3, 3))),
    )  # fmt: skip
    told = "7 of 12 CPUs of main are free, and 1 of 3 whole nodes; it asks for 8 CPUs on 2 nodes"
    assert told in why("Resources", NumCPUs="8", NumNodes="2")


def test_nodes_of_several_partitions_count_once(commands, why):
    nodes = [{"NodeList": "n1", "Partition": name, "StateLong": "idle", "CPUsState": "0/4/0/4"} for name in "ab"]
    commands.nodes(*nodes)
    assert "4 of 4 CPUs of a,b are free, and 1 of 1 whole nodes" in why("Resources", Partition="a,b")


def test_a_requeued_job_says_when_it_starts_again(why):
    soon = int(time.time()) + 100
    told = why("BeginTime", RestartCnt="1", EligibleTime=f"{soon:.0f}", StartTime=f"{soon:.0f}")
    assert told == f"it was requeued, and starts again at {clock(soon)}"


def test_the_doctor_counts_each_node_once(slurm, commands):
    row = f"{RECORD}{{}}{FIELD}up{FIELD}3{FIELD}4000{FIELD}infinite\n"
    commands.answer("sinfo", "".join(map(row.format, ("main*", "short", "long"))))
    commands.answer("sinfo-%D", "2\n1\n")
    assert "3 nodes in the partitions main, short, long" in slurm.check()[0].what


def test_a_controller_that_is_down_is_waited_for_once(commands, described):
    for name in ("scontrol", "sinfo"):
        commands.answer(name, err="Unable to contact slurm controller (connect failure)\n", code=1, seconds=2.5)
    began = time.monotonic()
    described("QOSGrpCpuLimit")
    described("Resources")
    assert len(commands.calls("scontrol") + commands.calls("sinfo")) == 1
    assert time.monotonic() - began > 2.5
