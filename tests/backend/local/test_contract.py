from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from backend.contract import SchedulerContract

from torchx_tui.backends.api import DescribeAppResponse, Scheduler


class TestLocal(SchedulerContract):
    @pytest.fixture
    def scheduler(self, make_local):
        return make_local().scheduler

    def purge_log(self, scheduler: Scheduler[Any], described: DescribeAppResponse) -> None:
        for folder in Path(described.log_dir).glob("*/*/"):
            shutil.rmtree(folder)


class TestLocalWithLogDir(TestLocal):
    @pytest.fixture
    def cfg(self, tmp_path):
        return {"log_dir": str(tmp_path / "logs"), "prependCwd": True}
