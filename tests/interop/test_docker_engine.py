"""TorchX's own command line and ours on one engine: what either launched, the other lists, reads, cancels.

What is described, launched again and deleted is in test_cross_launches.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from interop.release_0_7 import NIGHTLY, RELEASES
from interop.seen import reached, row

from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker_engine.client import Engine
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.specs import AppDef, AppState, Resource, Role, parse_app_handle

PULL_OFF = {"pull": False}
UNTIL_TOLD = "trap 'exit 5' TERM; while :; do sleep 0.1; done"
Launcher = Callable[..., str]


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def runner(docker_engine: str, tmp_path: Path) -> Iterator[Runner]:
    with Runner(journal=Journal(tmp_path / "journal")) as made:
        yield made


@pytest.fixture
def remove(docker_engine: str) -> Iterator[Callable[[str], str]]:
    """Return what takes a handle whose containers are removed afterwards."""
    handles: list[str] = []

    def note(handle: str) -> str:
        handles.append(handle)
        return handle

    yield note
    api: Any = Engine().client().api
    for handle in handles:
        label = f"{labels.APP_ID}={parse_app_handle(handle).app_id}"
        for one in api.containers(all=True, filters={"label": label}):
            api.remove_container(one["Id"], force=True, v=True)


LAUNCH = """
import sys
from torchx.runner import get_runner

with get_runner() as runner:
    print(runner.run_component("utils.sh", sys.argv[1:], "local_docker", workspace=""))
"""


def launch_theirs(python: Launcher, script: str, replicas: int = 1) -> str:
    """Launch a shell script by TorchX and return its handle; its command line would wait for the job's end.

    The component has a shell of its own, in whose place the script's is, so that it is told to end.
    """
    arguments = [
        "--image",
        "busybox:local",
        "--num_replicas",
        str(replicas),
        "--memMB",
        "64",
        "exec",
        "sh",
        "-c",
        script,
    ]
    return python("-c", LAUNCH, *arguments).strip().splitlines()[-1]


def launch_ours(runner: Runner, script: str, replicas: int = 1) -> str:
    """Launch a shell script by our Runner and return its handle."""
    resource = Resource(cpu=1, gpu=0, memMB=64)
    role = Role(
        "worker", "busybox:local", entrypoint="sh", args=["-c", script], num_replicas=replicas, resource=resource
    )
    return runner.run(AppDef("ours", [role]), "local_docker", PULL_OFF)


class TestTheirsSeenByUs:
    def test_listed_described_read_and_cancelled(
        self, python: Launcher, runner: Runner, remove: Callable[[str], str]
    ) -> None:
        handle = remove(launch_theirs(python, f"echo hello from torchx; {UNTIL_TOLD}", replicas=2))
        described = reached(runner, handle, AppState.RUNNING)
        assert (described.name, described.user) == ("sh", "")
        (role,) = described.roles
        assert (role.name, role.image, role.num_replicas, role.entrypoint) == ("sh", "busybox:local", 2, "sh")
        assert role.args[0] == "-c"
        assert "hello from torchx" in role.args[1]
        assert (role.resource.cpu, role.resource.memMB) == (1, 64)
        assert not any(name.startswith("TORCHX_") for name in role.env)
        found = row(runner, handle)
        assert (found.state, found.replicas_running, found.replicas_wanted) == (AppState.RUNNING, 2, 2)
        lines: Any = runner.log_lines(handle, "sh", 1, should_tail=True)
        assert next(iter(lines)) == "hello from torchx\n"
        lines.close()
        runner.cancel(handle)
        assert runner.status(handle) is not None
        described = reached(runner, handle, AppState.CANCELLED)
        assert described.msg.startswith("cancelled by ")
        assert row(runner, handle).state == AppState.CANCELLED

    def test_relaunched_as_it_was(self, python: Launcher, runner: Runner, remove: Callable[[str], str]) -> None:
        handle = remove(launch_theirs(python, "echo once; exit 3"))
        assert reached(runner, handle, AppState.FAILED).msg == "exit 3: sh/0"
        again = remove(runner.relaunch(handle))
        assert reached(runner, again, AppState.FAILED).msg == "exit 3: sh/0"
        assert list(runner.log_lines(again, "sh")) == ["once\n"]


class TestOursSeenByThem:
    def test_listed_described_and_read(
        self, release: str, cli: Launcher, runner: Runner, remove: Callable[[str], str]
    ) -> None:
        handle = remove(launch_ours(runner, "echo hello from here", replicas=2))
        reached(runner, handle, AppState.SUCCEEDED)
        (line,) = {one for one in cli("list", "--scheduler", "local_docker").splitlines() if handle in one}
        assert line.split()[-1] == "SUCCEEDED"
        # The release before has no --json.
        text = cli("status", handle)
        assert re.findall(r"worker\[(\d)\]:SUCCEEDED", text) in (["0", "1"], ["1", "0"])
        if release == NIGHTLY:
            status = json.loads(cli("status", "--json", handle))
            assert (status["state"], status["app_id"]) == ("SUCCEEDED", parse_app_handle(handle).app_id)
            (role,) = status["roles"]
            assert sorted(one["id"] for one in role["replicas"]) == [0, 1]
        assert "hello from here" in cli("log", f"{handle}/worker/1")

    def test_cancelled(self, cli: Launcher, runner: Runner, remove: Callable[[str], str]) -> None:
        handle = remove(launch_ours(runner, UNTIL_TOLD))
        reached(runner, handle, AppState.RUNNING)
        cli("cancel", handle)
        # Who cancelled it by other means than ours leaves no word of it on the engine.
        assert reached(runner, handle, AppState.FAILED).msg == "exit 5: worker/0"
