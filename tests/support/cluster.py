"""A scheduler that says what of its cluster is free, as a test put it in."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from support.canned import CannedScheduler

from torchx_tui.backends.types import ClusterNode, ClusterPool, ClusterStatus, StartEstimate, pool_of
from torchx_tui.specs.run_options import runopts

GB = 1 << 30
HOUR = 3600


class CannedCluster(CannedScheduler):
    """Has pools and nodes; counts how often it was asked."""

    def __init__(self, status: ClusterStatus, option: str = "partition") -> None:
        super().__init__()
        self.status = status
        self._option = option
        self.asked = 0

    def cluster(self) -> ClusterStatus:
        self.asked += 1
        self._answer()
        return self.status

    def _run_opts(self) -> runopts:
        opts = super()._run_opts()
        opts.add(self._option, str, "The pool.")
        return opts


class EstimatingCluster(CannedCluster):
    """Estimates starts: those of ``gpu`` in two hours, none in ``h100``, and now elsewhere.

    Attributes:
        estimated: the pools that it was asked about.
    """

    def __init__(self, status: ClusterStatus, now: float | None = None) -> None:
        super().__init__(status)
        self._now = now
        self.estimated: list[str] = []

    def estimate_start(self, pool: str) -> StartEstimate:
        self.estimated.append(pool)
        if pool == "h100":
            return StartEstimate(fault="Invalid account [vision]")
        now = time.time() if self._now is None else self._now
        return StartEstimate(now + (2 * HOUR + 300 if pool == "gpu" else 0))


def node(
    name: str, *pools: str, gpus: str = "", free: int = 0, of: int = 0, users: tuple[str, ...] = ()
) -> ClusterNode:
    """Return a node of 64 CPUs and 512 GB; as large a part of them is free as of its GPUs."""
    return ClusterNode(
        name,
        pools,
        "idle" if free == of else "mixed" if free else "allocated",
        users=() if free == of else users,
        cpus=64,
        cpus_free=free * 64 // max(1, of),
        memory=512 * GB,
        memory_free=free * 512 * GB // max(1, of),
        gpus={gpus: (free, of)} if gpus else {},
    )


def down(name: str, *pools: str, gpus: str = "", of: int = 0, reason: str = "") -> ClusterNode:
    counts = {gpus: (0, of)} if gpus else {}
    return ClusterNode(name, pools, "drained", reason, is_usable=False, cpus=64, memory=512 * GB, gpus=counts)


def pool(name: str, nodes: Sequence[ClusterNode], **more: Any) -> ClusterPool:
    mine = [each for each in nodes if name in each.pools]
    return pool_of(name, mine, cfg={"partition": name}, **more)


def busy_cluster() -> ClusterStatus:
    """Return a cluster with free, full, closed and forbidden partitions."""
    nodes = [
        *(node(f"a100-{n:02}", "gpu", "long", gpus="a100", free=f, of=8, users=("alice", "bob"))
          for n, f in enumerate((0, 0, 2, 0, 8, 0), 1)),
        down("a100-07", "gpu", "long", gpus="a100", of=8, reason="bad fan [root]"),
        *(node(f"h100-{n:02}", "h100", gpus="h100", free=0, of=8, users=("carol",)) for n in range(1, 5)),
        *(node(f"cpu{n:03}", "cpu", free=n % 3 * 4, of=8) for n in range(1, 41)),
        node("old01", "old", gpus="k80", free=4, of=4),
    ]  # fmt: skip
    pools = [
        pool("gpu", nodes, limit=24 * HOUR, waiting=12),
        pool("long", nodes, limit=168 * HOUR, waiting=3, note="max nodes 2"),
        pool("h100", nodes, limit=48 * HOUR, waiting=57, is_open=False, note="not yours, accounts gold"),
        pool("cpu", nodes, limit=12 * HOUR),
        pool("old", nodes, is_open=False, note="closed (drain)"),
    ]
    limits = [
        "account vision (default), QOS normal, high",
        "fair share of the account vision: 0.42 of 1; a higher one starts sooner",
        "GrpTRES of the account vision: 14 of 16 GPUs in use",
        "MaxJobsPU of the QOS high: 1 of 2 jobs in use",
    ]
    return ClusterStatus(pools, nodes, limits)
