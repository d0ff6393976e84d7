"""Metrics: finding them in logs, what that costs a followed log, the Metrics screen, memory of a job.

Budgets: the prefilter at least 200 MB/s; Megatron's and verl's lines above 20,000 a second; a followed log with the
reader beside it still at least 300,000 lines a second; the Metrics screen with 20 metrics of 50,000 points open in
300 ms, and a frame of it in 16 ms.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path

from textual.app import App, ComposeResult

from benchmarks._budget import judged
from benchmarks._dashboard import home
from benchmarks._sizes import scaled
from benchmarks.log_ingest import LINES, pane_rate
from torchx_tui.diagnosis.metrics.chart import Options, draw_chart
from torchx_tui.diagnosis.metrics.series import Series
from torchx_tui.diagnosis.progress.activity import JobPlace
from torchx_tui.diagnosis.progress.prefilter import candidate_lines, compile_needles
from torchx_tui.diagnosis.progress.reader import ActivityReader
from torchx_tui.diagnosis.progress.tracker import ProgressTracker
from torchx_tui.logs.source.replica_log import ReplicaLog
from torchx_tui.tui.metrics.chart import ChartPane
from torchx_tui.tui.metrics.metric_list import MetricList
from torchx_tui.tui.ui.theme import use_themes

_SAMPLES = Path(__file__).parent.parent / "tests" / "diagnosis" / "data" / "logs"
_JUDGED = ("megatron.src", "verl.src")
_SAMPLE_LINES = scaled(20_000, 500)
_NOISE_BYTES = scaled(64_000_000, 200_000)
_METRICS, _POINTS = 20, scaled(50_000, 500)
_RANKS, _KEPT_LINES = 256, scaled(2_000, 100)
_CHARTS = 4
_FRAMES = scaled(20, 2)


def noise() -> bytes:
    """Return the log of a server, with a line of metrics in two hundred."""
    chance = random.Random(1)
    metric = [line for path in _SAMPLES.glob("*.src.log") for line in path.read_bytes().splitlines() if line.strip()]
    usual = [
        b"2026-11-22 09:00:%02d,123 - vllm.core - INFO - Received request cmpl-%d: prompt 'The quick brown fox jumps', "
        b"params: temperature 0.7" % (n % 60, n)
        for n in range(2_000)
    ]
    usual += [b"W1122 09:00:00 worker fetched shard gs://bucket/data/part-%05d.arrow ok" % n for n in range(2_000)]
    usual += [b"NCCL INFO Channel %02d/0 : 0[0] -> 1[1] via P2P/CUMEM" % n for n in range(1_000)]
    lines: list[bytes] = []
    size = 0
    while size < _NOISE_BYTES:
        lines.append(chance.choice(metric if chance.random() < 0.005 else usual))
        size += len(lines[-1]) + 1
    return b"\n".join(lines)


def prefilter_rate() -> float:
    """Return the megabytes a second of CPU time that the search for candidate lines takes in."""
    data = noise()
    began = time.process_time()
    for _ in candidate_lines(data, compile_needles()):
        pass
    return len(data) / 1e6 / (time.process_time() - began)


def sample_rates() -> dict[str, float]:
    """Return the lines a second of CPU time of each sample, once its shapes are known."""
    rates = {}
    for path in sorted(_SAMPLES.glob("*.log")):
        data = path.read_bytes()
        lines = sum(1 for _ in candidate_lines(data, compile_needles()))
        if lines < 5:
            continue
        times = max(1, _SAMPLE_LINES // lines)
        tracker = ProgressTracker()
        tracker.feed(data)
        began = time.process_time()
        tracker.feed(data * times)
        rates[path.stem] = lines * times / (time.process_time() - began)
    return rates


def ingest_rate(folder: Path, *, with_reader: bool) -> float:
    """Return the lines a second of a followed log pane, with a reader of metrics on the same log or without."""
    path = folder / f"ingest-{with_reader}.log"
    path.touch()
    reader = ActivityReader("local_cwd://bench/ingest", [ReplicaLog("bench", 0, stdout=path)], JobPlace, lambda: None)
    if with_reader:
        reader.start()
    try:
        return asyncio.run(pane_rate(path, LINES))
    finally:
        reader.close()
        path.unlink()


def make_series() -> list[Series]:
    """Return metrics of many points, with noise and a spike."""
    chance = random.Random(1)
    found = []
    for number in range(_METRICS):
        series = Series(f"metric_{number}")
        for step in range(_POINTS):
            series.add(step, 40.0 if step == 777 else math.exp(-step / 9_000) + chance.gauss(0, 0.05), 1e9 + step)
        found.append(series)
    return found


class _MetricsApp(App[None]):
    CSS = "MetricList { width: 38; } Screen { layout: horizontal; }"

    def __init__(self, series: list[Series]) -> None:
        super().__init__()
        use_themes(self, "torchx-dark")
        self.series = series
        self.list = MetricList()
        self.panes = [ChartPane() for _ in range(_CHARTS)]

    def compose(self) -> ComposeResult:
        yield self.list
        yield from self.panes

    def draw(self) -> None:
        """Show the list and the charts as the screen does."""
        self.list.show([metric.copy() for metric in self.series], [metric.name for metric in self.series[:_CHARTS]])
        for pane, series in zip(self.panes, self.series[:_CHARTS], strict=True):
            pane.show(series.name, [series], Options())


async def screen_times(series: list[Series]) -> tuple[float, float]:
    """Return the milliseconds until the list and four charts are drawn, and those of a frame in which all grew."""
    app = _MetricsApp(series)
    async with app.run_test(size=(160, 45)) as pilot:
        began = time.perf_counter()
        app.draw()
        await pilot.pause()
        opened = time.perf_counter() - began
        frames = []
        for frame in range(_FRAMES):
            for metric in series:
                metric.add(_POINTS + frame, 0.5)
            began = time.perf_counter()
            app.draw()
            for pane in app.panes:
                pane.view.render()
            frames.append(time.perf_counter() - began)
        return opened * 1e3, statistics.median(frames) * 1e3


# Writes as many values as a long run has, in a file of JSON lines, and goes on.
_PROGRAM = f"""
import json, math, os, random, time
os.chdir(os.environ["HOME"])
chance = random.Random(1)
with open("metrics.jsonl", "w", buffering=1 << 20) as file:
    for step in range({_POINTS}):
        value = math.exp(-step / 9_000)
        values = {{f"metric_{{n}}": round(value + chance.gauss(0, 0.05), 5) for n in range({_METRICS})}}
        print(json.dumps({{"step": step, **values}}), file=file)
