"""Which GPUs this machine has, and which of them each replica is given."""

from __future__ import annotations

import logging
import os
import subprocess

from ...specs import AppDef

logger = logging.getLogger(__name__)

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


_found: dict[str, int] = {}


def count_gpus() -> int:
    """Return how many GPUs ``nvidia-smi -L`` lists, 0 where there is none or no driver.

    The program takes up to seconds, so it is asked until it has found some, and not again.
    """
    path = os.environ.get("PATH", "")
    if not _found.get(path):
        _found[path] = _listed_gpus()
    return _found[path]


def _listed_gpus() -> int:
    try:
        listed = subprocess.run(
            ["nvidia-smi", "-L"], stdin=subprocess.DEVNULL, capture_output=True, timeout=15, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        logger.debug("nvidia-smi -L: %s", error)
        return 0
    # MIG slices are listed under their GPU, indented.
    return sum(1 for line in listed.stdout.splitlines() if line.startswith(b"GPU "))


def wanted_gpus(app: AppDef) -> int:
    """Return how many GPUs the replicas of all roles ask for together."""
    return sum(role.num_replicas * max(0, int(role.resource.gpu)) for role in app.roles)


def visible_devices(app: AppDef, available: int) -> dict[str, list[str]]:
    """Return the value of CUDA_VISIBLE_DEVICES for each replica of each role that asks for GPUs.

    Replicas take contiguous slices, in the order of the roles.

    Args:
        app: the app.
        available: how many GPUs there are. When the app wants more, nobody is given any.
    """
    if wanted_gpus(app) > available:
        logger.warning("%s asks for %d GPUs, this machine has %d", app.name, wanted_gpus(app), available)
        return {}
    devices: dict[str, list[str]] = {}
    first = 0
    for role in app.roles:
        each = max(0, int(role.resource.gpu))
        for _ in range(role.num_replicas if each else 0):
            devices.setdefault(role.name, []).append(",".join(map(str, range(first, first + each))))
            first += each
    return devices
