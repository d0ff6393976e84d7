"""Finds the metric files of a job: those that its processes have open, then those in its folders, in a bounded walk."""

from __future__ import annotations

import math
import os
import re
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ...base.files import is_folder
from .formats import STATE, is_metric_name, open_metric_file
from .tables import MLFLOW

# Folders of metrics, in the current folder of a job.
_USUAL_FOLDERS = re.compile(
    r"(?i)runs|lightning_logs|wandb|mlruns|outputs?|results?|logs?|tb.*|tensorboard.*|checkpoints?.*|work_dirs|csv_logs"
    r"|version_\d+|.*-run-.*|checkpoint-\d+|vis_data|dvclive|\d.*"
)
_SKIPPED_FOLDERS = frozenset({".git", "node_modules", "site-packages", "__pycache__", ".venv", "venv"})
# Files that may be metrics by their content, if a process of the job writes them.
_TEXT_FILES = re.compile(r"(?:[^.]+|.*\.(?:csv|tsv|txt|log|out|dat|jsonl?))")
# The file store of MLflow is the deepest.
_MAX_DEPTH = 5
_MAX_ENTRIES = 2_000
# MLflow's file store has a file for each metric.
_MAX_FILES = 32
TIME_LIMIT_S = 1.0
"""Seconds until the search gives up."""
# Clocks of file servers differ by up to a second: a file may be that much older than its job.
_CLOCK_SLACK_S = 1.0
_JOB_ID = b"TORCHX_JOB_ID="


class Folder(NamedTuple):
    """A folder in which a job runs, or which its container shares with this machine.

    Attributes:
        path: the folder, as this process sees it.
        target: the folder's path in the job's container; empty if it is the same.
        root: the root of the job's container, as this process sees it; empty if it is this machine's.
    """

    path: Path
    target: str = ""
    root: str = ""


class Candidate(NamedTuple):
    """A file that may have a job's metrics.

    Attributes:
        path: its path, as this process sees it.
        written: when it was written last (seconds since the epoch).
        identity: its device and inode.
    """

    path: Path
    written: float
    identity: tuple[int, int]


def find_metric_files(
    pids: Iterable[int],
    folders: Iterable[Folder],
    arguments: Iterable[str],
    since: float,
    until: float = math.inf,
) -> list[Path]:
    """List the metric files of a job, those that are surely its own first.

    Its own are open files, files beside them, and files in folders that its arguments name. Other files in its folders
    are taken if no other running job can have written them, and if they are those of one run.

    Args:
        pids: its processes on this machine.
        folders: its folders, besides the current ones of its processes.
        arguments: the words of its command line.
        since: when it started (seconds since the epoch); older files are left out.
        until: when it ended; newer files are left out.
    """
    own, search = set(pids), _Search(since - _CLOCK_SLACK_S, until + _CLOCK_SLACK_S)
    known, sure = [*folders], []
    for pid in own:
        root = _container_root(pid)
        sure += search.open_files(pid, root)
        if (path := _link(f"/proc/{pid}/cwd")) is not None:
            known.append(Folder(Path(root + path), root=root))
    places = list(dict.fromkeys(known))
    for parent in dict.fromkeys(found.path.parent for found in sure):
        sure += search.candidates(parent, depth=_MAX_DEPTH)
    for folder in _named_folders(arguments, places):
        sure += search.candidates(folder, every=True)
    taken = _folders_of_others(own)
    others = [found for place in places if place.path not in taken for found in search.candidates(place.path)]
    return choose(sure, others)


def choose(sure: Iterable[Candidate], others: Iterable[Candidate]) -> list[Path]:
    """Choose the files to read: all that are surely the job's, and others if they are of one run.

    Of each file's paths the one on this machine is taken, not that through a container. Of HF's states the newest is
    taken, which has the history of the others.
    """
    by_identity: dict[tuple[int, int], Candidate] = {}
    sure = list(sure)
    for found in (*sure, *others):
        if found.identity not in by_identity or by_identity[found.identity].path.parts[1] == "proc":
            by_identity[found.identity] = found
    own = {found.identity for found in sure}
    runs: dict[str, set[str]] = {}
    for identity, found in by_identity.items():
        if identity not in own:
            runs.setdefault(_kind(found.path), set()).add(_run(found.path))
    chosen = [found for identity, found in by_identity.items() if identity in own or len(runs[_kind(found.path)]) == 1]
    states = [found for found in chosen if found.path.name == STATE]
    newest = max(states, key=lambda found: found.written, default=None)
    return [found.path for found in chosen if found.path.name != STATE or found is newest][:_MAX_FILES]


def _kind(path: Path) -> str:
    return "tfevents" if "tfevents" in path.name else path.name if path.suffix == ".json" else path.suffix


def _run(path: Path) -> str:
    """Return the folder of the run that wrote a file."""
    if found := MLFLOW.fullmatch(path.as_posix()):
        return found[1]
    folder = path.parent
    if path.name == STATE and folder.name.startswith("checkpoint-"):
        return str(folder.parent)
    return str(folder).partition("/plots/metrics")[0]


