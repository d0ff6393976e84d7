"""A scheduler as others write them, against TorchX's classes alone: each replica is a process of this machine."""

# Copied into a folder of its own by the tests: it imports nothing of this project.
from __future__ import annotations

import builtins
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from torchx.schedulers.api import DescribeAppResponse, ListAppResponse, Scheduler, Stream, StructuredOpts
from torchx.specs import AppDef, AppDryRunInfo, AppState, ReplicaStatus, Role, RoleStatus, macros, runopts

_POLL_SECONDS = 0.05


@dataclass
class ProcessOpts(StructuredOpts):
    """What can be chosen."""

    folder: str
    """Where apps are kept."""

    nice: int = 0
    """How nice
    the processes are."""

    labels: dict[str, str] | None = None
    """What is noted beside."""


@dataclass
class Request:
    """What would be started."""

    app_id: str
    commands: dict[str, list[list[str]]]
    env: dict[str, dict[str, str]]


class ProcessScheduler(Scheduler[ProcessOpts]):
    """Starts processes, and finds them again by what it wrote."""

    def __init__(self, session_name: str, folder: str) -> None:
        super().__init__("processes", session_name)
        self._folder = Path(folder)
        print("a greeting that nobody asked for")  # noqa: T201
        print("a warning that nobody asked for", file=sys.stderr)  # noqa: T201

    def _run_opts(self) -> runopts:
        return ProcessOpts.as_runopts()

    def _submit_dryrun(self, app: AppDef, cfg: ProcessOpts) -> AppDryRunInfo[Request, ProcessOpts]:
        assert isinstance(cfg.nice, int)
        app_id = f"{app.name}-{time.time_ns()}"
        commands: dict[str, list[list[str]]] = {}
        for role in app.roles:
            for k in range(role.num_replicas):
                made = macros.Values(role.image, app_id, str(k), rank0_env="RANK0").apply(role)
                commands.setdefault(role.name, []).append([made.entrypoint, *made.args])
        request = Request(app_id, commands, {role.name: dict(role.env) for role in app.roles})
        return AppDryRunInfo(request, lambda request: json.dumps(request.commands, indent=2))

    def schedule(self, dryrun_info: AppDryRunInfo[Any, Any]) -> str:
        request: Request = dryrun_info.request
        for role, commands in request.commands.items():
            for k, command in enumerate(commands):
                folder = self._folder / request.app_id / role / str(k)
                folder.mkdir(parents=True)
                with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
                    # A shell notes the exit code, so that any later process can read it.
                    process = subprocess.Popen(
                        ["sh", "-c", '"$@"; echo $? >exit_code.new; mv exit_code.new exit_code', "-", *command],
                        cwd=folder, env={**os.environ, **request.env[role]}, start_new_session=True,
                        stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                    )  # fmt: skip
                (folder / "pid").write_text(str(process.pid))
        print("scheduled", request.app_id)  # noqa: T201
        return request.app_id

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        folder = self._folder / app_id
        if not folder.is_dir():
            return None
        roles, statuses = [], []
        for role in sorted(folder.glob("*/")):
            replicas = sorted(role.glob("*/"))
            roles.append(Role(role.name, image="", num_replicas=len(replicas)))
            found = [ReplicaStatus(int(one.name), _state(one), role.name, "localhost") for one in replicas]
            statuses.append(RoleStatus(role.name, found))
        states = {replica.state for status in statuses for replica in status.replicas}
        order = (AppState.CANCELLED, AppState.FAILED, AppState.RUNNING, AppState.SUCCEEDED)
        state = next((one for one in order if one in states), AppState.UNKNOWN)
        return DescribeAppResponse(app_id, state, roles=roles, roles_statuses=statuses)

    def describe_native(self, app_id: str) -> AppDryRunInfo[Any, Any] | None:
        folder = self._folder / app_id
        if not folder.is_dir():
            return None
        return AppDryRunInfo({"folder": str(folder)}, repr)

    def list(self, cfg: Mapping[str, Any] | None = None) -> builtins.list[ListAppResponse]:
        rows = []
        for folder in self._folder.iterdir() if self._folder.is_dir() else ():
            described = self.describe(folder.name)
            assert described is not None
            rows.append(ListAppResponse(folder.name, described.state, name=folder.name.rpartition("-")[0]))
        return rows

    def _cancel_existing(self, app_id: str) -> None:
        for replica in (self._folder / app_id).glob("*/*/"):
            if not (replica / "exit_code").exists():
                (replica / "cancelled").touch()
                with suppress(ProcessLookupError):
                    os.killpg(int((replica / "pid").read_text()), signal.SIGKILL)

    def _delete_existing(self, app_id: str) -> None:
        self._cancel_existing(app_id)
        shutil.rmtree(self._folder / app_id)

    def log_iter(
        self,
        app_id: str,
        role_name: str,
        k: int = 0,
        regex: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        should_tail: bool = False,
        streams: Stream | None = None,
    ) -> Iterable[str]:
        if streams == Stream.COMBINED:
            raise ValueError("use stdout or stderr")
        name = Stream(streams or Stream.STDERR).value
        return self._lines(self._folder / app_id / role_name / str(k) / name, app_id, should_tail)

    def _lines(self, path: Path, app_id: str, should_tail: bool) -> Iterator[str]:
        with open(path, newline="\n", errors="replace") as log:
            while True:
                described = self.describe(app_id)
                final = described is None or described.state != AppState.RUNNING
                yield from log
                if final or not should_tail:
                    return
                time.sleep(_POLL_SECONDS)


def _state(replica: Path) -> AppState:
    if (replica / "cancelled").exists():
        return AppState.CANCELLED
    if not (replica / "exit_code").exists():
        return AppState.RUNNING
    return AppState.SUCCEEDED if (replica / "exit_code").read_text().strip() == "0" else AppState.FAILED


def create(session_name: str, folder: str = "", **kwargs: Any) -> ProcessScheduler:
    """Return the scheduler, as TorchX wants it."""
    return ProcessScheduler(session_name, folder or os.environ.get("PROCESS_JOBS", "process-jobs"))
