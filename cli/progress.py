"""How far jobs are, for the commands that show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..backends.api import DescribeAppResponse
    from ..backends.runner import Runner
    from ..diagnosis.progress.activity import Activity
    from ..diagnosis.progress.tracker import Progress
    from ..settings.config import Settings


def job_activity(runner: Runner, handle: str, found: DescribeAppResponse, settings: Settings) -> Activity:
    """Read what a described job is doing from its logs and metric files, once."""
    from ..diagnosis.progress.activity import job_place
    from ..diagnosis.progress.reader import measure_cores, read_activity

    names = settings.metrics
    return read_activity(
        handle,
        runner.job(handle).replica_logs(found),
        job_place(runner, handle, found),
        is_final=found.has_ended,
        cores=lambda: measure_cores(runner, handle),
        denied=names.denied,
        known=names.names,
        patterns=names.patterns,
    )


def progress_json(progress: Progress) -> dict[str, Any]:
    """Return how far a job is, as JSON: what is not known is left out."""
    import dataclasses

    data = {**dataclasses.asdict(progress), "percent": progress.percent}
    return {name: value for name, value in data.items() if value is not None}


def progress_at_end(runner: Runner, handle: str, found: DescribeAppResponse, settings: Settings) -> Progress:
    """Return how far a described job is by the end of its logs, where these are files here."""
    from ..diagnosis.progress.reader import read_tail
    from ..diagnosis.progress.tracker import ProgressTracker

    tracker = ProgressTracker(settings.metrics.denied, settings.metrics.names, settings.metrics.patterns)
    read_tail(runner.job(handle).replica_logs(found), tracker)
    return tracker.progress()


def stall_at_end(runner: Runner, handle: str, found: DescribeAppResponse, settings: Settings) -> str:
    """Describe the stall of a running job, from the end of its logs and its CPU use; empty if there is none."""
    import time

    from ..diagnosis.progress.reader import last_written, measure_cores, read_timed_tail
    from ..diagnosis.progress.stalls import Kind, find_pause
    from ..diagnosis.progress.tracker import ProgressTracker

    tracker = ProgressTracker(settings.metrics.denied, settings.metrics.names, settings.metrics.patterns)
    logs = runner.job(handle).replica_logs(found)
    read_timed_tail(logs, tracker)
    if tracker.main is None:
        return ""
    moments, printed_at = tracker.main.moments, last_written(logs)[0]
    cores: tuple[float, ...] = ()
    for _ in range(2):
        pause = find_pause(
            moments.pauses(), moments.last, printed_at, time.time(), is_excused=tracker.is_excused, cores=cores
        )
        if pause is None or pause.kind is not Kind.STALLED:
            return ""
        cores = cores or measure_cores(runner, handle)
    return pause.sentence
