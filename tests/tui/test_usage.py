"""What replicas use, on the Job screen: measured only while somebody looks."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.canned import NOW, CannedScheduler
from support.dashboard import make_app
from support.screens import jobs_of

from torchx_tui.backends.api import ReplicaUsage
from torchx_tui.settings.config import Settings
from torchx_tui.specs.status import AppState, ReplicaStatus
from torchx_tui.tui.format import clock
from torchx_tui.tui.job.replica_facts import replica_lines, spark_words, sparkline, usage_lines
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.logs.screen import LogsScreen

RUNNING = "local_cwd://torchx/llama3-8b-sft-zq2wmx7v5hkdfd"
GIB = 1 << 30


@pytest.mark.parametrize(
    ("values", "most", "width", "drawn"),
    [
        (range(9), 8, 9, "▁▂▃▄▅▆▇██"),
        ([8, 8], 8, 4, "  ██"),
        ([1, 2, 3, 4], 4, 2, "▇█"),
        ([], 4, 3, "   "),
        ([9], 4, 1, "█"),
    ],
)
def test_sparkline(values, most, width, drawn):
    assert sparkline(values, most, width) == drawn


def test_course_in_words():
    assert spark_words([0.5, 1.5, 100]) == "min 0.5  avg 34  max 100"


@pytest.mark.parametrize(
    ("ascii_only", "courses"),
    [
        (False, "  ▁▅|   █| ▃▆█|  ▂▇"),
        (
            True,
            "min 0.5  avg 2.2  max 4.0|min 2.0  avg 2.0  max 2.0|min 1.0  avg 2.0  max 3.0|min 2.0  avg 6.0  max 10",
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
    cpu, memory, gpu, gpu_memory = courses.split("|")
    assert [line.plain for line in usage_lines(samples, 4, ascii_only=ascii_only)] == [
        f"cpu  {cpu}  4.0 of 8.0 cores",
        f"mem  {memory}  2.0 of 2.0 GB",
        f"gpu  {gpu}  3.0 of 3.0 busy",
        f"vram {gpu_memory}  10 of 12 GB",
    ]
    # What is not known has no line.
    assert usage_lines(samples[:1], 4, ascii_only=ascii_only) == []


def test_use_without_a_limit_has_no_total():
    samples = [ReplicaUsage("trainer", 0, cpu=0.5, memory=GIB), ReplicaUsage("trainer", 0, cpu=1.0, memory=2 * GIB)]
    lines = [line.plain for line in usage_lines(samples, 4, ascii_only=False)]
    assert lines == ["cpu    ▅█  1.0 cores", "mem    ▅█  2.0 GB"]


STARTED, ENDED = f"started  {clock(NOW - 90, NOW)}", f"ended    {clock(NOW, NOW)}"
HEAD, PLACE = "trainer/3  ✗ Failed  exit 7", "1m 30s, 2 restarts, pid 41, "
LATER = {"finished_at": None, "restarts": 0, "pid": None}


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, [HEAD, f"{PLACE}on gpu7, 10.0.0.3, pod-3", STARTED, ENDED, "out of memory"]),
        # A signal and a code are one end; what the code says is not said again.
        (
            {"signal": "SIGKILL", "reason": "exit 7"},
            ["trainer/3  ✗ Failed  SIGKILL", f"{PLACE}on gpu7, 10.0.0.3, pod-3", STARTED, ENDED],
        ),
        (
            {**LATER, "state": AppState.RUNNING, "exit_code": None, "reason": ""},
            ["trainer/3  ● Running", "on gpu7, 10.0.0.3, pod-3", STARTED],
        ),
        # The machine's own name is told once, and so is the address.
        ({"node": "", "hostaddr": "pod-3", "reason": ""}, [HEAD, f"{PLACE}pod-3", STARTED, ENDED]),
        ({"node": "pod-3", "hostaddr": "pod-3", "reason": ""}, [HEAD, f"{PLACE}on pod-3", STARTED, ENDED]),
    ],
)
def test_what_is_known_of_a_replica(changes, lines):
    replica = ReplicaStatus(
        3, AppState.FAILED, "trainer", "pod-3", hostaddr="10.0.0.3", exit_code=7, reason="out of memory", pid=41,
        node="gpu7", started_at=NOW - 90, finished_at=NOW, restarts=2,
    )  # fmt: skip
    widget: Any = SimpleNamespace(app=SimpleNamespace(now=lambda: NOW))
    assert [line.plain for line in replica_lines(replace(replica, **changes), widget)] == lines


class Measured(CannedScheduler):
    """Uses a core and a gigabyte."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def usage(self, app_id):
        self.asked.append(app_id)
        used = {"cpu": 1.0, "cpu_total": 96.0, "memory": GIB, "memory_total": 1152 * GIB}
        return [ReplicaUsage("trainer", k, **used) for k in range(16)]


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_cpu_and_memory_of_the_chosen_replica(tmp_path, monkeypatch, ascii_only):
    monkeypatch.setattr("torchx_tui.tui.watch.feed.USAGE_INTERVAL_S", 0.05)
    scheduler = Measured()
    scheduler.add("llama3-8b-sft-zq2wmx7v5hkdfd", AppState.RUNNING, 60, replicas=16)
    app = make_app(scheduler, tmp_path, settings=Settings(ascii=ascii_only))
    async with jobs_of(app) as table:
        assert scheduler.asked == []
        job = await table.job()
        await job.until(lambda: len(scheduler.asked) > 3, "samples")
        sign = "min 1.0" if ascii_only else "▁"

        def used():
            return [line for line in job.facts() if line[:3] in ("cpu", "mem", "gpu")]

        await job.until(lambda: used() and sign in used()[0], "the lines")
        cpu, memory = used()
        assert ascii_only or max(map(len, job.facts())) <= job.screen.replicas.facts.size.width
        assert cpu.endswith("of 96 cores")
        assert memory.endswith("of 1,152 GB")
        if ascii_only:
            return
        # Nor is it under another screen.
        await job.open(LogsScreen, "l")
        await not_measured(job, scheduler)
        await job.back("escape")
        await measured(job, scheduler, job.screen.row.app_id)
        # Another job was opened over it meanwhile.
        scheduler.add("other", AppState.RUNNING, 70)
        await job.press("R", until=lambda: len(app.jobs.rows) == 2, what="the other job")
        app.push_screen(JobScreen(app.jobs.rows["local_cwd://torchx/other"]))
        await measured(job, scheduler, "other")
        await job.back("escape")
        await measured(job, scheduler, job.screen.row.app_id)
        await table.back("escape")
        await not_measured(table, scheduler)


async def measured(driver, scheduler, app_id):
    """Wait until a job alone is measured."""
    await driver.until(lambda: scheduler.asked[-3:] == [app_id] * 3, app_id)


async def not_measured(driver, scheduler):
    """Wait until nothing is measured for ten intervals."""
    await driver.pilot.pause(0.2)
    before = len(scheduler.asked)
    await driver.pilot.pause(0.5)
    assert len(scheduler.asked) <= before + 1
