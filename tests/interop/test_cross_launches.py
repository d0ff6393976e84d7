"""Jobs launched by TorchX and by us, on Docker and on Kubernetes.

What either launched, the other lists, describes, reads, launches again, cancels and deletes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from interop import cross_launched
from interop.seen import reached, row
from support.waiting import PATIENCE, wait_until

import torchx_tui.specs as our_specs
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.specs.handles import parse_app_handle
from torchx_tui.specs.mounts import BindMount
from torchx_tui.specs.status import AppState

pytestmark = pytest.mark.slow

Launcher = Callable[..., str]
# The default reserves more for the node than a machine with few cores has.
CFG = {"local_docker": {}, "kubernetes": {"queue": "default", "reserved_millicpu": 1000}}
OURS_ONLY = {"local_docker": {"pull": False}, "kubernetes": {}}
UNTIL_CANCELLED = "trap 'exit 5' TERM; while :; do sleep 0.1; done"


@dataclass
class Backend:
    """One scheduler with both programs at it."""

    scheduler: str
    runner: Runner
    python: Launcher
    cli: Launcher
    folder: Path
    cfg: dict[str, Any]
    handles: list[str] = field(default_factory=list)

    @property
    def is_docker(self):
        return self.scheduler == "local_docker"

    def noted(self, handle):
        self.handles.append(handle)
        return handle

    def launch_theirs(self, script="", replicas=1):
        """Launch the job of several roles, or a shell script, by TorchX."""
        # The script takes the place of the component's own shell, so that it receives the signal.
        sh = ["--image=busybox:local", f"--num_replicas={replicas}", "--memMB=64", "exec", "sh", "-c", script]
        arguments = [self.scheduler, json.dumps(self.cfg), str(self.folder), *(sh if script else ())]
        return self.noted(self.python(str(cross_launched.__file__), *arguments).strip().splitlines()[-1])

    def launch_ours(self, script="", replicas=1):
        """Launch the job of several roles, or a shell script, by us."""
        app = cross_launched.make_job(our_specs, str(self.folder))
        if script:
            resource = our_specs.Resource(cpu=1, gpu=0, memMB=64)
            role = our_specs.Role("worker", "busybox:local", entrypoint="sh", args=["-c", script], resource=resource)
            role.num_replicas = replicas
            app = our_specs.AppDef("ours", [role])
        return self.noted(self.runner.run(app, self.scheduler, {**self.cfg, **OURS_ONLY[self.scheduler]}))

    def ran_again(self, handle):
        """Wait until all replicas run, the trainer for the second time, and return what we see."""

        def described():
            found = self.runner.job(handle).describe()
            if found is None or found.state is not AppState.RUNNING or not (self.folder / "tried").exists():
                return None
            replicas = [replica for role in found.roles_statuses for replica in role.replicas]
            running = [one for one in replicas if one.state is AppState.RUNNING]
            return found if len(running) == 3 and self.is_second(found) else None

        return wait_until(described, f"the second try of {handle}", 3 * PATIENCE)

    def is_second(self, described):
        """Return whether the trainer was restarted: Docker restarts the container, Volcano the job."""
        _, trainer = described.roles_statuses
        return trainer.replicas[0].restarts == 1 if self.is_docker else described.num_restarts == 1

    def running_for_them(self, handle):
        """Return the roles and numbers of the replicas that run, as TorchX shows them."""
        return sorted(re.findall(r"(\w+)\[(\d)\]:RUNNING", self.cli("status", handle)))

    def listed_by_them(self, handle):
        """Return the row of a job in TorchX's list."""
        options = [f"{name}={value}" for name, value in self.cfg.items()]
        listed = self.cli("list", "-s", self.scheduler, *(("-cfg", ",".join(options)) if options else ()))
        return next(line for line in listed.splitlines() if handle in line)


@pytest.fixture(params=["local_docker", "kubernetes"])
def backend(request, python, cli, tmp_path):
    scheduler, params = request.param, {}
    cfg = dict(CFG[scheduler])
    if scheduler == "local_docker":
        request.getfixturevalue("docker_engine")
    else:
        # Ours uses the namespace of its settings, TorchX that of the handle.
        cfg["namespace"] = request.getfixturevalue("kubernetes_cluster").namespace
        params = {"kubernetes": {"namespace": cfg["namespace"]}}
    folder = tmp_path / "data"
    folder.mkdir(mode=0o777)
    with Runner(journal=Journal(tmp_path / "journal"), scheduler_params=params) as runner:
        made = Backend(scheduler, runner, python, cli, folder, cfg)
        yield made
        for handle in made.handles:
            with suppress(our_specs.TorchXTuiError):
                runner.job(handle).delete()


ALL = [("reader", "0"), ("reader", "1"), ("trainer", "0")]


