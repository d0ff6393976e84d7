"""This machine: its CPUs, memory and GPUs, and what of them is free."""

from __future__ import annotations

import logging
import os
import platform
import shutil
import subprocess
from collections import Counter
from dataclasses import replace

from ...logs.text.sanitize import plain
from ..types import ClusterNode, ClusterStatus, pool_of

logger = logging.getLogger(__name__)

# nvidia-smi takes seconds on a busy machine.
_TIMEOUT_S = 10.0
# A GPU with more memory in use is not free, even if its processes cannot be seen from here, as in a container (MiB).
_IDLE_MEMORY = 1024


def machine_status(note: str) -> ClusterStatus:
    """Return this machine as one pool.

    Args:
        note: what our jobs use of it.
    """
    import psutil

    cpus, memory = psutil.cpu_count() or 1, psutil.virtual_memory()
    name = plain(platform.node()) or "this machine"
    node = ClusterNode(
        name,
        (name,),
        "up",
        # Processes that want a CPU, on average of the last minute.
        cpus_free=max(0, cpus - round(os.getloadavg()[0])),
        cpus=cpus,
        memory_free=memory.available,
        memory=memory.total,
        gpus=_gpus(),
    )
    pool = pool_of(name, [node], kind="machine", note=note)
    # One machine has no counts of nodes.
    return ClusterStatus([replace(pool, nodes=0, nodes_free=0, nodes_mixed=0)], [node])


def _gpus() -> dict[str, tuple[int, int]]:
    """Return the GPUs without processes and all GPUs, by name."""
    gpus = ask_nvidia_smi("--query-gpu=uuid,name,memory.used")
    busy = {row[1] for row in ask_nvidia_smi("--query-compute-apps=pid,gpu_uuid,used_memory")} if gpus else set()
    names = Counter(plain(name) for _, name, _ in gpus)
    free = Counter(plain(name) for uuid, name, used in gpus if uuid not in busy and parse_number(used) <= _IDLE_MEMORY)
    return {name: (free[name], number) for name, number in names.items()}


def ask_nvidia_smi(what: str) -> list[list[str]]:
    """Return the rows that ``nvidia-smi`` prints, of three cells each; none without the program."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return []
    try:
        answer = subprocess.run(
            [command, what, "--format=csv,noheader,nounits"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        logger.debug("nvidia-smi %s: %s", what, error)
        return []
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.splitlines()]
    return [row for row in rows if len(row) == 3]


def parse_number(text: str) -> float:
    """Parse a number of nvidia-smi; ``[N/A]`` is 0."""
    try:
        return float(text)
    except ValueError:
        return 0.0
