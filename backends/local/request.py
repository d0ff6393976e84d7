"""The request of local_cwd: the processes to start, its text, and checks before a launch."""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...base.files import is_file, is_folder, path_exists
from ...specs.errors import AppDefError
from ...specs.handles import make_app_handle
from ...specs.roles import AppDef, Role, macros
from ..api import check_launchable
from ..options import StructuredOpts
from ..shared.insight import insight_environment
from ..shared.kept_app_def import RANK0_HOST
from ..shared.logout import logout_findings
from ..shared.progress import while_wanted
from ..shared.readable_yaml import readable_yaml
from ..shared.secrets import mask_data
from ..types import Finding, NameFault
from ..workspace.scripts import python_command, script_findings
from . import environment
from .environment import VISIBLE_DEVICES, count_gpus, launcher_environment, visible_devices, wanted_gpus
from .image_provider import ImageProvider, ReplicaParam
from .python import JobPython, job_python

INSIGHT = "insight"
# The id is the name and up to 15 characters; files are named after it with up to 25 more, and a folder or file has 255.
_MOST_BYTES = 200
_MOST_SHOWN = 40
_PORT = re.compile(r"--(?:master[-_]port|port)[= ](?P<port>\d{2,5})\b")
# torchrun's HOST:PORT, if the host is this machine.
_ENDPOINT = re.compile(r"--rdzv[-_]endpoint[= ]\S*?(?:localhost|127\.0\.0\.1)\S*?:(?P<port>\d{2,5})\b")


def check_app(app: AppDef, session_name: str) -> None:
    """Refuse an app that cannot run here.

    Raises:
        AppDefError: a name cannot be that of a folder, or two roles have one name.
    """
    if session_name:
        check_name("The session's name", session_name)
    check_launchable(app)
    for fault in name_faults(app):
        raise AppDefError(f"{fault.what} is {_shown(fault.name)}: {fault.words}")
    for role in app.roles:
        _check_texts(role.name, [role.entrypoint, *role.args], role.env)


def name_faults(app: AppDef) -> Iterator[NameFault]:
    """Yield the names of an app and its roles that cannot be those of folders."""
    seen: set[str] = set()
    for role, name in [("", app.name), *((role.name, role.name) for role in app.roles)]:
        if words := _fault(name):
            yield NameFault(role, name, *words)
        elif role in seen:
            reason = f"{app.name} has two roles {name}, and their logs would be one"
            yield NameFault(role, name, reason, "rename one of them")
        seen.add(role)


def check_name(what: str, name: str) -> None:
    """Refuse a name that cannot be that of a folder.

    Raises:
        AppDefError: what is wrong with it.
    """
    if words := _fault(name):
        raise AppDefError(f"{what} is {_shown(name)}: {words[0]}, so {words[1]}")


def _fault(name: str) -> tuple[str, str] | None:
    """Return why a name cannot be a folder's, and what it can be; None where it can."""
    becomes = "it becomes a folder's name"
    if not name:
        return becomes, "give one"
    if "/" in name or name in (".", ".."):
        return becomes, "it can have no slash and not be dots alone"
    if not name.isprintable():
        return becomes, "it can have no control characters"
    if len(name.encode("utf-8", "surrogateescape")) > _MOST_BYTES:
        return "it is too long for a folder's name", f"it can have up to {_MOST_BYTES} bytes"
    return None


def _shown(name: str) -> str:
    if not name:
        return "empty"
    return repr(name) if not name.isprintable() else name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}…"


def _check_texts(role: str, args: list[str], env: dict[str, str]) -> None:
    for text in (*args, *env, *env.values()):
        if not isinstance(text, str):
            raise AppDefError(f"Role {role}: {text!r} in its arguments or environment is not text")
        if "\0" in text:
            raise AppDefError(f"Role {role}: an argument or variable has a NUL character, which no program accepts")
    for name in env:
        if not name or "=" in name:
            raise AppDefError(f"Role {role}: {name!r} cannot be the name of an environment variable")


