"""Metrics in SQLite databases: MLflow's store, and trackio's, one a project; both opened read-only.

MLflow: table ``metrics`` (key, value, timestamp in ms, run_uuid, step, is_nan); source: mlflow/store/tracking/dbmodels.
trackio: table ``metrics`` (id, timestamp, run_name, step, metrics as JSON); source: trackio/sqlite_storage.py.
"""

from __future__ import annotations

import json
import math
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...base.files import open_file
from .points import ForeignFileError, MetricFile, Point, to_number

_MOST_ROWS = 20_000
_LOCK_TIMEOUT_S = 0.2
# How long a poll may take. A database on a slow disk gets so many polls; one made to be slow is then left alone.
_TIMEOUT_S, _MOST_TIMEOUTS = 2.0, 5
# The largest value of a row, and all rows of a poll together (bytes).
_LARGEST_VALUE, _LARGEST_POLL = 1 << 20, 64 << 20
# The SQLite actions that the authorizer allows.
_PLAIN_READS = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA)
_LARGEST = 1.7e308  # MLflow writes infinities as the largest doubles

_MLFLOW = (
    "SELECT rowid, key, value, timestamp, step, is_nan FROM metrics WHERE rowid > ? AND run_uuid = "
    "(SELECT run_uuid FROM metrics ORDER BY rowid DESC LIMIT 1) ORDER BY rowid LIMIT ?"
)
_TRACKIO = (
    "SELECT id, timestamp, step, metrics FROM metrics WHERE id > ? AND run_name = "
    "(SELECT run_name FROM metrics ORDER BY id DESC LIMIT 1) ORDER BY id LIMIT ?"
)
_NEWEST = {
    _MLFLOW: "SELECT run_uuid FROM metrics ORDER BY rowid DESC LIMIT 1",
    _TRACKIO: "SELECT run_name FROM metrics ORDER BY id DESC LIMIT 1",
}


class DatabaseFile(MetricFile):
    """The newest run of one database."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._last_row = 0
        self._run: object = None
        self._timeouts = 0

    def _poll(self) -> tuple[list[Point], bool, bool]:
        import os

        os.close(open_file(self.path))  # raises for what is no regular file
        try:
            connection = sqlite3.connect(
                f"file:{quote(str(self.path))}?mode=ro", uri=True, timeout=_LOCK_TIMEOUT_S, isolation_level=None
            )
            try:
                found = self._ask(connection)
            finally:
                connection.close()
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                self._timeouts += 1
                if self._timeouts >= _MOST_TIMEOUTS:
                    raise ForeignFileError(f"it takes more than {_TIMEOUT_S:.0f} s to read") from None
                return [], False, False
            if "locked" in str(error):
                return [], False, False
            raise ForeignFileError(str(error)) from None
        except (sqlite3.Error, ValueError) as error:
            raise ForeignFileError(str(error)) from None
        self._timeouts = 0
        return found

    def _ask(self, connection: sqlite3.Connection) -> tuple[list[Point], bool, bool]:
        deadline = time.monotonic() + _TIMEOUT_S
        _bound(connection, deadline)
        columns = {row[1] for row in connection.execute("PRAGMA table_info(metrics)")}
        if {"run_uuid", "is_nan"} <= columns:
            query, read = _MLFLOW, _mlflow_points
        elif {"run_name", "metrics"} <= columns:
            query, read = _TRACKIO, _trackio_points
        else:
            raise ForeignFileError("it has no table of metrics")
        run = connection.execute(_NEWEST[query]).fetchone()
        forget = self._run is not None and run != self._run
        if forget:
            self._last_row = 0
        self._run = run
        rows: list[tuple[Any, ...]] = []
        size = 0
        for row in connection.execute(query, (self._last_row, _MOST_ROWS)):
            rows.append(row)
            size += sum(len(value) for value in row if isinstance(value, (str, bytes)))
            if size > _LARGEST_POLL:
                break
        if rows:
            self._last_row = rows[-1][0]
        return _each(rows, read), forget, len(rows) == _MOST_ROWS or size > _LARGEST_POLL


def _bound(connection: sqlite3.Connection, deadline: float) -> None:
    """Let a connection read plain tables only, until a deadline: views and functions of a schema can take for ever."""

    def authorize(action: int, _one: object, _two: object, _database: object, view: object) -> int:
        return sqlite3.SQLITE_OK if action in _PLAIN_READS and view is None else sqlite3.SQLITE_DENY

    connection.set_authorizer(authorize)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 1_000)
    if sys.version_info >= (3, 11):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)


def _each(rows: Sequence[tuple[Any, ...]], read: Callable[[tuple[Any, ...]], list[Point]]) -> list[Point]:
    points: list[Point] = []
    for row in rows:
        try:
            points += read(row)
        except (TypeError, ValueError, RecursionError, OverflowError):
            continue  # one bad row costs its own values
    return points


def _mlflow_points(row: tuple[Any, ...]) -> list[Point]:
    _, key, value, milliseconds, step, is_nan = row
    number = math.nan if is_nan else float(value)
    if abs(number) > _LARGEST:
        number = math.copysign(math.inf, number)
    return [Point(str(key), float(step), number, float(milliseconds) / 1000)]


def _trackio_points(row: tuple[Any, ...]) -> list[Point]:
    _, timestamp, step, text = row
    at = datetime.fromisoformat(timestamp).timestamp() if isinstance(timestamp, str) else math.nan
    values = json.loads(text)
    if not isinstance(values, dict):
        return []
    numbers = ((str(name), to_number(value)) for name, value in values.items())
    return [Point(name, float(step), number, at) for name, number in numbers if number is not None]
