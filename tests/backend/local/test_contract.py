import shutil
from pathlib import Path

import pytest
from backend.contract import SchedulerContract


class TestLocal(SchedulerContract):
    @pytest.fixture
    def scheduler(self, make_local):
        return make_local().scheduler

    def purge_log(self, scheduler, described):
        for folder in Path(described.log_dir).glob("*/*/"):
            shutil.rmtree(folder)


class TestLocalWithLogDir(TestLocal):
    @pytest.fixture
    def cfg(self, tmp_path):
        return {"log_dir": str(tmp_path / "logs"), "prependCwd": True}
