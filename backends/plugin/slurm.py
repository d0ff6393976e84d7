"""TorchX's own Slurm scheduler, with what is amiss in it mended where that can be done from outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from ..api import DAYS_IN_2_WEEKS

# Before this version `squeue --json -j ID` tells of every job, and TorchX takes them all for parts of that one.
_SQUEUE_CHOOSES = (23, 2)
# A log that is followed asks so seldom whether its job has ended (s); TorchX starts two programs ten times a second.
_LOOK_SECONDS = 1.0


def is_set_up() -> bool:
    """Tell whether Slurm's commands are here, and the settings that they are told to use."""
    settings = os.environ.get("SLURM_CONF")
    return shutil.which("sbatch") is not None and (not settings or Path(settings).exists())


def create_scheduler(session_name: str, **params: Any) -> Any:
    """Return TorchX's Slurm scheduler; of ``params`` it minds ``docker_client``."""
    from torchx.schedulers import slurm_scheduler as theirs
    from torchx.specs import AppState

    def _state(text: str) -> Any:
        return theirs.appstate_from_slurm_state(text)

    class FixedSlurmScheduler(theirs.SlurmScheduler):
        def _describe_squeue(self, app_id: str) -> Any:
            return super()._describe_squeue(app_id) if theirs.version() >= _SQUEUE_CHOOSES else None

        def _list_sacct(self) -> list[Any]:
            rows = _accounted()
            return [theirs.ListAppResponse(row.app_id, _state(row.state), name=row.name) for row in rows]

        def log_iter(self, app_id: str, *args: Any, **wanted: Any) -> Iterable[str]:
            looking: Any = SimpleNamespace(describe=_Seldom(self.describe))
            lines = theirs.SlurmScheduler.log_iter(looking, app_id, *args, **wanted)
            return lines if wanted.get("should_tail") else self._so_far(app_id, lines)

        def _so_far(self, app_id: str, lines: Iterable[str]) -> Iterable[str]:
            try:
                yield from lines
            except RuntimeError:
                # There is no file yet; TorchX takes that for the end of a job that has written nothing.
                described = self.describe(app_id)
                if described is None or described.state not in (AppState.PENDING, AppState.RUNNING):
                    raise

    FixedSlurmScheduler.__name__ = theirs.SlurmScheduler.__name__
    return FixedSlurmScheduler(session_name, params.get("docker_client"))


class _Accounted(NamedTuple):
    app_id: str
    name: str
    state: str


def _accounted() -> list[_Accounted]:
    """Return this user's jobs of the last weeks, as accounting has them.

    TorchX asks for every job of everybody since accounting began, which takes minutes where there are many, and takes
    the parts of a job of several replicas for jobs of their own.

    Raises:
        CalledProcessError: there is no accounting.
    """
    command = ["sacct", "--noheader", "--allocations", "--parsable2", "--format", "JobID,JobName,State"]
    chosen = ["--user", str(os.getuid()), "--starttime", f"now-{DAYS_IN_2_WEEKS}days"]
    told = subprocess.run([*command, *chosen], capture_output=True, text=True, errors="replace", check=True)
    found: list[_Accounted] = []
    for line in told.stdout.splitlines():
        job, _, rest = line.partition("|")
        # A name may have anything in it.
        name, _, state = rest.rpartition("|")
        app_id, _, part = job.partition("+")
        if part in ("", "0") and state:
            # Such as `CANCELLED by 1000`; the name is not known at first.
            found.append(_Accounted(app_id, "" if name == "allocation" else name, state.split()[0].rstrip("+")))
    return found


class _Seldom:
    """Describes a job anew when the last time is some time ago."""

    def __init__(self, describe: Any) -> None:
        self._describe = describe
        self._answer: Any = None
        self._at = -_LOOK_SECONDS

    def __call__(self, app_id: str) -> Any:
        if self._answer is None or time.monotonic() - self._at >= _LOOK_SECONDS:
            self._answer = self._describe(app_id)
            self._at = time.monotonic()
        return self._answer
