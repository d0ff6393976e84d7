"""The environment of replicas."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...specs.roles import AppDef

logger = logging.getLogger(__name__)

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
JOB_ID = "TORCHX_JOB_ID"
ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
ELASTIC_LOG_DIR = "PET_LOG_DIR"

_gpu_counts: dict[str, int] = {}


def count_gpus() -> int:
    """Count the GPUs that ``nvidia-smi -L`` lists; 0 without a driver.

    The program takes up to seconds: its answer is kept for this PATH once it has listed some.
    """
    path = os.environ.get("PATH", "")
    _gpu_counts[path] = _gpu_counts.get(path) or _list_gpus()
    return _gpu_counts[path]


def _list_gpus() -> int:
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


def role_path(role_env: Mapping[str, str], extra_paths: Sequence[str], cwd: str | None, prepend_cwd: bool) -> str:
    """Make the text before PATH: further folders, the role's own PATH, and the working folder first or last."""
    mine = [*extra_paths, role_env.get("PATH", "")]
    parts = [cwd or "", *mine] if prepend_cwd else [*mine, cwd or ""]
    return os.pathsep.join(part.strip(os.pathsep) for part in parts if part.strip(os.pathsep))


def launcher_environment() -> dict[str, str]:
    """Return the environment that replicas inherit: this process's, without the job that this process may be part of.

    The folder of the running interpreter is last on PATH, so that ``torchrun`` is found beside it where no virtual
    environment was activated, and nothing that is found today is hidden.
    """
    env = dict(os.environ)
    for name in (JOB_ID, ERROR_FILE, ELASTIC_LOG_DIR):
        env.pop(name, None)
    folder = str(Path(sys.executable).parent)
    paths = (env.get("PATH", "").strip(os.pathsep) or os.defpath).split(os.pathsep)
    env["PATH"] = os.pathsep.join(paths if folder in paths else [*paths, folder])
    return env


def replica_environment(inherited: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """Make the variables of one replica beyond those that it inherits.

    Args:
        inherited: the environment that `launcher_environment` returned.
        added: what the launch adds, its PATH alone in front.
    """
    env = {"PYTHONUNBUFFERED": "x", **added} if "PYTHONUNBUFFERED" not in inherited else dict(added)
    if added.get("PATH"):
        env["PATH"] = added["PATH"] + os.pathsep + inherited["PATH"]
    return env
