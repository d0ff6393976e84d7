"""The environment of replicas."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

JOB_ID = "TORCHX_JOB_ID"
ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
ELASTIC_LOG_DIR = "PET_LOG_DIR"


def role_path(role_env: Mapping[str, str], extra_paths: Sequence[str], cwd: str | None, prepend_cwd: bool) -> str:
    """Return what comes before PATH: further folders, the role's own PATH, and the working folder first or last."""
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
    """Return what is set for one replica beyond what it inherits.

    Args:
        inherited: the environment that `launcher_environment` returned.
        added: what the launch adds, its PATH alone in front.
    """
    env = {"PYTHONUNBUFFERED": "x", **added} if "PYTHONUNBUFFERED" not in inherited else dict(added)
    if added.get("PATH"):
        env["PATH"] = added["PATH"] + os.pathsep + inherited["PATH"]
    return env
