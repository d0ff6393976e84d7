"""TorchX's own Slurm scheduler, with what is amiss in it mended where that can be done from outside."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
    from torchx.specs import is_terminal

    class MendedSlurmScheduler(theirs.SlurmScheduler):
        def _describe_squeue(self, app_id: str) -> Any:
            return super()._describe_squeue(app_id) if theirs.version() >= _SQUEUE_CHOOSES else None

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
                if described is None or is_terminal(described.state):
                    raise

    MendedSlurmScheduler.__name__ = theirs.SlurmScheduler.__name__
    return MendedSlurmScheduler(session_name, params.get("docker_client"))


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
