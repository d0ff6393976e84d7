"""Local jobs that TorchX launched, by any process of this user: those that live, have ended, or were lost.

TorchX itself knows of them only in the process that launched them. Nothing here writes in its folders.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from . import supervisor
from .record import Run
from .torchx_finished import FinishedJobs
from .torchx_live import LiveJob, is_there, live_jobs
from .torchx_processes import JobProcesses
from .torchx_seen import Seen, ended_run, first_look, live_run

# A look at all processes serves all who ask within this time.
_AGAIN_SECONDS = 0.25
_MOST_ENDED = 200


class TorchXJobs:
    """Finds them again and again; may be called from any thread.

    Args:
        log_dirs: gives the folders in which TorchX may have logs of jobs that have ended.
        state: a folder of ours, in which the state of those that are cancelled here is kept.
    """

    def __init__(self, log_dirs: Callable[[], Iterable[Path]], state: Path) -> None:
        self._processes = JobProcesses()
        self._finished = FinishedJobs(log_dirs, state)
        self._state = state
        self._seen: dict[str, Seen] = {}
        self._runs: dict[str, Run] = {}
        self._looked_at = float("-inf")
        self._lock = threading.Lock()

    def look(self) -> dict[str, Run]:
        """Return all of them by their ids, as they were a moment ago."""
        with self._lock:
            if time.monotonic() - self._looked_at >= _AGAIN_SECONDS:
                self._runs = self._look()
                self._looked_at = time.monotonic()
            return self._runs

    def _look(self) -> dict[str, Run]:
        live = {job.app_id: job for job in live_jobs(self._processes.look()) if not _is_ours(job)}
        runs = dict(self._finished.look())
        for app_id, job in live.items():
            seen = self._seen.get(app_id)
            if (
                seen is None
                or seen.document["job_id"] != job.job_id
                or (seen.folder is None and job.folder is not None)
            ):
                seen = self._seen[app_id] = first_look(job, self._state)
            runs[app_id] = seen.run = live_run(seen, job)
        for app_id, seen in list(self._seen.items()):
            if app_id in live:
                continue
            finished = runs.get(app_id)
            runs[app_id] = seen.run = ended_run(seen)
            if finished is not None and seen.run.reason:
                runs[app_id] = finished
        self._forget([app_id for app_id in self._seen if app_id not in live])
        return runs

    def _forget(self, ended: list[str]) -> None:
        """Forget the oldest of many jobs that have ended."""
        for app_id in ended[: max(0, len(ended) - _MOST_ENDED)]:
            del self._seen[app_id]


def _is_ours(job: LiveJob) -> bool:
    """Tell whether a supervisor of ours runs a job: it has a state file beside its logs, or is the parent."""
    if job.folder is not None:
        return is_there(job.folder / "state.json")
    wanted = Path(supervisor.__file__).name.encode()
    for process in job.leaders.values():
        try:
            words = Path(f"/proc/{process.parent}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"-I" in words and any(word.endswith(b"/" + wanted) for word in words):
            return True
    return False
