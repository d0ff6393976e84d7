"""Reads what jobs do: in a thread while a job goes on, once for the shell, or the end of a log alone."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.errors import TorchXTuiError, describe_error
from ...base.threads import BackgroundThread
from ...logs.lines.blocks import LogBlock, LogBlocks, followed, log_paths, not_followed, read_ends, timed_end
from ...logs.source.replica_log import ReplicaLog
from .activity import Activity, CpuMeter, JobActivity, JobPlace
from .stalls import check_loss
from .tracker import ProgressTracker

if TYPE_CHECKING:
    from ...backends.runner import Runner

_log = logging.getLogger(__name__)

# How often the log is read for new lines (s).
_LOG_INTERVAL_S = 0.25
FILE_INTERVAL_S = 2.0
"""How often metric files are read for new points (s)."""
# How often metric files are searched for (s): a trainer opens its own some time after it starts.
_FIND_INTERVAL_S = 10.0
# Between two blocks other threads run, the event loop before all (s).
_PAUSE_S = 0.001
PUBLISH_INTERVAL_S = 0.5
"""How often what is known is handed on (s)."""
# How often the series are written to disk (s).
_SAVE_INTERVAL_S = 120.0
# How long the lines of a stream that were printed already are waited for (s).
_STREAM_TIMEOUT_S, _STREAM_INTERVAL_S = 10.0, 0.05
# The number of last pauses between steps to report.
_MOST_PAUSES = 200
# Duration of a CPU measurement (s).
_MEASURE_S = 1.0
# So much of the end of a log is read at once (bytes).
_TAIL = 65_536
# Of each log that is not followed, so many last bytes are read, at this interval (s).
_ENDS_INTERVAL_S, _END_BYTES = 10.0, 16_384


class _Timer:
    """Tells when an interval has passed; it is due at first.

    Args:
        seconds: the interval.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at = -math.inf

    def is_due(self) -> bool:
        """Return whether the interval has passed, and begin the next one."""
        now = time.monotonic()
        is_due = now - self._at >= self._seconds
        if is_due:
            self._at = now
        return is_due


class ActivityReader(BackgroundThread):
    """Reads the logs and the metric files of one job, until it is closed.

    The log's files, or the spools of streams, are those that a log pane reads: no stream is read twice.

    Args:
        handle: the job's handle; its series are kept on disk under it.
        logs: the logs of its replicas.
        place: tells where its metric files may be; called once, in the thread.
        on_change: called in the thread when something changed; not again before `acknowledge`.
        tracker: takes in the lines; a new one if None.
        now: tells the time (seconds since the epoch).
        measure: measures how many processor cores each replica uses, see `CpuMeter`.
    """

    def __init__(
        self,
        handle: str,
        logs: Sequence[ReplicaLog],
        place: Callable[[], JobPlace],
        on_change: Callable[[], object],
        tracker: ProgressTracker | None = None,
        now: Callable[[], float] = time.time,
        measure: Callable[[], Collection[float]] = tuple,
    ) -> None:
        super().__init__("job-activity", on_change)
        self.handle = handle
        self.logs = tuple(logs)
        self.is_final = False
        """Whether the job has ended: nothing is said of its pace then."""
        self.cpu = CpuMeter(measure)
        self._find_place = place
        self._tracker = tracker or ProgressTracker(is_bounded=True)
        self._now = now
        self.latest = Activity()
        """What the job was doing when it was last looked at; replaced, never changed."""
        self._publishes = _Timer(PUBLISH_INTERVAL_S)

    def _run(self) -> None:
        blocks = LogBlocks(self.logs)
        # Reads the series of the last time, which are shown at once.
        self._job = JobActivity(self.handle, JobPlace(), self._tracker, self.cpu)
        try:
            self._publish()
            self._job.place = self._find_place()
            self._follow(blocks)
        except Exception as error:
            reason = f"progress and metrics are no longer read: {describe_error(error)}; see the log file"
            self.latest = replace(self.latest, failures=(reason,))
            self._notify()
            raise
        finally:
            blocks.close()
            self._job.save()

    def _follow(self, blocks: LogBlocks) -> None:
        blocks.connect()
        files, finds = _Timer(FILE_INTERVAL_S), _Timer(_FIND_INTERVAL_S)
        ends, saves = _Timer(_ENDS_INTERVAL_S), _Timer(_SAVE_INTERVAL_S)
        more_in_files = False
        while not self._stop.is_set():
            more = self._read_log(blocks)
            self._job.is_current = not more and blocks.caught_up
            if more_in_files or files.is_due():
                if finds.is_due():
                    self._job.find_files()
                more_in_files = self._job.files.poll()
                more = more or more_in_files
            if not more:
                self._job.is_read = True
                if ends.is_due():
                    self._job.ends = _read_ends(self.logs)
            self._publish()
            if saves.is_due():
                self._job.save()
            if not more:
                self._wake.wait(_LOG_INTERVAL_S)
                self._wake.clear()

    def _read_log(self, blocks: LogBlocks) -> bool:
        """Read what was printed since; return whether there is more."""
        found, more = blocks.poll()
        for block in found:
            self._tracker.feed(*block)
            self._job.size = blocks.size
            # Once it has caught up, what is known between two blocks is that of an earlier time.
            if not self._job.is_current:
                self._publish()
            if self._stop.wait(_PAUSE_S):
                # Part of a log is not kept as its curves.
                return True
        return more

    def _publish(self) -> None:
        """Make what is known now the latest, at most so often; also where nothing came: that may be a stall."""
        if self._publishes.is_due():
            self.latest = self._job.snapshot(self._now(), is_final=self.is_final)
            self._notify()


