"""What of the cluster is free: the recordings of three versions, counted by awk; who may use what."""

import time
from collections import Counter
from pathlib import Path

import pytest
from support.slurm_commands import FIELD, RECORD
from support.tables import tables

from torchx_tui.backends.slurm import client
from torchx_tui.backends.slurm.cluster import ACTIVE_FORMAT, NODE_FIELDS, parse_nodes
from torchx_tui.backends.slurm.scheduler import SlurmScheduler
from torchx_tui.backends.slurm.values import gpus_by_type
from torchx_tui.base.files import user_name
from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.roles import AppDef, Role

table = tables(__file__)

RECORDINGS = Path(__file__).with_name("recordings")
DENIED = "slurm_load_jobs error: Access/permission denied"


def recorded_nodes(version):
    """Return the rows of a recording by the names of sinfo's fields."""
    names = ("NodeList", "Partition", "StateLong", "CPUsState", "Gres", "GresUsed", "Memory", "AllocMem", "", "Reason")
    lines = (RECORDINGS / f"nodes_{version}.txt").read_text().splitlines()
    return [dict(zip(names, line.split("|"), strict=True)) for line in lines]


def answer_partitions(commands, *names):
    rows = "".join(f"{RECORD}{name}{FIELD}up{FIELD}1{FIELD}4000{FIELD}1:00:00\n" for name in names)
    commands.answer("sinfo-" + f"{RECORD}%P{FIELD}%a{FIELD}%D{FIELD}%m{FIELD}%l", rows)


def answer_active(commands, rows):
    commands.answer(f"squeue-{ACTIVE_FORMAT}", "".join(row.replace("|", FIELD) + RECORD + "\n" for row in rows))


def recorded(commands, version):
    """Let Slurm's commands answer as they did when they were recorded."""
    rows = recorded_nodes(version)
    commands.nodes(*rows)
    answer_partitions(commands, *dict.fromkeys(row["Partition"] for row in rows))
    for name, program in (("partitions", "scontrol-show-partition"), ("active", "")):
        path = RECORDINGS / f"{name}_{version}.txt"
        text = path.read_text() if path.exists() else ""
        commands.answer(program, text) if program else answer_active(commands, text.splitlines())


def counts_of(pool):
    nodes = [pool.nodes, pool.nodes_free, pool.nodes_mixed, pool.nodes_down]
    memory = [pool.memory_free >> 20, pool.memory >> 20]
    return [*nodes, pool.cpus_free, pool.cpus, *pool.gpus["fake"], *memory, pool.waiting]


@table("counts", "version counts")
def test_pools_have_the_counts_of_the_recordings(slurm, commands, version, counts):
    recorded(commands, version)
    pools = slurm.cluster().pools
    assert {pool.name: counts_of(pool) for pool in pools} == counts
    assert (pools[0].cfg, pools[0].limit) == ({"partition": "main"}, 3600)


def test_nodes_name_their_pools_and_users(slurm, commands):
    recorded(commands, "24.11")
    nodes = {node.name: node for node in slurm.cluster().nodes}
    assert (nodes["n1"].pools, nodes["n1"].state, nodes["n1"].users) == (("main", "short"), "mixed", ("bob",))
    assert (nodes["n3"].pools, nodes["n3"].users) == (("main", "closed", "drainp", "gold", "vipq"), ())


# The partitions of the recordings, and what is noted of each for a user of the account vision with the QOS normal.
NOTES = {
    "main": ("", True),
    "short": ("max nodes 1", True),
    "closed": ("closed (down)", False),
    "drainp": ("closed (drain)", False),
    "gold": ("not yours, accounts gold", False),
    "vipq": ("not yours, QOS vip", False),
}


@pytest.mark.parametrize("version", ["24.11", "26.05"])
def test_who_may_use_a_partition(slurm, commands, version):
    recorded(commands, version)
    commands.answer("sacctmgr-show-assoc", "vision|normal\n")
    assert {pool.name: (pool.note, pool.is_open) for pool in slurm.cluster().pools} == NOTES


def test_an_account_below_an_allowed_one_may_use_a_partition(slurm, commands):
    recorded(commands, "24.11")
    commands.answer("sacctmgr-show-assoc", "vision|vip\n")
    commands.answer("scontrol-show-assoc_mgr-accounts=vision", "Account=vision UserName= ParentAccount=gold(3)\n")
    pools = {pool.name: (pool.note, pool.is_open) for pool in slurm.cluster().pools}
    assert (pools["gold"], pools["vipq"]) == (("accounts gold", True), ("QOS vip", True))


