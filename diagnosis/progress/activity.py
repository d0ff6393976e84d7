"""What one job is doing: its logs and its metric files, read in a thread of their own and joined."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...logs.source.replica_log import ReplicaLog
from ...logs.view.background import LogThread
from ...specs.processes import job_processes
from ..metrics.files import MetricFiles
from ..metrics.find import find_metric_files
from ..metrics.series import Series
from ..metrics.store import load_series, save_series
from .blocks import LogBlocks
from .stalls import Observation, check_loss, find_buffered_output, find_pause
from .tracker import Progress, ProgressTracker

_log = logging.getLogger(__name__)

# How often the log is read for new lines, and metric files for new points (s).
_LOG_INTERVAL_S, _FILE_INTERVAL_S = 0.25, 2.0
# How often metric files are looked for (s): a trainer opens its own some time after it starts.
_FIND_INTERVAL_S = 20.0
# Between two blocks other threads run, the event loop before all (s).
_PAUSE_S = 0.001
# How often the series are written to disk (s).
_SAVE_INTERVAL_S = 120.0
_STEP, _TOTAL = "step", "total"


@dataclass(frozen=True)
class JobPlace:
    """Where a job's metric files may be.

    Attributes:
        job_id: the TORCHX_JOB_ID of its processes; empty where they are on another machine.
        folders: folders that it is known to run in.
        arguments: the words of its command lines.
        since: when it started (seconds since the epoch).
    """

    job_id: str = ""
    folders: tuple[Path, ...] = ()
    arguments: tuple[str, ...] = ()
    since: float = 0.0


@dataclass(frozen=True)
class Activity:
    """What a job is doing, at one time.

    Attributes:
        progress: how far it is.
        series: its series by name; copies, which no other thread changes.
        observations: what should be known of it.
        size: how many bytes of its log were read.
        is_read: all of the log that there was at the beginning was read.
        failures: what is wrong with metric files.
    """

    progress: Progress = field(default_factory=Progress)
    series: dict[str, Series] = field(default_factory=dict)
    observations: tuple[Observation, ...] = ()
    size: int = 0
    is_read: bool = False
    failures: tuple[str, ...] = ()

    @property
    def main(self) -> Series | None:
        """The series that is shown first: the loss, else the first one."""
        return main_series(self.series)


def main_series(series: dict[str, Series]) -> Series | None:
    """Return the series that is shown first: the loss of the training, else any loss, else the first one."""
    losses = [name for name in series if "loss" in name.lower()]
    training = [name for name in losses if not name.lower().startswith(("eval", "val", "test", "valid"))]
    exact = [name for name in training if name.lower().rpartition("/")[2] in ("loss", "train_loss", "lm loss")]
    name = next(iter([*exact, *training, *losses, *series]), None)
    return None if name is None else series[name]


class ActivityReader(LogThread):
    """Reads the logs and the metric files of one job, until it is closed.

    The log's files, or the spools of streams, are those that a log pane reads: no stream is read twice.

    Args:
        handle: the job's handle; its series are kept on disk under it.
        logs: the logs of its replicas.
        place: where its metric files may be.
        on_change: called in the thread when something changed; not again before `acknowledge`.
        denied: names that are no metrics.
        known: names that are metrics wherever they stand.
    """

    def __init__(
        self,
        handle: str,
        logs: Sequence[ReplicaLog],
        place: JobPlace,
        on_change: Callable[[], object],
        denied: Collection[str] = (),
        known: Collection[str] = (),
    ) -> None:
        super().__init__("job-activity", on_change)
        self.handle = handle
        self.logs = tuple(logs)
        self.is_final = False
        """Whether the job has ended: nothing is said to be stalled then."""
        self.cores: tuple[float, ...] = ()
        """How many processor cores each replica uses, where that is measured."""
        self._place = place
        self._tracker = ProgressTracker(denied, known, is_bounded=True)
        self._files = MetricFiles()
        self._lock = threading.Lock()
        self._stored, self._facts = load_series(handle)
        self._is_read = False
        self._saved_at = time.monotonic()
        self._started_at = time.time()

    def activity(self) -> Activity:
        """Return what the job is doing; may be called in any thread, and waits for no file."""
        with self._lock:
            series = self._joined()
            copies = {name: one.copy() for name, one in series.items()}
            progress = self._progress()
            observations = () if self.is_final else tuple(self._observations(copies))
            return Activity(
                progress, copies, observations, self._tracker.size, self._is_read, tuple(self._files.failures)
            )

    def _joined(self) -> dict[str, Series]:
        """Return the series of files, then those of the log that no file has; the stored ones until the log is read."""
        found = dict(self._files.series())
        known = {_plain_name(name) for name in found}
        for name, series in self._tracker.series().items():
            if _plain_name(name) not in known:
                found[name] = series
        if not self._is_read or not found:
            found = {**self._stored, **({} if self._stored else found)}
        return found

    def _progress(self) -> Progress:
        progress = self._tracker.progress()
        total = progress.total or self._files.total
        if progress.step is None and self._facts and not self._is_read:
            return Progress(self._facts.get(_STEP), self._facts.get(_TOTAL))
        if progress.step is None:
            steps = [one.steps()[-1] for one in self._files.series().values() if len(one)]
            return replace(progress, step=max(steps, default=None), total=total)
        return replace(progress, total=total)

    def _observations(self, series: dict[str, Series]) -> list[Observation]:
        tracker, now = self._tracker, time.time()
        main = tracker.main
        found = []
        if main is not None:
            pauses, moved_at = main.moments.pauses(), main.moments.last
            pause = find_pause(
                pauses, moved_at, tracker.printed_at, now, is_excused=tracker.is_excused, cores=self.cores
            )
            found += [pause] if pause else []
        if not found and self._is_read:
            since = tracker.printed_at or self._place.since or self._started_at
            buffered = find_buffered_output(tracker.size, since, now, self.cores)
            found += [buffered] if buffered else []
        return found + check_loss(series)

    def _run(self) -> None:
        blocks = LogBlocks(self.logs)
        try:
            self._follow(blocks)
        except Exception:
            _log.exception("what %s is doing cannot be read", self.handle)
        finally:
            blocks.close()
            self._save()

    def _follow(self, blocks: LogBlocks) -> None:
        blocks.connect()
        found_at = polled_at = -math.inf
        while not self._stop.is_set():
            changed, more = self._read_log(blocks)
            now = time.monotonic()
            if now - found_at > _FIND_INTERVAL_S:
                found_at = now
                self._find()
            if now - polled_at > _FILE_INTERVAL_S:
                polled_at = now
                with self._lock:
                    more = self._files.poll() or more
                changed = True
            self._is_read = self._is_read or not more
            if changed:
                self._notify()
            if now - self._saved_at > _SAVE_INTERVAL_S:
                self._save()
            if not more:
                self._wake.wait(_LOG_INTERVAL_S)
                self._wake.clear()

    def _read_log(self, blocks: LogBlocks) -> tuple[bool, bool]:
        """Read what was printed since; return whether there was anything, and whether there is more."""
        found, more = blocks.poll()
        changed = False
        for block in found:
            with self._lock:
                self._tracker.feed(*block)
            changed = True
            if self._stop.wait(_PAUSE_S):
                break
        return changed, more

    def _find(self) -> None:
        place = self._place
        pids = [process.pid for process in job_processes(place.job_id, set())] if place.job_id else []
        paths = find_metric_files(pids, place.folders, place.arguments, place.since)
        with self._lock:
            self._files.add(paths)

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        with self._lock:
            series, progress = self._joined(), self._progress()
            facts = {_STEP: progress.step, _TOTAL: progress.total}
            known = {name: value for name, value in facts.items() if value is not None}
            if not series or not self._is_read:
                return
            with suppress(OSError):
                save_series(self.handle, series, known)


def _plain_name(name: str) -> str:
    """Return a name by which a metric of a file and one of the log are the same: `train/loss` is `loss`."""
    return name.lower().removeprefix("train/").replace("eval/", "eval_")
