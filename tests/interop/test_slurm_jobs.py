"""Jobs that TorchX itself launched on Slurm: listed, described, read, launched again and cancelled here."""

from __future__ import annotations

import pytest
from interop import cross_launched
from interop.seen import reached, row
from support.waiting import wait_until

from torchx_tui.backends.api import Stream
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.types import BY_TORCHX
from torchx_tui.specs.status import AppState

pytestmark = pytest.mark.slow

SCRIPT = "echo replica $SLURM_PROCID says $GREETING; echo an aside >&2; exec sleep 600"


@pytest.fixture
def runner(slurm_cluster, tmp_path):
    with Runner(journal=Journal(tmp_path / "journal"), scheduler_params={"slurm": {"quick_interval": 0.2}}) as made:
        yield made


@pytest.fixture
def handle(slurm_cluster, python):
    """Launch two replicas by TorchX; return the handle."""
    arguments = ["--num_replicas", "2", "--env", "GREETING=hello", "sh", "-c", SCRIPT]
    return python(str(cross_launched.__file__), "slurm", "{}", "", *arguments).splitlines()[-1].strip()


def second_replica(runner: Runner, handle: str) -> list[str]:
    """Return the log of the second replica as soon as it has lines."""
    return wait_until(lambda: [*runner.job(handle).log_lines("sh", 1, streams=Stream.STDOUT)], "its log")


def test_they_are_listed_read_and_cancelled(runner, handle):
    found = reached(runner, handle, AppState.RUNNING)
    assert found.name == "sh"
    assert [(role.role, len(role.replicas)) for role in found.roles_statuses] == [("sh", 2)]
    listed = row(runner, handle)
    assert (listed.name, listed.replicas_wanted, listed.replicas_running, listed.notes) == ("sh", 2, 2, [BY_TORCHX])
    assert second_replica(runner, handle) == ["replica 1 says hello\n"]
    runner.job(handle).cancel()
    assert reached(runner, handle, AppState.CANCELLED).msg.startswith("cancelled")


def test_one_is_launched_again(runner, handle):
    reached(runner, handle, AppState.RUNNING)
    again = runner.relaunch(handle)
    assert again.rpartition("/")[2] != handle.rpartition("/")[2]
    (role,) = reached(runner, again, AppState.RUNNING).roles
    assert (role.name, role.num_replicas, role.env["GREETING"]) == ("sh", 2, "hello")
    assert second_replica(runner, again) == ["replica 1 says hello\n"]
    for one in (handle, again):
        runner.job(one).cancel()
