"""Readers of metric files: values as they were written, files that grow, and nothing raised by hostile ones."""

from __future__ import annotations

import json
import math
import os
import random
import sqlite3
import struct
import time
from pathlib import Path

import pytest

from torchx_tui.diagnosis.metrics.databases import DatabaseFile
from torchx_tui.diagnosis.metrics.find import Folder, find_metric_files
from torchx_tui.diagnosis.metrics.points import MetricFile, Point
from torchx_tui.diagnosis.metrics.tables import CsvFile, JsonLinesFile, TrainerState
from torchx_tui.diagnosis.metrics.tfevents import EventFile
from torchx_tui.diagnosis.metrics.wandb_log import WandbFile

DATA = Path(__file__).parent.parent / "data"
READERS: list[tuple[type[MetricFile], str]] = [
    (EventFile, "hf.tfevents"),
    (EventFile, "lightning.tfevents"),
    (WandbFile, "offline.wandb"),
    (CsvFile, "lightning_metrics.csv"),
    (TrainerState, "trainer_state.json"),
]


def read_all(file: MetricFile) -> list[Point]:
    """Poll a file until there is no more."""
    points: list[Point] = []
    more = True
    while more:
        new, forget, more = file.poll()
        points = new if forget else points + new
    return points


def values_of(points: list[Point], name: str) -> list[tuple[float, float]]:
    return [(point.step, point.value) for point in points if point.name == name]


def test_event_files_of_trainers():
    """HF's and Lightning's event files, and the steps of HF's are those of its state."""
    points = read_all(EventFile(DATA / "hf.tfevents"))
    state = json.loads((DATA / "trainer_state.json").read_text())
    written = [(row["step"], row["loss"]) for row in state["log_history"] if "loss" in row]
    found = values_of(points, "train/loss")[: len(written)]
    assert written
    assert [step for step, _ in found] == [step for step, _ in written]
    assert [value for _, value in found] == pytest.approx([float(loss) for _, loss in written], rel=1e-2)
    assert {"train_loss", "val_loss"} <= {point.name for point in read_all(EventFile(DATA / "lightning.tfevents"))}


def test_nan_of_event_files_is_kept():
    """A value that is nan is a point."""
    assert any(math.isnan(point.value) for point in read_all(EventFile(DATA / "nan.tfevents")))


def test_wandb_history():
    """All rows of a run of wandb, with nested names and a nan at the end."""
    points = read_all(WandbFile(DATA / "offline.wandb"))
    losses = values_of(points, "train/loss")
    assert [step for step, _ in losses] == list(range(60))
    assert math.isnan(losses[-1][1])
    assert {point.name for point in points} == {"train/loss", "lr", "val/acc"}


def test_lightning_csv_with_sparse_columns():
    """Empty cells are no points."""
    points = read_all(CsvFile(DATA / "lightning_metrics.csv"))
    assert len(values_of(points, "train_loss")) > len(values_of(points, "val_loss")) > 0
    assert not any(point.name == "step" for point in points)


def test_trainer_state_has_the_total():
    """HF's state tells the last step, and numbers that are texts count."""
    file = TrainerState(DATA / "trainer_state.json")
    assert values_of(read_all(file), "eval_loss")
    assert file.total == 80


@pytest.mark.parametrize(("reader", "name"), READERS, ids=lambda value: str(value))
def test_a_file_that_grows_byte_by_byte_gives_the_same(reader, name, tmp_path):
    """However a file is cut while it is written, every point comes once."""
    data = (DATA / name).read_bytes()
    whole = read_all(reader(DATA / name))
    path = tmp_path / name
    path.write_bytes(b"")
    follower = reader(path)
    points: list[Point] = []
    cuts = [*sorted(random.Random(7).sample(range(len(data)), 40)), len(data)]
    for stamp, cut in enumerate(cuts, 1):
        path.write_bytes(data[:cut])
        os.utime(path, ns=(stamp, stamp))
        new, forget, _ = follower.poll()
        points = new if forget else points + new
    assert not follower.failure
    assert repr(points) == repr(whole)


