"""The Slurm cluster that all tests share: the one that was given, else one of our own."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .shared_service import NoServiceError, run_script, shared_service

# Read before any test changes the environment.
_GIVEN = os.environ.get("SLURM_CONF", "")
_FOLDER = Path(os.environ.get("SLURM_TEST_DIR") or Path(tempfile.gettempdir(), "torchx-tui-slurm"))
# Says that tests have started it: one that ran before them goes on when they end.
_STARTED = Path(f"{_FOLDER}.started-by-tests")


@contextmanager
def shared_slurm() -> Iterator[str]:
    """Give the path of the settings of the cluster that was given, else of one that every test process shares.

    Raises:
        NoServiceError: none runs, and none can be started.
    """
    if _GIVEN:
        yield _GIVEN
        return
    if os.geteuid() != 0:
        raise NoServiceError("only root can start a Slurm cluster; or set SLURM_CONF to that of one that runs")
    with shared_service(_FOLDER, _up, _down) as settings:
        yield settings


def _up() -> str:
    if not _STARTED.exists() and not (_FOLDER / "run" / "slurmctld.pid").exists():
        _STARTED.touch()
    # Its settings, not those that a test hides Slurm with.
    said = run_script("slurm-up.sh", {"SLURM_CONF": ""})
    return shlex.split(said.strip())[-1].partition("=")[2]


def _down() -> None:
    if _STARTED.exists():
        run_script("slurm-down.sh", {}, "--purge")
        _STARTED.unlink()