def test_nothing_of_a_node_without_use_is_free(slurm, commands):
    drained = {"NodeList": "n2", "StateLong": "draining", "CPUsState": "2/2/0/4", "Gres": "gpu:2", "Reason": "bad fan"}
    commands.nodes({"NodeList": "n1", "StateLong": "idle", "CPUsState": "0/4/0/4", "Gres": "gpu:2"}, drained)
    answer_partitions(commands, "main*")
    (pool,) = slurm.cluster().pools
    assert (pool.nodes_free, pool.nodes_mixed, pool.nodes_down, pool.nodes) == (1, 0, 1, 2)
    assert (pool.cpus_free, pool.cpus, pool.gpus) == (4, 8, {"gpu": (2, 4)})
    assert [node.reason for node in slurm.cluster().nodes] == ["", "bad fan"]


@table("gpus by type", "gres counts")
def test_gpus_by_type(gres, counts):
    assert gpus_by_type(gres) == counts


def test_limits_have_their_use(slurm, commands):
    recorded(commands, "24.11")
    commands.answer("sacctmgr-show-assoc", "silver|deny,normal\ncapped|normal\n")
    commands.answer("sacctmgr-show-user", "capped\n")
    account = (
        "Account=capped UserName= Partition= SharesRaw/Norm/Level/Factor=1/0.25/4/0.00 ParentAccount=root(1) "
        "GrpJobs=3(1) GrpTRES=cpu=4(2),mem=N(0),gres/gpu=N(0) MaxWallPJ=30"
    )
    own = f"Account=capped UserName={user_name()}(1) Partition= SharesRaw/Norm/Level/Factor=1/0.50/2/0.57"
    commands.answer("scontrol-show-assoc_mgr-accounts=capped", f"{account}\n{own}\n")
    commands.answer(
        "scontrol-show-assoc_mgr-qos=deny,normal", "QOS=deny(2)\n    GrpTRES=gres/gpu=8(5)\nQOS=normal(1)\n"
    )
    assert [*slurm.cluster().limits] == [
        "account capped (default), QOS normal",
        "fair share of the account capped: 0.57 of 1; a higher one starts sooner",
        "account silver, QOS deny, normal",
        "GrpJobs of the account capped: 1 of 3 jobs in use",
        "GrpTRES of the account capped: 2 of 4 CPUs in use",
        "MaxWallPJ of the account capped: 30 minutes",
        "GrpTRES of the QOS deny: 5 of 8 GPUs in use",
    ]


@pytest.mark.parametrize(
    ("program", "note"),
    [("squeue", "jobs of other users are not known: "), ("sacctmgr", "limits are not known: ")],
)
def test_a_question_that_fails_costs_a_note(slurm, commands, program, note):
    recorded(commands, "24.11")
    name = f"squeue-{ACTIVE_FORMAT}" if program == "squeue" else program
    commands.answer(name, err=f"{program}: error: {DENIED}", code=1)
    status = slurm.cluster()
    assert len(status.pools) == 6
    assert [(told.startswith(note), DENIED in told) for told in status.notes] == [(True, True)]


@pytest.mark.parametrize(("user", "is_hidden"), [("bob", False), (user_name(), True)], ids=["of others", "only own"])
def test_what_slurm_hides_is_a_note(slurm, commands, user, is_hidden):
    busy = {"StateLong": "mixed", "CPUsState": "2/2/0/4"}
    commands.nodes({"NodeList": "n1", **busy}, {"NodeList": "n2", **busy})
    answer_partitions(commands, "main*")
    answer_active(commands, [f"RUNNING|main|{user}|n1"])
    assert ["Slurm shows you no jobs of others" in note for note in slurm.cluster().notes] == [True] * is_hidden


def test_a_controller_that_is_away_is_an_error(slurm, commands):
    commands.answer("sinfo", err="sinfo: error: Unable to contact slurm controller", code=1)
    with pytest.raises(SchedulerError, match="Unable to contact slurm controller"):
        slurm.cluster()


