"""Jobs of TorchX that have ended, by the file SUCCESS in folders of logs that are known."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ....specs import AppState, make_app_handle
from ....specs.files import LARGE, read_file
from ....specs.foreign import decode_json
from ...types import BY_TORCHX
from ..record import Run
from .record import app_document, final_document, new_document, new_replica, places_in

logger = logging.getLogger(__name__)

MOST_FINISHED = 200
"""So many are shown, the latest."""

# Folders are looked at again after so long; of the folders in a log_dir, so many may be sessions.
_FINISHED_AGAIN_SECONDS = 2.0
_MOST_SESSIONS = 50
_OWN_STATE = "state.json"

Signature = tuple[int, int]


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
        if now - self._looked_at >= _FINISHED_AGAIN_SECONDS:
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
        if len(names) <= _MOST_SESSIONS:
            return names
        logger.debug("%s: %d folders are not taken for sessions", base, len(names) - _MOST_SESSIONS)
        return sorted(names, key=lambda name: _changed_at(f"{base}/{name}"), reverse=True)[:_MOST_SESSIONS]

    def _folders(self, path: str) -> list[str]:
        """Return the folders in a folder; it is read again when it has changed."""
        changed_at = _changed_at(path)
        before = self._listed.get(path)
        # What comes within the clock's grain of the last look would not be seen.
        if before is not None and before[0] == changed_at and time.time_ns() - changed_at > 2_000_000_000:
            return before[1]
        try:
            with os.scandir(path) as entries:
                names = [one.name for one in entries if one.name.isprintable() and one.is_dir(follow_symlinks=False)]
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
