"""The command cluster: a table a backend, JSON, faults."""

from __future__ import annotations

import threading

import pytest
from support.canned import CannedScheduler
from support.cluster import CannedCluster, EstimatingCluster, busy_cluster
from support.waiting import PATIENCE

from torchx_tui.backends.scheduler_pool import SchedulerPool
from torchx_tui.backends.types import ClusterPool, ClusterStatus
from torchx_tui.cli import cluster
from torchx_tui.specs.errors import BackendUnavailableError


@pytest.fixture
def schedulers(monkeypatch):
    """Give the schedulers that are watched, by name."""
    made = {"local_cwd": CannedScheduler(), "slurm": CannedCluster(busy_cluster())}
    monkeypatch.setattr(SchedulerPool, "get", lambda self, name: made[name])
    monkeypatch.setattr(SchedulerPool, "watched", lambda self: [*made])
    return made


TEXT = """\
slurm, free/all
PARTITION  GPUS        NODES  MIXED  DOWN         CPUS            MEMORY    LIMIT  WAITING  NOTE
gpu        10/56 a100    1/7      1     1       80/448      640/3,584 GB   1d 00h       12
long       10/56 a100    1/7      1     1       80/448      640/3,584 GB   7d 00h        3  max nodes 2
h100       0/32 h100     0/4                     0/256        0/2,048 GB   2d 00h       57  not yours, accounts gold
cpu                    13/40     14        1,280/2,560  10,240/20,480 GB  12h 00m
old        4/4 k80       1/1                     64/64        512/512 GB                    closed (drain)
  account vision (default), QOS normal, high
  fair share of the account vision: 0.42 of 1; a higher one starts sooner
  GrpTRES of the account vision: 14 of 16 GPUs in use
  MaxJobsPU of the QOS high: 1 of 2 jobs in use
"""


def test_the_backends_that_can_tell_are_printed(command, schedulers):
    ended = command("cluster")
    assert (ended.code, ended.out, ended.err) == (0, TEXT, "")


def test_json_has_all_pools_and_nodes(command, schedulers):
    ended = command("cluster", "-s", "slurm", "--json")
    status = ended.data["slurm"]
    assert (ended.code, len(status["pools"]), len(status["nodes"])) == (0, 5, 52)
    gpu = status["pools"][0]
    assert (gpu["name"], gpu["cfg"], gpu["gpus"], gpu["limit"]) == (
        "gpu",
        {"partition": "gpu"},
        {"a100": [10, 56]},
        86400,
    )
    assert status["nodes"][6]["reason"] == "bad fan [root]"


def test_a_backend_that_cannot_tell_is_an_error_if_named(command, schedulers):
    ended = command("cluster", "-s", "local_cwd")
    assert (ended.code, ended.out) == (2, "")
    assert "local_cwd does not show what is free. Valid: slurm" in ended.err


def test_a_silent_backend_leaves_the_others(command, schedulers):
    schedulers["kubernetes"] = CannedCluster(busy_cluster())
    schedulers["kubernetes"].error = BackendUnavailableError("no server")
    ended = command("cluster")
    assert (ended.code, ended.out, ended.err) == (0, TEXT, "torchx-tui: kubernetes is left out: no server\n")


def test_backends_are_asked_at_the_same_time(command, schedulers, monkeypatch):
    """The first two answer only once the other one is asked too; the third never does."""
    monkeypatch.setattr(cluster, "_LIMIT_S", 3.0)
    both, never = threading.Barrier(2), threading.Event()
    schedulers["kubernetes"] = CannedCluster(ClusterStatus([ClusterPool("red", "queue")]))
    schedulers["hung"] = CannedCluster(busy_cluster())
    for name, wait in (("slurm", both.wait), ("kubernetes", both.wait), ("hung", never.wait)):
        monkeypatch.setattr(schedulers[name], "_answer", lambda wait=wait: wait(PATIENCE))
    ended = command("cluster")
    assert (ended.code, ended.err) == (0, "torchx-tui: hung is left out: no answer within 3 s\n")
    assert [line for line in ended.out.splitlines() if "free/all" in line] == [
        "slurm, free/all",
        "kubernetes, free/all",
    ]
    never.set()


def test_what_is_free_is_printed_without_slow_estimates(command, schedulers, monkeypatch):
    monkeypatch.setattr(cluster, "_RESERVE_S", cluster._LIMIT_S - 0.5)
    never = threading.Event()
    schedulers["slurm"] = EstimatingCluster(busy_cluster())
    monkeypatch.setattr(schedulers["slurm"], "estimate_start", lambda pool: never.wait(PATIENCE))
    ended = command("cluster", "--starts")
    rows = {line.split()[0]: line for line in ended.out.splitlines() if line}
    # On a busy machine the first one is not asked either.
    assert [name for name in ("gpu", "long") if " time" in rows[name]] == ["gpu", "long"]
    assert "not asked: no time was left" in rows["long"]
    never.set()


def test_starts_are_estimated_when_asked_for(command, schedulers):
    schedulers["slurm"] = EstimatingCluster(busy_cluster())
    assert "STARTS" not in command("cluster").out
    rows = {line.split()[0]: line for line in command("cluster", "--starts").out.splitlines() if line}
    assert [name for name in ("gpu", "long") if " in 2h 0" in rows[name]] == ["gpu"]
    assert "Invalid account [vision]" in rows["h100"]
    pools = command("cluster", "--starts", "--json").data["slurm"]["pools"]
    assert pools[2]["estimate"] == {"start": None, "fault": "Invalid account [vision]"}
