"""Why an app is in its state, in words, the cause first."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from ...specs import NONE, AppState
from ...specs.files import open_file, read_file
from ..endings import cancelled_words, ended_words, error_sentence, last_traceback, some_of
from ..logs.sanitize import plain
from .record import Run

_TAIL = 1 << 18  # bytes of stderr that are looked at for a traceback


def first_failure(run: Run) -> dict[str, Any] | None:
    """Return the replica that failed first, None when none did."""
    failed = [entry for entry in run.replicas if entry.get("not_started") or entry["exit_code"]]
    return min(failed, key=lambda entry: entry.get("finished_at") or 0.0, default=None)


def why(run: Run) -> str:
    """Return why an app is in its state, empty when there is nothing to say."""
    if run.reason:
        return run.reason
    if run.state == AppState.CANCELLED or run.document.get("cancel"):
        return _cancelled(run)
    if run.state == AppState.PENDING:
        return _waiting(run)
    failed = first_failure(run) if run.state in (AppState.FAILED, AppState.RUNNING) else None
    if failed is None:
        return ""
    if failed.get("not_started"):
        return not_started_words(failed)
    where = f"{failed['role']}/{failed['id']}"
    ended = ended_words(failed["exit_code"])
    said = error_sentence(structured_error(run, failed))
    return f"{said}: {where}, {ended}" if said else f"{ended}: {where}"


def not_started_words(entry: dict[str, Any]) -> str:
    """Return why a replica could not be started."""
    code, name, text = entry["not_started"]
    command, cwd = entry.get("command", ""), entry.get("cwd") or ""
    if name and name == cwd:
        return f"its working folder cannot be used: {cwd}: {os.strerror(code)}"
    if code == errno.ENOENT and not Path(cwd, command).exists():
        return f"no such command: {plain(command)}"
    words = {
        errno.ENOENT: "the program that its first line names is missing",
        errno.EACCES: "it is not an executable file",
        errno.ENOEXEC: "it is no program: it has no #! line, or was made for another kind of machine",
        errno.E2BIG: "its arguments and environment are too long",
    }
    said = words.get(code) or (f"{os.strerror(code)}: {name}" if code else text)
    return plain(f"cannot start {command}: {said}")


def structured_error(run: Run, entry: dict[str, Any]) -> str:
    """Return what a replica left about its failure: its error.json, else the last traceback in its stderr."""
    folder = run.replica_folder(entry["role"], entry["id"])
    error_file = Path(entry.get("error_file") or folder / "error.json")
    try:
        text = read_file(error_file).decode("utf-8", "replace").strip()
        if text:
            return text
    except OSError:
        pass
    return last_traceback_in(folder / "stderr.log") or NONE


def last_traceback_in(stderr: Path) -> str:
    """Return the last traceback in a file, see `last_traceback`; empty where it cannot be read."""
    try:
        with os.fdopen(open_file(stderr), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return last_traceback(file.read(_TAIL).decode("utf-8", "replace"))
    except OSError:
        return ""


def _cancelled(run: Run) -> str:
    asked = run.document.get("cancel") or {}
    began = run.document.get("started_at") or run.document["submitted_at"]
    return cancelled_words(str(asked.get("by") or ""), float(asked.get("at") or began) - began, run.over)


def _waiting(run: Run) -> str:
    before = [plain(str(app_id)) for app_id in run.document.get("waits_for", [])]
    if not before:
        return ""
    return f"waits for {some_of(before)}: at most {run.document.get('max_running')} run at once here"
