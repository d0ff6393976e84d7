"""TorchX's own command line and ours on one API server: what either launched, the other lists, reads, ends.

What is described, launched again and deleted is in test_cross_launches.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from interop.seen import reached, row
from support.kubernetes_cluster import KubernetesCluster

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.specs import AppDef, AppState, Resource, Role, parse_app_handle

Launcher = Callable[..., str]
# What the node keeps for itself is all that is asked for: the machine has few cores.
RESERVED = 1000


@pytest.fixture
def runner(kubernetes_cluster: KubernetesCluster, tmp_path: Path) -> Iterator[Runner]:
    params = {"kubernetes": {"namespace": kubernetes_cluster.namespace}}
    with Runner(journal=Journal(tmp_path / "journal"), scheduler_params=params) as made:
        yield made


LAUNCH = """
import sys
from torchx.runner import get_runner

namespace, reserved, *arguments = sys.argv[1:]
cfg = {"queue": "default", "namespace": namespace, "reserved_millicpu": int(reserved)}
with get_runner() as runner:
    print(runner.run_component("utils.sh", arguments, "kubernetes", cfg, workspace=""))
"""


def launch_theirs(python: Launcher, namespace: str, script: str, replicas: int = 1) -> str:
    """Launch a shell script by TorchX and return its handle."""
    arguments = ["--image", "busybox:local", "--num_replicas", str(replicas), "--memMB", "64", "sh", "-c", script]
    return python("-c", LAUNCH, namespace, str(RESERVED), *arguments).strip().splitlines()[-1]


def launch_ours(runner: Runner, script: str, replicas: int = 1, role: str = "worker") -> str:
    """Launch a shell script by our Runner and return its handle."""
    resource = Resource(cpu=1, gpu=0, memMB=64)
    made = Role(role, "busybox:local", entrypoint="sh", args=["-c", script], num_replicas=replicas, resource=resource)
    return runner.run(AppDef("ours", [made]), "kubernetes", {"queue": "default", "reserved_millicpu": RESERVED})


class TestTheirsSeenByUs:
    def test_listed_described_read_and_cancelled(
        self, python: Launcher, runner: Runner, kubernetes_cluster: KubernetesCluster
    ) -> None:
        script = "echo hello from torchx; sleep 300"
        handle = launch_theirs(python, kubernetes_cluster.namespace, script, replicas=2)
        described = reached(runner, handle, AppState.RUNNING)
        assert (described.name, described.user) == ("sh", "")
        (role,) = described.roles
        assert (role.name, role.image, role.num_replicas, role.entrypoint) == ("sh", "busybox:local", 2, "sh")
        assert "hello from torchx" in role.args[1]
        assert (role.resource.cpu, role.resource.memMB) == (1, 64)
        assert not any(name.startswith("TORCHX_") for name in role.env)
        found = row(runner, handle)
        assert (found.state, found.replicas_running, found.replicas_wanted) == (AppState.RUNNING, 2, 2)
        assert not found.foreign
        lines: Any = runner.log_lines(handle, "sh", 1, should_tail=True)
        assert next(iter(lines)) == "hello from torchx\n"
        lines.close()
        runner.cancel(handle)
        reached(runner, handle, AppState.CANCELLED)
        assert row(runner, handle).state == AppState.CANCELLED

    def test_relaunched_as_it_was(
        self, python: Launcher, runner: Runner, kubernetes_cluster: KubernetesCluster
    ) -> None:
        handle = launch_theirs(python, kubernetes_cluster.namespace, "echo once; exit 3")
        assert reached(runner, handle, AppState.FAILED).msg == "exit 3: sh/0"
        again = runner.relaunch(handle)
        assert reached(runner, again, AppState.FAILED).msg == "exit 3: sh/0"
        assert list(runner.log_lines(again, "sh")) == ["once\n"]


class TestOursSeenByThem:
    def test_listed_described_and_read(
        self, cli: Launcher, runner: Runner, kubernetes_cluster: KubernetesCluster
    ) -> None:
        handle = launch_ours(runner, "echo hello from here", replicas=2)
        reached(runner, handle, AppState.SUCCEEDED)
        # TorchX tells of replicas while they run.
        assert json.loads(cli("status", "--json", handle))["state"] == "SUCCEEDED"
        assert "hello from here" in cli("log", f"{handle}/worker/0")
        listed = cli("list", "-s", "kubernetes", "-cfg", f"queue=default,namespace={kubernetes_cluster.namespace}")
        (line,) = [one for one in listed.splitlines() if parse_app_handle(handle).app_id in one]
        assert "SUCCEEDED" in line

    def test_cancelled(self, cli: Launcher, runner: Runner, kubernetes_cluster: KubernetesCluster) -> None:
        handle = launch_ours(runner, "sleep 300")
        reached(runner, handle, AppState.RUNNING)
        cli("cancel", handle)
        assert reached(runner, handle, AppState.CANCELLED).roles_statuses[0].replicas[0].state is AppState.CANCELLED
