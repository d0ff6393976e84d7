"""Records of launches for later sessions: name, roles, options and log folder; and the list of hidden jobs.

One file a launch, ``<job id>-<key>.json``, in the state folder. The batch script has the same, for sessions on hosts
that do not see this folder.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...base.files import LARGE, modified_ns, private_folder, read_file, state_folder, write_private
from ...base.validation import decode_json, encode_json, find_invalid_field, is_object, is_text
from ...specs.errors import SchedulerError
from ...specs.roles import AppDef
from ..shared.kept_app_def import read_kept
from .jobs import App
from .request import key_in

logger = logging.getLogger(__name__)

_FILE = re.compile(r"(?P<id>\d+)-(?P<key>[0-9a-f]{16})\.json")
# Ids begin anew after many millions of jobs: a record is of the job that was submitted within so many seconds of it.
_SAME_S = 3600.0
_REQUIRED = {"key": is_text, "name": is_text, "app": is_text, "folder": is_text, "cfg": is_object}


@dataclass(frozen=True)
class Launch:
    """A launch that was made here.

    Args:
        key: what the job's comment has of it.
        name: the app's name.
        roles: the names of its roles, with the numbers of their replicas and of their component of a het job.
        is_array: whether the replicas are the tasks of an array.
        is_script: whether it is a script of the user's, whose logs and replicas are its own.
        folder: the folder of its logs.
        cfg: the run options.
        app: the AppDef as text, empty where it was too large.
        left_out: why it is.
        at: when it was submitted, in seconds since the epoch.
        insight: the folder in which its job has a folder for what tells why it hangs; empty for none.
    """

    key: str
    name: str
    roles: tuple[tuple[str, int, int], ...]
    is_array: bool
    folder: str
    is_script: bool = False
    cfg: Mapping[str, Any] = field(default_factory=dict)
    app: str = ""
    left_out: str = ""
    at: float = 0.0
    insight: str = ""

    @property
    def replicas(self) -> int:
        """How many replicas its roles have."""
        return sum(count for _, count, _ in self.roles)

    def app_def(self, notes: list[str]) -> AppDef | None:
        """Return the AppDef; ``notes`` gets why there is none."""
        return read_kept(self.app, self.left_out, notes)


def read_launch(told: Mapping[str, Any] | None) -> Launch | None:
    """Parse the launch of a file or a batch script; return None if it is incomplete."""
    if told is None or find_invalid_field(told, _REQUIRED, {"left_out": is_text, "insight": is_text}):
        return None
    roles = []
    for entry in told.get("roles") or ():
        match entry:
            case [str() as name, int() as count, int() as component] if 0 < count < 1 << 20:
                roles.append((name, count, component))
    if not roles:
        return None
    at = told.get("at")
    return Launch(
        key=told["key"],
        name=told["name"],
        roles=tuple(roles),
        is_array=told.get("array") is True,
        is_script=told.get("script") is True,
        folder=told["folder"],
        cfg=told["cfg"],
        app=told["app"],
        left_out=told.get("left_out", ""),
        at=float(at) if isinstance(at, (int, float)) else 0.0,
        insight=told.get("insight", ""),
    )


class Records:
    """The launches of this user that this host's state folder has; every method may be called from any thread.

    Args:
        folder: where they are kept; the state folder's ``slurm`` if None.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or state_folder() / "slurm"
        self._lock = threading.Lock()
        self._listed: tuple[int, dict[str, Path]] = (0, {})
        self._read: dict[Path, Launch | None] = {}
        self._hidden: tuple[int, dict[str, float]] = (0, {})

    @property
    def insight_folder(self) -> Path:
        """The folder in which each job that is launched here has one of its own, for what tells why it hangs."""
        return self._folder / "insight"

    def add(self, job_id: str, launch: Mapping[str, Any]) -> None:
        """Keep a launch.

        Raises:
            OSError: it cannot be written; the job runs all the same.
        """
        private_folder(self._folder)
        data = encode_json({**launch, "at": time.time()}).encode()
        write_private(self._folder / f"{job_id}-{launch['key']}.json", data)

    def find(self, app: App, script: Callable[[str], Launch | None]) -> Launch | None:
        """Return the launch of an app; None if it was not launched here, or has no record.

        Args:
            app: the app.
            script: reads the launch in a job's batch script, which costs a question.
        """
        with self._lock:
            launch = self._kept(app, self._paths())
        return script(app.app_id) if launch is None and key_in(app.first.comment) else launch

    def find_shown(self, apps: Mapping[str, App]) -> tuple[Mapping[str, App], dict[str, Launch]]:
        """Return the apps that were not deleted, and their launches as far as files have these, by the apps' ids."""
        with self._lock:
            paths, hidden = self._paths(), self._hidden_apps()
            left_out = {app_id for app_id in apps.keys() & hidden.keys() if _is_among(apps[app_id], hidden)}
            shown = {app_id: app for app_id, app in apps.items() if app_id not in left_out} if left_out else apps
            found = {app_id: self._kept(shown[app_id], paths) for app_id in shown.keys() & paths.keys()}
        return shown, {app_id: launch for app_id, launch in found.items() if launch is not None}

    def _kept(self, app: App, paths: Mapping[str, Path]) -> Launch | None:
        path = paths.get(app.app_id)
        if path is None:
            return None
        if path not in self._read:
            self._read[path] = _read(path)
        launch, key = self._read[path], key_in(app.first.comment)
        is_its = launch is not None and (launch.key == key if key else _is_same(launch, app))
        return launch if is_its else None

    def hide(self, app: App) -> None:
        """Show an app no more, and remove what is kept of it.

        Raises:
            SchedulerError: that cannot be written.
        """
        with self._lock:
            hidden = {**self._hidden_apps(), app.app_id: app.submitted_at or 0.0}
            path = self._paths().get(app.app_id)
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

    def is_hidden(self, app: App) -> bool:
        """Tell whether an app was deleted."""
        with self._lock:
            return _is_among(app, self._hidden_apps())

    def _paths(self) -> dict[str, Path]:
        changed = modified_ns(str(self._folder))
        if changed != self._listed[0]:
            found: dict[str, Path] = {}
            for path in self._folder.glob("*-*.json"):
                if match := _FILE.fullmatch(path.name):
                    found[match["id"]] = path
            self._listed = changed, found
            self._read = {path: launch for path, launch in self._read.items() if path in found.values()}
        return self._listed[1]

    def _hidden_apps(self) -> dict[str, float]:
        path = self._folder / "hidden.json"
        changed = modified_ns(str(path))
        if changed != self._hidden[0]:
            told: dict[str, float] = {}
            try:
                for app_id, at in dict(decode_json(read_file(path, LARGE))).items():
                    if isinstance(at, (int, float)):
                        told[str(app_id)] = float(at)
            except (OSError, ValueError, TypeError) as error:
                logger.warning("%s cannot be read: %s", path, error)
            self._hidden = changed, told
        return self._hidden[1] if changed else {}


def _is_among(app: App, hidden: Mapping[str, float]) -> bool:
    at = hidden.get(app.app_id)
    return at is not None and abs(at - (app.submitted_at or 0.0)) < _SAME_S


def _read(path: Path) -> Launch | None:
    try:
        told = decode_json(read_file(path, LARGE))
    except (OSError, ValueError) as error:
        logger.warning("%s cannot be read: %s", path, error)
        return None
    return read_launch(told) if isinstance(told, dict) else None


def _is_same(launch: Launch, app: App) -> bool:
    """Tell whether a launch is of an app whose comment has no key, as accounting may not keep comments."""
    return app.submitted_at is not None and abs(launch.at - app.submitted_at) < _SAME_S
