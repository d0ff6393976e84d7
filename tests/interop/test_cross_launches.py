"""A job of several roles with retries and mounts, launched by TorchX and by us, on Docker and on Kubernetes.

What either launched, the other describes, reads, launches again, cancels and deletes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from interop import cross_launched
from interop.release_0_7 import NIGHTLY, RELEASES
from interop.seen import reached, row
from support.waiting import wait_until

import torchx_tui.specs as our_specs
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.specs import AppState, BindMount, parse_app_handle

pytestmark = pytest.mark.slow

Launcher = Callable[..., str]
# What the node keeps for itself is all that is asked for: the machine has few cores.
RESERVED = 1000
CFG = {"local_docker": {}, "kubernetes": {"queue": "default", "reserved_millicpu": RESERVED}}
ALL = [("reader", "0"), ("reader", "1"), ("trainer", "0")]
OURS_ONLY = {"local_docker": {"pull": False}, "kubernetes": {}}


@dataclass
class Backend:
    """One scheduler with both programs at it."""

    scheduler: str
    runner: Runner
    python: Launcher
    folder: Path
    cfg: Mapping[str, Any]
    handles: list[str]

    @property
    def is_docker(self) -> bool:
        return self.scheduler == "local_docker"

    def noted(self, handle: str) -> str:
        self.handles.append(handle)
        return handle

    def launch_theirs(self) -> str:
        """Launch by TorchX."""
        program = str(cross_launched.__file__)
        said = self.python(program, self.scheduler, json.dumps(self.cfg), str(self.folder))
        return self.noted(said.strip().splitlines()[-1])

    def launch_ours(self) -> str:
        """Launch by us."""
        app = cross_launched.make_job(our_specs, str(self.folder))
        return self.noted(self.runner.run(app, self.scheduler, {**self.cfg, **OURS_ONLY[self.scheduler]}))

    def ran_again(self, handle: str) -> Any:
        """Wait until all replicas run, the trainer for the second time, and return what we see."""

        def described() -> Any:
            found = self.runner.describe(handle)
            if found is None or found.state is not AppState.RUNNING or not (self.folder / "tried").exists():
                return None
            replicas = [replica for role in found.roles_statuses for replica in role.replicas]
            running = [one for one in replicas if one.state is AppState.RUNNING]
            return found if len(running) == 3 and self.is_second(found) else None

        return wait_until(described, f"the second try of {handle}")

    def is_second(self, described: Any) -> bool:
        """Tell whether the trainer was started again: Docker counts it a container, Volcano a job."""
        _, trainer = described.roles_statuses
        return trainer.replicas[0].restarts == 1 if self.is_docker else described.num_restarts == 1


@pytest.fixture(
    params=[*(("local_docker", release) for release in RELEASES), ("kubernetes", NIGHTLY)],
    ids=lambda pair: "-".join(pair),
)
def scheduler_and_release(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param


@pytest.fixture
def release(scheduler_and_release: tuple[str, str]) -> str:
    return scheduler_and_release[1]


@pytest.fixture
def backend(
    request: pytest.FixtureRequest, scheduler_and_release: tuple[str, str], python: Launcher, tmp_path: Path
) -> Iterator[Backend]:
    scheduler, _ = scheduler_and_release
    cfg = dict(CFG[scheduler])
    if scheduler == "local_docker":
        request.getfixturevalue("docker_engine")
    else:
        cfg["namespace"] = request.getfixturevalue("kubernetes_cluster").namespace
    # Ours looks where it is told to, theirs where the handle says.
    params = {"kubernetes": {"namespace": cfg["namespace"]}} if "namespace" in cfg else {}
    folder = tmp_path / "data"
    folder.mkdir(mode=0o777)
    with Runner(journal=Journal(tmp_path / "journal"), scheduler_params=params) as runner:
        made = Backend(scheduler, runner, python, folder, cfg, [])
        yield made
        for handle in made.handles:
            with suppress(our_specs.TorchXTuiError):
                runner.delete(handle)


def assert_is_the_job(described: Any, folder: Path) -> None:
    """Hold what is described against what was launched."""
    launched = cross_launched.make_job(our_specs, str(folder)).roles
    assert [role.name for role in described.roles] == ["reader", "trainer"]
    for role, wanted in zip(described.roles, launched, strict=True):
        assert (role.image, role.entrypoint, role.args) == (wanted.image, wanted.entrypoint, wanted.args)
        assert (role.num_replicas, role.max_retries) == (wanted.num_replicas, wanted.max_retries)
        assert role.mounts == [BindMount(str(folder), "/data")]
        assert (role.resource.cpu, role.resource.gpu, role.resource.memMB) == (1, 0, 64)
        assert role.env == wanted.env


class TestTheirs:
    def test_is_described_read_launched_again_and_deleted(self, backend: Backend, cli: Launcher) -> None:
        handle = backend.launch_theirs()
        app_id = parse_app_handle(handle).app_id
        described = backend.ran_again(handle)
        assert_is_the_job(described, backend.folder)
        assert {path.name for path in backend.folder.iterdir()} == {"reader-0", "reader-1", "tried"}
        found = row(backend.runner, handle)
        assert (found.state, found.replicas_running, found.replicas_wanted) == (AppState.RUNNING, 3, 3)
        for k in (0, 1):
            lines: Any = backend.runner.log_lines(handle, "reader", k, should_tail=True)
            with closing(lines):
                assert next(iter(lines)) == f"hello of {app_id.partition(':')[2] or app_id} from {k}\n"

        again = backend.noted(backend.runner.relaunch(handle))
        assert again != handle
        new = reached(backend.runner, again, AppState.RUNNING)
        assert_is_the_job(new, backend.folder)
        # The copy is TorchX's as well, as is what it launched itself.
        assert seen_by_them(cli, again) == seen_by_them(cli, handle) == ALL

        backend.runner.delete(handle)
        wait_until(lambda: backend.runner.describe(handle) is None, "the job's end")
        assert row(backend.runner, handle) is None
        assert row(backend.runner, again) is not None


def seen_by_them(cli: Launcher, handle: str) -> list[tuple[str, str]]:
    """Return the roles and numbers of replicas that TorchX says are running; one release has no JSON for it."""
    return sorted(re.findall(r"(\w+)\[(\d)\]:RUNNING", cli("status", handle)))


class TestOurs:
    def test_is_described_read_and_deleted_by_them(self, backend: Backend, cli: Launcher, release: str) -> None:
        handle = backend.launch_ours()
        app_id = parse_app_handle(handle).app_id
        backend.ran_again(handle)
        assert seen_by_them(cli, handle) == ALL
        if release == NIGHTLY:
            # The release before ends with a traceback for every job of Docker.
            said = cli("describe", handle)
            assert "reader" in said
            assert "trainer" in said
        options = [f"{name}={value}" for name, value in backend.cfg.items()]
        listed = cli("list", "-s", backend.scheduler, *(("-cfg", ",".join(options)) if options else ()))
        assert any(handle in line and "RUNNING" in line for line in listed.splitlines())
        for k in (0, 1):
            assert f"hello of {app_id.partition(':')[2] or app_id} from {k}" in cli("log", f"{handle}/reader/{k}")
        assert "again" in cli("log", f"{handle}/trainer/0")

        cli("delete" if release == NIGHTLY else "cancel", handle)
        if backend.is_docker:
            # TorchX stops containers and leaves them; these end well when they are told to.
            reached(backend.runner, handle, AppState.SUCCEEDED)
        else:
            wait_until(lambda: backend.runner.describe(handle) is None, "the job's end")
