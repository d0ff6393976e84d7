"""The Slurm cluster that all tests share: the one that was given, else the one that runs for tests."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .services import HOW, NoServiceError

# Read before any test changes the environment.
_GIVEN = os.environ.get("SLURM_CONF", "")
_FOLDER = Path(os.environ.get("SLURM_TEST_DIR") or Path(tempfile.gettempdir(), "torchx-tui-slurm"))


def shared_slurm() -> str:
    """Return the path of the settings of the cluster that was given, else of the one that runs for tests.

    Raises:
        NoServiceError: none runs.
    """
    if not _GIVEN and not (_FOLDER / "run" / "slurmctld.pid").exists():
        raise NoServiceError(f"{HOW.format('a cluster')}, or set SLURM_CONF to that of one that runs")
    return _GIVEN or str(_FOLDER / "etc" / "slurm.conf")
