"""The metric files of one job, read together as series."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .find import open_metric_file
from .points import MetricFile
from .series import Series
from .tables import TrainerState

_MOST_SERIES = 300
# How often in a row one file is polled, so that a long one starves no other.
_MOST_POLLS = 4


class MetricFiles:
    """The series of a job's metric files."""

    def __init__(self) -> None:
        self._files: dict[Path, MetricFile] = {}
        self._series: dict[Path, dict[str, Series]] = {}

    def add(self, paths: Iterable[Path]) -> None:
        """Read these files too."""
        for path in paths:
            if path not in self._files and (file := open_metric_file(path)) is not None:
                self._files[path] = file
                self._series[path] = {}

    def poll(self) -> bool:
        """Read what was added since; return whether there is more to read at once."""
        more = False
        for path, file in self._files.items():
            for _ in range(_MOST_POLLS):
                points, forget, again = file.poll()
                if forget:
                    self._series[path] = {}
                series = self._series[path]
                for name, step, value, time in points:
                    if name not in series:
                        if len(series) >= _MOST_SERIES:
                            continue
                        series[name] = Series(name, path.name)
                    series[name].add(step, value, time)
                if not again:
                    break
            else:
                more = True
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
        """Return the series by name; of several files with the same name the one with most points counts."""
        found: dict[str, Series] = {}
        for series_of_file in self._series.values():
            for name, series in series_of_file.items():
                if name not in found or series.points > found[name].points:
                    found[name] = series
        return found