print("all of it is written")
time.sleep(600)
"""
# A chart, and a whole frame with one: the row below the charts comes last.
_BRAILLE = re.compile(rb"\xe2[\xa0-\xa3][\x80-\xbf]")
_FRAME = re.compile(_BRAILLE.pattern + rb"[\s\S]*99th percentile")


def dashboard_times() -> tuple[float, float, float]:
    """Return the seconds from the key to the first chart, to all points, and to the chart when the job is known."""
    with home() as place:
        place.launch("program", text=_PROGRAM)
        with place.open(size=(160, 45)) as screen:
            screen.wait(b"all of it is written")
            start, began = len(screen.data), time.perf_counter()
            screen.press(b"p")
            first = screen.wait(_BRAILLE, start) - began
            whole = screen.wait(f"{_POINTS:,} points".encode(), start) - began
            start = len(screen.data)
            screen.press(b"\x1b")
            screen.wait(b"STATE", start)
            time.sleep(2)
            start, began = len(screen.data), time.perf_counter()
            screen.press(b"p")
            return first, whole, screen.wait(_FRAME, start) - began


def chart_time(series: Series) -> float:
    """Return the milliseconds of one chart of 70 by 13 cells."""
    times = []
    for _ in range(_FRAMES):
        began = time.process_time()
        draw_chart([series], 70, 13)
        times.append(time.process_time() - began)
    return statistics.median(times) * 1e3


def memory_of_job() -> float:
    """Return the megabytes that a job takes: shapes of its lines, metrics of its log, the pace of its ranks."""
    lines = [
        f"[rank{line % _RANKS if line < 40 * _RANKS else 0}]: step {line} "
        + " ".join(f"metric_{number}={1.5 + line % 7 + number:.4f}" for number in range(_METRICS))
        for line in range(40 * _RANKS + _KEPT_LINES)
    ]
    data = "\n".join(lines).encode()
    tracemalloc.start()
    tracker = ProgressTracker()
    tracker.feed(data, 1e9)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / 1e6 if len(tracker.series()) == _METRICS else math.nan


def run() -> list[tuple[str, str]]:
    """Return the rows of the report."""
    rows = [("prefilter over a server's log", judged(prefilter_rate(), 200, " MB/s", at_least=True))]
    for name, rate in sample_rates().items():
        text = judged(rate, 20_000, " lines/s", at_least=True) if name in _JUDGED else f"{rate:,.0f} lines/s"
        rows.append((f"lines of {name.partition('.')[0]}", text))
    with tempfile.TemporaryDirectory() as folder:
        without = ingest_rate(Path(folder), with_reader=False)
        beside = ingest_rate(Path(folder), with_reader=True)
    series = make_series()
    opened, frame = asyncio.run(screen_times(series))
    first_chart, all_points, again = dashboard_times()
    return [
        *rows,
        ("followed log pane alone", f"{without:,.0f} lines/s"),
        ("with the reader of metrics beside it", judged(beside, 300_000, " lines/s", at_least=True)),
        ("that against the pane alone", f"{beside / without:.2f}x"),
        (f"{_METRICS} metrics x {_POINTS:,} points: open", judged(opened, 300, " ms")),
        ("a frame while they grow", judged(frame, 16, " ms", digits=1)),
        ("the same in a file of a job: key to the first chart", f"{first_chart * 1e3:.0f} ms"),
        ("the same: key to all points", f"{all_points:.1f} s"),
        ("the same, when the job is known: key to the chart", judged(again * 1e3, 300, " ms")),
        ("one chart of 70 x 13 cells", f"{chart_time(series[0]):.1f} ms"),
        (f"memory of a job with {_METRICS} metrics and {_RANKS} ranks", f"{memory_of_job():.1f} MB"),
    ]
