"""Removes finished apps that are old, or too many for the space they may take."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from ...specs.files import read_file
from ...specs.foreign import decode_json
from . import supervisor
from .record import Run
from .runs import Runs


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
        if folder is not None and not folder.exists() and folder.parent.parent.exists():
            runs.forget(app_id)


def _remove_turns(folder: Path) -> None:
    """Remove the places in the queue of supervisors that were killed."""
    here = (os.uname().nodename, supervisor.boot_id())
    for path in folder.glob("*-*"):
        try:
            turn = decode_json(read_file(path))
            of_this_boot = (turn["host"], turn["boot_id"]) == here
            if turn["host"] == here[0] and not (
                of_this_boot and supervisor.is_running(turn["pid"], turn["pid_started"])
            ):
                path.unlink(missing_ok=True)
        except (OSError, ValueError, KeyError, TypeError):
            continue