@dataclass
class LocalOpts(StructuredOpts):
    """Names and texts are TorchX's, as `torchx runopts local_cwd` prints them."""

    log_dir: str | None = None
    """Directory to write stdout/stderr log files of replicas."""

    prepend_cwd: bool = False
    """If set, prepends CWD to replica's PATH env var making binaries in CWD take precedence."""

    auto_set_cuda_visible_devices: bool = False
    """Sets CUDA_VISIBLE_DEVICES for roles that request GPU resources."""


@dataclass
class PopenRequest:
    """What is started for one app.

    Args:
        app_id: the app's id.
        log_dir: the app's folder.
        role_params: how each replica is started, by role.
        role_log_dirs: the folder of each replica, by role.
        private: whether the folder is below the state folder, not below a ``log_dir``.
        insight: whether ranks can be asked why they hang, see `insight_environment`; what that takes is added to the
            environment of each replica when it is started, since `role_params` are TorchX's.
    """

    app_id: str
    log_dir: str
    role_params: dict[str, list[ReplicaParam]] = field(default_factory=dict)
    role_log_dirs: dict[str, list[str]] = field(default_factory=dict)
    private: bool = field(default=True, kw_only=True)
    insight: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        # No field: the JSON of a request has TorchX's fields.
        self.pythons: dict[str, JobPython] = {}
        """The Python of each role that has one."""

    def insight_folders(self) -> list[Path]:
        """Return the folders that are made for `insight`."""
        return [Path(self.log_dir, INSIGHT, role) for role in self.role_params] if self.insight else []

    def started_environment(self, role: str, param: ReplicaParam, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of one replica beyond those that it inherits."""
        env = environment.replica_environment(inherited, param.env)
        if self.insight:
            env.update(insight_environment(Path(self.log_dir, INSIGHT, role), {**inherited, **env}))
        return env

    def replicas(self) -> Iterable[tuple[str, int, ReplicaParam]]:
        """Yield role, number and start of every replica, in order."""
        for role, params in self.role_params.items():
            for number, param in enumerate(params):
                yield role, number, param

    def __str__(self) -> str:
        return readable_yaml(_as_data(self))


def make_request(
    app: AppDef, app_id: str, folder: Path, session: str, opts: LocalOpts, images: ImageProvider, extra_paths: list[str]
) -> PopenRequest:
    """Return the request for an app.

    Args:
        app: the app.
        app_id: the id that it gets.
        folder: the folder that it gets.
        session: the session part of its handle.
        opts: the run options.
        images: makes the roles' images available.
        extra_paths: folders that are searched for programs first.

    Raises:
        AppDefError: an image cannot be had.
    """
    request = PopenRequest(app_id, str(folder), private=not opts.log_dir)
    devices = visible_devices(app, count_gpus()) if opts.auto_set_cuda_visible_devices else {}
    for role in app.roles:
        img_root = images.fetch_role(role)
        params, folders = [], []
        python = job_python(role, images.get_cwd(role.image))
        if python is not None:
            request.pythons[role.name] = python
        paths = [*extra_paths, *(python.folders if python else [])]
        for number in while_wanted(range(role.num_replicas)):
            here = folder / role.name / str(number)
            values = macros.Values(img_root, app_id, str(number), rank0_env=RANK0_HOST)
            param = images.get_replica_param(
                img_root, values.apply(role), *(str(here / f"{name}.log") for name in ("stdout", "stderr", "combined"))
            )
            _complete(param, role, folder, here, opts, [values.substitute(path) for path in paths])
            if python is not None and param.args[0] == python.entrypoint:
                param.args[0] = python.program
            param.env.setdefault(environment.JOB_ID, make_app_handle("local_cwd", session, app_id))
            if role.name in devices:
                param.env[VISIBLE_DEVICES] = devices[role.name][number]
            params.append(param)
            folders.append(str(here))
        request.role_params[role.name] = params
        request.role_log_dirs[role.name] = folders
    return request


def _complete(
    param: ReplicaParam, role: Role, folder: Path, here: Path, opts: LocalOpts, extra_paths: list[str]
) -> None:
    """Add what TorchX sets for every local replica."""
    param.env["PATH"] = environment.role_path(param.env, extra_paths, param.cwd, opts.prepend_cwd)
    param.env[RANK0_HOST] = "localhost"
    param.env.setdefault(environment.ERROR_FILE, str(here / "error.json"))
    param.env.setdefault(environment.ELASTIC_LOG_DIR, str(folder / "torchelastic" / role.name))


def _as_data(request: PopenRequest) -> dict[str, Any]:
    """Return a request as plain data, secret values masked."""
    inherited = launcher_environment() if request.insight else {}

    def shown(role: str, param: ReplicaParam) -> dict[str, str]:
        return {**request.started_environment(role, param, inherited), **param.env} if request.insight else param.env

    roles = {
        role: [
            {
                "replica": number,
                "command": param.args,
                "cwd": param.cwd or os.curdir,
                "env": dict(sorted(shown(role, param).items())),
            }
            for number, param in enumerate(params)
        ]
        for role, params in request.role_params.items()
    }
    return mask_data({"app_id": request.app_id, "log_dir": request.log_dir, "roles": roles})


def machine_findings(folder: Path) -> list[Finding]:
    """Check this machine: its CPUs, GPUs and memory, and whether state can be written.

    Args:
        folder: where state is kept; it may be missing yet.
    """
    import psutil  # 20 ms

    gpus = count_gpus()
    memory = psutil.virtual_memory().total / 1e9
    found = [Finding("ok", f"this machine: {os.cpu_count()} cpu, {gpus} gpu, {memory:.0f} GB")]
    existing = next((path for path in (folder, *folder.parents) if path_exists(path)), folder)
    if not os.access(existing, os.W_OK):
        found.append(Finding("error", f"{existing} cannot be written", "set XDG_STATE_HOME to a folder that can"))
    return [*found, *logout_findings()]


def launch_findings(app: AppDef, request: PopenRequest) -> list[Finding]:
    """Find what would go wrong with a launch.

    Args:
        app: the app.
        request: its request.
    """
    return [*_commands(request), *_ports(app, request), *_gpus(app)]


def _commands(request: PopenRequest) -> Iterable[Finding]:
    inherited = launcher_environment()["PATH"]
    for role, params in request.role_params.items():
        param = params[0]
        command, cwd = param.args[0], param.cwd or os.curdir
        path = os.pathsep.join(part for part in (param.env["PATH"], inherited) if part)
        if not is_folder(cwd):
            yield Finding("error", f"{role}: the working folder {cwd} does not exist", "create it, or start elsewhere")
            continue
        # A Python that a shell starts must exist as well.
        for program in dict.fromkeys([command, *python_command(param.args)[:1]]):
            if "/" in program and not (is_file(Path(cwd, program)) and os.access(Path(cwd, program), os.X_OK)):
                yield Finding("error", f"{role}: {program} is not an executable file", "check the path and chmod +x")
            elif "/" not in program and shutil.which(program, path=path) is None:
                yield Finding("error", f"{role}: no such command: {program}", "install it, or activate its environment")
        yield from script_findings(role, param.args, cwd)


def _ports(app: AppDef, request: PopenRequest) -> Iterable[Finding]:
    wanted = {port: f"{role.name}: port {port} ({name})" for role in app.roles for name, port in role.port_map.items()}
    for role, params in request.role_params.items():
        command = " ".join(params[0].args)
        for found in (*_PORT.finditer(command), *_ENDPOINT.finditer(command)):
            wanted.setdefault(int(found["port"]), f"{role}: port {found['port']}")
    for port, what in wanted.items():
        if 0 < port < 65536 and _is_taken(port):
            yield Finding("warning", f"{what} is taken by another process", "choose another one, or 0 for any")


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        # As servers do: a port that is only waiting out its last connection is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except PermissionError:
            return False
        except OSError:
            return True
    return False


def _gpus(app: AppDef) -> Iterable[Finding]:
    wanted = wanted_gpus(app)
    if not wanted:
        return
    available = count_gpus()
    if not available:
        yield Finding("warning", f"{wanted} gpu asked for, this machine has none", "it starts anyway")
    elif wanted > available:
        yield Finding(
            "warning",
            f"{wanted} gpu asked for, this machine has {available}",
            "replicas will share them: ask for fewer",
        )
