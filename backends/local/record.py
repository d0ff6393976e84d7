"""One local app as its state file tells it, and what that means now: does it still run, and where."""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ...base.files import LARGE, path_exists, read_file
from ...base.processes import boot_id, is_own, is_running, job_processes
from ...base.validation import (
    Check,
    decode_json,
    find_invalid_field,
    is_count,
    is_integer,
    is_list_of,
    is_name,
    is_object,
    is_optional,
    is_path,
    is_text,
    is_time,
)
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


def _is_folder_name(value: Any) -> bool:
    return is_name(value) and "/" not in value and value not in (".", "..")


def _is_state(value: Any) -> bool:
    return isinstance(value, str) and value in AppState.__members__


def _is_change(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_state(value[0]) and is_time(value[1])


def _is_start_error(value: Any) -> bool:
    if not isinstance(value, list) or len(value) != 3:
        return False
    number, file, words = value
    return (number is None or is_integer(number)) and (file is None or is_path(file)) and is_text(words)


def _is_app(value: Any) -> bool:
    return is_object(value) and is_list_of(is_object)(value.get("roles", []))


def _is_cancel(value: Any) -> bool:
    return is_object(value) and not find_invalid_field(value, {}, {"by": is_text, "at": is_time})


_REQUIRED: dict[str, Check] = {
    "format": is_count,
    "state": _is_state,
    **dict.fromkeys(("host", "boot_id", "pid_started", "job_id", "name", "user"), is_text),
    **dict.fromkeys(("heartbeat", "submitted_at"), is_time),
    "pid": is_count,
    "timeline": is_list_of(_is_change),
    "app": _is_app,
    "replicas": is_list_of(is_object),
}
_OPTIONAL: dict[str, Check] = {
    **dict.fromkeys(("started_at", "finished_at"), is_optional(is_time)),
    **dict.fromkeys(("waits_for", "notes", "not_ended"), is_list_of(is_text)),
    **dict.fromkeys(("session", "reason", "app_id"), is_text),
    "log_dir": is_path,
    "cancel": is_optional(_is_cancel),
    "max_running": is_count,
    "cfg": is_object,
}
_REPLICA_REQUIRED: dict[str, Check] = {
    "role": _is_folder_name,
    "id": is_count,
    "pid": is_optional(is_count),
    "pid_started": is_optional(is_text),
    "exit_code": is_optional(is_integer),
}
_REPLICA_OPTIONAL: dict[str, Check] = {
    **dict.fromkeys(("started_at", "finished_at"), is_optional(is_time)),
    **dict.fromkeys(("error_file", "cwd"), is_optional(is_path)),
    "command": is_path,
    "not_started": is_optional(_is_start_error),
}


def read_document(text: bytes) -> dict[str, Any]:
    """Return the content of a state file.

    Raises:
        ValueError: it is not what a supervisor writes; the message names the first field at fault.
    """
    document = decode_json(text)
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    fault = find_invalid_field(document, _REQUIRED, _OPTIONAL)
    for number, entry in enumerate([] if fault else document["replicas"]):
        if wrong := find_invalid_field(entry, _REPLICA_REQUIRED, _REPLICA_OPTIONAL):
            fault = f"replicas[{number}].{wrong}"
            break
    if fault:
        raise ValueError(fault)
    return document


@dataclass
class Run:
    """One app.

    Args:
        app_id: its id.
        folder: its folder.
        document: its state file's content, empty where that is damaged.
        state: the state that it is in, by what can be seen now.
        over: nothing changes any more, even where the outcome is not known.
        supervised: its supervisor lives, as far as can be seen from this machine.
        here: it runs, or ran, on this machine.
        read_only: a newer version of this program wrote it.
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
            run = _judged(app_id, folder, text)
            # A supervisor writes the end and then goes: that it has gone counts only if the file is still the same.
            again = text if run.supervised or not run.reason else read_file(path, LARGE)
            if again == text:
                return run
            text = again
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


def _judged(app_id: str, folder: Path, text: bytes) -> Run:
    try:
        run = Run(app_id, folder, read_document(text))
    except ValueError as error:
        return _damaged(app_id, folder, str(error))
    _judge(run)
    return run


def _judge(run: Run) -> None:
    """Find out what the state file means now."""
    document = run.document
    run.state = AppState[document["state"]]
    run.over = document.get("finished_at") is not None
    run.notes = list(document.get("notes", []))
    run.reason = document.get("reason", "")
    run.here = document["host"] == os.uname().nodename
    if document["format"] > FORMAT:
        run.read_only = True
        run.notes.append("written by a newer torchx-tui: install that version to change the job")
    if run.over:
        return
    same_boot = document["boot_id"] == boot_id()
    if run.here and not same_boot and document["heartbeat"] > _booted_at():
        run.here = False  # another machine of the same name: this one has not restarted since
    run.supervised = True
    quiet = max(0.0, time.time() - document["heartbeat"])
    if not run.here:
        run.notes.append(f"on {document['host']}, last heard from {format_age(quiet)} ago")
    elif not same_boot:
        _lost(run, AppState.FAILED, "the machine restarted")
    elif not is_running(document["pid"], document["pid_started"]):
        _judge_unsupervised(run)
    elif quiet > STUCK_SECONDS and _has_ended(run):
        asked = document.get("cancel") or is_own(run.folder / "cancel.json")
        reason = "its processes have ended, but its state cannot be written: is the disk full?"
        _lost(run, AppState.CANCELLED if asked else AppState.UNKNOWN, reason)
    elif quiet > _QUIET_SECONDS:
        run.notes.append(f"its state was written {format_age(quiet)} ago: is the disk full?")


def _lives(run: Run) -> bool:
    """Tell whether a process of an app lives, by what the system says and not by the state file."""
    return any(is_running(entry["pid"], entry["pid_started"]) for entry in run.replicas) or bool(
        # What torchrun left, or replicas that were started just before the supervisor could write their pids.
        job_processes(run.job_id, set())
    )


def _has_ended(run: Run) -> bool:
    """Tell whether an app has ended, though its supervisor lives: replicas have run, and no process does now."""
    return any(entry["pid"] for entry in run.replicas) and not _lives(run)


def _judge_unsupervised(run: Run) -> None:
    """Find out what became of an app whose supervisor was killed."""
    if _lives(run):
        run.supervised = False
        run.state = AppState.RUNNING
        run.notes.append("unsupervised")
        run.reason = "its supervisor was killed: how its replicas end will not be known"
    elif not any(entry["pid"] for entry in run.replicas) and run.document.get("started_at") is None:
        _lost(run, AppState.FAILED, "its supervisor was killed before it started the replicas")
    else:
        _lost(run, AppState.UNKNOWN, "its supervisor was killed: how its replicas ended is not known")


def _lost(run: Run, state: AppState, reason: str) -> None:
    run.state, run.reason, run.over, run.supervised = state, reason, True, False
    run.document["reason"] = reason
    run.document["state"] = state.name
    # The last sign of life; what came between it and now is not known.
    run.document["finished_at"] = _last_sign(run)
    run.document["timeline"].append([state.name, run.document["finished_at"]])


def _last_sign(run: Run) -> float:
    times = [float(run.document["heartbeat"])]
    for entry in run.replicas:
        for name in ("stdout.log", "stderr.log"):
            try:
                times.append((run.replica_folder(entry["role"], entry["id"]) / name).stat().st_mtime)
            except OSError:
                continue
    return min(max(times), time.time())


def _booted_at() -> float:
    """Return when this machine started, in seconds since the epoch; "btime" of proc_stat(5)."""
    try:
        for line in Path("/proc/stat").read_text().splitlines():
            if line.startswith("btime "):
                # A minute of room: the clock may have been set since.
                return float(line.split()[1]) + 60.0
    except OSError:
        pass
    return float("inf")


def format_age(seconds: float) -> str:
    """Return a duration with one unit, such as "40 s" or "3 h"."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size or (seconds >= size and unit == "min"):
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"
