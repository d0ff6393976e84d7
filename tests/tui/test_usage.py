"""What replicas use, on the Job screen: measured only while somebody looks."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.canned import NOW, CannedScheduler
from support.dashboard import make_app, until
from textual.widget import Widget

from torchx_tui.backends.api import Capabilities, ReplicaUsage
from torchx_tui.settings.config import Settings
from torchx_tui.specs import AppState, ReplicaStatus
from torchx_tui.tui.format import clock
from torchx_tui.tui.job.replica_facts import replica_lines, spark_words, sparkline, usage_lines
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.jobs.table import JobTable
from torchx_tui.tui.logs.screen import LogsScreen

RUNNING = "local_cwd://torchx/llama3-8b-sft-zq2wmx7v5hkdfd"
GIB = 1 << 30


def test_sparkline():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7, 8], 8, 9) == "▁▂▃▄▅▆▇██"
    assert sparkline([8, 8], 8, 4) == "  ██"
    assert sparkline([1, 2, 3, 4], 4, 2) == "▇█"
    assert sparkline([], 4, 3) == "   "
    assert sparkline([9], 4, 1) == "█"
    assert spark_words([0.5, 1.5, 100]) == "min 0.5  avg 34  max 100"


@pytest.mark.parametrize(
    ("ascii_only", "courses"),
    [
        (False, ["  ▁▅", "   █", " ▃▆█", "  ▂▇"]),
        (
            True,
            [
                "min 0.5  avg 2.2  max 4.0",
                "min 2.0  avg 2.0  max 2.0",
                "min 1.0  avg 2.0  max 3.0",
                "min 2.0  avg 6.0  max 10",
            ],
        ),
    ],
)
def test_each_thing_that_is_used_has_its_course(ascii_only, courses):
    samples = [
        ReplicaUsage("trainer", 0, gpu=1.0),
        ReplicaUsage("trainer", 0, cpu=0.5, gpu=2.0, gpu_memory=2 * GIB),
        ReplicaUsage(
            "trainer", 0, cpu=4.0, cpu_total=8.0, memory=2 * GIB, memory_total=2 * GIB, gpus=3, gpu=3.0,
            gpu_memory=10 * GIB, gpu_memory_total=12 * GIB,
        ),
    ]  # fmt: skip
    now = ["4.0 of 8.0 cores", "2.0 of 2.0 GB", "3.0 of 3.0 busy", "10 of 12 GB"]
    lines = [line.plain for line in usage_lines(samples, 4, ascii_only=ascii_only)]
    names = ["cpu  ", "mem  ", "gpu  ", "vram "]
    assert lines == [f"{name}{course}  {figure}" for name, course, figure in zip(names, courses, now, strict=True)]
    # What is not known has no line.
    assert usage_lines(samples[:1], 4, ascii_only=ascii_only) == []


def test_what_is_known_of_a_replica():
    """Its state, where it is and how long it ran."""
    replica = ReplicaStatus(
        3, AppState.FAILED, "trainer", "pod-3", hostaddr="10.0.0.3", exit_code=7, reason="out of memory", pid=41,
        node="gpu7", started_at=NOW - 90, finished_at=NOW, restarts=2,
    )  # fmt: skip
    widget = cast("Widget", SimpleNamespace(app=SimpleNamespace(now=lambda: NOW)))

    def lines(**fields: Any) -> list[str]:
        return [line.plain for line in replica_lines(replace(replica, **fields), widget)]

    started, ended = f"started  {clock(NOW - 90, NOW)}", f"ended    {clock(NOW, NOW)}"
    assert lines() == [
        "trainer/3  ✗ Failed  exit 7", "1m 30s, 2 restarts, pid 41, on gpu7, 10.0.0.3, pod-3", started, ended,
        "out of memory",
    ]  # fmt: skip
    # A signal and a code are one end; what the code says is not said again.
    assert lines(signal="SIGKILL")[0] == "trainer/3  ✗ Failed  SIGKILL"
    assert lines(reason="exit 7")[-1] == ended
    runs = lines(state=AppState.RUNNING, exit_code=None, finished_at=None, restarts=0, pid=None, reason="")
    assert runs == ["trainer/3  ● Running", "on gpu7, 10.0.0.3, pod-3", started]
    # The machine's own name is told once, and so is the address.
    assert lines(node="", hostaddr="pod-3")[1] == "1m 30s, 2 restarts, pid 41, pod-3"
    assert lines(node="pod-3", hostaddr="pod-3")[1] == "1m 30s, 2 restarts, pid 41, on pod-3"


class Measured(CannedScheduler):
    """Uses a core and a gigabyte."""

    capabilities = Capabilities(log_files=True, usage=True)
    asked = 0

    def usage(self, app_id):
        self.asked += 1
        used = {"cpu": 1.0, "cpu_total": 96.0, "memory": GIB, "memory_total": 1152 * GIB}
        return [ReplicaUsage("trainer", k, **used) for k in range(16)]


@pytest.fixture
def scheduler():
    scheduler = Measured()
    scheduler.add("llama3-8b-sft-zq2wmx7v5hkdfd", AppState.RUNNING, 60, replicas=16)
    return scheduler


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_cpu_and_memory_of_the_chosen_replica(scheduler, tmp_path, monkeypatch, ascii_only):
    monkeypatch.setattr("torchx_tui.tui.watch.feed.USAGE_INTERVAL_S", 0.05)
    app = make_app(scheduler, tmp_path, settings=Settings(ascii=ascii_only))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, JobsScreen) and app.query_one(JobTable).row_count > 0)
        app.query_one(JobTable).move_to(RUNNING)
        assert scheduler.asked == 0
        await pilot.press("enter")
        await until(pilot, lambda: scheduler.asked > 3, "samples")
        screen = app.screen
        assert isinstance(screen, JobScreen)
        facts = screen.replicas.facts

        def lines():
            return [line.plain for line in facts.lines]

        sign = "min 1.0" if ascii_only else "▁"
        await until(pilot, lambda: any(line.startswith("cpu") and sign in line for line in lines()), "the lines")
        text = lines()
        assert ascii_only or max(map(len, text)) <= facts.size.width
        (cpu,) = (line for line in text if line.startswith("cpu"))
        (memory,) = (line for line in text if line.startswith("mem"))
        assert cpu.endswith("of 96 cores")
        assert memory.endswith("of 1,152 GB")
        assert not any(line.startswith("gpu") for line in text)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, JobsScreen))
        before = scheduler.asked
        await pilot.pause(0.4)
        assert scheduler.asked <= before + 1
        # Nor is it under another screen, or once the dashboard ends.
        watched: list[str | None] = []
        monkeypatch.setattr(app.feed, "watch_usage", watched.append)
        await pilot.press("enter")
        await until(pilot, lambda: watched[-1:] == [RUNNING], "the job again")
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LogsScreen) and watched[-1] is None, "its logs alone")
        await pilot.press("escape")
        await until(pilot, lambda: watched[-1] == RUNNING, "the job once more")
    assert watched[-1] is None
