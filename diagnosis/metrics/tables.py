"""Metrics in text: tables with a header, a JSON object a line, whole JSON documents, and MLflow's file store."""

from __future__ import annotations

import abc
import csv
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...base.files import SOURCE, read_file
from .points import ForeignFileError, GrowingFile, MetricFile, Point, to_number

_STEPS = (
    *("step", "steps", "global_step", "_step", "iteration", "iter", "num_updates", "current_steps"),
    *("time/total_timesteps", "total_timesteps", "training_iteration"),
)
_EPOCH = "epoch"
_TIMES = ("timestamp", "_timestamp", "time_stamp", "wall_time")
_TOTALS = ("max_steps", "total_steps")
_LONGEST_LINE = 65_536
_MOST_COLUMNS = 2_000
_MAX_DEPTH = 3
_DVCLIVE = re.compile(r".*/plots/metrics/(.*/)")
MLFLOW = re.compile(r"(.*/mlruns/[^/]+/[^/]+)/metrics/(.+)")
"""The path of a metric in MLflow's file store: the folder of the run, and the name."""


def row_points(row: Mapping[str, Any], number: int, x: str = "") -> tuple[list[Point], float | None]:
    """Return the points of one row, and the last step if the row has it.

    Args:
        row: values by name; names of nested objects are joined by `/`.
        number: the row's number, for rows without a step.
        x: the name of the step, if none of the usual ones is there.
    """
    flat = dict(_flat(row, ""))
    step = next((flat[name] for name in (*_STEPS, x, _EPOCH) if name in flat), float(number))
    time = next((flat[name] for name in _TIMES if name in flat), math.nan)
    left_out = {*_STEPS, *_TIMES, *_TOTALS, x}
    points = [Point(name, step, value, time) for name, value in flat.items() if name not in left_out]
    return points, next((flat[name] for name in _TOTALS if name in flat), None)


def has_step(names: Sequence[str]) -> bool:
    """Return whether one of these names is usual for the step or the epoch."""
    return not {*_STEPS, _EPOCH}.isdisjoint(names)


def _flat(row: Mapping[str, Any], prefix: str, depth: int = 0) -> Iterator[tuple[str, float]]:
    for key, value in row.items():
        name = f"{prefix}{key}".strip()
        # Ray Tune repeats the whole configuration in each row.
        if isinstance(value, dict) and key != "config" and depth < _MAX_DEPTH:
            yield from _flat(value, f"{name}/", depth + 1)
        elif isinstance(value, str) and key.count("/") == value.count("/") == 1:
            # ms-swift writes `"global_step/max_steps": "10/93"`.
            yield from _flat(dict(zip(key.split("/"), value.split("/"), strict=True)), prefix, depth)
        elif name and (number := to_number(value)) is not None:
            yield name, number


class _LineFile(GrowingFile):
    """A file with a row a line."""

    def _begin(self) -> None:
        super()._begin()
        self._rows = 0

    def _parse(self, data: bytes) -> tuple[list[Point], int]:
        end = data.rfind(b"\n") + 1
        points: list[Point] = []
        for line in data[:end].splitlines(keepends=True):
            if len(line) <= _LONGEST_LINE:
                points += self._read(line)
                self._rows += 1
        return points, end

    @abc.abstractmethod
    def _read(self, line: bytes) -> list[Point]: ...

    def _points(self, row: Mapping[str, Any], x: str = "") -> list[Point]:
        points, total = row_points(row, self._rows, x)
        self.total = total or self.total
        return points


