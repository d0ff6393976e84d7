"""What every scheduler has to do, done on a real cluster."""

from pathlib import Path

import pytest
from backend.contract import SchedulerContract

from torchx_tui.backends import registry


@pytest.mark.slow
class TestSlurm(SchedulerContract):
    has_line_times = False
    has_named_ids = False

    @pytest.fixture
    def scheduler(self, slurm_cluster):
        made = registry.create_scheduler("slurm", "torchx", quick_interval=0.2)
        yield made
        made.close()

    def purge_log(self, scheduler, described):
        for path in Path.cwd().glob(f"slurm-{described.app_id}-*"):
            path.unlink()
