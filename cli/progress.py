"""The progress of jobs, for the commands that show it."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

from ..base.validation import JsonObject
from ..diagnosis.progress.tracker import ProgressTracker

if TYPE_CHECKING:
    from ..backends.job import Job
    from ..backends.runner import Runner
    from ..backends.types import DescribeAppResponse
    from ..diagnosis.progress.activity import Activity
    from ..diagnosis.progress.tracker import Progress
    from ..settings.config import Settings


def job_activity(runner: Runner, job: Job, found: DescribeAppResponse, settings: Settings) -> Activity:
    """Read the logs and metric files of a described job once."""
    from ..diagnosis.progress.activity import job_place
    from ..diagnosis.progress.reader import measure_cores, read_activity

    return read_activity(
        job.handle,
        job.replica_logs(found),
        job_place(runner, job.handle, found),
        new_tracker(settings),
        is_final=found.has_ended,
        measure=lambda: measure_cores(runner, job.handle),
    )


def progress_json(progress: Progress) -> JsonObject:
    """Return the known fields of the progress."""
    data = {**dataclasses.asdict(progress), "percent": progress.percent}
    return {name: value for name, value in data.items() if value is not None and value is not False}


def activity_json(activity: Activity) -> JsonObject:
    """Return the progress, and the observations by kind."""
    return {
        **progress_json(activity.progress),
        **{observation.kind.value: observation.sentence for observation in activity.observations},
    }


def progress_at_end(job: Job, found: DescribeAppResponse, settings: Settings) -> Progress:
    """Read the progress of a described job from the end of its logs, if they are local files."""
    from ..diagnosis.progress.reader import read_tail

    tracker = new_tracker(settings)
    read_tail(job.replica_logs(found), tracker)
    return tracker.progress()


def stall_at_end(runner: Runner, job: Job, found: DescribeAppResponse, settings: Settings) -> str:
    """Describe the stall of a running job, from the end of its logs and its CPU use; empty if there is none."""
    from ..diagnosis.progress.activity import CpuMeter, find_job_pause
    from ..diagnosis.progress.reader import last_written, measure_cores, read_timed_tail
    from ..diagnosis.progress.stalls import Kind

    tracker = new_tracker(settings)
    logs = job.replica_logs(found)
    read_timed_tail(logs, tracker)
    cpu = CpuMeter(lambda: measure_cores(runner, job.handle))
    pause = find_job_pause(tracker, time.time(), cpu, last_written(logs)[0])
    return pause.sentence if pause and pause.kind is Kind.STALLED else ""


def new_tracker(settings: Settings) -> ProgressTracker:
    """Make a tracker of one log or of a job's logs."""
    return ProgressTracker(settings.metrics.denied, settings.metrics.names, settings.metrics.patterns)