class TableFile(_LineFile):
    """A table whose header has names.

    Its cells are separated by tabs, commas or semicolons; by blanks if the header begins with `#`. Lightning writes all
    of it anew when a metric comes that the header does not have.

    Args:
        path: the file.
        x: the name of the column with the step, if it is not a usual one.
    """

    def __init__(self, path: Path, x: str = "") -> None:
        super().__init__(path)
        self._x = x
        self._header = b""
        # dvclive has a file a metric, in folders that are part of the name.
        found = _DVCLIVE.match(path.as_posix())
        self._prefix = found[1] if found else ""

    def _begin(self) -> None:
        super()._begin()
        self._names: list[str] = []

    def _was_rewritten(self, descriptor: int) -> bool:
        return os.pread(descriptor, len(self._header), 0) != self._header

    def _read(self, line: bytes) -> list[Point]:
        if self._names:
            cells = zip(self._names, read_cells(line, self._header), strict=False)
            points = self._points(dict(cells), self._x)
            return [point._replace(name=self._prefix + point.name) for point in points]
        self._header, self._names = line, read_header(line)
        if not self._names:
            raise ForeignFileError("its first line is not a header of names")
        return []


def read_header(line: bytes) -> list[str]:
    """Return the names in the first line of a table; none if it is not a header."""
    names = [name.strip() for name in read_cells(line.lstrip(b"# "), line)]
    is_header = 2 <= len(names) <= _MOST_COLUMNS and not any(to_number(name) is not None for name in names)
    return names if is_header else []


def read_cells(line: bytes, header: bytes) -> list[str]:
    """Return the cells of a line, separated as those of the header; none of a comment or a broken line."""
    text = line.decode(errors="replace").rstrip("\r\n")
    if header.startswith(b"#"):
        return [] if text.startswith("#") else text.split()
    delimiter = next((char for char in "\t,;" if char.encode() in header), "")
    try:
        return next(csv.reader([text], delimiter=delimiter), []) if delimiter else []
    except csv.Error:
        return []


def rising_column(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the name of the first column whose numbers rise from row to row; empty if there is none."""
    for name, cells in zip(names, zip(*rows, strict=False), strict=False):
        numbers = [number for number in map(to_number, cells) if number is not None]
        if len(numbers) == len(rows) and numbers == sorted(set(numbers)):
            return name
    return ""


class JsonLinesFile(_LineFile):
    """A file with a JSON object a line, as detectron2's metrics.json and mmengine's scalars.json."""

    def _read(self, line: bytes) -> list[Point]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            return []
        return self._points(row) if isinstance(row, dict) else []


class JsonDocument(MetricFile):
    """A JSON document that is written anew each time: HF's `trainer_state.json`, or sacred's `metrics.json`.

    sacred has ``{"steps": [...], "values": [...]}`` by name; source: sacred/observers/file_storage.py.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._written = 0

    def _poll(self) -> tuple[list[Point], bool, bool]:
        written = self.path.stat().st_mtime_ns
        if written == self._written:
            return [], False, False
        try:
            document = json.loads(read_file(self.path, SOURCE))
        except (ValueError, RecursionError):
            return [], False, False  # it is being written
        self._written = written
        rows = document.get("log_history") if isinstance(document, dict) else None
        if not isinstance(rows, list):
            return _sacred_points(document), True, False
        self.total = to_number(document.get("max_steps"))
        found = [row_points(row, number)[0] for number, row in enumerate(rows) if isinstance(row, dict)]
        return [point for points in found for point in points], True, False


def _sacred_points(document: Any) -> list[Point]:
    points = []
    try:
        for name, metric in document.items():
            for step, value in zip(metric["steps"], metric["values"], strict=False):
                if (number := to_number(value)) is not None:
                    points.append(Point(name, float(step), number))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ForeignFileError("it has neither log_history nor metrics with steps and values") from error
    return points


class MlflowFile(_LineFile):
    """One metric in MLflow's file store: a line a value, ``<ms since the epoch> <value> <step>``.

    Source: mlflow/store/tracking/file_store.py.
    """

    def _read(self, line: bytes) -> list[Point]:
        found = MLFLOW.match(self.path.as_posix())
        cells = line.decode("utf-8", "replace").split()
        time, value, step, *_ = [*map(to_number, cells), None, None, None]
        if time is None or value is None or found is None:
            return []
        return [Point(found[2], step or 0.0, value, time / 1000)]