def measure_cores(runner: Runner, handle: str) -> tuple[float, ...]:
    """Return how many processor cores each replica uses, over a second; empty where that cannot be measured."""
    try:
        if runner.job(handle).usage():
            time.sleep(_MEASURE_S)
        return tuple(usage.cpu for usage in runner.job(handle).usage() if usage.cpu is not None)
    except (TorchXTuiError, OSError, ValueError, NotImplementedError) as error:
        _log.info("what %s uses is not measured: %s", handle, error)
        return ()


def read_activity(
    handle: str,
    logs: Sequence[ReplicaLog],
    place: JobPlace,
    tracker: ProgressTracker,
    *,
    is_final: bool,
    measure: Callable[[], Collection[float]] = tuple,
) -> Activity:
    """Read all of a job's logs and metric files once; see `ActivityReader` for the arguments."""
    job = JobActivity(handle, place, tracker, CpuMeter(measure))
    blocks = LogBlocks(logs)
    blocks.connect()
    try:
        deadline = time.monotonic() + _STREAM_TIMEOUT_S
        while not blocks.caught_up and time.monotonic() < deadline:
            time.sleep(_STREAM_INTERVAL_S)
        for block in _all_blocks(blocks):
            tracker.feed(*block)
        if not is_final:
            job.ends = _read_ends(logs)
    finally:
        blocks.close()
    job.find_files()
    while job.files.poll():
        pass
    job.is_read = job.is_current = True
    job.save()
    return job.snapshot(time.time(), is_final=is_final)


def _read_ends(logs: Sequence[ReplicaLog]) -> ProgressTracker:
    """Read the last lines of the logs that are not followed: each replica prints the times of its own work."""
    tracker = ProgressTracker(is_bounded=True)
    read_tail(not_followed(logs), tracker, _END_BYTES)
    return tracker


def _all_blocks(blocks: LogBlocks) -> Iterator[LogBlock]:
    more = True
    while more:
        found, more = blocks.poll()
        yield from found


def read_log(path: Path, tracker: ProgressTracker) -> Activity:
    """Read one log file, a regular file, once."""
    blocks = LogBlocks([ReplicaLog(path.name, 0, stdout=path)])
    try:
        for block in _all_blocks(blocks):
            tracker.feed(block.data, block.time, path.name)
    finally:
        blocks.close()
    series = tracker.series()
    return Activity(tracker.progress(), series, tuple(check_loss(series)), is_read=True)


def read_tail(logs: Sequence[ReplicaLog], tracker: ProgressTracker, most_bytes: int = _TAIL) -> None:
    """Take in the last lines of logs that are files; streams are left out.

    Args:
        logs: the replicas' logs.
        tracker: takes them in.
        most_bytes: the most bytes to read of a log.
    """
    for block in read_ends(logs, most_bytes):
        tracker.feed(*block)
        time.sleep(_PAUSE_S)


def read_timed_tail(logs: Sequence[ReplicaLog], tracker: ProgressTracker) -> None:
    """Take in the last lines of logs that are files, each with its time where an index beside the log has it.

    Args:
        logs: the replicas' logs.
        tracker: takes them in; its moments then tell the pauses between the last steps.
    """
    for log in followed(logs):
        if blocks := timed_end(log, _TAIL):
            for block in blocks:
                tracker.feed(*block)
        else:
            read_tail([log], tracker)


def step_times(logs: Sequence[ReplicaLog]) -> tuple[tuple[float, ...], float | None]:
    """Return the pauses between the last steps in logs that are files, and when the last step was printed."""
    tracker = ProgressTracker(is_bounded=True)
    try:
        read_timed_tail(logs, tracker)
    except (OSError, ValueError) as error:
        _log.info("when steps came is not known: %s", error)
    if tracker.main is None:
        return (), None
    moments = tracker.main.moments
    return tuple(round(pause, 3) for pause in moments.pauses()[-_MOST_PAUSES:]), moments.last


def last_written(logs: Sequence[ReplicaLog]) -> tuple[float, int]:
    """Return when logs that are files were written last (seconds since the epoch), and their size in bytes."""
    latest, size = 0.0, 0
    for log in logs:
        for path in log_paths(log):
            with suppress(OSError, ValueError):
                state = path.stat()
                latest, size = max(latest, state.st_mtime), size + state.st_size
    return latest, size
