"""What the replicas of a local app use: CPU and memory of their process trees, and GPUs by ``nvidia-smi``."""

from __future__ import annotations

import logging
import shutil
import subprocess
import time
from collections.abc import Iterable
from typing import NamedTuple

from ...base.processes import is_running
from ..types import ReplicaUsage
from .record import Run

logger = logging.getLogger(__name__)

# Seconds; nvidia-smi takes up to some of them on a busy machine.
_NVIDIA_SMI_TIMEOUT_S = 10.0
_MEBIBYTE = 1 << 20


class _Gpu(NamedTuple):
    percent: float
    total: int


class _OnGpu(NamedTuple):
    pid: int
    uuid: str
    memory: int


class UsageSampler:
    """Measures one app again and again; the first sample knows no CPU use, which is one over time."""

    def __init__(self) -> None:
        self._cpu_seconds: dict[tuple[int, float], float] = {}
        self._sampled_at = 0.0

    def sample(self, run: Run) -> list[ReplicaUsage]:
        """Measure what each running replica uses now."""
        import psutil

        now = time.monotonic()
        passed, self._sampled_at = now - self._sampled_at, now
        before, self._cpu_seconds = self._cpu_seconds, {}
        children = _children()
        gpus, on_gpus = _gpus(), _on_gpus()
        cores, memory_total = psutil.cpu_count() or 1, psutil.virtual_memory().total
        usages = []
        for entry in run.replicas:
            if entry["exit_code"] is not None or not is_running(entry["pid"], entry["pid_started"]):
                continue
            pids = _tree(entry["pid"], children)
            used, memory = 0.0, 0
            for pid in pids:
                key, seconds, resident = _measure(pid)
                if key is None:
                    continue
                self._cpu_seconds[key] = seconds
                used += seconds - before.get(key, seconds)
                memory += resident
            mine = [on for on in on_gpus if on.pid in pids]
            found = {on.uuid: gpus[on.uuid] for on in mine if on.uuid in gpus}
            usages.append(
                ReplicaUsage(
                    entry["role"],
                    entry["id"],
                    cpu=used / passed if before and passed > 0 else None,
                    cpu_total=float(cores),
                    memory=memory,
                    memory_total=memory_total,
                    gpus=len(found),
                    gpu=sum(gpu.percent for gpu in found.values()) / 100 if found else None,
                    gpu_memory=sum(on.memory for on in mine) if found else None,
                    gpu_memory_total=sum(gpu.total for gpu in found.values()) if found else None,
                )
            )
        return usages


def _children() -> dict[int, list[int]]:
    """Return the children of every process: one look at all, not one for each replica."""
    import psutil

    children: dict[int, list[int]] = {}
    for process in psutil.process_iter(["ppid"]):
        children.setdefault(process.info["ppid"], []).append(process.pid)
    return children


def _tree(root: int, children: dict[int, list[int]]) -> set[int]:
    tree, left = {root}, [root]
    while left:
        fresh = [pid for pid in children.get(left.pop(), ()) if pid not in tree]
        tree.update(fresh)
        left += fresh
    return tree


def _measure(pid: int) -> tuple[tuple[int, float] | None, float, int]:
    """Return a process's identity, its CPU seconds and its resident bytes; no identity once it has gone."""
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            times = process.cpu_times()
            return (pid, process.create_time()), times.user + times.system, process.memory_info().rss
    except psutil.Error:
        return None, 0.0, 0


def _gpus() -> dict[str, _Gpu]:
    """Return the machine's GPUs by their UUIDs."""
    rows = _query("--query-gpu=uuid,utilization.gpu,memory.total", 3)
    return {uuid: _Gpu(_figure(percent), int(_figure(total) * _MEBIBYTE)) for uuid, percent, total in rows}


def _on_gpus() -> list[_OnGpu]:
    """Return which processes use which GPU, and how much of its memory."""
    rows = _query("--query-compute-apps=pid,gpu_uuid,used_memory", 3)
    return [_OnGpu(int(_figure(pid)), uuid, int(_figure(used) * _MEBIBYTE)) for pid, uuid, used in rows]


def _query(what: str, columns: int) -> Iterable[list[str]]:
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    try:
        answer = subprocess.run(
            [command, what, "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_NVIDIA_SMI_TIMEOUT_S, check=True,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        logger.debug("nvidia-smi %s: %s", what, error)
        return []
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.splitlines()]
    return [row for row in rows if len(row) == columns]


def _figure(text: str) -> float:
    """Return a figure of nvidia-smi; what a GPU does not tell, ``[N/A]``, counts as nothing."""
    try:
        return float(text)
    except ValueError:
        return 0.0
