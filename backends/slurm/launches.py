"""Launches that were made here, for later sessions: name, roles, options and log folder; and the hidden jobs.

One file a launch, ``<job id>-<key>.json``, in the state folder. The batch script of an app contains the same, for
sessions on hosts that do not see this folder.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base.files import LARGE, modified_ns, private_folder, read_file, state_folder, write_private
from ...base.typed_data import convert
from ...base.validation import decode_json, encode_json
from ...specs.errors import SchedulerError
from ...specs.roles import AppDef
from ..shared.kept_app_def import read_kept
from .jobs import App
from .request import key_in

logger = logging.getLogger(__name__)

_FILE = re.compile(r"(?P<id>\d+)-(?P<key>[0-9a-f]{16})\.json")
# Ids begin anew after many millions of jobs: a launch belongs to the job that was submitted within this time of it (s).
_SAME_S = 3600.0
_MAX_REPLICAS = 1 << 20
# Fields that have another name in JSON.
_NAMES = {"array": "is_array", "script": "is_script"}


@dataclass(frozen=True)
class RecordedLaunch:
    """A launch that was made here, as a file and a batch script have it in JSON.

    Args:
        key: identifies it in the job's comment.
        name: the app's name.
        roles: the names of its roles, with the numbers of their replicas and of their component of a het job.
        folder: the folder of its logs.
        cfg: the run options.
        app: the AppDef as text, empty if it was too large.
        left_out: why it is left out.
        is_array: whether the replicas are the tasks of an array.
        is_script: whether it is a script of the user's, with logs and replicas of its own.
        at: when it was submitted, in seconds since the epoch.
        insight: the folder in which its job has a folder for sockets and dumps of its ranks; empty for none.
    """

    key: str
    name: str
    roles: list[tuple[str, int, int]]
    folder: str
    cfg: dict[str, Any]
    app: str
    left_out: str = ""
    is_array: bool = False
    is_script: bool = False
    at: float = 0.0
    insight: str = ""

    @property
    def replicas(self) -> int:
        """How many replicas its roles have."""
        return sum(count for _, count, _ in self.roles)

    def app_def(self, notes: list[str]) -> AppDef | None:
        """Return the AppDef; ``notes`` gets why there is none."""
        return read_kept(self.app, self.left_out, notes)


def parse_launch(fields: Any) -> RecordedLaunch | None:
    """Convert the JSON of a launch; return None if it is not that of a launch."""
    try:
        launch = convert({_NAMES.get(name, name): value for name, value in fields.items()}, RecordedLaunch)
    except (ValueError, AttributeError):
        return None
    is_valid = launch.roles and all(0 < count < _MAX_REPLICAS for _, count, _ in launch.roles)
    return launch if is_valid else None


class LaunchStore:
    """The launches of this user in the state folder of this host. Every method may be called from any thread.

    Args:
        folder: where they are kept; the state folder's ``slurm`` if None.
        in_script: returns the launch in a job's batch script, which costs a question; None if there is none.
    """

    def __init__(self, folder: Path | None, in_script: Callable[[str], RecordedLaunch | None]) -> None:
        self._folder = folder or state_folder() / "slurm"
        self._in_script = in_script
        self._lock = threading.Lock()
        # Each with the modification time of what it was read from.
        self._paths: tuple[int, dict[str, Path]] = (0, {})
        self._hidden: tuple[int, dict[str, float]] = (0, {})
        self._launches: dict[Path, RecordedLaunch | None] = {}

    @property
    def insight_folder(self) -> Path:
        """The folder in which each job that is launched here has one for sockets and dumps of its ranks."""
        return self._folder / "insight"

    def add(self, job_id: str, launch: Mapping[str, Any]) -> None:
        """Keep a launch.

        Raises:
            OSError: it cannot be written; the job runs all the same.
        """
        private_folder(self._folder)
        data = encode_json({**launch, "at": time.time()}).encode()
        write_private(self._folder / f"{job_id}-{launch['key']}.json", data)

    def find(self, app: App) -> RecordedLaunch | None:
        """Return the launch of an app; None if it was not launched here, or has no record."""
        launch = self.find_shown({app.app_id: app})[1].get(app.app_id)
        return self._in_script(app.app_id) if launch is None and key_in(app.first.comment) else launch

    def find_shown(self, apps: Mapping[str, App]) -> tuple[Mapping[str, App], dict[str, RecordedLaunch]]:
        """Return the apps that were not deleted, and those of their launches that have a file, by the apps' ids."""
        with self._lock:
            paths, hidden = self._read_paths(), self._read_hidden()
            left_out = {app_id for app_id in apps.keys() & hidden.keys() if _is_near(hidden[app_id], apps[app_id])}
            shown = {app_id: app for app_id, app in apps.items() if app_id not in left_out} if left_out else apps
            found = {app_id: self._read_launch(shown[app_id], paths[app_id]) for app_id in shown.keys() & paths.keys()}
        return shown, {app_id: launch for app_id, launch in found.items() if launch is not None}

    def hide(self, app: App) -> None:
        """Hide an app, and remove its files.

        Raises:
            SchedulerError: that cannot be written.
        """
        with self._lock:
            hidden = {**self._read_hidden(), app.app_id: app.submitted_at or 0.0}
            path = self._read_paths().get(app.app_id)
        try:
            private_folder(self._folder)
            write_private(self._folder / "hidden.json", encode_json(hidden).encode())
            if path is not None:
                path.unlink(missing_ok=True)
                shutil.rmtree(self.insight_folder / app.app_id, ignore_errors=True)
        except OSError as error:
            raise SchedulerError(
                f"{app.app_id} cannot be deleted: {error.strerror}: {error.filename}: make the folder writable"
            ) from error

    def _read_launch(self, app: App, path: Path) -> RecordedLaunch | None:
        if path not in self._launches:
            self._launches[path] = parse_launch(_read_json(path))
        launch, key = self._launches[path], key_in(app.first.comment)
        if launch is None:
            return None
        # Accounting may not keep comments.
        return launch if (launch.key == key if key else _is_near(launch.at, app)) else None

    def _read_paths(self) -> dict[str, Path]:
        changed = modified_ns(str(self._folder))
        if changed != self._paths[0]:
            matches = {path: _FILE.fullmatch(path.name) for path in self._folder.glob("*-*.json")}
            paths = {match["id"]: path for path, match in matches.items() if match}
            self._paths = changed, paths
            self._launches = {path: launch for path, launch in self._launches.items() if path in matches}
        return self._paths[1]

    def _read_hidden(self) -> dict[str, float]:
        path = self._folder / "hidden.json"
        changed = modified_ns(str(path))
        if changed != self._hidden[0]:
            fields = _read_json(path) if changed else None
            times = fields.items() if isinstance(fields, dict) else ()
            self._hidden = changed, {app_id: float(at) for app_id, at in times if isinstance(at, (int, float))}
        return self._hidden[1]


def _read_json(path: Path) -> Any:
    try:
        return decode_json(read_file(path, LARGE))
    except (OSError, ValueError) as error:
        logger.warning("%s cannot be read: %s", path, error)
        return None


def _is_near(at: float, app: App) -> bool:
    """Return whether a time, 0 for an unknown one, is about that of an app's submission."""
    return abs(at - (app.submitted_at or 0.0)) < _SAME_S
