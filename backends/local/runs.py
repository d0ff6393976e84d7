"""All local apps of this user that are known here, found again by any process."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

from ...base.files import LARGE, is_folder, is_missing, path_exists, read_file, write_private
from ...base.processes import Process, boot_id, is_own, is_running, read_process
from ...base.validation import decode_json
from ...specs.errors import JobNotFoundError
from .record import Run, read_run
from .supervisor import FORMAT, read_note

DELETE = "delete"
"""A file of this name in an app's folder: the folder is to be removed as soon as the app has ended."""


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
    removed = _beyond(runs, keep_days, keep_bytes, own_folder)
    if not dryrun:
        for run in removed:
            if _is_ours(run, own_folder):
                runs.remove(run)
            else:
                runs.forget(run.app_id)
        _forget_missing(runs)
        _remove_turns(runs.turns)
    return [run.app_id for run in removed]


def _beyond(runs: Runs, keep_days: float, keep_bytes: float, own_folder: Path) -> list[Run]:
    """Return the finished apps beyond the limits, the oldest first."""
    finished = sorted(
        (run for run in runs.all() if run.over and run.here and not run.read_only and run.document), key=_finished_at
    )
    oldest = time.time() - keep_days * 86400
    sizes = {run.app_id: folder_size(run.folder) if _is_ours(run, own_folder) else 0 for run in finished}
    total = sum(sizes.values())
    beyond = []
    for run in finished:
        if _finished_at(run) < oldest or (total > keep_bytes and sizes[run.app_id]):
            total -= sizes[run.app_id]
            beyond.append(run)
    return beyond


def folder_size(folder: Path) -> int:
    """Return the bytes of disk that a folder takes."""
    return sum(_file_sizes(folder))


def _file_sizes(folder: Path) -> Iterable[int]:
    for here, _, files in os.walk(folder):
        for name in files:
            try:
                yield Path(here, name).lstat().st_blocks * 512
            except OSError:
                continue


def _is_ours(run: Run, own_folder: Path) -> bool:
    return own_folder in run.folder.parents


def _finished_at(run: Run) -> float:
    return float(run.document.get("finished_at") or 0.0)


def _forget_missing(runs: Runs) -> None:
    """Forget apps whose folders were removed by hand; a launch of this moment has its folder, but no state file yet."""
    for app_id in runs.app_ids():
        folder = runs.folder(app_id)
        if folder is not None and is_missing(folder) and path_exists(folder.parent.parent):
            runs.forget(app_id)


def _remove_turns(folder: Path) -> None:
    """Remove the places in the queue of supervisors that were killed."""
    here = (os.uname().nodename, boot_id())
    for path in folder.glob("*-*"):
        try:
            turn = decode_json(read_file(path))
            of_this_boot = (turn["host"], turn["boot_id"]) == here
            if turn["host"] == here[0] and not (of_this_boot and is_running(turn["pid"], turn["pid_started"])):
                path.unlink(missing_ok=True)
        except (OSError, ValueError, KeyError, TypeError):
            continue


logger = logging.getLogger(__name__)

Signature = tuple[int, int, int]


class Runs:
    """The apps of one state folder.

    Args:
        root: the folder that has ``runs`` (a file an app, saying where its folder is) and ``turns`` (a file for each
            app that waits or runs).
        cache_size: how many apps are kept in memory; the others are read again when they are asked for.
    """

    def __init__(self, root: Path, cache_size: int = 100) -> None:
        self.records = root / "runs"
        self.turns = root / "turns"
        self._cache_size = max(1, cache_size)
        self._folders: dict[str, Path] = {}
        self._over: OrderedDict[str, tuple[Signature, Run]] = OrderedDict()
        # A signal's handler may need it while this thread holds it.
        self._lock = threading.RLock()

    def record_path(self, app_id: str) -> Path:
        """Return the file that says where an app's folder is."""
        return self.records / f"{app_id}.json"

    def write_record(self, app_id: str, folder: Path) -> None:
        """Write where an app's folder is.

        Raises:
            OSError: that cannot be written.
        """
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
        with self._lock:
            known = self._folders.get(app_id)
        if known is None:
            try:
                record = decode_json(read_file(self.record_path(app_id)))
                known = Path(record["folder"])
            except (OSError, ValueError, TypeError, KeyError):
                return None
            with self._lock:
                self._folders[app_id] = known
        return known

    def find(self, app_id: str) -> Run | None:
        """Return an app as it is now, None when it is not known or its folder is gone."""
        if not app_id or "/" in app_id or "\0" in app_id:
            return None
        folder = self.folder(app_id)
        if folder is None:
            return None
        signature = signature_of(folder)
        with self._lock:
            cached = self._over.get(app_id)
            if cached and signature is not None and cached[0] == signature:
                self._over.move_to_end(app_id)
                return cached[1]
        try:
            run = read_run(app_id, folder)
        except OSError as error:
            logger.warning("the state of %s cannot be read: %s", app_id, error)
            return Run(app_id, folder, {}, reason=f"its state cannot be read: {error.strerror}: {error.filename}")
        if run is not None and not run.document:
            run.over = run.over and self.supervisor(run) is None
        elif run is not None and run.over:
            if is_own(folder / DELETE) and run.here:
                self.remove(run)
                return None
            self._settle(run, signature)
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
        """Return an app as it is now.

        Raises:
            JobNotFoundError: it is not known, or its folder is gone.
        """
        run = self.find(app_id)
        if run is None:
            raise JobNotFoundError(app_id, "local_cwd")
        return run

    def all(self) -> list[Run]:
        """Return every app as it is now."""
        return [run for app_id in self.app_ids() if (run := self.find(app_id)) is not None]

    def remove(self, run: Run) -> None:
        """Remove all that is kept of an app.

        Raises:
            OSError: something in its folder cannot be removed.
        """
        remove_folder(run.folder)
        self.forget(run.app_id)

    def forget(self, app_id: str) -> None:
        """Forget where an app's folder is."""
        self.record_path(app_id).unlink(missing_ok=True)
        with self._lock:
            self._folders.pop(app_id, None)
            self._over.pop(app_id, None)

    def _settle(self, run: Run, signature: Signature | None) -> None:
        """Keep an app that will not change; write down an end that no supervisor could."""
        if signature is None:
            return
        # A supervisor that lives, and cannot write at present, will write more than this.
        lives = run.reason and is_running(run.document["pid"], run.document["pid_started"])
        if run.reason and not lives and not run.read_only and run.here:
            try:
                written = decode_json(read_file(run.folder / "state.json", LARGE))
                if written.get("finished_at") is None and written.get("pid") == run.document["pid"]:
                    write_private(run.folder / "state.json", json.dumps(run.document).encode())
                    signature = signature_of(run.folder) or signature
            except (OSError, ValueError) as error:
                logger.debug("the end of %s cannot be written: %s", run.app_id, error)
        with self._lock:
            self._over[run.app_id] = (signature, run)
            self._over.move_to_end(run.app_id)
            while len(self._over) > self._cache_size:
                self._over.popitem(last=False)


def remove_folder(folder: Path) -> None:
    """Remove an app's folder.

    Raises:
        OSError: something in it cannot be removed.
    """
    # Without its state file the app does not exist any more, even if the rest takes long.
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
