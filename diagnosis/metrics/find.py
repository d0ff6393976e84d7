"""Finds the metric files of a job: those that its processes have open, then those in its folders, in a bounded walk."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from .databases import DatabaseFile
from .points import MetricFile
from .tables import CsvFile, JsonLinesFile, MlflowFile, TrainerState, mlflow_place
from .tfevents import EventFile
from .wandb_log import WandbFile

_KINDS: tuple[tuple[re.Pattern[str], Callable[[Path], MetricFile]], ...] = (
    (re.compile(r".*tfevents.*"), EventFile),
    (re.compile(r".*\.wandb"), WandbFile),
    (re.compile(r"trainer_state\.json"), TrainerState),
    (re.compile(r"(?:metrics|progress|results|history|.*[-_]?log|training.*)\.csv"), CsvFile),
    (re.compile(r"metrics\.json|.*scalars\.json|.*(?:metric|log|scalar|history|train).*\.jsonl"), JsonLinesFile),
    (re.compile(r"mlflow\.db"), DatabaseFile),
)
# Folders of metrics, in the current folder of a job.
_USUAL_FOLDERS = re.compile(
    r"(?i)runs|lightning_logs|wandb|mlruns|outputs?|results?|logs?|tb.*|tensorboard.*|checkpoints?.*|work_dirs|csv_logs"
    r"|version_\d+|.*-run-.*|checkpoint-\d+|vis_data|\d.*"
)
_SKIPPED_FOLDERS = frozenset({".git", "node_modules", "site-packages", "__pycache__", ".venv", "venv"})
_MOST_DEEP = 3
_MOST_ENTRIES = 2_000
# MLflow's store has one for each metric.
_MOST_FILES = 32
_TIME_LIMIT_S = 1.0
_TRACKIO = Path(".cache/huggingface/trackio")
# A file may be older than the job by so much (s): clocks of file servers differ.
_CLOCK_SLACK_S = 5.0


def open_metric_file(path: Path) -> MetricFile | None:
    """Return the reader of a metric file by its name; None where the name is that of none."""
    if path.suffix == ".db" and path.parent.name == _TRACKIO.name:
        return DatabaseFile(path)
    if mlflow_place(path):
        return MlflowFile(path)
    return next((reader(path) for pattern, reader in _KINDS if pattern.fullmatch(path.name)), None)


def find_metric_files(
    pids: Iterable[int], folders: Iterable[Path], arguments: Iterable[str], since: float
) -> list[Path]:
    """List the metric files of a job, those that are surely its own first.

    Args:
        pids: its processes on this machine.
        folders: its current folders, beside those of its processes.
        arguments: the words of its command line; those that are folders are looked into.
        since: when it started (seconds since the epoch); older files are left out.
    """
    found: dict[Path, None] = {}
    deadline = time.monotonic() + _TIME_LIMIT_S
    current = list(folders)
    for pid in pids:
        current += [folder for folder in [_current_folder(pid)] if folder is not None]
        found.update(dict.fromkeys(path for path in _open_files(pid) if open_metric_file(path)))
    current = list(dict.fromkeys(current))
    walk = _Walk(since - _CLOCK_SLACK_S, deadline)
    for folder in _named_folders(arguments, current):
        found.update(dict.fromkeys(walk.files(folder, every=True)))
    for folder in current:
        found.update(dict.fromkeys(walk.files(folder, every=False)))
    return _without_old_states(list(found))[:_MOST_FILES]


def _visible(pid: int, path: str) -> Path:
    """Return a path of a process as this process sees it: a container has files of its own."""
    try:
        if os.stat(f"/proc/{pid}/ns/mnt").st_ino != os.stat("/proc/self/ns/mnt").st_ino:  # noqa: PTH116
            return Path(f"/proc/{pid}/root{path}")
    except OSError:
        pass
    return Path(path)


def _open_files(pid: int) -> Iterator[Path]:
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)[:_MOST_ENTRIES]  # noqa: PTH208
    except OSError:
        return
    for number in numbers:
        try:
            path = os.readlink(f"{folder}/{number}")  # noqa: PTH115
        except OSError:
            continue
        if path.startswith("/") and not path.endswith(" (deleted)"):
            yield _visible(pid, path)


def _current_folder(pid: int) -> Path | None:
    try:
        return _visible(pid, os.readlink(f"/proc/{pid}/cwd"))  # noqa: PTH115
    except OSError:
        return None


def _named_folders(arguments: Iterable[str], current: list[Path]) -> Iterator[Path]:
    """Yield the folders that arguments name: `--output_dir x`, `--logdir=x`, `trainer.dir=x`."""
    for argument in arguments:
        text = argument.rpartition("=")[2]
        if not text or text.startswith("-") or len(text) > 1_000 or "\0" in text or text in (".", "/"):
            continue
        for base in current or [Path("/")]:
            folder = base / text
            if folder.is_absolute() and folder.is_dir() and folder not in current:
                yield folder
                break


class _Walk:
    """Walks folders until a number of entries or a time is reached, over all folders together."""

    def __init__(self, since: float, deadline: float) -> None:
        self._since = since
        self._deadline = deadline
        self._left = _MOST_ENTRIES

    def files(self, folder: Path, *, every: bool, depth: int = 0) -> Iterator[Path]:
        """Yield the metric files in a folder and its folders.

        Args:
            folder: the folder.
            every: look into every folder, not only into those with a usual name.
            depth: how deep it is.
        """
        try:
            with os.scandir(folder) as entries:
                listed = []
                for entry in entries:
                    self._left -= 1
                    if self._left < 0 or time.monotonic() > self._deadline:
                        break
                    listed.append(entry)
        except OSError:
            return
        for entry in sorted(listed, key=lambda entry: entry.name):
            try:
                if entry.is_dir(follow_symlinks=False):
                    wanted = every or depth > 0 or _USUAL_FOLDERS.fullmatch(entry.name)
                    is_near = depth < _MOST_DEEP or (depth < _MOST_DEEP + 2 and mlflow_place(Path(entry.path, "x")))
                    if is_near and entry.name not in _SKIPPED_FOLDERS and wanted:
                        yield from self.files(Path(entry.path), every=every, depth=depth + 1)
                elif open_metric_file(Path(entry.path)) and entry.is_file() and entry.stat().st_mtime >= self._since:
                    yield Path(entry.path)
            except OSError:
                continue


def _without_old_states(paths: list[Path]) -> list[Path]:
    """Leave out every `trainer_state.json` but the newest, which has the history of the others."""
    states = [path for path in paths if path.name == "trainer_state.json"]
    newest = max(states, key=_modified, default=None)
    return [path for path in paths if path.name != "trainer_state.json" or path == newest]


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
