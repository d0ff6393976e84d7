"""The thread that reads what a job does, and which files are taken for its metric files."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

import pytest
from support.waiting import NEVER, PATIENCE, wait_until

from torchx_tui.base.threads import report_thread_failures
from torchx_tui.diagnosis.metrics import find, points
from torchx_tui.diagnosis.metrics.files import MetricFiles
from torchx_tui.diagnosis.metrics.find import Folder, find_metric_files
from torchx_tui.diagnosis.metrics.series import Series
from torchx_tui.diagnosis.metrics.store import load_series
from torchx_tui.diagnosis.progress import activity
from torchx_tui.diagnosis.progress.activity import Activity, JobPlace
from torchx_tui.diagnosis.progress.reader import ActivityReader, read_activity
from torchx_tui.diagnosis.progress.stalls import Kind
from torchx_tui.diagnosis.progress.tracker import Progress, ProgressTracker
from torchx_tui.logs.lines.blocks import read_ends
from torchx_tui.logs.source.replica_log import ReplicaLog

HANDLE = "local_cwd://torchx/train-1"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "job").mkdir()
    return tmp_path / "job"


@pytest.fixture
def reader(folder):
    """A reader of two replicas, of which the second has no log yet."""
    logs = [ReplicaLog("trainer", k, stdout=folder / f"{k}.log") for k in range(2)]
    reader = ActivityReader(HANDLE, logs, lambda: JobPlace(folders=(Folder(folder),)), lambda: reader.acknowledge())
    yield reader
    reader.close()
    assert reader.join(PATIENCE)


def seen(reader: ActivityReader, what: str, name: str, points: int) -> Activity:
    """Wait for a series with so many points."""

    def look() -> Activity | None:
        activity = reader.latest
        return activity if name in activity.series and activity.series[name].points == points else None

    return wait_until(look, what)


def write(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_log_that_grows(reader, folder):
    """Lines in pieces, a bar that ends no line, a second replica that comes later; each value once."""
    write(folder / "0.log", "step 1/9 loss 2.5\nstep 2/9 lo")
    reader.start()
    wait_until(lambda: reader.latest.is_read, "the first lines")
    assert not reader.latest.series
    write(folder / "0.log", "ss 2.25\nstep 3/9 loss 2.0\n")
    assert [bucket.last for bucket in seen(reader, "3 lines", "loss", 3).series["loss"].buckets()] == [2.5, 2.25, 2.0]
    write(folder / "1.log", "".join(f"step {n}/9 loss {n}.5 acc 0.{n}\n" for n in range(1, 9)))
    assert seen(reader, "the replica that prints most", "acc", 8).progress.step == 8


def test_values_of_files_are_preferred(reader, folder):
    """One series for `loss` in the log and `train/loss` in a file, and it says where it is from."""
    write(folder / "metrics.csv", "step,train/loss\n1,2.123456\n2,2.012345\n")
    write(folder / "0.log", "step 1 loss 2.12 lr 0.1\nstep 2 loss 2.01 lr 0.1\n")
    reader.start()
    seen(reader, "the file", "train/loss", 2)
    series = seen(reader, "the log", "lr", 2).series
    assert (series["train/loss"].origin, series["lr"].origin) == ("metrics.csv", "log of trainer/0")
    assert "loss" not in series


def test_a_long_file_is_shown_while_it_is_read(folder, monkeypatch):
    """Part after part without a pause; it counts as read, and is kept, once all of it is."""
    monkeypatch.setattr(points, "READ_SIZE", 2_000)
    monkeypatch.setattr("torchx_tui.diagnosis.progress.reader.PUBLISH_INTERVAL_S", 0.0)
    monkeypatch.setattr("torchx_tui.diagnosis.progress.reader.FILE_INTERVAL_S", 3_600.0)
    write(folder / "metrics.jsonl", "".join(f'{{"step": {n}, "loss": {n}.5}}\n' for n in range(1_000)))
    told: list[tuple[int, bool]] = []

    def note() -> None:
        activity = reader.latest
        if "loss" in activity.series:
            told.append((activity.series["loss"].points, activity.is_read))
        reader.acknowledge()

    log = ReplicaLog("trainer", 0, stdout=folder / "0.log")
    reader = ActivityReader(HANDLE, [log], lambda: JobPlace(folders=(Folder(folder),)), note)
    reader.start()
    seen(reader, "all of it", "loss", 1_000)
    wait_until(lambda: reader.latest.is_read, "that it is read")
    reader.close()
    assert reader.join(PATIENCE)
    assert len(told) > 5
    assert {is_read for count, is_read in told if count < 1_000} == {False}


def test_series_are_there_at_once_the_next_time(reader, folder):
    """Also where the log is gone."""
    write(folder / "0.log", "step 1/9 loss 2.5\nstep 2/9 loss 2.0\n")
    reader.start()
    seen(reader, "the log", "loss", 2)
    reader.close()
    assert reader.join(PATIENCE)
    (folder / "0.log").unlink()
    again = ActivityReader(HANDLE, reader.logs, JobPlace, lambda: None)
    again.start()
    seen(again, "the kept series", "loss", 2)
    again.close()
    assert again.latest.progress.step == 2
    assert set(load_series(HANDLE)[0]) == {"loss"}


def test_ends_of_logs_are_read(folder):
    """Whole lines and an unfinished one, of each log that is a file."""
    write(folder / "0.log", "first\nha")
    write(folder / "1.log", "x" * 100 + "\nlast\r b")
    os.mkfifo(folder / "2.log")
    logs = [ReplicaLog("a", k, stdout=folder / f"{k}.log") for k in range(4)]
    read = [(block.data, block.replica) for block in read_ends(logs, 50)]
    assert read == [(b"first\nha", "a/0"), (b"last\r b", "a/1")]


def test_output_in_a_buffer_is_recognised(reader, folder):
    """The job has printed one block of it, whose last line is not whole, and works."""
    write(folder / "0.log", ("step 1/9 loss 2.5\n" * 500)[:8192])
    clock = [time.time()]
    reader._now = lambda: clock[0]
    reader.cpu.note((0.9,), clock[0])
    reader.start()
    wait_until(lambda: reader.latest.is_read, "the first lines")
    assert reader.latest.observations == ()
    clock[0] += 65
    wait_until(lambda: reader.latest.observed(Kind.BUFFERED), "what is missed")
    write(folder / "0.log", "more\n")
    wait_until(lambda: not reader.latest.observations, "the next lines")


def test_files_are_found_in_a_bounded_walk(tmp_path, monkeypatch):
    """By the name of the file and its folder, only new ones, never through a link, whatever the number of files."""
    monkeypatch.setattr(find, "TIME_LIMIT_S", NEVER)
    now = time.time()
    wanted = [
        "runs/a/events.out.tfevents.1.host",
        "lightning_logs/version_0/metrics.csv",
        "wandb/offline-run-1/run-1.wandb",
    ]
    unwanted = ["data/metrics.csv", ".git/runs/metrics.csv", "runs/a/notes.txt"]
    for name in (*wanted, *unwanted, "runs/old/metrics.csv", "elsewhere/deep/metrics.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    os.utime(tmp_path / "runs/old/metrics.csv", (now - 9_000, now - 9_000))
    (tmp_path / "outputs").symlink_to(tmp_path)
    for number in range(3_000):
        (tmp_path / "data" / f"{number}.csv").touch()
    found = find_metric_files(
        [], [Folder(tmp_path)], ["--out", f"--dir={tmp_path}/elsewhere", "\0", "x" * 5_000], now - 60
    )
    assert {str(path.relative_to(tmp_path)) for path in found} == {*wanted, "elsewhere/deep/metrics.jsonl"}


def test_open_files_of_processes_are_found(tmp_path):
    """A file that a process of the job has open is the job's, wherever it is."""
    path = tmp_path / "far" / "events.out.tfevents.1"
    path.parent.mkdir()
    with path.open("w"):
        assert find_metric_files([os.getpid()], [], [], 0.0)[:1] == [path]
    assert find_metric_files([2**22 + 1], [], [], 0.0) == []


