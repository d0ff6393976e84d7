"""The metric files of one job, read together as series."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ...base.files import path_exists
from .formats import STATE, open_metric_file
from .points import MetricFile
from .series import Series

_MAX_SERIES = 300
# Points printed this long after a file was written may be missing in it (s): HF's Trainer writes its state with each
# checkpoint only, Lightning its table every 100 rows.
_LAG_S = 5.0


@dataclass
class _Source:
    """A file that is read, and its series."""

    file: MetricFile
    series: dict[str, Series] = field(default_factory=dict)
    written: float = 0.0


class MetricFiles:
    """The series of a job's metric files."""

    def __init__(self) -> None:
        self._sources: dict[Path, _Source] = {}

    def add(self, paths: Collection[Path]) -> None:
        """Read these files too, and drop those that are gone or replaced by one of these.

        A vanished file stays until others are found: between two checkpoints its curves do not disappear.
        """
        is_replaced = any(path.name == STATE for path in paths)
        for path in self._sources.keys() - set(paths) if paths else ():
            if not path_exists(path) or (is_replaced and path.name == STATE):
                del self._sources[path]
        for path in paths:
            if path not in self._sources and (file := open_metric_file(path)) is not None:
                self._sources[path] = _Source(file)

    def poll(self) -> bool:
        """Read what was added since the last poll, a part of a long file; return whether there is more at once."""
        more = False
        for path, source in self._sources.items():
            points, forget, again = source.file.poll()
            more = more or again
            if forget:
                source.series = {}
            if points:
                with suppress(OSError):
                    source.written = path.stat().st_mtime
            for name, step, value, time in points:
                if name not in source.series:
                    if len(source.series) >= _MAX_SERIES:
                        continue
                    source.series[name] = Series(name, path.name)
                source.series[name].add(step, value, time)
        return more

    @property
    def total(self) -> float | None:
        """The last step, if a file has it."""
        return next((source.file.total for source in self._sources.values() if source.file.total), None)

    @property
    def failures(self) -> list[str]:
        """Why files cannot be read."""
        return [source.file.failure for source in self._sources.values() if source.file.failure]

    def series(self) -> dict[str, Series]:
        """Return the series by name; if several files have a metric, the one with most points."""
        return self.series_with({})

    def series_with(self, log: Mapping[str, Series]) -> dict[str, Series]:
        """Return the series of files and log; the log continues those that a file has."""
        best: dict[str, tuple[Series, float]] = {}
        for source in self._sources.values():
            for name, series in source.series.items():
                key = plain_name(name)
                if key not in best or series.points > best[key][0].points:
                    best[key] = series, source.written
        found = {series.name: series for series, _ in best.values()}
        for name, printed in log.items():
            if plain_name(name) in best:
                series, written = best[plain_name(name)]
                found[series.name] = _continued(series, printed, written + _LAG_S)
            else:
                found[name] = printed
        return found


def _continued(series: Series, log: Series, since: float) -> Series:
    """Return a file's series, with the points that the log has of it since a time."""
    last = series.steps()[-1] if len(series) else -math.inf
    is_late = len(log) and log.times()[-1] > since
    late = [bucket for bucket in log.buckets() if bucket.time > since and bucket.step > last] if is_late else []
    if not late:
        return series
    joined = series.copy()
    for bucket in late:
        joined.add(bucket.step, bucket.last, bucket.time, log.printed if bucket is late[-1] else "")
    joined.origin = f"{series.origin}, then the {log.origin}"
    return joined


def plain_name(name: str) -> str:
    """Return the name by which a metric of a file and one of the log are the same: `train/loss` is `loss`."""
    return name.lower().removeprefix("train/").replace("eval/", "eval_")
