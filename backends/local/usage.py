"""What the replicas of a local app use: CPU and memory of their process trees, and GPUs by ``nvidia-smi``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...base.processes import is_running
from ..shared.machine import ask_nvidia_smi, parse_number
from ..types import ReplicaUsage
from .record import Run

_MEBIBYTE = 1 << 20


class UsageSampler:
    """Measures one app repeatedly; the first sample has no CPU use, which is an average since the last one."""

    def __init__(self) -> None:
        self._cpu_seconds: dict[tuple[int, float], float] = {}
        self._sampled_at = 0.0

    def sample(self, run: Run) -> list[ReplicaUsage]:
        """Measure what each running replica uses now."""
        import psutil

        now = time.monotonic()
        passed, self._sampled_at = now - self._sampled_at, now
        before, self._cpu_seconds = self._cpu_seconds, {}
        children: dict[int, list[int]] = {}
        for process in psutil.process_iter(["ppid"]):
            children.setdefault(process.info["ppid"], []).append(process.pid)
        # Each GPU's use in percent and its memory, by UUID; and which process uses how much of which.
        gpus = {row[0]: row[1:] for row in ask_nvidia_smi("--query-gpu=uuid,utilization.gpu,memory.total")}
        gpu_users = ask_nvidia_smi("--query-compute-apps=pid,gpu_uuid,used_memory")
        usages = []
        for entry in run.replicas:
            if entry["exit_code"] is not None or not is_running(entry["pid"], entry["pid_started"]):
                continue
            pids = _tree(entry["pid"], children)
            used, memory = 0.0, 0
            for pid in pids:
                try:
                    process = psutil.Process(pid)
                    with process.oneshot():
                        key, times, resident = (pid, process.create_time()), process.cpu_times(), process.memory_info()
                except psutil.Error:
                    continue  # it has just ended
                seconds = self._cpu_seconds[key] = times.user + times.system
                used += seconds - before.get(key, seconds)
                memory += resident.rss
            usages.append(
                ReplicaUsage(
                    entry["role"],
                    entry["id"],
                    cpu=used / passed if before and passed > 0 else None,
                    cpu_total=float(psutil.cpu_count() or 1),
                    memory=memory,
                    memory_total=psutil.virtual_memory().total,
                    **_gpu_usage([row for row in gpu_users if parse_number(row[0]) in pids and row[1] in gpus], gpus),
                )
            )
        return usages


def _tree(root: int, children: Mapping[int, Sequence[int]]) -> set[int]:
    tree, left = {root}, [root]
    while left:
        new = [pid for pid in children.get(left.pop(), ()) if pid not in tree]
        tree.update(new)
        left += new
    return tree


def _gpu_usage(used: Sequence[Sequence[str]], gpus: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    uuids = {uuid for _, uuid, _ in used}
    if not uuids:
        return {}
    return {
        "gpus": len(uuids),
        "gpu": sum(parse_number(gpus[uuid][0]) for uuid in uuids) / 100,
        "gpu_memory": int(sum(parse_number(memory) for _, _, memory in used) * _MEBIBYTE),
        "gpu_memory_total": int(sum(parse_number(gpus[uuid][1]) for uuid in uuids) * _MEBIBYTE),
    }


def describe_use(runs: Sequence[Run]) -> str:
    """Return how many apps run on this machine, and the memory and GPUs of their processes; empty without apps."""
    import psutil

    running = [run for run in runs if run.here and not run.over and run.document]
    children: dict[int, list[int]] = {}
    for process in psutil.process_iter(["ppid"]):
        children.setdefault(process.info["ppid"], []).append(process.pid)
    entries = [entry for run in running for entry in run.replicas if entry["exit_code"] is None]
    live = [entry["pid"] for entry in entries if is_running(entry["pid"], entry["pid_started"])]
    pids = {pid for root in live for pid in _tree(root, children)}
    memory = 0
    for pid in pids:
        with suppress(psutil.Error):  # it has just ended
            memory += psutil.Process(pid).memory_info().rss
    rows = ask_nvidia_smi("--query-compute-apps=pid,gpu_uuid,used_memory") if pids else []
    gpus = len({row[1] for row in rows if parse_number(row[0]) in pids})
    on_gpus = f" and {gpus} GPU{'s' if gpus != 1 else ''}" if gpus else ""
    jobs = f"{len(running)} job{'s' if len(running) != 1 else ''}"
    return f"{jobs} of yours: {memory / (1 << 30):.1f} GB{on_gpus}" if running else ""
