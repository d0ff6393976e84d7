"""Why an app is in its state, in words, the cause first."""

from __future__ import annotations

import errno
import json
import os
import signal
from pathlib import Path
from typing import Any

from ...specs import NONE, AppState
from ..logs.sanitize import plain
from ..logs.tracebacks import TRACEBACK, is_from_worker, is_wrapper, whole_tracebacks, without_worker
from .record import Run

_TAIL = 1 << 18  # bytes of stderr that are looked at for a traceback
_LONGEST = 300


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
    said = _sentence(structured_error(run, failed))
    return f"{said}: {where}, {ended}" if said else f"{ended}: {where}"


def ended_words(exit_code: int | None) -> str:
    """Return how a process ended, such as "exit 1" or "killed by SIGKILL"; empty while that is not known."""
    if exit_code is None:
        return ""
    if exit_code < 0:
        return f"killed by {signal_name(exit_code)}"
    if exit_code > 128 and (name := signal_name(128 - exit_code)).startswith("SIG"):
        return f"exit {exit_code} ({name})"  # as a shell says it
    return f"exit {exit_code}"


def signal_name(exit_code: int | None) -> str:
    """Return the name of the signal that a negative exit code stands for, empty for another one."""
    if exit_code is None or exit_code >= 0:
        return ""
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"signal {-exit_code}"


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
        text = error_file.read_text("utf-8", "replace").strip()
        if text:
            return text
    except OSError:
        pass
    return last_traceback(folder / "stderr.log") or NONE


def last_traceback(stderr: Path) -> str:
    """Return the last Python traceback in a file that tells why, without what torchrun puts before its lines.

    Where the only one is torchrun's own, return the last line of its workers, such as that a script was not found.
    """
    try:
        with stderr.open("rb") as file:
            file.seek(max(0, stderr.stat().st_size - _TAIL))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = text.splitlines()
    whole = whole_tracebacks(lines)
    telling = [found for found in whole if not is_wrapper(found[-1])]
    said = [without_worker(line) for line in lines if is_from_worker(line)]
    if whole and not telling and said:
        return said[-1]  # a worker without a traceback of its own: its last line says more than torchrun's
    return "\n".join((telling or whole or [[]])[-1])


def _sentence(error: str) -> str:
    """Return the one line of an error that says most."""
    if error == NONE:
        return ""
    message: Any = error
    try:
        decoded = json.loads(error)
        message = decoded["message"]
        message = message["message"] if isinstance(message, dict) else message
    except (ValueError, TypeError, KeyError):
        if error.startswith("{"):
            return ""
    lines = [line for line in str(message).splitlines() if line.strip()]
    if not lines:
        return ""
    # A traceback ends with what it is about; any other text begins with it.
    line = lines[-1] if lines[0].startswith(TRACEBACK) else lines[0]
    text = plain(line).strip().rstrip(":")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _cancelled(run: Run) -> str:
    asked = run.document.get("cancel") or {}
    began = run.document.get("started_at") or run.document["submitted_at"]
    by = f" by {plain(str(asked['by']))}" if asked.get("by") else ""
    if not run.over:
        return f"being cancelled{by}"
    return f"cancelled{by} after {_short(max(0.0, float(asked.get('at') or began) - began))}"


def _short(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def _waiting(run: Run) -> str:
    before = [plain(str(app_id)) for app_id in run.document.get("waits_for", [])]
    if not before:
        return ""
    shown = ", ".join(before[:3]) + (f" and {len(before) - 3} more" if len(before) > 3 else "")
    return f"waits for {shown}: at most {run.document.get('max_running')} run at once here"
