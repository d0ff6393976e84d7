"""Finds the metric files of a job: those that its processes have open, then those in its folders, in a bounded walk."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ...base.files import is_folder
from .databases import DatabaseFile
from .points import MetricFile
from .tables import CsvFile, JsonLinesFile, MlflowFile, TrainerState, mlflow_place
from .tfevents import EventFile
from .wandb_log import WandbFile

_STATE = "trainer_state.json"
_KINDS: tuple[tuple[re.Pattern[str], Callable[[Path], MetricFile]], ...] = (
    (re.compile(r".*tfevents.*"), EventFile),
    (re.compile(r".*\.wandb"), WandbFile),
    (re.compile(re.escape(_STATE)), TrainerState),
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
TIME_LIMIT_S = 1.0
"""How long metric files are looked for."""
_TRACKIO = Path(".cache/huggingface/trackio")
# A file may be older than the job by so much (s): clocks of file servers differ.
_CLOCK_SLACK_S = 1.0
_JOB_ID = b"TORCHX_JOB_ID="


def open_metric_file(path: Path) -> MetricFile | None:
    """Return the reader of a metric file by its name; None where the name is that of none."""
    if path.suffix == ".db" and path.parent.name == _TRACKIO.name:
        return DatabaseFile(path)
    if mlflow_place(path):
        return MlflowFile(path)
    return next((reader(path) for pattern, reader in _KINDS if pattern.fullmatch(path.name)), None)


class Folder(NamedTuple):
    """A folder in which a job runs, or which its container shares with this machine.

    Attributes:
        path: the folder, as this process sees it.
        target: the folder's path in the job's container; empty where it is the same.
        root: the root of the job's container, as this process sees it; empty where it is this machine's.
    """

    path: Path
    target: str = ""
    root: str = ""


def find_metric_files(
    pids: Iterable[int],
    folders: Iterable[Folder],
    arguments: Iterable[str],
    since: float,
    until: float = math.inf,
) -> list[Path]:
    """List the metric files of a job, those that are surely its own first.

    Open files, files beside them, and files in folders that its arguments name are its own. Others in its folders are
    taken where no other job that runs can have written them, and where they are those of one run.

    Args:
        pids: its processes on this machine.
        folders: its folders, beside the current ones of its processes.
        arguments: the words of its command line; those that are folders are looked into.
        since: when it started (seconds since the epoch); older files are left out.
        until: when it ended; newer files are left out.
    """
    own = set(pids)
    current = list(folders)
    open_files: dict[Path, None] = {}
    for pid in own:
        root = _container_root(pid)
        if (folder := _link(f"/proc/{pid}/cwd")) is not None:
            current.append(Folder(Path(root + folder), root=root))
        open_files.update(dict.fromkeys(path for path in _open_files(pid, root) if open_metric_file(path)))
    current = list(dict.fromkeys(current))
    walk = _Walk(since - _CLOCK_SLACK_S, until + _CLOCK_SLACK_S, time.monotonic() + TIME_LIMIT_S)
    sure = dict(open_files)
    for parent in dict.fromkeys(path.parent for path in open_files):
        sure.update(dict.fromkeys(walk.files(parent, depth=_MOST_DEEP)))
    for path in _named_folders(arguments, current):
        sure.update(dict.fromkeys(walk.files(path, every=True)))
    taken = _folders_of_others(own)
    unsure = [path for folder in current if folder.path not in taken for path in walk.files(folder.path)]
    found = [*sure, *_of_one_run(_without_doubles(path for path in unsure if path not in sure))]
    return _without_old_states(_without_doubles(found))[:_MOST_FILES]


def _container_root(pid: int) -> str:
    """Return the path of a process' root where it has files of its own, as in a container; empty where it has not."""
    try:
        if os.stat(f"/proc/{pid}/ns/mnt").st_ino != os.stat("/proc/self/ns/mnt").st_ino:  # noqa: PTH116
            return f"/proc/{pid}/root"
    except OSError:
        pass
    return ""


def _link(path: str) -> str | None:
    try:
        target = os.readlink(path)  # noqa: PTH115
    except OSError:
        return None
    return target if target.startswith("/") and not target.endswith(" (deleted)") else None


def _open_files(pid: int, root: str) -> Iterator[Path]:
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)[:_MOST_ENTRIES]  # noqa: PTH208
    except OSError:
        return
    for number in numbers:
        path = _link(f"{folder}/{number}")
        if path is not None:
            yield Path(root + path)


