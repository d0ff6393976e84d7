"""The metric files of one job, read together as series."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from .find import modified, open_metric_file
from .points import MetricFile
from .series import Series
from .tables import TrainerState

_MOST_SERIES = 300
# What the log printed so long after a file was written is not in the file yet (s): HF's Trainer writes its state with
# each checkpoint only, Lightning its table every 100 rows.
_LAG_S = 5.0


class MetricFiles:
    """The series of a job's metric files."""

    def __init__(self) -> None:
        self._files: dict[Path, MetricFile] = {}
        self._series: dict[Path, dict[str, Series]] = {}
        self._written: dict[Path, float] = {}

    def add(self, paths: Iterable[Path]) -> None:
        """Read these files too."""
        for path in paths:
            if path not in self._files and (file := open_metric_file(path)) is not None:
                self._files[path] = file
                self._series[path] = {}

    def poll(self) -> bool:
        """Read what was added since, of a long file a part; return whether there is more to read at once."""
        more = False
        for path, file in self._files.items():
            points, forget, again = file.poll()
            more = more or again
            if forget:
                self._series[path] = {}
            if points:
                self._written[path] = modified(path)
            series = self._series[path]
            for name, step, value, time in points:
                if name not in series:
                    if len(series) >= _MOST_SERIES:
                        continue
                    series[name] = Series(name, path.name)
                series[name].add(step, value, time)
        return more

    @property
    def total(self) -> float | None:
        """The last step, where a file tells it."""
        totals = [file.total for file in self._files.values() if isinstance(file, TrainerState)]
        return next((total for total in totals if total), None)

    @property
    def failures(self) -> list[str]:
        """What is wrong with files that cannot be read."""
        return [file.failure for file in self._files.values() if file.failure]

    def series(self) -> dict[str, Series]:
        """Return the series by name; of several files that have a metric the one with most points counts."""
        return {series.name: series for series, _ in self._best().values()}

    def series_with(self, log: Mapping[str, Series]) -> dict[str, Series]:
        """Return the series of files and log: of a metric that both have the file's, continued by the log."""
        best = self._best()
        found = {series.name: series for series, _ in best.values()}
        for name, printed in log.items():
            series, path = best.get(plain_name(name), (None, None))
            if series is None or path is None:
                found[name] = printed
            else:
                found[series.name] = _continued(series, printed, self._written[path] + _LAG_S)
        return found

    def _best(self) -> dict[str, tuple[Series, Path]]:
        best: dict[str, tuple[Series, Path]] = {}
        for path, series_of_file in self._series.items():
            for name, series in series_of_file.items():
                key = plain_name(name)
                if key not in best or series.points > best[key][0].points:
                    best[key] = series, path
        return best


def _continued(series: Series, log: Series, since: float) -> Series:
    """Return a file's series, with what the log has of it since a time."""
    if not len(log) or not log.times()[-1] > since:
        return series
    last = series.steps()[-1] if len(series) else -math.inf
    late = [bucket for bucket in log.buckets() if bucket.time > since and bucket.step > last]
    if not late:
        return series
    joined = series.copy()
    for bucket in late:
        joined.add(bucket.step, bucket.last, bucket.time, log.printed if bucket is late[-1] else "")
    joined.origin = f"{series.origin}, then the {log.origin}"
    return joined


def plain_name(name: str) -> str:
    """Return a name by which a metric of a file and one of the log are the same: `train/loss` is `loss`."""
    return name.lower().removeprefix("train/").replace("eval/", "eval_")
