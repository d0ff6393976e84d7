"""One local app: its state file, and whether it still runs, and where."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ...base.files import LARGE, path_exists, read_file
from ...base.processes import boot_id, is_own, is_running, job_processes
from ...specs.roles import AppDef
from ...specs.serialize import appdef_from_dict
from ...specs.status import AppState
from . import supervisor

FORMAT = supervisor.FORMAT
# Errors of `read_file` if the path is a folder, a pipe, a device, or too large a file.
_NOT_A_STATE_FILE = (errno.EISDIR, errno.EINVAL, errno.EFBIG)
# A supervisor writes a heartbeat every 5 s; on a busy network file system it is seen late.
_QUIET_SECONDS = 30.0
STUCK_SECONDS = supervisor.HEARTBEAT_SECONDS + 2.0
"""Seconds without a heartbeat after which a supervisor of this machine, whose writes are seen at once, cannot write."""


@dataclass
class Run:
    """One app.

    Args:
        app_id: its id.
        folder: its folder.
        document: its state file's content, empty where that is damaged.
        state: the state that it is in, by what can be seen now.
        over: it has ended, even if the outcome is unknown.
        supervised: its supervisor is alive, as far as this machine can see.
        here: it runs, or ran, on this machine.
        read_only: a newer version of this program wrote it.
        is_lost: its end is in no state file.
        reason: why it is in a state that its supervisor did not write.
        notes: what else should be known of it.
    """

    app_id: str
    folder: Path
    document: dict[str, Any]
    state: AppState = AppState.UNKNOWN
    over: bool = False
    supervised: bool = False
    here: bool = True
    read_only: bool = False
    is_lost: bool = False
    reason: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def replicas(self) -> list[dict[str, Any]]:
        """The replicas as the state file lists them: role, id, pid, exit_code and so on."""
        return self.document.get("replicas", [])

    @property
    def job_id(self) -> str:
        """The TORCHX_JOB_ID that its processes carry."""
        return self.document.get("job_id", "")

    @cached_property
    def app(self) -> AppDef:
        """The AppDef that was launched.

        Raises:
            AppDefError: a newer version wrote it in a way that cannot be read.
        """
        return appdef_from_dict(self.document["app"])

    def replica_folder(self, role: str, number: int) -> Path:
        """Return the folder of one replica's logs."""
        return self.folder / role / str(number)


def read_run(app_id: str, folder: Path) -> Run | None:
    """Return an app as it is now, None when its folder has no state file.

    Raises:
        OSError: the state file cannot be read at present.
    """
    path = folder / "state.json"
    try:
        if not is_own(path) and path_exists(path):
            return _damaged(app_id, folder, "another user owns it")
        text = read_file(path, LARGE)
        while True:
            run = _parse(app_id, folder, text)
            if run.supervised or not run.reason:
                return run
            # A supervisor writes the end and then exits: that it has exited counts only if the file is still the same.
            before, text = text, read_file(path, LARGE)
            if text == before:
                return run
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno not in _NOT_A_STATE_FILE:
            raise
        return _damaged(app_id, folder, str(error.strerror))


def _damaged(app_id: str, folder: Path, fault: str) -> Run:
    path = folder / "state.json"
    reason = f"its state file is damaged: {path}: {fault}. Its logs are beside it; deleting the job removes them too"
    return Run(app_id, folder, {}, over=True, reason=reason)


def _parse(app_id: str, folder: Path, text: bytes) -> Run:
    from .state_file import read_document  # 20 ms, and a launch needs none of it

    try:
        run = Run(app_id, folder, read_document(text))
    except ValueError as error:
        return _damaged(app_id, folder, str(error))
    document = run.document
    run.state = AppState[document["state"]]
    run.over = document.get("finished_at") is not None
    run.notes = list(document.get("notes", []))
    run.reason = document.get("reason", "")
    run.here = document["host"] == os.uname().nodename
    if document["format"] > FORMAT:
        run.read_only = True
        run.notes.append("written by a newer torchx-tui: install that version to change the job")
    if not run.over:
        _check_processes(run)
    return run


def _check_processes(run: Run) -> None:
    """Find out whether an app that has no end in its state file still runs."""
    document = run.document
    same_boot = document["boot_id"] == boot_id()
    if run.here and not same_boot and document["heartbeat"] > _boot_time():
        run.here = False  # another machine of the same name: this one has not restarted since
    run.supervised = True
    quiet = max(0.0, time.time() - document["heartbeat"])
    if not run.here:
        run.notes.append(f"on {document['host']}, last heard from {format_age(quiet)} ago")
    elif not same_boot:
        _set_lost(run, AppState.FAILED, "the machine restarted")
    elif not is_running(document["pid"], document["pid_started"]):
        _check_unsupervised(run)
    elif quiet > STUCK_SECONDS and _was_started(run) and not _is_alive(run):
        asked = document.get("cancel") or is_own(run.folder / "cancel.json")
        reason = "its processes have ended, but its state cannot be written: is the disk full?"
        _set_lost(run, AppState.CANCELLED if asked else AppState.UNKNOWN, reason)
    elif quiet > _QUIET_SECONDS:
        run.notes.append(f"its state was written {format_age(quiet)} ago: is the disk full?")


def _was_started(run: Run) -> bool:
    return any(entry["pid"] for entry in run.replicas)


def _is_alive(run: Run) -> bool:
    """Return whether a process of an app runs, by the process table and not by the state file."""
    return any(is_running(entry["pid"], entry["pid_started"]) for entry in run.replicas) or bool(
        # What torchrun left, or replicas that were started just before the supervisor could write their pids.
        job_processes(run.job_id, set())
    )


def _check_unsupervised(run: Run) -> None:
    """Find out what became of an app whose supervisor was killed."""
    if _is_alive(run):
        run.supervised = False
        run.state = AppState.RUNNING
        run.notes.append("unsupervised")
        run.reason = "its supervisor was killed: how its replicas end will not be known"
    elif not _was_started(run) and run.document.get("started_at") is None:
        _set_lost(run, AppState.FAILED, "its supervisor was killed before it started the replicas")
    else:
        _set_lost(run, AppState.UNKNOWN, "its supervisor was killed: how its replicas ended is not known")


def _set_lost(run: Run, state: AppState, reason: str) -> None:
    """Set an end that no supervisor has written."""
    run.state, run.reason, run.over, run.supervised, run.is_lost = state, reason, True, False, True
    ended_at = _last_sign(run)
    run.document.update(reason=reason, state=state.name, finished_at=ended_at)
    run.document["timeline"].append([state.name, ended_at])


def _last_sign(run: Run) -> float:
    """Return when the app was last known to run: the last heartbeat or output."""
    times = [float(run.document["heartbeat"])]
    for entry in run.replicas:
        for name in ("stdout.log", "stderr.log"):
            with suppress(OSError):
                times.append((run.replica_folder(entry["role"], entry["id"]) / name).stat().st_mtime)
    return min(max(times), time.time())


def _boot_time() -> float:
    """Return when this machine started, in seconds since the epoch; "btime" of proc_stat(5)."""
    with suppress(OSError):
        for line in Path("/proc/stat").read_text().splitlines():
            if line.startswith("btime "):
                # A minute of room: the clock may have been set since.
                return float(line.split()[1]) + 60.0
    return float("inf")


def format_age(seconds: float) -> str:
    """Return a duration with one unit, such as "40 s" or "3 h"."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size or (seconds >= size and unit == "min"):
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