def test_an_incomplete_record_costs_one_node():
    values = ("n1", "main*", "idle", "0/4/0/4", "(null)", "(null)", "4000", "0", "none")
    assert len(values) == len(NODE_FIELDS)
    text = FIELD.join(values) + RECORD + FIELD.join(values[:5]) + RECORD + FIELD.join(("n2", *values[1:])) + RECORD
    assert [node.name for node in parse_nodes(text)] == ["n1", "n2"]


def test_reasons_know_the_nodes_of_a_hidden_partition(slurm, commands):
    free = {"StateLong": "idle", "CPUsState": "0/4/0/4"}
    commands.nodes({"NodeList": "n1", **free})
    commands.nodes({"NodeList": "n2", "Partition": "hidden", **free}, partition="hidden")
    commands.queue({"State": "PENDING", "Reason": "Resources", "Partition": "hidden"})
    (reason,) = [reason for reason in slurm.describe("7").reasons if "CPUs of hidden are free" in reason]
    assert reason.startswith("4 of 4 CPUs")


def test_reasons_and_partitions_use_one_answer_about_the_nodes(slurm, commands):
    recorded(commands, "24.11")
    commands.queue({"State": "PENDING", "Reason": "Resources", "Partition": "main"})
    slurm.describe("7")
    slurm.describe("7")
    slurm.partitions(AppDef("app", [Role("r", "", entrypoint="true")]), {})
    assert len(commands.calls("sinfo", "--Node")) == 1


@table("start of a small job is estimated", "answer start fault")
def test_the_start_of_a_small_job_is_estimated(slurm, commands, answer, start, fault):
    at = int(time.time()) + 600
    commands.answer("sbatch", err=answer.format(at), code=int("fail" in answer))
    estimate = slurm.estimate_start("main")
    assert (estimate.start, fault in estimate.fault, "\x1b" in estimate.fault) == (at if start else None, True, False)
    assert commands.calls("sbatch") == [["--test-only", "--ntasks=1", "--wrap=true", "--partition", "main"]]


def test_sessions_share_one_estimate(commands, clock):
    commands.answer("sbatch", err="allocation failure: Invalid account", code=1)
    sessions = [SlurmScheduler("torchx", interval=10, quick_interval=1) for _ in range(3)]
    for seconds, asked in ((0, 1), (29, 1), (2, 2)):
        clock.now += seconds
        for session in sessions:
            session.estimate_start("main")
        assert len(commands.calls("sbatch")) == asked
    sessions[0].estimate_start("other")
    assert len(commands.calls("sbatch")) == 3


def test_a_controller_that_is_away_gives_no_estimate(slurm, commands):
    commands.answer("sbatch", err="sbatch: error: Unable to contact slurm controller", code=1)
    with pytest.raises(SchedulerError, match="Unable to contact slurm controller"):
        slurm.estimate_start("main")


@table("commands of five minutes with the screen open", "sessions is_busy a_minute")
def test_commands_of_five_minutes_with_the_screen_open(commands, clock, monkeypatch, sessions, is_busy, a_minute):
    """Each question of nodes and jobs is asked at the queue's interval of 10 s, by all sessions together."""
    monkeypatch.setattr(client, "time", clock)
    recorded(commands, "24.11")
    commands.answer("sacctmgr-show-assoc", "vision|normal\n")
    commands.answer("sacctmgr-show-user", "vision\n")
    screens = [SlurmScheduler("torchx", interval=10) for _ in range(sessions)]
    for number in range(60):
        if is_busy:
            answer_active(commands, [f"RUNNING|main|{user_name()}|n{number}"])
            commands.nodes({"NodeList": f"n{number}", "StateLong": "idle", "CPUsState": "0/4/0/4"})
            commands.answer("sbatch", err=f"sbatch: Job {number} to start at 1795258000 using 1 processors on nodes n1")
        for screen in screens:
            assert screen.cluster().refresh_s == 10
            screen.estimate_start("main")
        clock.now += 5  # somebody presses R between two questions
    most = {"sinfo": 30, "squeue": 30, "sbatch": 10, "scontrol": 5 * sessions, "sacctmgr": sessions}
    counts = {program: Counter(map(tuple, commands.calls(program))) for program in most}
    assert [program for program, each in counts.items() if max(each.values()) > most[program]] == []
    assert sum(each.total() for each in counts.values()) / 5 <= a_minute
