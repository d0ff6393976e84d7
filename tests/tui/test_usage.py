"""What replicas use, on the Job screen: measured only while somebody looks."""

from __future__ import annotations

import pytest
from support.canned import CannedScheduler
from support.dashboard import make_app, until

from torchx_tui.backends.api import Capabilities, ReplicaUsage
from torchx_tui.settings.config import Settings
from torchx_tui.specs import AppState
from torchx_tui.tui.job.replica_facts import spark_words, sparkline
from torchx_tui.tui.job.screen import JobScreen
from torchx_tui.tui.jobs.screen import JobsScreen
from torchx_tui.tui.jobs.table import JobTable

RUNNING = "local_cwd://torchx/llama3-8b-sft-zq2wmx7v5hkdfd"
GIB = 1 << 30


def test_sparkline():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7, 8], 8, 9) == "▁▂▃▄▅▆▇██"
    assert sparkline([8, 8], 8, 4) == "  ██"
    assert sparkline([1, 2, 3, 4], 4, 2) == "▇█"
    assert sparkline([], 4, 3) == "   "
    assert sparkline([9], 4, 1) == "█"
    assert spark_words([0.5, 1.5, 100]) == "min 0.5  avg 34  max 100"


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
    monkeypatch.setattr("torchx_tui.tui.watch.feed._USAGE_SECONDS", 0.05)
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
