"""The command metrics: how far a job is, and its named values, as a table, JSON, CSV or charts."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any

from ..base.errors import TorchXTuiError, join_names
from ..settings.make_runner import make_runner
from .output import put, put_json, put_table, say
from .progress import job_activity, progress_json
from .status import described

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from ..backends.runner import Runner
    from ..diagnosis.metrics.chart import Span
    from ..diagnosis.metrics.series import Series
    from ..diagnosis.progress.activity import Activity
    from ..settings.config import Settings

_CHART_HEIGHT = 16
_WIDEST_CHART = 120
_SMOOTHINGS = ("none", "light", "strong")


def _add_metrics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("handle", nargs="?", help="the job")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these metrics; a * stands for any text")
    parser.add_argument("--file", metavar="LOG", help="read a log file, or a metric file, instead of a job")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON object, with every point that is kept")
    form.add_argument("--csv", action="store_true", help="print a row for each point: metric, step, time, value")
    form.add_argument("--plot", action="store_true", help="print a chart of each metric; of the loss if none is named")
    parser.add_argument(
        "--smoothing",
        choices=_SMOOTHINGS,
        default="light",
        help="smoothing of charts from 50 points on; default: light",
    )


def _metrics(arguments: Any, settings: Settings) -> int:
    if arguments.file is not None:
        names = [name for name in (arguments.handle, *arguments.names) if name]
        subject, activity = arguments.file, _activity_of_file(arguments.file, settings)
    elif arguments.handle:
        names, subject = arguments.names, arguments.handle
        with make_runner(settings) as runner:
            activity = _activity_of_job(runner, arguments.handle, settings)
    else:
        say("name a job or a file: give a job's handle, or --file with a log file; `torchx-tui list` prints handles")
        return 2
    series = _chosen(activity, names)
    if arguments.json:
        put_json({**_subject(arguments, subject), **_json(activity, series)})
    elif arguments.csv:
        from ..diagnosis.metrics.export import write_csv

        write_csv(sys.stdout, series)
    elif arguments.plot:
        _put_charts(activity, series if names else series[:1], arguments.smoothing)
    else:
        _put_table(activity, series)
    for failure in activity.failures:
        say(failure)
    return 0


def _activity_of_job(runner: Runner, handle: str, settings: Settings) -> Activity:
    """Read the logs and metric files of a job.

    Raises:
        TorchXTuiError: nothing is known because its logs cannot be read.
    """
    import dataclasses

    from ..logs.lines.blocks import unreadable_logs

    found = described(runner, handle)
    activity = job_activity(runner, handle, found, settings)
    logs = runner.job(handle).replica_logs(found)
    faults = unreadable_logs(logs)
    if not logs:
        faults = [f"{handle} has no log: {found.reason or 'its replicas are not known'}"]
    if faults and not activity.series and activity.progress.step is None:
        raise TorchXTuiError(faults[0])
    return dataclasses.replace(activity, failures=(*activity.failures, *faults))


def _activity_of_file(path: str, settings: Settings) -> Activity:
    """Read one file: as a metric file if its content is that of one, else as a log."""
    from pathlib import Path

    from ..base.files import open_file
    from ..diagnosis.metrics.files import MetricFiles
    from ..diagnosis.metrics.formats import open_metric_file
    from ..diagnosis.progress.activity import Activity
    from ..diagnosis.progress.reader import read_log

    file = Path(path)
    try:
        os.close(open_file(file))
    except OSError as error:
        raise TorchXTuiError(f"{path} cannot be read: {error.strerror}. Give a log file or a metric file") from None
    if open_metric_file(file) is None:
        names = settings.metrics
        return read_log(file, names.denied, names.names, names.patterns)
    files = MetricFiles()
    files.add([file])
    while files.poll():
        pass
    return Activity(series=files.series(), failures=tuple(files.failures))


def _chosen(activity: Activity, names: Sequence[str]) -> list[Series]:
    """Return the series with these names, the one that matters most first.

    Raises:
        TorchXTuiError: there is none with a name.
    """
    from fnmatch import fnmatchcase

    main = activity.main
    every = sorted(activity.series.values(), key=lambda metric: metric is not main)
    for name in names:
        if not any(fnmatchcase(metric.name, name) for metric in every):
            there = join_names(metric.name for metric in every) if every else "none: no value occurs twice"
            raise TorchXTuiError(f"there is no metric {name}. There are: {there}")
    return [metric for metric in every if not names or any(fnmatchcase(metric.name, name) for name in names)]


def _subject(arguments: Any, subject: str) -> dict[str, str]:
    return {"file" if arguments.file is not None else "handle": subject}


def _json(activity: Activity, series: Iterable[Series]) -> dict[str, Any]:
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
    put(_progress_line(activity) or "The log has no step")
    for observation in activity.observations:
        put(observation.sentence)
    if not series:
        put("No metrics: a value is shown from the second line that names it, such as `step 10 loss 2.31`")
        return
    rows = [
        (
            metric.name,
            metric.printed,
            f"{metric.best_low:.6g}",
            f"{metric.best_high:.6g}",
            f"{metric.points:,}",
            metric.origin,
        )
        for metric in series
    ]
    put_table([("METRIC", "LAST", "LOW", "HIGH", "POINTS", "FROM"), *rows])


def _progress_line(activity: Activity) -> str:
    line = ", ".join(activity.words)
    return line[:1].upper() + line[1:]


def _put_charts(activity: Activity, series: Sequence[Series], smoothing: str) -> None:
    from ..diagnosis.metrics.chart import Options, draw_chart, wants_log
    from ..diagnosis.metrics.series import Smoothing
    from .main import terminal_width

    if line := _progress_line(activity):
        put(line)
    chosen = Smoothing[smoothing.upper()]
    is_ascii = not str(sys.stdout.encoding).lower().startswith("utf")
    width = min(_WIDEST_CHART, terminal_width())
    for metric in series:
        log = wants_log(metric)
        words = (metric.name, metric.printed, chosen.of(metric).label, "log" if log else "", metric.origin)
        put("  ".join(word for word in words if word))
        for row in draw_chart([metric], width, _CHART_HEIGHT, Options(chosen, log, ascii=is_ascii)):
            print(_painted(row))
    if not series:
        put("No metrics to plot: no value occurs twice")


def _painted(row: Sequence[Span]) -> str:
    """Return a row with raw values dimmed and the smoothed ones bold, where the terminal takes colours."""
    from ..diagnosis.metrics.chart import Role

    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return "".join(span.text for span in row).rstrip()
    codes = {Role.RAW: "2;36", Role.SMOOTH: "1", Role.GAP: "33", Role.AXIS: "2"}
    texts = (f"\x1b[{codes[span.role]}m{span.text}\x1b[0m" if span.role in codes else span.text for span in row)
    return re.sub(r" +$", "", "".join(texts))


COMMANDS = {"metrics": (_add_metrics, _metrics)}
