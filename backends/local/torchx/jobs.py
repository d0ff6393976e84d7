"""Local jobs that TorchX launched, by any process of this user: those that live, have ended, or were lost.

TorchX itself knows of them only in the process that launched them. Nothing here writes in its folders.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....base.files import LARGE, read_file
from ....base.processes import is_running, read_process
from ....base.validation import decode_json
from ....specs.handles import make_app_handle
from ....specs.roles import Role
from ....specs.status import AppState
from ...types import BY_TORCHX
from .. import supervisor
from ..record import Run, format_age
from .live import LiveJob, is_there, live_jobs
from .processes import JobProcesses
from .record import app_document, final_document, launched_roles, new_document, new_replica, places_in

logger = logging.getLogger(__name__)

MOST_FINISHED = 200
"""So many are shown, the latest."""

FINISHED_AGAIN_SECONDS = 2.0
"""Seconds after which the folders are read again."""
MOST_SESSIONS = 50
"""The most folders of a log_dir that are read as sessions, the latest."""
_OWN_STATE = "state.json"

Signature = tuple[int, int]


# Replicas are started one after another, so folders of a young job are looked for again.
_STARTING_SECONDS = 10.0
# TorchX's Runner looks every 1 to 10 s whether a job has ended, and then writes how.
_RECORD_SECONDS = 15.0
AGAIN_SECONDS = 0.25
"""Seconds within which all callers share one look at all processes."""
_MOST_ENDED = 200


class FinishedJobs:
    """Finds them; each SUCCESS is read once.

    Args:
        log_dirs: gives the folders that have a folder for each session.
        state: where the state of those that are cancelled here would be.
    """

    def __init__(self, log_dirs: Callable[[], Iterable[Path]], state: Path) -> None:
        self._log_dirs = log_dirs
        self._state = state
        self._looked_at = float("-inf")
        self._listed: dict[str, tuple[int, list[str]]] = {}
        self._read: dict[str, tuple[Signature, Run | None]] = {}
        self._found: dict[str, Run] = {}

    def look(self) -> dict[str, Run]:
        """Return them by their ids, as they were two seconds ago at most."""
        now = time.monotonic()
        if now - self._looked_at >= FINISHED_AGAIN_SECONDS:
            self._looked_at = now
            self._found = self._look()
        return self._found

    def _look(self) -> dict[str, Run]:
        signed: list[tuple[Signature, str, str]] = []
        for base in dict.fromkeys(str(path) for path in self._log_dirs()):
            for session in self._newest_folders(base):
                for app_id in self._folders(f"{base}/{session}"):
                    path = f"{base}/{session}/{app_id}"
                    signature = _signature(f"{path}/SUCCESS")
                    # What has a state file is an app of ours, of whichever state folder.
                    if signature is not None and _signature(f"{path}/{_OWN_STATE}") is None:
                        signed.append((signature, session, path))
        signed.sort(reverse=True)
        if len(signed) > MOST_FINISHED:
            logger.debug("%d older jobs of TorchX are left out", len(signed) - MOST_FINISHED)
        read: dict[str, tuple[Signature, Run | None]] = {}
        found: dict[str, Run] = {}
        for signature, session, path in signed[:MOST_FINISHED]:
            before = self._read.get(path)
            run = before[1] if before and before[0] == signature else _read(session, Path(path), self._state)
            read[path] = signature, run
            if run is not None:
                found.setdefault(run.app_id, run)
        self._read = read
        return found

    def _newest_folders(self, base: str) -> list[str]:
        names = self._folders(base)
        if len(names) <= MOST_SESSIONS:
            return names
        logger.debug("%s: %d folders are not taken for sessions", base, len(names) - MOST_SESSIONS)
        return sorted(names, key=lambda name: _changed_at(f"{base}/{name}"), reverse=True)[:MOST_SESSIONS]

    def _folders(self, path: str) -> list[str]:
        """Return the folders in a folder; it is read again when it has changed."""
        changed_at = _changed_at(path)
        before = self._listed.get(path)
        # What comes within the clock's grain of the last look would not be seen.
        if before is not None and before[0] == changed_at and time.time_ns() - changed_at > 2_000_000_000:
            return before[1]
        try:
            with os.scandir(path) as entries:
                names = [
                    entry.name for entry in entries if entry.name.isprintable() and entry.is_dir(follow_symlinks=False)
                ]
        except OSError:
            names = []
        self._listed[path] = (changed_at, names)
        return names


def read_success(folder: Path) -> dict[str, Any] | None:
    """Parse the file SUCCESS of a job's folder; None where there is none that TorchX wrote."""
    try:
        success = decode_json(read_file(folder / "SUCCESS", LARGE))
    except (OSError, ValueError):
        return None
    return success if isinstance(success, dict) and success.get("app_id") == folder.name else None


