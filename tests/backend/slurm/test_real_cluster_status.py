"""What of a real cluster is free: two partitions, GPUs of two types, jobs of two users, a drained node."""

import re

import pytest
from support.services import NoServiceError
from support.slurm_cluster import private_slurm
from support.waiting import wait_until

from torchx_tui.backends.slurm.scheduler import SlurmScheduler

pytestmark = pytest.mark.slow

SETTINGS = "GresTypes=gpu\nPartitionName=short Nodes=n[1-2] MaxTime=01:00:00 State=UP\n"


def test_numbers_are_those_of_sinfo_and_squeue(require, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    try:
        with private_slurm(SETTINGS, "gpu:a100:2,gpu:t4:1") as cluster:
            monkeypatch.setenv("SLURM_CONF", cluster.settings)
            compare(cluster)
    except NoServiceError as error:
        require("slurm", False, str(error))


def compare(cluster):
    """Fill the cluster, and compare what is said of it with the answers of Slurm's commands."""
    cluster.run("sacctmgr", "-i", "add", "user", "daemon", "account=root")
    sbatch = ("sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 600")
    jobs = [
        cluster.run(*sbatch, "-w", "n1", "-c2", "--gres=gpu:a100:1"),
        cluster.run("runuser", "-u", "daemon", "--", *sbatch, "-w", "n2", "-c8", "--gres=gpu:t4:1", "--chdir=/"),
    ]
    waiting = cluster.run(*sbatch, "-p", "short", "-N2", "--gres=gpu:a100:2", "-t30")
    cluster.run("scontrol", "update", "nodename=n3", "state=drain", "reason=bad disk: ask [ops]")
    states = lambda: cluster.run("squeue", "-h", "-o", "%i %t", "--sort=i").splitlines()  # noqa: E731
    wait_until(lambda: states() == [f"{jobs[0]} R", f"{jobs[1]} R", f"{waiting} PD"], "the jobs")
    wait_until(lambda: "drained" in cluster.run("sinfo", "-h", "-N", "-n", "n3", "-o", "%T"), "the drained node")
    scheduler = SlurmScheduler("torchx", interval=0.5, quick_interval=0.2)
    try:
        status = scheduler.cluster()
        estimate = scheduler.estimate_start("short")
        assert estimate.start is not None or estimate.fault
        # It has launched nothing.
        assert len(states()) == 3
    finally:
        scheduler.close()
    pools = {pool.name: pool for pool in status.pools}
    assert list(pools) == ["main", "short"]
    for name, pool in pools.items():
        total = sum(map(int, cluster.run("sinfo", "-h", "-N", "-p", name, "-o", "%c").split()))
        counts = cluster.run("sinfo", "-h", "-p", name, "-o", "%C")
        free = sum(int(row.split("/")[1]) for row in counts.splitlines())
        nodes = len(cluster.run("sinfo", "-h", "-N", "-p", name, "-o", "%N").split())
        assert (pool.cpus_free, pool.cpus, pool.nodes) == (free, total, nodes)
    main, short = pools["main"], pools["short"]
    assert (main.nodes_free, main.nodes_mixed, main.nodes_down) == (0, 1, 1)
    # Nothing is free on n3, though nobody uses it.
    assert main.gpus == {"a100": (3, 6), "t4": (1, 3)}
    assert short.gpus == {"a100": (3, 4), "t4": (1, 2)}
    assert (main.limit, short.limit, main.waiting, short.waiting) == (None, 3600, 0, 1)
    nodes = {node.name: node for node in status.nodes}
    assert [(node.users, node.is_usable) for node in nodes.values()] == [
        (("root",), True), (("daemon",), True), ((), False),
    ]  # fmt: skip
    assert re.search(r"drain", nodes["n3"].state)
    assert nodes["n3"].reason.startswith("bad disk: ask [ops]")
    assert status.notes == []