class _Search:
    """A search that ends after a number of entries or a time, over all folders together."""

    def __init__(self, since: float, until: float) -> None:
        self._since, self._until = since, until
        self._deadline = time.monotonic() + TIME_LIMIT_S
        self._left = _MAX_ENTRIES

    def _goes_on(self) -> bool:
        self._left -= 1
        return self._left >= 0 and time.monotonic() <= self._deadline

    def open_files(self, pid: int, root: str) -> Iterator[Candidate]:
        """Yield the metric files that a process has open: by name, or by content if it writes them."""
        for number in _names(f"/proc/{pid}/fd")[:_MAX_ENTRIES]:
            target = _link(f"/proc/{pid}/fd/{number}")
            if target is None:
                continue
            path = Path(root + target)
            is_wanted = is_metric_name(path) or self._is_written_table(pid, number, path)
            if is_wanted and (found := _candidate(path)) is not None:
                yield found

    def _is_written_table(self, pid: int, number: str, path: Path) -> bool:
        if not _TEXT_FILES.fullmatch(path.name) or not self._goes_on():
            return False
        with suppress(OSError, ValueError, IndexError):
            flags = Path(f"/proc/{pid}/fdinfo/{number}").read_text().partition("flags:")[2].split()[0]
            return bool(int(flags, 8) & (os.O_WRONLY | os.O_RDWR)) and open_metric_file(path) is not None
        return False

    def candidates(self, folder: Path, *, every: bool = False, depth: int = 0) -> Iterator[Candidate]:
        """Yield the metric files in a folder and its folders, by their names.

        Args:
            folder: the folder.
            every: search every folder, not only those with a usual name.
            depth: how deep it is.
        """
        with suppress(OSError, ValueError):
            if not _is_plain(folder):
                return
            with os.scandir(folder) as entries:
                listed = [entry for entry in entries if self._goes_on()]
            for entry in sorted(listed, key=lambda entry: entry.name):
                path = Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    is_wanted = every or depth > 0 or _USUAL_FOLDERS.fullmatch(entry.name)
                    if is_wanted and depth < _MAX_DEPTH and entry.name not in _SKIPPED_FOLDERS:
                        yield from self.candidates(path, every=every, depth=depth + 1)
                elif (
                    is_metric_name(path)
                    and (found := _candidate(path)) is not None
                    and self._since <= found.written <= self._until
                ):
                    yield found


def _candidate(path: Path) -> Candidate | None:
    """Return a file that exists and is not reached through a link of a container; None for all else."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or not _is_plain(path):
            return None
    except (OSError, ValueError):
        return None
    return Candidate(path, status.st_mtime, (status.st_dev, status.st_ino))


def _is_plain(path: Path) -> bool:
    """Return whether no part of a path in a container is a symbolic link, which would lead out of the container."""
    parts = path.parts
    if parts[1:2] != ("proc",) or parts[3:4] != ("root",):
        return True
    return not any(path.is_symlink() for path in [path, *path.parents][: len(parts) - 4])


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def _link(path: str) -> str | None:
    try:
        target = os.readlink(path)  # noqa: PTH115
    except OSError:
        return None
    return target if target.startswith("/") and not target.endswith(" (deleted)") else None


def _container_root(pid: int) -> str:
    """Return the path of a process' root if it has files of its own, as in a container; else empty."""
    with suppress(OSError):
        if os.stat(f"/proc/{pid}/ns/mnt").st_ino != os.stat("/proc/self/ns/mnt").st_ino:  # noqa: PTH116
            return f"/proc/{pid}/root"
    return ""


def _folders_of_others(own: Collection[int]) -> set[Path]:
    """Return the current folders of other jobs' processes: files there may be theirs."""
    found = set()
    for name in _names("/proc"):
        if not name.isdigit() or int(name) in own:
            continue
        with suppress(OSError):
            is_job = _JOB_ID in Path(f"/proc/{name}/environ").read_bytes()
            if is_job and (folder := _link(f"/proc/{name}/cwd")) is not None and not _container_root(int(name)):
                found.add(Path(folder))
    return found


def _named_folders(arguments: Iterable[str], places: Sequence[Folder]) -> Iterator[Path]:
    """Yield the folders that arguments name: `--output_dir x`, `--logdir=x`, `trainer.dir=x`."""
    known = {place.path for place in places}
    for argument in arguments:
        text = argument.rpartition("=")[2]
        if not text or text.startswith("-") or text in (".", "/"):
            continue
        for base in places or [Folder(Path("/"))]:
            folder = _inside(base, text)
            if folder is not None and folder.is_absolute() and is_folder(folder) and folder not in known:
                yield folder
                break


def _inside(base: Folder, text: str) -> Path | None:
    """Return the path that a job in a folder means by a text; None if it is not on this machine."""
    inside = PurePosixPath(text)
    if (base.target or base.root) and ".." in inside.parts:
        return None  # it would lead out of the container
    if base.target:
        return base.path / inside.relative_to(base.target) if inside.is_relative_to(base.target) else None
    return Path(base.root + text) if text.startswith("/") else base.path / text