def _read(session: str, folder: Path, state: Path) -> Run | None:
    success = read_success(folder)
    if success is None:
        return None
    app_id = folder.name
    places = dict(places_in(folder))
    try:
        ended_at = float(success["last_updated"])
        started_at = min((at for at in places.values() if at <= ended_at), default=ended_at)
        document = new_document(app_id, make_app_handle("local_cwd", session, app_id), folder, started_at)
        document["replicas"] = [new_replica(folder, place) for place in places]
        document = final_document(document, success)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        logger.debug("%s/SUCCESS is not TorchX's: %r", folder, error)
        return None
    document["app"] = app_document(document["name"], {}, [(row["role"], row["id"]) for row in document["replicas"]])
    document["cfg"] = {"log_dir": str(folder.parent.parent)}
    return Run(app_id, state / app_id, document, AppState[document["state"]], over=True, notes=[BY_TORCHX])


def _signature(path: str) -> Signature | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - called for each folder
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size


def _changed_at(path: str) -> int:
    signature = _signature(path)
    return signature[0] if signature else 0


@dataclass
class Seen:
    """What is known of a job that was seen while it lived.

    Args:
        document: as the state file of our own apps.
        folder: where TorchX has its logs, None where nothing tells.
        state: our folder for its state, should it be cancelled here.
        launcher: pid and start time of the process that launched it, None where that had ended.
        roles: its roles as its processes told.
        gone_since: when none of its processes was there any more, in seconds since the epoch.
        run: what was made of it last.
    """

    document: dict[str, Any]
    folder: Path | None
    state: Path
    launcher: tuple[int, str] | None
    roles: dict[str, Role] = field(default_factory=dict)
    gone_since: float | None = None
    run: Run | None = None


def first_look(job: LiveJob, state: Path) -> Seen:
    """Describe a job whose processes were found; its state would be in the folder ``state``."""
    document = new_document(job.app_id, job.job_id, job.folder, job.started_at)
    base = None if job.folder is None else job.folder.parent.parent
    # Without log_dir TorchX makes a folder that it removes.
    if base is not None and not base.name.startswith("torchx_"):
        document["cfg"] = {"log_dir": str(base)}
    return Seen(document, job.folder, state / job.app_id, _launcher(job))


def _launcher(job: LiveJob) -> tuple[int, str] | None:
    """Return pid and start time of the Python that launched a job; None where that has ended."""
    members = {process.pid for process in job.processes}
    for process in job.leaders.values():
        parent = read_process(process.parent)
        if parent is None or parent.pid in members:
            continue
        try:
            name = Path(f"/proc/{parent.pid}/exe").readlink().name
        except OSError:
            continue
        # An orphan's parent is init, or a manager of the user's services.
        if "python" in name or "pypy" in name:
            return parent.pid, parent.start
    return None


def live_run(seen: Seen, job: LiveJob) -> Run:
    """Return a job of which a process lives, and note what is new of it."""
    places = {(entry["role"], entry["id"]): dict(entry) for entry in seen.document["replicas"]}
    before = set(places)
    if (seen.folder is not None and time.time() - job.started_at < _STARTING_SECONDS) or not places:
        for place, _ in places_in(seen.folder) if seen.folder is not None else ():
            places.setdefault(place, new_replica(seen.folder, place))
    for place, process in job.leaders.items():
        if places.get(place, {}).get("pid_started") != process.start:
            places[place] = new_replica(seen.folder, place, process)
    for place, entry in places.items():
        entry["gone"] = place not in job.leaders
    order = [*job.leaders, *(place for place in places if place not in job.leaders)]
    if before != set(places) or any(role not in seen.roles for role, _ in job.leaders):
        lost: list[str] = []
        for role, found in launched_roles(job, lost).items():
            # The more of its replicas live, the better its macros are found.
            if role not in seen.roles or found.num_replicas >= seen.roles[role].num_replicas:
                seen.roles[role] = found
        order.sort(key=lambda place: _launch_order(places[place]))
        app = app_document(seen.document["name"], seen.roles, order)
        places = {place: places[place] for place in order}
        seen.document = {**seen.document, "app": app, "notes": lost}
    seen.document = {**seen.document, "replicas": list(places.values())}
    seen.gone_since = None
    return _running(seen)


def _launch_order(entry: dict[str, Any]) -> tuple[float, int, str, int]:
    """Make the sort key of replicas in the order of their launch: by start time, then by number."""
    return float(entry["pid_started"] or "inf"), entry["pid"] or 0, entry["role"], entry["id"]


def _running(seen: Seen) -> Run:
    document = seen.document
    run = Run(document["app_id"], seen.state, document, AppState.RUNNING, notes=_notes(document))
    run.supervised = seen.launcher is not None and is_running(*seen.launcher)
    if not run.supervised:
        run.notes.insert(0, "orphaned")
        run.reason = "the torchx process that ran it has ended: how its replicas end will not be known"
    return run


