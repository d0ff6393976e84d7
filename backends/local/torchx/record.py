"""What is known of a job of TorchX, written down as the state file of our own apps is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ....base.files import path_exists, user_name
from ....specs.roles import AppDef, Role
from ....specs.serialize import appdef_to_dict
from ....specs.status import MISSING, AppState, is_terminal
from ...shared.found_macros import Place, command_as_given, variable_as_given
from ...shared.kept_app_def import LAUNCH_VARIABLES, RANK0_HOST
from ..environment import ELASTIC_LOG_DIR, ERROR_FILE
from ..record import TORCHX_FOLDER
from ..supervisor import FORMAT
from .live import LiveJob, app_name
from .live import Place as ReplicaPlace
from .processes import JobProcess

# What TorchX's command line or a shell sets anew for each process.
_OF_SHELLS = ("LOGLEVEL", "PYTHONUNBUFFERED", "PATH", "PWD", "OLDPWD", "_", "SHLVL")
_NOT_OF_ROLES = {*LAUNCH_VARIABLES, ERROR_FILE, ELASTIC_LOG_DIR, *_OF_SHELLS}
_MOST_BYTES = 1 << 22


def new_document(app_id: str, job_id: str, folder: Path | None, started_at: float) -> dict[str, Any]:
    """Return the document of a job that runs, without its replicas."""
    return {
        "format": FORMAT,
        "app_id": app_id,
        "name": app_name(app_id),
        "user": user_name(),
        "host": os.uname().nodename,
        "job_id": job_id,
        "submitted_at": started_at,
        "started_at": started_at,
        "finished_at": None,
        "timeline": [[AppState.RUNNING.name, started_at]],
        "state": AppState.RUNNING.name,
        "cancel": None,
        "waits_for": [],
        "notes": [],
        TORCHX_FOLDER: "" if folder is None else str(folder),
        "log_dir": "" if folder is None else str(folder),
        "replicas": [],
        "app": {},
        "cfg": {},
    }


def new_replica(folder: Path | None, place: ReplicaPlace, process: JobProcess | None = None) -> dict[str, Any]:
    """Describe a replica by its first process, or only that it was there."""
    role, number = place
    return {
        "role": role,
        "id": number,
        "pid": process.pid if process else None,
        "pid_started": process.start if process else None,
        "exit_code": None,
        "started_at": process.started_at if process else None,
        "finished_at": None,
        "error_file": None if folder is None else str(folder / role / str(number) / "error.json"),
        "gone": process is None,
    }


def launched_roles(job: LiveJob, lost: list[str]) -> dict[str, Role]:
    """Return the roles as far as the first processes of their replicas tell; the image is not known.

    Macros that stand replaced in arguments and variables are found again.

    Args:
        job: the job.
        lost: gets what could not be rebuilt.
    """
    random_id = job.app_id if app_name(job.app_id) != job.app_id else ""
    roles: dict[str, Role] = {}
    for name in dict.fromkeys(role for role, _ in job.leaders):
        replicas = [(number, process) for (role, number), process in job.leaders.items() if role == name]
        places = [Place(random_id, number, (RANK0_HOST,)) for number, _ in replicas]
        roles[name] = _role(name, [process for _, process in replicas], places, lost)
    return roles


def _role(name: str, replicas: list[JobProcess], places: list[Place], lost: list[str]) -> Role:
    commands = [_texts(process.pid, "cmdline") or [MISSING] for process in replicas]
    entrypoint, *args = command_as_given(commands, places, name, lost)
    values = [_role_env(process) for process in replicas]
    env = {variable: variable_as_given(variable, values, places, name, lost) for variable in values[0]}
    return Role(name, "", entrypoint=entrypoint, args=args, env=env, num_replicas=len(replicas))


def app_document(name: str, roles: Mapping[str, Role], places: Iterable[ReplicaPlace]) -> dict[str, Any]:
    """Return the AppDef of a job as a document: a role that nothing is known of has its name alone."""
    counts: dict[str, int] = {}
    for role, _ in places:
        counts[role] = counts.get(role, 0) + 1
    made = []
    for role, count in counts.items():
        known = roles.get(role) or Role(role, "")
        known.num_replicas = count
        made.append(known)
    return appdef_to_dict(AppDef(name, made), strict=False)


def places_in(folder: Path) -> Iterator[tuple[ReplicaPlace, float]]:
    """Yield the replicas whose logs are in a job's folder, each with the time when its role's folder was made."""
    try:
        with os.scandir(folder) as roles:
            for role in roles:
                if not role.name.isprintable() or not role.is_dir(follow_symlinks=False):
                    continue
                with os.scandir(role.path) as replicas:
                    numbers = [int(entry.name) for entry in replicas if entry.name.isascii() and entry.name.isdigit()]
                made_at = role.stat(follow_symlinks=False).st_mtime
                for number in sorted(numbers):
                    if path_exists(Path(role.path) / str(number) / "stdout.log"):
                        yield (role.name, number), made_at
    except (OSError, ValueError):
        return


def final_document(document: dict[str, Any], success: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with what the file SUCCESS says of the job's end.

    Raises:
        KeyError, TypeError, ValueError: it is not what TorchX writes.
    """
    ended_at = float(success["last_updated"])
    if not 0 <= ended_at < 2**40:
        raise ValueError(f"no time: {ended_at}")
    state = AppState[success["final_state"]]
    # TorchX writes the file before it notes that the job was cancelled.
    cancelled = not is_terminal(state)
    codes = {place: (pid, code) for place, pid, code in _ended_replicas(success)}
    known = {(entry["role"], entry["id"]): entry for entry in document["replicas"]}
    replicas = []
    for place in [*known, *(place for place in codes if place not in known)]:
        entry = known.get(place) or new_replica(Path(document[TORCHX_FOLDER]), place)
        pid, code = codes.get(place, (entry["pid"], None))
        replicas.append({**entry, "pid": pid, "exit_code": code, "finished_at": ended_at})
    return {
        **document,
        "state": (AppState.CANCELLED if cancelled else state).name,
        "finished_at": ended_at,
        "cancel": {"by": "", "at": ended_at} if cancelled else None,
        "timeline": [*document["timeline"], [(AppState.CANCELLED if cancelled else state).name, ended_at]],
        "replicas": replicas,
    }


def _ended_replicas(success: Mapping[str, Any]) -> Iterator[tuple[ReplicaPlace, int | None, int | None]]:
    for role, rows in success["roles"].items():
        if "/" in role or role in ("", ".", "..") or not role.isprintable():
            continue  # such a folder is not looked for
        for row in rows:
            pid, code = row["pid"], row["exitcode"]
            yield (
                (role, int(row["replica_id"])),
                int(pid) if pid is not None else None,
                int(code) if code is not None else None,
            )


def _role_env(process: JobProcess) -> dict[str, str]:
    """List the variables of a replica that its launcher does not have; none where the launcher has ended."""
    theirs = _texts(process.parent, "environ")
    if not theirs:
        return {}
    inherited = set(theirs)
    env = (pair.partition("=")[::2] for pair in _texts(process.pid, "environ") if "=" in pair and pair not in inherited)
    return {name: value for name, value in env if name not in _NOT_OF_ROLES and not name.startswith("TORCHX_")}


def _texts(pid: int, file: str) -> list[str]:
    """Return the texts of a process's command line or environment; none where they cannot be read."""
    try:
        with Path(f"/proc/{pid}/{file}").open("rb") as opened:
            data = opened.read(_MOST_BYTES)
    except OSError:
        return []
    return [text.decode("utf-8", "replace") for text in data.removesuffix(b"\0").split(b"\0")] if data else []