def test_mlflows_file_store(folder):
    """A file a metric, deep below the job's folder, followed as it grows; names may have a slash."""
    metrics = folder / "mlruns" / "0" / ("a" * 32) / "metrics"
    (metrics / "train").mkdir(parents=True)
    write(metrics / "val_loss", "1700000000123 0.25 3\n1700000001123 nan 4\nnonsense\n1700000002123 0.")
    write(metrics / "train" / "loss", "1700000000123 1.5 3\n")
    found = find_metric_files([], [Folder(folder)], [], time.time() - 60)
    assert found == [metrics / "train" / "loss", metrics / "val_loss"]
    files = MetricFiles()
    files.add(found)
    files.poll()
    assert {name: series.points for name, series in files.series().items()} == {"train/loss": 1, "val_loss": 2}
    write(metrics / "val_loss", "125 5\n")
    files.poll()
    assert (files.series()["val_loss"].last, files.series()["val_loss"].steps()[-1]) == (0.125, 5)


@contextmanager
def job_in(folder: Path) -> Iterator[int]:
    """Start a process of another job in a folder."""
    environ = {**os.environ, "TORCHX_JOB_ID": "local_cwd://torchx/other"}
    process = subprocess.Popen(["sleep", "1000"], cwd=folder, env=environ)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_files_of_other_jobs_are_left_alone(folder):
    """Two jobs in one folder: each has what it holds open, what lies beside that, and what its arguments name."""
    for name in ("lightning_logs/version_0/metrics.csv", "lightning_logs/version_1/metrics.csv", "mine/metrics.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write(folder / name, "step,loss\n1,2.0\n")
    now = time.time()
    mine = folder / "lightning_logs" / "version_1"
    # Of several runs nothing tells whose they are, also when the other job has ended.
    assert find_metric_files([], [Folder(folder)], [], now - 60) == []
    assert find_metric_files([], [Folder(folder)], ["--out=mine"], now - 60) == [folder / "mine" / "metrics.csv"]
    (folder / "lightning_logs" / "version_0" / "metrics.csv").unlink()
    assert find_metric_files([], [Folder(folder)], [], now - 60) == [mine / "metrics.csv"]
    with job_in(folder):
        assert find_metric_files([], [Folder(folder)], [], now - 60) == []
        with (mine / "events.out.tfevents.1").open("w"):
            found = find_metric_files([os.getpid()], [Folder(folder)], [], now - 60)
    assert found == [mine / "events.out.tfevents.1", mine / "metrics.csv"]


def test_files_that_were_written_after_the_end_are_left_out(folder):
    """They are of a later job in the same folder."""
    (folder / "runs").mkdir()
    write(folder / "runs" / "metrics.csv", "step,loss\n1,2.0\n")
    now = time.time()
    assert find_metric_files([], [Folder(folder)], [], now - 60, now + 60) == [folder / "runs" / "metrics.csv"]
    assert find_metric_files([], [Folder(folder)], [], now - 60, now - 30) == []


def test_folders_of_mounts(folder):
    """An argument names a folder as the container sees it; a link in a container's own files leads nowhere."""
    (folder / "a" / "b").mkdir(parents=True)
    write(folder / "a" / "b" / "metrics.jsonl", '{"step": 1, "loss": 2}\n')
    mount = Folder(folder, "/out")
    now = time.time()
    assert find_metric_files([], [mount], ["--dir=/out/a"], now - 60) == [folder / "a" / "b" / "metrics.jsonl"]
    assert (
        find_metric_files(
            [], [mount], ["--dir=/elsewhere/a", f"--dir={folder}/a", f"/out/../{folder.name}/a"], now - 60
        )
        == []
    )


def test_the_log_goes_on_where_a_file_is_behind(reader, folder):
    """HF's Trainer writes its state with each checkpoint only: what the log has since then continues the curve."""
    state = folder / "outputs" / "checkpoint-2" / "trainer_state.json"
    state.parent.mkdir(parents=True)
    rows = [{"step": step, "loss": 2.123456 - step} for step in (1, 2)]
    state.write_text(json.dumps({"max_steps": 9, "log_history": rows}))
    os.utime(state, (time.time() - 60, time.time() - 60))
    write(folder / "0.log", "step 1/9 loss 1.12\nstep 2/9 loss 0.12\n")
    reader.start()
    wait_until(lambda: reader.latest.progress.total == 9 and reader.latest.is_read, "the log")
    wait_until(lambda: reader.latest.series["loss"].origin == "trainer_state.json", "the file")
    write(folder / "0.log", "step 3/9 loss -0.88\nstep 4/9 loss -1.88\n")
    series = seen(reader, "the rest of the log", "loss", 4).series["loss"]
    points = [(bucket.step, bucket.last) for bucket in series.buckets()]
    assert points == [(1, 2.123456 - 1), (2, 2.123456 - 2), (3, -0.88), (4, -1.88)]
    assert (series.origin, series.printed) == ("trainer_state.json, then the log of trainer/0", "-1.88")


def write_long_log(folder: Path, end: float) -> ReplicaLog:
    """Write a log of 400 steps, a second each, which is read in many blocks."""
    lines = [f"step {step}/999 loss 1.5 {'x' * 900}\n" for step in range(400)]
    write(folder / "combined.log", "".join(lines))
    starts = [0, *accumulate(map(len, lines))]
    write(folder / "combined.index", "".join(f"{starts[n]} {end - 400 + n:.3f} o\n" for n in range(400)))
    return ReplicaLog("trainer", 0, combined=folder / "combined.log")


def test_curves_of_a_part_of_the_log_are_not_kept(folder, monkeypatch):
    """A person goes on to another job while a long log is read."""
    monkeypatch.setattr("torchx_tui.diagnosis.progress.reader.PUBLISH_INTERVAL_S", 0.0)

    def look() -> None:
        reader.acknowledge()
        if reader.latest.progress.step:
            reader.close()

    reader = ActivityReader(HANDLE, [write_long_log(folder, time.time())], JobPlace, look)
    reader.start()
    assert reader.join(PATIENCE)
    assert 0 < (reader.latest.progress.step or 0) < 399
    assert load_series(HANDLE)[0] == {}


def test_pace_is_judged_once_the_log_is_read(folder, monkeypatch):
    """Between two blocks of an old log, the last step that is known is long ago: that is no stall."""
    monkeypatch.setattr("torchx_tui.diagnosis.progress.reader.PUBLISH_INTERVAL_S", 0.0)
    end = time.time()
    clock = [end]
    log = write_long_log(folder, end)
    seen_at: dict[float, tuple[str, ...]] = {}

    def note() -> None:
        reader.acknowledge()
        seen_at[reader.latest.progress.step or 0] = tuple(item.sentence for item in reader.latest.observations)

    reader = ActivityReader(HANDLE, [log], JobPlace, note, now=lambda: clock[0])
    reader.start()
    wait_until(lambda: seen_at.get(399) == (), "all of the log")
    wait_until(lambda: reader.latest.is_read, "its end")
    clock[0] += 40
    wait_until(lambda: "no step for 41s" in "".join(seen_at[399]), "the stall")
    reader.close()
    assert reader.join(PATIENCE)
    assert len(seen_at) > 5
    assert [words for step, words in seen_at.items() if words and step != 399] == []


def test_reader_that_cannot_go_on_is_shown(folder):
    def fail() -> JobPlace:
        raise AttributeError("no such thing")

    shown: list[str] = []
    restore = report_thread_failures(shown.append)
    try:
        reader = ActivityReader(HANDLE, [ReplicaLog("trainer", 0, stdout=folder / "0.log")], fail, lambda: None)
        reader.start()
        assert reader.join(PATIENCE)
        assert shown == ["job-activity stopped: AttributeError: no such thing; see the log file"]
        assert reader.latest.failures == (
            "progress and metrics are no longer read: AttributeError: no such thing; see the log file",
        )
    finally:
        restore()


def test_failed_search_costs_the_metric_files_only(reader, folder, monkeypatch):
    def fail(*_: object) -> list[Path]:
        raise OSError(errno.ENAMETOOLONG, "File name too long")

    monkeypatch.setattr(activity, "find_metric_files", fail)
    write(folder / "0.log", "step 1/9 loss 2.5\nstep 2/9 loss 2.0\n")
    reader.start()
    found = seen(reader, "the log", "loss", 2)
    assert found.progress.step == 2
    wait_until(lambda: reader.latest.failures, "the failure")
    [failure] = reader.latest.failures
    assert failure.startswith("metric files are not found: ")
    assert "File name too long" in failure


def test_argument_with_a_long_part_costs_nothing(folder):
    """A path part of more than 255 characters is an error of the operating system, not a missing folder."""
    write(folder / "metrics.csv", "step,acc\n1,0.5\n2,0.75\n")
    write(folder / "0.log", "step 1/9 loss 2.5\nstep 2/9 loss 2.0\n")
    place = JobPlace(folders=(Folder(folder),), arguments=("--tags=" + "x" * 300, "/" + "y" * 300))
    found = read_activity(
        HANDLE, [ReplicaLog("trainer", 0, stdout=folder / "0.log")], place, ProgressTracker(), is_final=False
    )
    assert (set(found.series), found.progress.step, found.failures) == ({"loss", "acc"}, 2, ())


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([(0, 100.0), (10, 105.0), (20, 110.0)], ["step 20", "2 it/s on average"]),
        ([(0, 100.0), (20, 100.0)], ["step 20"]),
        ([(0, math.nan), (20, math.nan)], ["step 20"]),
        ([(0, 100.0), (5, 110.0)], ["step 20"]),
    ],
)
def test_ended_job_has_its_average_rate(points, words):
    """Not where its points have no times, or end before its last step."""
    loss = Series("loss")
    for step, at in points:
        loss.add(step, 1.0, at)
    running = Activity(Progress(20, rate=9.0, seconds_left=3.0), {"loss": loss})
    assert running.at_end().words == words