@pytest.mark.parametrize(("reader", "name"), READERS, ids=lambda value: str(value))
@pytest.mark.parametrize("seed", range(25))
def test_broken_files_raise_nothing(reader, name, seed, tmp_path):
    """Bytes that were changed, cut or made up cost their records, or the file with a sentence."""
    chance = random.Random(seed)
    data = bytearray((DATA / name).read_bytes())
    for _ in range(chance.randrange(1, 40)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    if seed % 5 == 0:
        data = bytearray(chance.randbytes(5_000))
    path = tmp_path / name
    path.write_bytes(data[: chance.randrange(1, len(data) + 1)])
    file = reader(path)
    points = read_all(file)
    assert all(isinstance(point.value, float) for point in points)
    assert "\n" not in file.failure


@pytest.mark.parametrize("reader", [EventFile, WandbFile, CsvFile, JsonLinesFile, TrainerState, DatabaseFile])
def test_what_is_no_regular_file_is_refused(reader, tmp_path):
    """A named pipe is not waited for, and a file that is not there yet is looked for again."""
    pipe, missing = reader(tmp_path / "pipe"), reader(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    assert pipe.poll() == ([], False, False)
    assert "named pipe" in pipe.failure
    assert missing.poll() == ([], False, False)
    assert not missing.failure


def test_long_records_are_passed_over(tmp_path):
    """An image of 6 MB between two scalars costs neither."""
    data = (DATA / "hf.tfevents").read_bytes()
    image = b"\x2a" + bytes([0x80, 0x80, 0x80, 0x03]) + bytes(6 << 20)
    record = struct.pack("<QI", len(image), 0) + image + bytes(4)
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(data + record + data)
    assert len(read_all(EventFile(path))) == 2 * len(read_all(EventFile(DATA / "hf.tfevents")))


def test_csv_whose_header_is_rewritten_is_read_again(tmp_path):
    """Lightning adds a column by writing the file anew."""
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\n0,1.5\n")
    file = CsvFile(path)
    assert values_of(file.poll()[0], "loss") == [(0, 1.5)]
    path.write_text("step,loss,acc\n0,1.5,\n1,1.25,0.5\n2,1.0,0.75\n")
    points, forget, _ = file.poll()
    assert forget
    assert values_of(points, "loss") == [(0, 1.5), (1, 1.25), (2, 1.0)]


def test_json_lines_with_nested_names(tmp_path):
    """Nested objects have their names joined; what is no number is left out."""
    path = tmp_path / "metrics.jsonl"
    path.write_text(
        '{"step": 5, "train": {"loss": 1.25, "note": "x"}, "ok": true}\nnot json\n{"step": 6, "loss": NaN}\n'
    )
    points = read_all(JsonLinesFile(path))
    assert values_of(points, "train/loss") == [(5, 1.25)]
    assert math.isnan(values_of(points, "loss")[0][1])
    assert {point.name for point in points} == {"train/loss", "loss"}


def mlflow_database(path: Path, rows: list[tuple[str, float, int, str, int, bool]]) -> None:
    """Write a store as MLflow's, as far as metrics go."""
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL,"
            " timestamp BIGINT NOT NULL, run_uuid VARCHAR(32) NOT NULL, step BIGINT DEFAULT 0 NOT NULL,"
            " is_nan BOOLEAN DEFAULT 0 NOT NULL)"
        )
        connection.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.close()


def test_mlflow_store_of_several_runs(tmp_path):
    """The newest run counts; nan and inf come back; later rows alone come with the next poll."""
    path = tmp_path / "mlflow.db"
    mlflow_database(path, [("loss", 9.0, 1000, "old", 0, False), ("loss", 2.5, 2000, "new", 1, False)])
    file = DatabaseFile(path)
    assert read_all(file) == [Point("loss", 1, 2.5, 2.0)]
    mlflow_database(
        path, [("loss", 0.0, 3000, "new", 2, True), ("loss", 1.7976931348623157e308, 4000, "new", 3, False)]
    )
    points, forget, _ = file.poll()
    assert not forget
    assert math.isnan(points[0].value)
    assert points[1].value == math.inf


def test_trackio_database(tmp_path):
    """Rows of JSON, those that are broken left out."""
    path = tmp_path / "project.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INT, metrics TEXT)"
        )
        rows = [("2026-11-22T09:00:00+00:00", "a", 1, '{"loss": 1.5, "note": "x"}'), ("?", "a", 2, "{")]
        connection.executemany("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?)", rows)
    connection.close()
    points = read_all(DatabaseFile(path))
    assert [(point.name, point.step, point.value) for point in points] == [("loss", 1, 1.5)]


