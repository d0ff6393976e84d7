"""The local apps of this user, by their files, which any process finds."""

from __future__ import annotations

import json
import logging
import os
import time
from contextlib import suppress
from pathlib import Path

from ...base.files import LARGE, is_folder, is_missing, path_exists, read_file, write_private
from ...base.processes import Process, boot_id, is_own, is_running, read_process
from ...base.validation import decode_json
from ...specs.errors import JobNotFoundError
from .record import Run, read_run
from .supervisor import FORMAT, read_note

logger = logging.getLogger(__name__)

DELETE = "delete"
"""A file of this name in an app's folder: the folder is to be removed as soon as the app has ended."""

Signature = tuple[int, int, int]


class Runs:
    """The apps of one state folder.

    Args:
        root: the folder that has ``runs`` (a file an app, saying where its folder is) and ``turns`` (a file for each
            app that waits or runs).
    """

    def __init__(self, root: Path) -> None:
        self.records = root / "runs"
        self.turns = root / "turns"
        self._folders: dict[str, Path] = {}
        self._unreadable: set[str] = set()

    def record_path(self, app_id: str) -> Path:
        """Return the file that says where an app's folder is."""
        return self.records / f"{app_id}.json"

    def write_record(self, app_id: str, folder: Path) -> None:
        """Write where an app's folder is. Raises OSError if that is not possible."""
        write_private(self.record_path(app_id), json.dumps({"format": FORMAT, "folder": str(folder)}).encode())

    def app_ids(self) -> list[str]:
        """Return the ids of all apps."""
        try:
            with os.scandir(self.records) as entries:
                return [entry.name.removesuffix(".json") for entry in entries if entry.name.endswith(".json")]
        except FileNotFoundError:
            return []

    def folder(self, app_id: str) -> Path | None:
        """Return an app's folder, None when the app is not known."""
        known = self._folders.get(app_id)
        if known is None:
            try:
                known = Path(decode_json(read_file(self.record_path(app_id)))["folder"])
            except FileNotFoundError:
                return None
            except (OSError, ValueError, TypeError, KeyError) as error:
                # Apps are listed every second.
                if app_id not in self._unreadable:
                    logger.warning("the record %s cannot be read: %s", self.record_path(app_id), error)
                    self._unreadable.add(app_id)
                known = self._usual_folder(app_id)
                if known is None:
                    return None
            self._folders[app_id] = known
        return known

    def _usual_folder(self, app_id: str) -> Path | None:
        """Return an app's folder where `log_dir` was not set."""
        with suppress(OSError):
            for session in self.records.parent.iterdir():
                if session not in (self.records, self.turns) and is_folder(session / app_id):
                    return session / app_id
        return None

    def find(self, app_id: str) -> Run | None:
        """Return an app as it is now, None when it is not known or its folder is gone."""
        if not app_id or "/" in app_id or "\0" in app_id:
            return None
        folder = self.folder(app_id)
        if folder is None:
            return None
        try:
            run = read_run(app_id, folder)
        except OSError as error:
            logger.warning("the state of %s cannot be read: %s", app_id, error)
            return Run(app_id, folder, {}, reason=f"its state cannot be read: {error.strerror}: {error.filename}")
        if run is None or not run.over:
            return run
        if not run.document:
            run.over = self.supervisor(run) is None
        elif run.here and is_own(folder / DELETE):
            self.remove(run)
            return None
        elif run.is_lost and run.here and not run.read_only:
            _write_end(run)
        return run

    def supervisor(self, run: Run) -> Process | None:
        """Return the process that supervises an app on this machine; None if it has ended or runs elsewhere."""
        document = run.document
        if not document:  # its state file is damaged
            turn = next((path for path in self.turns.glob("*-*") if path.name.partition("-")[2] == run.app_id), None)
            document = {} if turn is None else read_note(str(turn))
        if (document.get("host"), document.get("boot_id")) != (os.uname().nodename, boot_id()):
            return None
        process = read_process(document.get("pid") or 0)
        return process if process and is_running(process.pid, document.get("pid_started")) else None

    def get(self, app_id: str) -> Run:
        """Return an app as it is now. Raises JobNotFoundError if it is not known, or its folder is gone."""
        run = self.find(app_id)
        if run is None:
            raise JobNotFoundError(app_id, "local_cwd")
        return run

    def all(self) -> list[Run]:
        """Return every app as it is now."""
        return [run for app_id in self.app_ids() if (run := self.find(app_id)) is not None]

    def remove(self, run: Run) -> None:
        """Remove all that is kept of an app. Raises OSError if something in its folder cannot be removed."""
        remove_folder(run.folder)
        self.forget(run.app_id)

    def forget(self, app_id: str) -> None:
        """Forget where an app's folder is."""
        self.record_path(app_id).unlink(missing_ok=True)
        self._folders.pop(app_id, None)


