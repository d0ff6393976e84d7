"""What every scheduler has to do, done by schedulers that are written against TorchX's classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from backend.contract import SchedulerContract
from support.torchx_plugins import Plugins

from torchx_tui.backends import registry
from torchx_tui.backends.api import DescribeAppResponse, Scheduler


class TestProcessJobs(SchedulerContract):
    """A package of others, by its entry point."""

    @pytest.fixture
    def scheduler(self, plugins: Plugins, tmp_path: Path) -> Iterator[Scheduler[Any]]:
        plugins.process_jobs()
        self.folder = tmp_path / "jobs"
        made = registry.create_scheduler("processes", "torchx", folder=str(self.folder))
        yield made
        made.close()

    @pytest.fixture
    def cfg(self) -> Mapping[str, Any]:
        return {"folder": "unused"}

    def purge_log(self, scheduler: Scheduler[Any], described: DescribeAppResponse) -> None:
        for name in ("stdout", "stderr"):
            for path in (self.folder / described.app_id).glob(f"*/*/{name}"):
                path.unlink()


@pytest.mark.slow
class TestSlurm(SchedulerContract):
    """TorchX's own scheduler for Slurm, on a real cluster."""

    @pytest.fixture
    def scheduler(self, torchx: None, fresh_registry: None, slurm_cluster: str) -> Iterator[Scheduler[Any]]:
        made = registry.create_scheduler("slurm", "torchx")
        yield made
        made.close()

    def purge_log(self, scheduler: Scheduler[Any], described: DescribeAppResponse) -> None:
        for path in Path.cwd().glob(f"slurm-{described.app_id}-*"):
            path.unlink()