def assert_is_the_job(backend, described, app_id):
    """Check that what is described is what was launched; the macros have the values of the first replica."""
    made = cross_launched.make_job(our_specs, str(backend.folder)).roles
    values = our_specs.macros.Values(img_root="", app_id=app_id.partition(":")[2] or app_id, replica_id="0")
    launched = [values.apply(role) for role in made]
    assert [role.name for role in described.roles] == ["reader", "trainer"]
    for role, wanted in zip(described.roles, launched, strict=True):
        assert (role.image, role.entrypoint, role.args) == (wanted.image, wanted.entrypoint, wanted.args)
        # The retries of a Volcano job are those of all its roles.
        retries = wanted.max_retries if backend.is_docker else 0
        assert (role.num_replicas, role.max_retries) == (wanted.num_replicas, retries)
        assert role.mounts == [BindMount(str(backend.folder), "/data")]
        assert (role.resource.cpu, role.resource.gpu, role.resource.memMB) == (1, 0, 64)
        assert role.env == wanted.env


class TestTheirs:
    def test_is_described_read_launched_again_and_deleted(self, backend):
        handle = backend.launch_theirs()
        app_id = parse_app_handle(handle).app_id
        assert_is_the_job(backend, backend.ran_again(handle), app_id)
        assert {path.name for path in backend.folder.iterdir()} == {"reader-0", "reader-1", "tried"}
        found = row(backend.runner, handle)
        assert (found.state, found.replicas_running, found.replicas_wanted) == (AppState.RUNNING, 3, 3)
        assert not found.foreign
        for k in (0, 1):
            lines = backend.runner.job(handle).log_lines("reader", k, should_tail=True)
            with closing(lines):
                assert next(iter(lines)) == f"hello of {app_id.partition(':')[2] or app_id} from {k}\n"

        again = backend.noted(backend.runner.relaunch(handle))
        assert again != handle
        assert_is_the_job(backend, reached(backend.runner, again, AppState.RUNNING), app_id)
        # The copy is TorchX's as well, as is what it launched itself.
        assert backend.running_for_them(again) == backend.running_for_them(handle) == ALL

        backend.runner.job(handle).delete()
        wait_until(lambda: backend.runner.job(handle).describe() is None, "the job's end")
        assert row(backend.runner, handle) is None
        assert row(backend.runner, again) is not None

    def test_is_cancelled(self, backend):
        handle = backend.launch_theirs(UNTIL_CANCELLED, replicas=2)
        described = reached(backend.runner, handle, AppState.RUNNING)
        (role,) = described.roles
        assert (described.name, described.user, role.name, role.num_replicas) == ("sh", "", "sh", 2)
        backend.runner.job(handle).cancel()
        described = reached(backend.runner, handle, AppState.CANCELLED)
        assert described.msg.startswith("cancelled by ") or not backend.is_docker
        assert row(backend.runner, handle).state == AppState.CANCELLED

    def test_fails_the_same_when_launched_again(self, backend):
        handle = backend.launch_theirs("echo once; exit 3")
        assert reached(backend.runner, handle, AppState.FAILED).msg == "exit 3: sh/0"
        again = backend.noted(backend.runner.relaunch(handle))
        assert reached(backend.runner, again, AppState.FAILED).msg == "exit 3: sh/0"
        assert list(backend.runner.job(again).log_lines("sh")) == ["once\n"]


class TestOurs:
    def test_is_described_read_and_deleted_by_them(self, backend):
        handle = backend.launch_ours()
        app_id = parse_app_handle(handle).app_id
        backend.ran_again(handle)
        assert backend.running_for_them(handle) == ALL
        described = backend.cli("describe", handle)
        assert "reader" in described
        assert "trainer" in described
        assert "RUNNING" in backend.listed_by_them(handle)
        for k in (0, 1):
            assert f"hello of {app_id.partition(':')[2] or app_id} from {k}" in backend.cli(
                "log", f"{handle}/reader/{k}"
            )
        assert "again" in backend.cli("log", f"{handle}/trainer/0")

        backend.cli("delete", handle)
        if backend.is_docker:
            # TorchX stops containers and leaves them; these exit with 0 when they are stopped.
            reached(backend.runner, handle, AppState.SUCCEEDED)
        else:
            wait_until(lambda: backend.runner.job(handle).describe() is None, "the job's end")

    def test_success_is_seen_by_them(self, backend):
        handle = backend.launch_ours("echo hello from here", replicas=2)
        reached(backend.runner, handle, AppState.SUCCEEDED)
        assert "SUCCEEDED" in backend.listed_by_them(handle)
        status = json.loads(backend.cli("status", "--json", handle))
        assert (status["state"], status["app_id"]) == ("SUCCEEDED", parse_app_handle(handle).app_id)
        if backend.is_docker:
            # On Kubernetes, TorchX shows replicas while they run.
            assert [sorted(one["id"] for one in role["replicas"]) for role in status["roles"]] == [[0, 1]]
        assert "hello from here" in backend.cli("log", f"{handle}/worker/1")

    def test_is_cancelled_by_them(self, backend):
        handle = backend.launch_ours(UNTIL_CANCELLED)
        reached(backend.runner, handle, AppState.RUNNING)
        backend.cli("cancel", handle)
        if backend.is_docker:
            # The engine does not record a cancel by others.
            assert reached(backend.runner, handle, AppState.FAILED).msg == "exit 5: worker/0"
        else:
            described = reached(backend.runner, handle, AppState.CANCELLED)
            assert described.roles_statuses[0].replicas[0].state is AppState.CANCELLED