def _write_end(run: Run) -> None:
    """Write the end of an app whose supervisor cannot; one that is alive will write more than is known here."""
    if is_running(run.document["pid"], run.document["pid_started"]):
        return
    path = run.folder / "state.json"
    try:
        written = decode_json(read_file(path, LARGE))
        if written.get("finished_at") is None and written.get("pid") == run.document["pid"]:
            write_private(path, json.dumps(run.document).encode())
    except (OSError, ValueError) as error:
        logger.debug("the end of %s cannot be written: %s", run.app_id, error)


def remove_folder(folder: Path) -> None:
    """Remove an app's folder. Raises OSError if something in it cannot be removed."""
    # Without its state file the app is gone at once, even if removing the rest takes long.
    if not is_folder(folder / "state.json"):
        (folder / "state.json").unlink(missing_ok=True)
    if path_exists(folder):
        import shutil

        shutil.rmtree(folder)


def signature_of(folder: Path) -> Signature | None:
    """Identify the content of an app's state file by its metadata; None when there is no file."""
    try:
        found = (folder / "state.json").stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def prune(runs: Runs, keep_days: float, keep_bytes: float, own_folder: Path, *, dryrun: bool = False) -> list[str]:
    """Remove finished apps that are too old, then the oldest until the rest takes no more than allowed.

    Of an app whose logs are in a folder that its user chose, only our record goes.

    Args:
        runs: the apps.
        keep_days: how long an app is kept after its end, in days.
        keep_bytes: how many bytes of disk all finished apps in our own folder may take together.
        own_folder: the folder that is ours.
        dryrun: remove nothing.

    Returns:
        The ids of what was removed, or would be.
    """

    def is_ours(run: Run) -> bool:
        return own_folder in run.folder.parents

    finished = [run for run in runs.all() if run.over and run.here and not run.read_only and run.document]
    finished.sort(key=_finished_at)
    oldest = time.time() - keep_days * 86400
    sizes = {run.app_id: folder_size(run.folder) if is_ours(run) else 0 for run in finished}
    total = sum(sizes.values())
    removed = []
    for run in finished:
        if _finished_at(run) < oldest or (total > keep_bytes and sizes[run.app_id]):
            total -= sizes[run.app_id]
            removed.append(run)
    if not dryrun:
        for run in removed:
            if is_ours(run):
                runs.remove(run)
            else:
                runs.forget(run.app_id)
        _remove_stale(runs)
    return [run.app_id for run in removed]


def _finished_at(run: Run) -> float:
    return float(run.document.get("finished_at") or 0.0)


def folder_size(folder: Path) -> int:
    """Return the bytes of disk that a folder takes."""
    size = 0
    for here, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                size += Path(here, name).lstat().st_blocks * 512
    return size


def _remove_stale(runs: Runs) -> None:
    """Remove the records of apps whose folders were removed by hand, and the turns of killed supervisors."""
    for app_id in runs.app_ids():
        # The folder of an app that is being launched is there, its state file may not be yet.
        folder = runs.folder(app_id)
        if folder is not None and is_missing(folder) and path_exists(folder.parent.parent):
            runs.forget(app_id)
    here = (os.uname().nodename, boot_id())
    for path in runs.turns.glob("*-*"):
        turn = read_note(str(path))
        same_boot = (turn.get("host"), turn.get("boot_id")) == here
        alive = same_boot and type(turn.get("pid")) is int and is_running(turn["pid"], turn.get("pid_started"))
        if turn.get("host") == here[0] and not alive:
            path.unlink(missing_ok=True)
