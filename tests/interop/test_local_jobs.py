"""What TorchX's own scheduler knows of a local job that this program launched."""

from contextlib import closing

import pytest
from backend.local.support import Local, role
from interop.oracle import hold, outcome, theirs

from torchx_tui.specs.roles import AppDef


@pytest.fixture
def local(torchx, tmp_path):
    made = Local(tmp_path / "state")
    yield made
    made.end_all()
    made.scheduler.close()


def test_torchx_says_nothing_of_jobs_of_other_processes(local, tmp_path):
    app = AppDef("pair", [role("sleep 300", name="leader"), role("sleep 300", name="worker", replicas=2)])
    app_id = local.start(app)
    local.running(app_id)
    ours = local.describe(app_id)
    specs = theirs()
    with closing(theirs("torchx.schedulers.local_scheduler").create_scheduler("session")) as scheduler:
        listed = [row.app_id for row in local.scheduler.list()]
        hold("local jobs", outcome(scheduler.list), listed, lambda _, ours: "list" if ours == [app_id] else None)
        known = scheduler.describe(app_id)
        assert known is None
        hold("local jobs", known, ours.state.name, lambda *_: "another process's job")
        sleeper = specs.Role("r", "", entrypoint="sleep", args=["300"])
        of_torchx = scheduler.submit(specs.AppDef("theirs", [sleeper]), {"log_dir": str(tmp_path / "logs")})
        their, our = (
            [len(one.replicas) for one in made.roles_statuses] for made in (scheduler.describe(of_torchx), ours)
        )
        hold("local jobs", their, our, lambda *both: "replicas" if both == ([], [1, 2]) else None)
