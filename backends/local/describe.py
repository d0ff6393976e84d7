"""Rows and descriptions of local apps."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...base.files import path_exists, read_file, read_tail
from ...base.processes import is_running
from ...logs.pattern.error_reader import OutputError, explain_output
from ...logs.text.sanitize import plain
from ...specs.errors import AppDefError
from ...specs.status import NONE, AppState, ReplicaStatus, RoleStatus
from ..shared.exit_reasons import (
    error_sentence,
    first_cause,
    format_cancelled,
    format_exit,
    may_tell,
    signal_name,
    some_of,
)
from ..types import DescribeAppResponse, ListAppResponse, StateChange
from .record import Run
from .request import INSIGHT
from .runs import Runs, Signature, signature_of

_TAIL = 1 << 18  # bytes of stderr that are searched for an error


class Listing:
    """Makes a row of each app; that of a finished app is made once."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._finished: dict[str, tuple[Signature, ListAppResponse]] = {}

    def rows(self) -> list[ListAppResponse]:
        """Return a row for every app, the latest first."""
        rows: list[ListAppResponse] = []
        finished: dict[str, tuple[Signature, ListAppResponse]] = {}
        for app_id in self._runs.app_ids():
            folder = self._runs.folder(app_id)
            signature = None if folder is None else signature_of(folder)
            kept = self._finished.get(app_id)
            if kept is not None and kept[0] == signature:
                finished[app_id], row = kept, kept[1]
            else:
                run = self._runs.find(app_id)
                if run is None:
                    continue
                row = list_run(run)
                if run.over and signature is not None:
                    finished[app_id] = signature, row
            # A copy: callers fill in the handle, and may keep the row.
            rows.append(replace(row, notes=list(row.notes)))
        self._finished = finished
        return sorted(rows, key=lambda row: row.submitted_at or 0.0, reverse=True)


Failed = tuple[dict[str, Any], OutputError]


def first_failure(run: Run) -> Failed | None:
    """Return the first replica that failed by itself, and its error; None if none failed."""
    failed = [entry for entry in run.replicas if entry.get("not_started") or entry["exit_code"]]
    failed.sort(key=lambda entry: entry.get("finished_at") or 0.0)
    return first_cause((entry, _replica_error(run, entry)) for entry in failed)


def why(run: Run, failure: Failed | None = None) -> str:
    """Return why an app is in its state, empty when there is nothing to say.

    Args:
        run: the app.
        failure: its `first_failure`, where that is known.
    """
    if run.reason:
        return run.reason
    if run.state == AppState.CANCELLED or run.document.get("cancel"):
        return _cancelled(run)
    if run.state == AppState.PENDING:
        return _waiting(run)
    if run.state not in (AppState.FAILED, AppState.RUNNING):
        return ""
    failure = failure or first_failure(run)
    if failure is None:
        return ""
    failed, error = failure
    if failed.get("not_started"):
        return format_not_started(failed)
    where = f"{failed['role']}/{failed['id']}"
    ended = format_exit(failed["exit_code"])
    if not error.sentence:
        return f"{ended}: {where}"
    python = plain(str(failed.get("python", ""))) if "ModuleNotFoundError" in error.sentence else ""
    return f"{error.sentence}: {where}, {ended}{f'; {python}' if python else ''}"


def format_not_started(entry: dict[str, Any]) -> str:
    """Return why a replica could not be started."""
    code, name, text = entry["not_started"]
    command, cwd = entry.get("command", ""), entry.get("cwd") or ""
    if name and name == cwd:
        return f"its working folder cannot be used: {cwd}: {os.strerror(code)}"
    if code == errno.ENOENT and not path_exists(Path(cwd, command)):
        return f"no such command: {plain(command)}"
    reasons = {
        errno.ENOENT: "the program that its first line names is missing",
        errno.EACCES: "it is not an executable file",
        errno.ENOEXEC: "it is not a program: it has no #! line, or was made for another kind of machine",
        errno.E2BIG: "its arguments and environment are too long",
    }
    reason = reasons.get(code) or (f"{os.strerror(code)}: {name}" if code else text)
    return plain(f"cannot start {command}: {reason}")


def _replica_error(run: Run, entry: dict[str, Any]) -> OutputError:
    """Read the error of a replica that failed: its error.json, else its output."""
    if entry.get("not_started"):
        return OutputError()
    folder = run.replica_folder(entry["role"], entry["id"])
    error_file = Path(entry.get("error_file") or folder / "error.json")
    try:
        text = read_file(error_file).decode("utf-8", "replace").strip()
        if text:
            return OutputError(error_sentence(text), text)
    except OSError:
        pass
    ends = [read_tail(folder / name, _TAIL).decode("utf-8", "replace") for name in ("stderr.log", "stdout.log")]
    return explain_output(*ends, guess=may_tell(entry["exit_code"]))


