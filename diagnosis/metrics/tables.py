"""Metrics in text: CSV with a header, a JSON object a line, and the `trainer_state.json` of HF's Trainer."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...base.files import SOURCE, read_file
from .points import ForeignFileError, GrowingFile, MetricFile, Point, to_number

_STEPS = ("step", "global_step", "_step", "iteration", "iter", "num_updates", "time/total_timesteps", "total_timesteps")
_TIMES = ("timestamp", "_timestamp", "time_stamp", "wall_time")
_EPOCH = "epoch"
_LONGEST_LINE = 65_536
_MOST_COLUMNS = 2_000


def _points(row: Mapping[str, Any], number: int) -> list[Point]:
    """Return the points of one row.

    Args:
        row: names with values; a nested object has its names joined by `/`.
        number: the row's number, for rows without a step.
    """
    flat = dict(_flat(row, ""))
    step = next((flat[name] for name in _STEPS if name in flat), flat.get(_EPOCH, float(number)))
    time = next((flat[name] for name in _TIMES if name in flat), math.nan)
    left_out = {*_STEPS, *_TIMES}
    return [Point(name, step, value, time) for name, value in flat.items() if name not in left_out]


def _flat(row: Mapping[str, Any], prefix: str, depth: int = 0) -> Iterable[tuple[str, float]]:
    for key, value in row.items():
        name = f"{prefix}{key}".strip()
        if isinstance(value, dict) and depth < 3:
            yield from _flat(value, f"{name}/", depth + 1)
        elif name and (number := to_number(value)) is not None:
            yield name, number


class CsvFile(GrowingFile):
    """A CSV file with a header, as Lightning's CSVLogger, Stable-Baselines3 and ultralytics write them.

    Lightning writes all of it anew when a metric comes that the header does not have.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._header_line = b""
        self._names: list[str] = []
        self._rows = 0

    def _restart(self) -> None:
        self._header_line, self._names, self._rows = b"", [], 0

    def _was_rewritten(self, descriptor: int) -> bool:
        return os.pread(descriptor, len(self._header_line), 0) != self._header_line

    def _parse(self, data: bytes) -> tuple[list[Point], int]:
        end = data.rfind(b"\n") + 1
        lines = data[:end].decode(errors="replace").splitlines()
        if not self._names and lines:
            self._names = _header(lines.pop(0))
            self._header_line = data[: data.find(b"\n") + 1]
        points: list[Point] = []
        for line in lines:
            self._rows += 1
            try:
                cells = next(csv.reader([line]), [])
            except csv.Error:
                continue
            row = {name: cell for name, cell in zip(self._names, cells, strict=False) if cell.strip()}
            points += _points(row, self._rows)
        return points, end


def _header(line: str) -> list[str]:
    try:
        names = [name.strip() for name in next(csv.reader([line]), [])]
    except csv.Error as error:
        raise ForeignFileError(f"its first line is not a header: {error}") from None
    if not 2 <= len(names) <= _MOST_COLUMNS or any(to_number(name) is not None for name in names):
        raise ForeignFileError("its first line is not a header of names")
    return names


class JsonLinesFile(GrowingFile):
    """A file with a JSON object a line, as detectron2's metrics.json and mmengine's scalars.json."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._rows = 0

    def _restart(self) -> None:
        self._rows = 0

    def _parse(self, data: bytes) -> tuple[list[Point], int]:
        end = data.rfind(b"\n") + 1
        points: list[Point] = []
        for line in data[:end].splitlines():
            if len(line) > _LONGEST_LINE or not line.lstrip().startswith(b"{"):
                continue
            self._rows += 1
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            points += _points(row, self._rows)
        return points, end


class TrainerState(MetricFile):
    """The `trainer_state.json` of a checkpoint of HF's Trainer: written whole with each checkpoint."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._written = 0
        self.total: float | None = None
        """The last step."""

    def _poll(self) -> tuple[list[Point], bool, bool]:
        written = self.path.stat().st_mtime_ns
        if written == self._written:
            return [], False, False
        try:
            state = json.loads(read_file(self.path, SOURCE))
        except (ValueError, RecursionError):
            return [], False, False  # it is being written
        self._written = written
        rows = state.get("log_history") if isinstance(state, dict) else None
        if not isinstance(rows, list):
            raise ForeignFileError("it has no log_history")
        self.total = to_number(state.get("max_steps"))
        points = [point for number, row in enumerate(rows) if isinstance(row, dict) for point in _points(row, number)]
        return points, True, False


class MlflowFile(GrowingFile):
    """One metric in MLflow's file store: a line a value, ``<ms since the epoch> <value> <step>``.

    Source: mlflow/store/tracking/file_store.py.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        parts = path.parts
        self._name = "/".join(parts[mlflow_place(path) + 1 :])

    def _parse(self, data: bytes) -> tuple[list[Point], int]:
        size = data.rfind(b"\n") + 1
        points = []
        for line in data[:size].decode("utf-8", "replace").splitlines():
            numbers = [to_number(cell) for cell in line.split()]
            if len(numbers) not in (2, 3) or numbers[0] is None or numbers[1] is None:
                continue
            step = numbers[2] if len(numbers) == 3 else 0.0
            points.append(Point(self._name, step or 0.0, numbers[1], numbers[0] / 1000))
        return points, size


def mlflow_place(path: Path) -> int:
    """Return the place of ``metrics`` in a path ``.../mlruns/<id>/<run id>/metrics/...``; 0 where there is none."""
    parts = path.parts
    for number in range(len(parts) - 2, 2, -1):
        if parts[number] == "metrics" and parts[number - 3] == "mlruns":
            return number
    return 0