def _notes(document: dict[str, Any]) -> list[str]:
    return [BY_TORCHX, *document["notes"]]


def ended_run(seen: Seen) -> Run:
    """Return a job whose processes have ended: as its SUCCESS says, or that nothing says it."""
    if seen.run is not None and seen.run.over and not seen.run.reason:
        return seen.run
    now = time.time()
    seen.gone_since = seen.gone_since or now
    success = read_success(seen.folder) if seen.folder is not None else None
    if success is not None:
        try:
            document = final_document(seen.document, success)
            state = AppState[document["state"]]
            return Run(document["app_id"], seen.state, document, state, over=True, notes=_notes(document))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            pass  # it is being written
    replicas = [{**entry, "gone": True} for entry in seen.document["replicas"]]
    launched = seen.launcher is not None and is_running(*seen.launcher)
    document: dict[str, Any] = {**seen.document, "replicas": replicas}
    if launched and now - seen.gone_since < _RECORD_SECONDS and (seen.folder is None or is_there(seen.folder)):
        waiting = Run(document["app_id"], seen.state, document, AppState.RUNNING, notes=_notes(document))
        waiting.supervised = True
        waiting.notes.append(f"its replicas ended {format_age(now - seen.gone_since)} ago")
        return waiting
    return _lost(seen, document, launched)


def _lost(seen: Seen, document: dict[str, Any], launched: bool) -> Run:
    if seen.folder is None:
        reason = "its processes have ended, and its log folder is not known: how it ended is not known"
    elif not is_there(seen.folder):
        reason = "it has ended, and TorchX removed its log folder: how it ended is not known"
    elif launched:
        reason = "its replicas have ended, and the torchx process that ran it has not written how"
    else:
        reason = "the torchx process that ran it ended without a record: how it ended is not known"
    ended = {
        **document,
        "state": AppState.UNKNOWN.name,
        "finished_at": seen.gone_since,
        "reason": reason,
        "timeline": [*document["timeline"], [AppState.UNKNOWN.name, seen.gone_since]],
    }
    run = Run(document["app_id"], seen.state, ended, AppState.UNKNOWN, over=True, reason=reason)
    run.notes = _notes(document)
    return run


class TorchXJobs:
    """Finds them again and again; may be called from any thread.

    Args:
        log_dirs: gives the folders in which TorchX may have logs of jobs that have ended.
        state: a folder of ours, in which the state of those that are cancelled here is kept.
    """

    def __init__(self, log_dirs: Callable[[], Iterable[Path]], state: Path) -> None:
        self._processes = JobProcesses()
        self._finished = FinishedJobs(log_dirs, state)
        self._state = state
        self._seen: dict[str, Seen] = {}
        self._runs: dict[str, Run] = {}
        self._looked_at = float("-inf")
        self._lock = threading.Lock()

    def look(self) -> dict[str, Run]:
        """Return all of them by their ids, as they were a moment ago."""
        with self._lock:
            if time.monotonic() - self._looked_at >= AGAIN_SECONDS:
                self._runs = self._look()
                self._looked_at = time.monotonic()
            return self._runs

    def _look(self) -> dict[str, Run]:
        live = {job.app_id: job for job in live_jobs(self._processes.look()) if not _is_ours(job)}
        runs = dict(self._finished.look())
        for app_id, job in live.items():
            seen = self._seen.get(app_id)
            if (
                seen is None
                or seen.document["job_id"] != job.job_id
                or (seen.folder is None and job.folder is not None)
            ):
                seen = self._seen[app_id] = first_look(job, self._state)
            runs[app_id] = seen.run = live_run(seen, job)
        for app_id, seen in list(self._seen.items()):
            if app_id in live:
                continue
            finished = runs.get(app_id)
            runs[app_id] = seen.run = ended_run(seen)
            if finished is not None and seen.run.reason:
                runs[app_id] = finished
        self._forget([app_id for app_id in self._seen if app_id not in live])
        return runs

    def _forget(self, ended: list[str]) -> None:
        """Forget the oldest of many jobs that have ended."""
        for app_id in ended[: max(0, len(ended) - _MOST_ENDED)]:
            del self._seen[app_id]


def _is_ours(job: LiveJob) -> bool:
    """Tell whether a supervisor of ours runs a job: it has a state file beside its logs, or is the parent."""
    if job.folder is not None:
        return is_there(job.folder / "state.json")
    wanted = Path(supervisor.__file__).name.encode()
    for process in job.leaders.values():
        try:
            words = Path(f"/proc/{process.parent}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"-I" in words and any(word.endswith(b"/" + wanted) for word in words):
            return True
    return False