def _cancelled(run: Run) -> str:
    asked = run.document.get("cancel") or {}
    began = run.document.get("started_at") or run.document["submitted_at"]
    sentence = format_cancelled(str(asked.get("by") or ""), float(asked.get("at") or began) - began, run.over)
    left = [plain(process) for process in run.document.get("not_ended", [])]
    return f"{sentence}; cannot end process {some_of(left)}: end it as its user" if left else sentence


def _waiting(run: Run) -> str:
    before = [plain(str(app_id)) for app_id in run.document.get("waits_for", [])]
    if not before:
        return ""
    return f"waits for {some_of(before)}: at most {run.document.get('max_running')} run at once here"


def describe_run(run: Run) -> DescribeAppResponse:
    """Return everything about an app."""
    document = run.document
    failure = first_failure(run)
    response = DescribeAppResponse(
        app_id=run.app_id,
        state=run.state,
        num_restarts=0,
        msg=why(run, failure) or NONE,
        structured_error_msg=(failure[1].quote or NONE) if failure else NONE,
        ui_url=run.folder.as_uri(),
        name=document.get("name", run.app_id),
        submitted_at=document.get("submitted_at"),
        started_at=document.get("started_at"),
        finished_at=document.get("finished_at"),
        timeline=[StateChange(AppState[state], at) for state, at in document.get("timeline", [])],
        user=document.get("user", ""),
        host=document.get("host", ""),
        notes=list(run.notes),
        log_dir=str(run.folder),
        insight_dir=str(run.folder / INSIGHT),
    )
    if document:
        try:
            response.roles = run.app.roles
            response.image = run.app.roles[0].image if run.app.roles else ""
            response.metadata = dict(run.app.metadata)
        except AppDefError as error:
            response.notes.append(str(error))
        response.roles_statuses = _roles_statuses(run, failure)
    return response


def list_run(run: Run) -> ListAppResponse:
    """Return an app as one row of a list."""
    document = run.document
    states = [replica_state(run, entry) for entry in run.replicas]
    roles = document.get("app", {}).get("roles") or [{}]
    return ListAppResponse(
        app_id=run.app_id,
        state=run.state,
        app_handle=run.job_id or "<NOT_SET>",
        name=document.get("name", run.app_id),
        submitted_at=document.get("submitted_at"),
        started_at=document.get("started_at"),
        finished_at=document.get("finished_at"),
        replicas_running=states.count(AppState.RUNNING),
        replicas_wanted=len(states),
        replicas_succeeded=states.count(AppState.SUCCEEDED),
        user=document.get("user", ""),
        image=str(roles[0].get("image", "")),
        msg=why(run),
        host=document.get("host", ""),
        notes=list(run.notes),
    )


def replica_state(run: Run, entry: dict[str, Any]) -> AppState:
    """Return the state of one replica."""
    if entry.get("not_started"):
        return AppState.FAILED
    if entry["exit_code"] is not None:
        if entry["exit_code"] == 0:
            return AppState.SUCCEEDED
        # What a cancel ended did not fail by itself.
        return AppState.CANCELLED if _ended_by_cancel(run, entry) else AppState.FAILED
    if run.over:
        return AppState.CANCELLED if run.state in (AppState.CANCELLED, AppState.FAILED) else AppState.UNKNOWN
    if entry["pid"] and not run.supervised and not is_running(entry["pid"], entry["pid_started"]):
        return AppState.UNKNOWN
    return AppState.RUNNING if entry["pid"] else run.state


def _ended_by_cancel(run: Run, entry: dict[str, Any]) -> bool:
    asked = run.document.get("cancel") or {}
    return bool(asked) and (entry.get("finished_at") or 0.0) >= float(asked.get("at") or 0.0)


def _roles_statuses(run: Run, failure: Failed | None) -> list[RoleStatus]:
    roles: dict[str, list[ReplicaStatus]] = {}
    host = run.document.get("host", "")
    for entry in run.replicas:
        status = ReplicaStatus(
            id=entry["id"],
            state=replica_state(run, entry),
            role=entry["role"],
            hostname=host,
            structured_error_msg=(failure[1].quote or NONE) if failure and failure[0] is entry else NONE,
            exit_code=entry["exit_code"],
            signal=signal_name(entry["exit_code"]),
            reason=format_not_started(entry) if entry.get("not_started") else format_exit(entry["exit_code"] or None),
            pid=entry["pid"],
            started_at=entry.get("started_at"),
            finished_at=entry.get("finished_at"),
        )
        roles.setdefault(entry["role"], []).append(status)
    return [RoleStatus(role, replicas) for role, replicas in roles.items()]
