"""What this machine has, and what would go wrong with an app before it is launched here."""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterable
from pathlib import Path

from ...specs import AppDef
from ..shared.logout import logout_findings
from ..types import Finding
from ..workspace.scripts import python_command, script_findings
from .environment import count_gpus, launcher_environment, wanted_gpus
from .request import PopenRequest

_PORT = re.compile(r"--(?:master[-_]port|port)[= ](?P<port>\d{2,5})\b")
# torchrun's HOST:PORT; a port of another machine is none of ours.
_ENDPOINT = re.compile(r"--rdzv[-_]endpoint[= ]\S*?(?:localhost|127\.0\.0\.1)\S*?:(?P<port>\d{2,5})\b")


def machine_findings(folder: Path) -> list[Finding]:
    """Check this machine: its CPUs, GPUs and memory, and whether state can be written.

    Args:
        folder: where state is kept; it may be missing yet.
    """
    import psutil  # 20 ms

    gpus = count_gpus()
    memory = psutil.virtual_memory().total / 1e9
    found = [Finding("ok", f"this machine: {os.cpu_count()} cpu, {gpus} gpu, {memory:.0f} GB")]
    existing = next((path for path in (folder, *folder.parents) if path.exists()), folder)
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
        path = os.pathsep.join(part for part in (param.env.get("PATH", ""), inherited) if part)
        if not Path(cwd).is_dir():
            yield Finding("error", f"{role}: the working folder {cwd} does not exist", "create it, or start elsewhere")
            continue
        # What a shell starts is looked for as well, where that is Python.
        for program in dict.fromkeys([command, *python_command(param.args)[:1]]):
            if "/" in program and not (Path(cwd, program).is_file() and os.access(Path(cwd, program), os.X_OK)):
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
        yield Finding("warning", f"{wanted} gpu asked for, this machine has none", "it starts all the same")
    elif wanted > available:
        yield Finding(
            "warning",
            f"{wanted} gpu asked for, this machine has {available}",
            "replicas will share them: ask for fewer",
        )