def test_trackio_row_without_names_costs_itself(tmp_path):
    path = tmp_path / "project.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INT, metrics TEXT)"
        )
        rows = [(json.dumps(value),) for value in ([1, 2], "x", None, 7, {"loss": [1], "lr": 0.5})]
        connection.executemany("INSERT INTO metrics (run_name, step, metrics) VALUES ('a', 1, ?)", rows)
    connection.close()
    file = DatabaseFile(path)
    assert [(point.name, point.value) for point in read_all(file)] == [("lr", 0.5)]
    assert not file.failure


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
HOSTILE_SCHEMAS = {
    "view": f"CREATE VIEW metrics AS {ENDLESS} i AS id, '' AS timestamp, 'a' AS run_name, i AS step, '' AS metrics"
    " FROM n",
    "view of one slow step": "CREATE VIEW metrics AS SELECT 1 AS id, '' AS timestamp, 'a' AS run_name, 1 AS step, "
    "replace(hex(zeroblob(100000000)), '0', 'ab') AS metrics",
    "generated column": "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INT, "
    "metrics TEXT AS (hex(zeroblob(100000000))))",
}


@pytest.mark.parametrize("schema", HOSTILE_SCHEMAS.values(), ids=HOSTILE_SCHEMAS)
def test_databases_that_compute_are_refused(schema, tmp_path):
    path = tmp_path / "project.db"
    with sqlite3.connect(path) as connection:
        connection.execute(schema)
        if schema.startswith("CREATE TABLE"):
            connection.execute("INSERT INTO metrics (timestamp, run_name, step) VALUES ('', 'a', 1)")
    connection.close()
    file = DatabaseFile(path)
    began = time.monotonic()
    assert file.poll() == ([], False, False)
    assert file.failure
    assert time.monotonic() - began < 1.0


@pytest.mark.skipif(not hasattr(sqlite3.Connection, "setlimit"), reason="Python 3.10 has no limits of SQLite")
def test_database_with_a_huge_value_is_refused(tmp_path):
    path = tmp_path / "project.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp, run_name, step, metrics)")
        connection.execute("INSERT INTO metrics VALUES (1, '', 'a', 1, zeroblob(50000000))")
    connection.close()
    file = DatabaseFile(path)
    assert file.poll() == ([], False, False)
    assert "too big" in file.failure


@pytest.mark.parametrize("reader", [EventFile, WandbFile])
def test_sparse_files_end(reader, tmp_path):
    path = tmp_path / "sparse"
    path.write_bytes(b":W&B\xe1\xbe\0" if reader is WandbFile else b"")
    os.truncate(path, 100 << 30)
    file = reader(path)
    assert read_all(file) == []
    assert "empty" in file.failure


def test_reader_that_fails_costs_its_file_only(tmp_path):
    class Failing(MetricFile):
        def _poll(self) -> tuple[list[Point], bool, bool]:
            raise AttributeError("no such thing")

    file = Failing(tmp_path / "x")
    assert file.poll() == ([], False, False)
    assert file.failure == "x cannot be read: AttributeError: no such thing"


def test_arguments_that_are_no_paths_are_passed_over(tmp_path):
    (tmp_path / "metrics.csv").write_text("step,loss\n1,2\n")
    words = ["--note=" + "x" * 300, "/" + "y/" * 400, "--out=\ud800", f"--out={tmp_path}"]
    assert find_metric_files([], [Folder(Path("/"))], words, 0.0) == [tmp_path / "metrics.csv"]


def test_other_databases_are_said(tmp_path):
    """A database without metrics, and a file that is none."""
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE other (x INT)")
    connection.close()
    (tmp_path / "b.db").write_text("no database at all, but long enough to have a header" * 10)
    for name in ("a.db", "b.db"):
        file = DatabaseFile(tmp_path / name)
        assert file.poll() == ([], False, False)
        assert file.failure
