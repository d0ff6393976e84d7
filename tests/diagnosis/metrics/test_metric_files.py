"""Readers of metric files: values as they were written, files that grow, and nothing raised by hostile ones."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import struct
from pathlib import Path

import pytest
from support.tables import toml_table

from torchx_tui.diagnosis.metrics.files import MetricFiles
from torchx_tui.diagnosis.metrics.find import Folder, find_metric_files
from torchx_tui.diagnosis.metrics.formats import open_metric_file
from torchx_tui.diagnosis.metrics.points import MetricFile, Point
from torchx_tui.diagnosis.metrics.tables import JsonDocument, JsonLinesFile, TableFile
from torchx_tui.diagnosis.metrics.tfevents import EventFile
from torchx_tui.diagnosis.metrics.wandb_log import WandbFile

DATA = Path(__file__).parent.parent / "data"
TABLES = toml_table(Path(__file__).with_name("metric_files.toml"))
READERS: list[tuple[type[MetricFile], str]] = [
    (EventFile, "hf.tfevents"),
    (EventFile, "lightning.tfevents"),
    (WandbFile, "offline.wandb"),
    (TableFile, "lightning_metrics.csv"),
    (JsonDocument, "trainer_state.json"),
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
    points = read_all(TableFile(DATA / "lightning_metrics.csv"))
    assert len(values_of(points, "train_loss")) > len(values_of(points, "val_loss")) > 0
    assert not any(point.name == "step" for point in points)


def test_trainer_state_has_the_total():
    """HF's state tells the last step, and numbers that are texts count."""
    file = JsonDocument(DATA / "trainer_state.json")
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


@pytest.mark.parametrize("reader", [EventFile, WandbFile, TableFile, JsonLinesFile, JsonDocument])
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
    file = TableFile(path)
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


@pytest.mark.parametrize("name", TABLES["files"])
def test_metric_files_are_recognised_by_content(name, tmp_path):
    case = TABLES["files"][name]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(case["text"])
    file = open_metric_file(path)
    assert file is not None
    points = read_all(file)
    assert values_of(points, case["metric"]) == [(step, value) for step, value in case["points"]]
    assert not file.failure
    # The last step is no metric.
    if "total" in case:
        assert ({point.name for point in points}, file.total) == ({case["metric"]}, case["total"])


@pytest.mark.parametrize("text", TABLES["others"].values(), ids=TABLES["others"])
def test_other_texts_are_not_metric_files(text, tmp_path):
    path = tmp_path / "x.txt"
    path.write_text(text)
    assert open_metric_file(path) is None


def test_written_tables_are_found_among_open_files(tmp_path):
    """A table that the job only reads is its data set, not its metrics."""
    text = TABLES["files"]["anything.txt"]["text"]
    for name in ("written.txt", "read.txt"):
        (tmp_path / name).write_text(text)
    with (tmp_path / "written.txt").open("a"), (tmp_path / "read.txt").open():
        found = find_metric_files([os.getpid()], [], [], 0.0)
    assert [path.name for path in found if path.parent == tmp_path] == ["written.txt"]


def test_databases_of_several_jobs_are_not_read(tmp_path):
    """No file says which of their runs is the job's."""
    (tmp_path / "mlflow.db").write_bytes(b"SQLite format 3\0" + bytes(84))
    (tmp_path / "metrics.csv").write_text("step,loss\n1,2\n")
    assert find_metric_files([], [Folder(tmp_path)], [], 0.0) == [tmp_path / "metrics.csv"]


@pytest.mark.parametrize("reader", [TableFile, JsonDocument, EventFile])
def test_read_error_is_tried_again(reader, tmp_path):
    name = next(name for kind, name in READERS if kind is reader)
    (tmp_path / name).mkdir()
    file = reader(tmp_path / name)
    assert file.poll() == ([], False, False)
    assert "cannot be read" in file.failure
    (tmp_path / name).rmdir()
    (tmp_path / name).write_bytes((DATA / name).read_bytes())
    assert file.poll()[0]
    assert not file.failure


def write_state(folder: Path, steps: int) -> Path:
    """Write the state of a checkpoint with a loss for each step."""
    folder.mkdir()
    rows = [{"step": step, "loss": 1.5} for step in range(steps)]
    (folder / "trainer_state.json").write_text(json.dumps({"log_history": rows}))
    return folder / "trainer_state.json"


@pytest.mark.parametrize("is_deleted", [False, True])
def test_state_of_the_newest_checkpoint_replaces_others(tmp_path, is_deleted):
    """Also that of a deleted checkpoint, which is shown until then."""
    files = MetricFiles()
    old = write_state(tmp_path / "checkpoint-9", 9)
    files.add([old])
    files.poll()
    if is_deleted:
        shutil.rmtree(old.parent)
    files.add([])
    files.poll()
    assert files.series()["loss"].points == 9
    new = write_state(tmp_path / "checkpoint-4", 4)
    files.add([new])
    files.poll()
    assert files.series()["loss"].points == 4


def test_vanished_file_is_dropped_when_others_are_found(tmp_path):
    for name, values in (("a.csv", "1,2\n2,3\n3,4\n"), ("b.csv", "1,7\n")):
        (tmp_path / name).write_text(f"step,loss\n{values}")
    files = MetricFiles()
    files.add([tmp_path / "a.csv"])
    files.poll()
    (tmp_path / "a.csv").unlink()
    files.add([tmp_path / "b.csv"])
    files.poll()
    assert (files.series()["loss"].origin, files.failures) == ("b.csv", [])


LONG = "x" * 300


@pytest.mark.parametrize("name", [LONG, f"{LONG}/a", f"/{LONG}", "a\0b", "\ud800", "/" + "y/" * 4_000])
def test_arguments_and_folders_that_cannot_be_paths_cost_nothing(name, tmp_path):
    (tmp_path / "metrics.csv").write_text("step,loss\n1,2\n")
    folders = [Folder(Path("/", name)), Folder(tmp_path), Folder(tmp_path / name, f"/{name}")]
    assert find_metric_files([], folders, [name, f"--out={name}"], 0.0) == [tmp_path / "metrics.csv"]
