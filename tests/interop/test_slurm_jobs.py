"""Jobs that TorchX itself launched on Slurm: listed, described, read, launched again and cancelled here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.waiting import wait_until

from torchx_tui.backends.api import Stream
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.slurm.scheduler import SlurmScheduler
from torchx_tui.backends.types import BY_TORCHX, DescribeAppResponse
from torchx_tui.specs import AppState

pytestmark = pytest.mark.slow

Launcher = Callable[..., str]
LAUNCH = """
import sys
from torchx.runner import get_runner

with get_runner() as runner:
    print(runner.run_component("utils.sh", sys.argv[1:], "slurm", {}, workspace=""))
"""
SCRIPT = "echo replica $SLURM_PROCID says $GREETING; echo an aside >&2; exec sleep 600"


@pytest.fixture
def runner(slurm_cluster: str, tmp_path: Path) -> Iterator[Runner]:
    with Runner(journal=Journal(tmp_path / "journal"), scheduler_params={"slurm": {"quick_interval": 0.2}}) as made:
        yield made


@pytest.fixture
def handle(slurm_cluster: str, python: Launcher) -> str:
    """Launch two replicas by TorchX; return the handle."""
    arguments = ["--num_replicas", "2", "--env", "GREETING=hello", "sh", "-c", SCRIPT]
    return python("-c", LAUNCH, *arguments).splitlines()[-1].strip()


def described(runner: Runner, handle: str, state: AppState) -> DescribeAppResponse:
    """Wait until a job is in a state."""
    wait_until(lambda: (found := runner.describe(handle)) and found.state is state, f"{handle} is {state.name}")
    found = runner.describe(handle)
    assert found is not None
    return found


def test_they_are_listed_read_and_cancelled(runner: Runner, handle: str) -> None:
    found = described(runner, handle, AppState.RUNNING)
    assert found.name == "sh"
    assert [(role.role, len(role.replicas)) for role in found.roles_statuses] == [("sh", 2)]
    (row,) = [row for row in runner.list("slurm") if row.app_id == found.app_id]
    assert (row.name, row.replicas_wanted, row.replicas_running, row.notes) == ("sh", 2, 2, [BY_TORCHX])
    wait_until(lambda: [*runner.log_lines(handle, "sh", 1, streams=Stream.STDOUT)], "the log of the second replica")
    assert [*runner.log_lines(handle, "sh", 1, streams=Stream.STDOUT)] == ["replica 1 says hello\n"]
    runner.cancel(handle)
    assert described(runner, handle, AppState.CANCELLED).msg.startswith("cancelled")


def test_one_is_launched_again(runner: Runner, handle: str) -> None:
    described(runner, handle, AppState.RUNNING)
    again = runner.relaunch(handle)
    assert again.rpartition("/")[2] != handle.rpartition("/")[2]
    found = described(runner, again, AppState.RUNNING)
    (role,) = found.roles
    assert (role.name, role.num_replicas, role.env["GREETING"]) == ("sh", 2, "hello")
    wait_until(lambda: [*runner.log_lines(again, "sh", 1, streams=Stream.STDOUT)], "the log of the second replica")
    assert [*runner.log_lines(again, "sh", 1, streams=Stream.STDOUT)] == ["replica 1 says hello\n"]
    for one in (handle, again):
        runner.cancel(one)
    assert isinstance(runner.scheduler("slurm"), SlurmScheduler)