def _folders_of_others(own: Collection[int]) -> set[Path]:
    """Return the current folders of other jobs' processes: what is written there may be theirs."""
    found = set()
    try:
        others = [name for name in os.listdir("/proc") if name.isdigit() and int(name) not in own]  # noqa: PTH208
    except OSError:
        return found
    for name in others:
        try:
            with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123
                is_job = _JOB_ID in file.read()
        except OSError:
            continue
        if is_job and (folder := _link(f"/proc/{name}/cwd")) is not None and not _container_root(int(name)):
            found.add(Path(folder))
    return found


def _named_folders(arguments: Iterable[str], current: Sequence[Folder]) -> Iterator[Path]:
    """Yield the folders that arguments name: `--output_dir x`, `--logdir=x`, `trainer.dir=x`."""
    known = {folder.path for folder in current}
    for argument in arguments:
        text = argument.rpartition("=")[2]
        if not text or text.startswith("-") or len(text) > 1_000 or "\0" in text or text in (".", "/"):
            continue
        for base in current or [Folder(Path("/"))]:
            folder = _inside(base, text)
            if folder is not None and folder.is_absolute() and is_folder(folder) and folder not in known:
                yield folder
                break


def _inside(base: Folder, text: str) -> Path | None:
    """Return the path that a job in a folder means by a text; None where that is not on this machine."""
    inside = PurePosixPath(text)
    if (base.target or base.root) and ".." in inside.parts:
        return None  # it would lead out of the container
    if base.target:
        return base.path / inside.relative_to(base.target) if inside.is_relative_to(base.target) else None
    if not text.startswith("/"):
        return base.path / text
    return Path(base.root + text)


class _Walk:
    """Walks folders until a number of entries or a time is reached, over all folders together."""

    def __init__(self, since: float, until: float, deadline: float) -> None:
        self._since = since
        self._until = until
        self._deadline = deadline
        self._left = _MOST_ENTRIES

    def _is_new(self, entry: os.DirEntry[str]) -> bool:
        return self._since <= entry.stat().st_mtime <= self._until

    def files(self, folder: Path, *, every: bool = False, depth: int = 0) -> Iterator[Path]:
        """Yield the metric files in a folder and its folders.

        Args:
            folder: the folder.
            every: look into every folder, not only into those with a usual name.
            depth: how deep it is.
        """
        try:
            if not _is_plain(folder):
                return
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
                elif open_metric_file(path := Path(entry.path)) and entry.is_file() and self._is_new(entry):
                    yield from [path] if _is_plain(path) else []
            except OSError:
                continue


def _is_plain(path: Path) -> bool:
    """Whether no part of a path in a container is a symbolic link, which would lead out of the container."""
    parts = path.parts
    if parts[1:2] != ("proc",) or parts[3:4] != ("root",):
        return True
    return not any(path.is_symlink() for path in [path, *path.parents][: len(parts) - 4])


def _of_one_run(paths: Sequence[Path]) -> list[Path]:
    """Leave out files of a kind that several folders have: nothing tells which of these runs is the job's."""
    runs: dict[object, set[Path]] = {}
    kinds = [_kind_and_run(path) for path in paths]
    for kind, run in kinds:
        runs.setdefault(kind, set()).add(run)
    return [path for path, (kind, _) in zip(paths, kinds, strict=True) if len(runs[kind]) == 1]


def _kind_and_run(path: Path) -> tuple[object, Path]:
    """Return which kind of metric file a path is, and the folder of the run that wrote it."""
    if place := mlflow_place(path):
        return MlflowFile, Path(*path.parts[:place])
    if path.name == _STATE:
        return _STATE, path.parent.parent if path.parent.name.startswith("checkpoint-") else path.parent
    return next(kind for kind, _ in _KINDS if kind.fullmatch(path.name)), path.parent


def _without_doubles(paths: Iterable[Path]) -> list[Path]:
    """Name each file once: one of a container that this machine has as well is named as it is called here."""
    found: dict[tuple[int, int], Path] = {}
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue
        key = (status.st_dev, status.st_ino)
        if key not in found or found[key].parts[1] == "proc":
            found[key] = path
    return list(found.values())


def _without_old_states(paths: list[Path]) -> list[Path]:
    """Leave out every `trainer_state.json` but the newest, which has the history of the others."""
    states = [path for path in paths if path.name == _STATE]
    newest = max(states, key=modified, default=None)
    return [path for path in paths if path.name != _STATE or path == newest]


def modified(path: Path) -> float:
    """Return when a file was written (seconds since the epoch); 0 where that cannot be told."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
