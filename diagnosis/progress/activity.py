"""What one job is doing: its log and its metric files, joined."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.errors import describe_error
from ...base.processes import job_processes
from ...specs.mounts import BindMount
from ..metrics.files import MetricFiles
from ..metrics.find import Folder, find_metric_files
from ..metrics.series import Series
from ..metrics.store import load_series, save_series
from .slow import find_slow_replica
from .stalls import Kind, Observation, check_loss, find_buffered_output, find_pause
from .tracker import Progress, ProgressTracker

if TYPE_CHECKING:
    from ...backends.runner import Runner
    from ...backends.types import DescribeAppResponse

_log = logging.getLogger(__name__)

# Interval between measurements of a job that seems stalled (s).
_CPU_INTERVAL_S = 30.0
STEP, TOTAL = "step", "total"
"""The facts that are kept of a job beside its series."""
# How long the journal is searched for the folder in which a job was launched (s).
_JOURNAL_S = 1.0


@dataclass(frozen=True)
class JobPlace:
    """Where a job's metric files may be.

    Attributes:
        job_id: the TORCHX_JOB_ID of its processes; empty where they are on another machine.
        folders: folders that it is known to run in, or to write to.
        arguments: the words of its command lines.
        since: when it started (seconds since the epoch).
        until: when it ended; infinite while it has not.
    """

    job_id: str = ""
    folders: tuple[Folder, ...] = ()
    arguments: tuple[str, ...] = ()
    since: float = 0.0
    until: float = math.inf


def job_place(runner: Runner, handle: str, described: DescribeAppResponse) -> JobPlace:
    """Return where the metric files of a described job may be; reads the journal."""
    arguments = tuple(
        word for role in described.roles for word in (role.entrypoint, *role.args) if isinstance(word, str)
    )
    folders = [Folder(Path(role.image)) for role in described.roles if role.image.startswith("/")]
    mounts = (mount for role in described.roles for mount in role.mounts if isinstance(mount, BindMount))
    folders += [Folder(Path(mount.src_path), mount.dst_path) for mount in mounts if not mount.read_only]
    if not folders and runner.job(handle).scheduler.capabilities.working_folder:
        records = runner.journal.find_all([handle], _JOURNAL_S)
        folders = [Folder(Path(record.cwd)) for record in records.values() if record.cwd]
    since = described.started_at or described.submitted_at or 0.0
    until = described.finished_at or math.inf if described.has_ended else math.inf
    return JobPlace("" if described.has_ended else handle, tuple(dict.fromkeys(folders)), arguments, since, until)


@dataclass(frozen=True)
class Activity:
    """What a job is doing, at one time.

    Attributes:
        progress: how far it is.
        series: its series by name; copies, which no other thread changes.
        observations: what should be known of it.
        is_read: all of the log that there was at the beginning was read.
        failures: why metric files, or all of it, cannot be read.
        average_rate: steps a second over the whole run, for a job that has ended; None if it is not known.
    """

    progress: Progress = field(default_factory=Progress)
    series: dict[str, Series] = field(default_factory=dict)
    observations: tuple[Observation, ...] = ()
    is_read: bool = False
    failures: tuple[str, ...] = ()
    average_rate: float | None = None

    @property
    def words(self) -> list[str]:
        """The progress in phrases, for an ended job with its average rate."""
        average = [f"{words} on average" for words in Progress(rate=self.average_rate).words]
        return [*self.progress.words, *average]

    @property
    def main(self) -> Series | None:
        """The series that is shown first: the loss, else the first one."""
        return main_series(self.series)

    def observed(self, *kinds: Kind) -> Observation | None:
        """Return the first observation of some kinds; None if there is none."""
        return next((observation for observation in self.observations if observation.kind in kinds), None)

    def at_end(self) -> Activity:
        """Return what is still true once the job has ended: its last step, its values and its average rate."""
        ended = replace(self.progress, rate=None, seconds_left=None)
        return replace(self, progress=ended, observations=(), average_rate=self._average_rate())

    def _average_rate(self) -> float | None:
        """Return the steps a second between the first and the last point of the series that came furthest."""
        for series in self.series.values():
            points = [(at, step) for at, step in zip(series.times(), series.steps(), strict=True) if math.isfinite(at)]
            if points and points[-1][1] == self.progress.step:
                (began, first), (ended, last) = points[0], points[-1]
                return (last - first) / (ended - began) if ended > began and last > first else None
        return None


def main_series(series: dict[str, Series]) -> Series | None:
    """Return the series that is shown first: the loss of the training, else any loss, else the first one."""
    losses = [name for name in series if "loss" in name.lower()]
    training = [name for name in losses if not name.lower().startswith(("eval", "val", "test", "valid"))]
    exact = [name for name in training if name.lower().rpartition("/")[2] in ("loss", "train_loss", "lm loss")]
    name = next(iter([*exact, *training, *losses, *series]), None)
    return None if name is None else series[name]


class CpuMeter:
    """Measures how many processor cores each replica of a job uses, at most every 30 s.

    Args:
        measure: returns a number for each replica; empty if that is not known. It may take a second.
    """

    def __init__(self, measure: Callable[[], Collection[float]] = tuple) -> None:
        self.last: Collection[float] = ()
        """The last measurement."""
        self._measure = measure
        self._measured_at = -math.inf

    def note(self, cores: Collection[float], now: float) -> None:
        """Take over a measurement that was made for another reason, at a time in seconds since the epoch."""
        self.last, self._measured_at = tuple(cores), now

    def read(self, now: float) -> Collection[float]:
        """Return the last measurement, or a new one if it is too old."""
        if now - self._measured_at > _CPU_INTERVAL_S:
            self.note(self._measure(), now)
        return self.last


def find_job_pause(
    tracker: ProgressTracker, now: float, cpu: CpuMeter, printed_at: float | None = None
) -> Observation | None:
    """Return the pause of a job by its log; its CPU use is measured before a pause is reported.

    Args:
        tracker: has taken in the log.
        now: the time (seconds since the epoch).
        cpu: measures the CPU use.
        printed_at: when anything was last printed, if that is known better than by the times of lines.
    """
    main = tracker.main
    if main is None:
        return None
    moments, printed_at = main.moments, printed_at or tracker.printed_at
    find = partial(find_pause, moments.pauses(), moments.last, printed_at, now, is_excused=tracker.is_excused)
    return find() and find(cores=cpu.read(now))


class JobActivity:
    """What is known of one job so far; not safe to be used by several threads at once.

    Args:
        handle: the job's handle; its series are kept on disk under it.
        place: where its metric files may be.
        tracker: takes in its log.
        cpu: measures its CPU use where it seems to be stalled.
    """

    def __init__(self, handle: str, place: JobPlace, tracker: ProgressTracker, cpu: CpuMeter) -> None:
        self.handle = handle
        self._cpu = cpu
        self.is_read = False
        """Whether the log that there was at first is taken in; until then the series of the last time are shown."""
        self.is_current = False
        """Whether all that was printed by now is taken in; until then its pace is that of an earlier time."""
        self.size = 0
        """How many bytes the job has printed."""
        self.place = place
        self.ends = ProgressTracker()
        """Takes in the last lines of the logs that are not followed."""
        self._tracker = tracker
        self.files = MetricFiles()
        self._stored, self._facts = load_series(handle)
        self._began_at = time.time()
        self._search_failure = ""

    def find_files(self) -> None:
        """Look for its metric files, to read them from now on; a failure of the search costs these only."""
        place, failure = self.place, ""
        try:
            pids = [process.pid for process in job_processes(place.job_id, set())] if place.job_id else []
            self.files.add(find_metric_files(pids, place.folders, place.arguments, place.since, place.until))
        except Exception as error:
            if not self._search_failure:
                _log.exception("the metric files of %s are not found", self.handle)
            failure = f"metric files are not found: {describe_error(error)}; see the log file"
        self._search_failure = failure

    def snapshot(self, now: float, *, is_final: bool) -> Activity:
        """Return what the job is doing now.

        Args:
            now: the time (seconds since the epoch).
            is_final: whether it has ended: its pace is left out.
        """
        copies = {name: series.copy() for name, series in self._series().items()}
        observations = () if is_final else tuple(self._observations(copies, now))
        failures = tuple(filter(None, (self._search_failure, *self.files.failures)))
        activity = Activity(self._progress(), copies, observations, self.is_read, failures)
        return activity.at_end() if is_final else activity

    def save(self) -> None:
        """Keep the series on disk, once all of the log is read; a full disk costs them."""
        series, progress = self._series(), self._progress()
        facts = {STEP: progress.step, TOTAL: progress.total}
        if series and self.is_read:
            with suppress(OSError):
                save_series(self.handle, series, {name: value for name, value in facts.items() if value is not None})

    def _series(self) -> dict[str, Series]:
        """Return the series of files, then those of the log that no file has; those that were kept until it is read."""
        if self._stored and not self.is_read:
            return self._stored
        return self.files.series_with(self._tracker.series()) or self._stored

    def _progress(self) -> Progress:
        progress = self._tracker.progress()
        total = progress.total or self.files.total
        steps = [metric.steps()[-1] for metric in self.files.series().values() if len(metric)]
        step = max(steps, default=None)
        if progress.step is None:
            step = self._facts.get(STEP) if step is None else step
            return replace(progress, step=step, total=total or self._facts.get(TOTAL))
        if step is None or step <= progress.step:
            return replace(progress, total=total)
        # A bar that counts the steps of an epoch, or is drawn once at the end, is behind the files.
        return replace(progress, step=step, total=total if total and total >= step else None)

    def _observations(self, series: dict[str, Series], now: float) -> list[Observation]:
        if not self.is_current:
            return check_loss(series)
        tracker = self._tracker
        found = [find_job_pause(tracker, now, self._cpu)]
        if not any(found):
            since = tracker.printed_at or self.place.since or self._began_at
            found.append(find_buffered_output(self.size, since, now, self._cpu.last))
        ranks = [*tracker.ranks(), *self.ends.ranks()]
        found.append(find_slow_replica(ranks, now))
        return [item for item in found if item is not None] + check_loss(series)
