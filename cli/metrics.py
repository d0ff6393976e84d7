"""The command metrics: a job's progress and named values, as a table, JSON, CSV or charts."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import TorchXTuiError, join_names
from ..base.validation import JsonObject
from .jobs import describe_job, with_job
from .output import colored, put, put_json, put_table, say, terminal_width
from .progress import job_activity, new_tracker, progress_json

if TYPE_CHECKING:
    from ..diagnosis.metrics.series import Series, Smoothing
    from ..diagnosis.progress.activity import Activity
    from ..settings.config import Settings

_CHART_HEIGHT = 16
_WIDEST_CHART = 120


def metrics(arguments: Any, settings: Settings) -> int:
    names = arguments.names
    if arguments.file is not None:
        names = [name for name in (arguments.handle, *names) if name]
        activity = _activity_of_file(Path(arguments.file), settings)
        subject = {"file": arguments.file}
    elif arguments.handle:
        activity = _activity_of_job(arguments.handle, settings)
        subject = {"handle": arguments.handle}
    else:
        raise TorchXTuiError(
            "name a job or a file: give a job's handle, or --file with a log file; `torchx-tui list` prints handles"
        )
    series = _choose(activity, names)
    if arguments.json:
        put_json({**subject, **_as_json(activity, series)})
    elif arguments.csv:
        from ..diagnosis.metrics.export import write_csv

        write_csv(sys.stdout, series)
    else:
        line = ", ".join(activity.words)
        line = line[:1].upper() + line[1:]
        if arguments.plot:
            if line:
                put(line)
            from ..diagnosis.metrics.series import Smoothing

            _put_charts(series if names else series[:1], Smoothing[arguments.smoothing.upper()])
        else:
            put(line or "The log has no step")
            _put_table(activity, series)
    for failure in activity.failures:
        say(failure)
    return 0


def _activity_of_job(handle: str, settings: Settings) -> Activity:
    """Read the logs and metric files of a job.

    Raises:
        TorchXTuiError: its logs cannot be read, and it has no metric files.
    """
    from ..logs.lines.blocks import unreadable_logs

    with with_job(settings, handle) as (runner, job):
        found = describe_job(job)
        activity = job_activity(runner, job, found, settings)
        logs = job.replica_logs(found)
    faults = unreadable_logs(logs)
    if not logs:
        faults = [f"{handle} has no log: {found.reason or 'its replicas are not known'}"]
    if faults and not activity.series and activity.progress.step is None:
        raise TorchXTuiError(faults[0])
    return dataclasses.replace(activity, failures=(*activity.failures, *faults))


def _activity_of_file(path: Path, settings: Settings) -> Activity:
    """Read a file: as a metric file if its content is that of one, else as a log."""
    from ..base.files import open_file
    from ..diagnosis.metrics.files import MetricFiles
    from ..diagnosis.metrics.formats import open_metric_file
    from ..diagnosis.progress.activity import Activity
    from ..diagnosis.progress.reader import read_log

    try:
        os.close(open_file(path))
    except OSError as error:
        raise TorchXTuiError(f"{path} cannot be read: {error.strerror}. Give a log file or a metric file") from None
    if open_metric_file(path) is None:
        return read_log(path, new_tracker(settings))
    files = MetricFiles()
    files.add([path])
    while files.poll():
        pass
    return Activity(series=files.series(), failures=tuple(files.failures))


def _choose(activity: Activity, names: Sequence[str]) -> list[Series]:
    """Return the series whose names match, the main one first; all without names.

    Raises:
        TorchXTuiError: no series matches one of the names.
    """
    every = sorted(activity.series.values(), key=lambda metric: metric is not activity.main)
    for name in names:
        if not any(fnmatchcase(metric.name, name) for metric in every):
            known = join_names((metric.name for metric in every), "none: no value occurs twice")
            raise TorchXTuiError(f"there is no metric {name}. There are: {known}")
    return [metric for metric in every if not names or any(fnmatchcase(metric.name, name) for name in names)]


def _as_json(activity: Activity, series: Sequence[Series]) -> JsonObject:
    return {
        "progress": progress_json(activity.progress),
        "observations": [
            {"kind": observation.kind.value, "sentence": observation.sentence} for observation in activity.observations
        ],
        "metrics": [
            {
                "name": metric.name,
                "from": metric.origin,
                "last": metric.last,
                "printed": metric.printed,
                "low": metric.best_low,
                "high": metric.best_high,
                "points": metric.points,
                "points_per_value": metric.width,
                "steps": list(metric.steps()),
                "values": [bucket.last for bucket in metric.buckets()],
            }
            for metric in series
        ],
    }


def _put_table(activity: Activity, series: Sequence[Series]) -> None:
    for observation in activity.observations:
        put(observation.sentence)
    if not series:
        put("No metrics: a value is shown from the second line that names it, such as `step 10 loss 2.31`")
        return
    rows = [("METRIC", "LAST", "LOW", "HIGH", "POINTS", "FROM")]
    for metric in series:
        low, high, points = f"{metric.best_low:.6g}", f"{metric.best_high:.6g}", f"{metric.points:,}"
        rows.append((metric.name, metric.printed, low, high, points, metric.origin))
    put_table(rows)


def _put_charts(series: Sequence[Series], smoothing: Smoothing) -> None:
    from ..diagnosis.metrics.chart import Options, Role, draw_chart, wants_log

    # Raw values dim, smoothed ones bold, gaps yellow.
    codes = {Role.RAW: "2;36", Role.SMOOTH: "1", Role.GAP: "33", Role.AXIS: "2"}
    is_ascii = not str(sys.stdout.encoding).lower().startswith("utf")
    width = min(_WIDEST_CHART, terminal_width())
    for metric in series:
        log = wants_log(metric)
        words = (metric.name, metric.printed, smoothing.of(metric).label, "log" if log else "", metric.origin)
        put("  ".join(filter(None, words)))
        for row in draw_chart([metric], width, _CHART_HEIGHT, Options(smoothing, log, ascii=is_ascii)):
            spans = (colored(text, codes[role], sys.stdout) if role in codes else text for text, role, *_ in row)
            print(re.sub(" +$", "", "".join(spans)))
    if not series:
        put("No metrics to plot: no value occurs twice")
