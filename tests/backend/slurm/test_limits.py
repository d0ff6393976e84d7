"""What sbatch would accept and never start is said before the launch."""

import pytest
from support.tables import tables

from torchx_tui.base.files import user_name
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role

table = tables(__file__)

PARTITION = (
    "PartitionName=main AllowGroups=ALL AllowAccounts=gold,silver AllowQos=ALL MaxNodes=2 MaxTime=00:30:00 MinNodes=1 "
    "Nodes=n[1-3] State=UP TotalCPUs=12 TotalNodes=3 JobDefaults=(null)\n"
)


def findings(slurm, cpu=1, **cfg):
    role = Role("worker", "", entrypoint="true", resource=Resource(cpu=cpu, gpu=0, memMB=1))
    return [finding.what for finding in slurm.preflight(AppDef("job", [role]), cfg) if finding.level == "warning"]


@pytest.fixture(autouse=True)
def answers(commands, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    commands.answer("sinfo", "\x1emain*\x1fup\x1f3\x1f4000\x1f30:00\n")
    commands.answer("scontrol-show-partition-main", PARTITION)
    commands.answer("sacctmgr", "silver\n")
    user = user_name()
    commands.answer(
        "scontrol-show-assoc_mgr-accounts=silver",
        "ClusterName=ref Account=silver UserName= Partition= MaxWallPJ= GrpTRES=cpu=9(3) MaxTRESPJ=\n"
        f"ClusterName=ref Account=silver UserName={user}(1000) Partition= MaxWallPJ=20 GrpTRES=cpu=N(3) MaxTRESPJ=\n",
    )
    commands.answer("scontrol-show-assoc_mgr-qos=fast", "QOS=fast(2)\n    MaxWallPJ=10\n    MaxTRESPJ=cpu=2\n")


@table("limit", "asked told")
def test_a_limit(slurm, asked, told):
    assert told in findings(slurm, **asked)


def test_what_is_within_the_limits(slurm):
    assert findings(slurm, cpu=9, time="20", nodes="2", account="silver") == []


def test_a_closed_partition(slurm, commands):
    commands.answer("scontrol-show-partition-main", PARTITION.replace("State=UP", "State=DRAIN"))
    assert findings(slurm) == ["the partition main is DRAIN"]


def test_one_of_several_partitions_may_fit(slurm, commands):
    assert findings(slurm, time="1:00:00", partition="main,other", account="gold") == []
    assert not commands.calls("scontrol", "partition")


def test_limits_that_are_hidden_are_not_guessed(slurm, commands):
    for name in ("scontrol", "scontrol-show-partition-main", "scontrol-show-assoc_mgr-accounts=silver", "sacctmgr"):
        commands.answer(name, err="Access/permission denied", code=1)
    assert findings(slurm, cpu=99, time="99-0") == []
