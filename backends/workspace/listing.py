"""What would be shipped of a workspace, with sizes, and what stays at home by which rule; nothing is copied."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...specs import SchedulerError, Workspace
from .build_context import is_url
from .copying import read_patterns, wanted_files
from .ignore import IGNORE_FILES, IgnorePatterns

# A listing is for people: it ends here, and says so.
MOST_FILES = 100_000
MOST_SECONDS = 20.0


@dataclass
class WorkspaceListing:
    """What a workspace holds.

    Attributes:
        files: path in the job's working folder and size in bytes of what is shipped.
        left: how many files and folders stay at home, by ignore file and rule.
        rules: the ignore files that were read.
        is_whole: whether everything was looked at.
    """

    files: list[tuple[str, int]] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)
    is_whole: bool = True

    @property
    def total(self) -> int:
        """The bytes that are shipped."""
        return sum(size for _, size in self.files)


def list_workspace(workspace: Workspace) -> WorkspaceListing:
    """Return what would be shipped.

    Raises:
        SchedulerError: a project is missing or cannot be read.
    """
    listing = WorkspaceListing()
    deadline = time.monotonic() + MOST_SECONDS
    # A single project is a build context of its own, whose ignore file is the engine's.
    names = (".dockerignore",) if workspace.is_unmapped_single_project() else IGNORE_FILES
    for local, remote in workspace.projects.items():
        try:
            found = _remote(local, names) if is_url(local) else _local(Path(local).expanduser(), names, listing)
            for path, size in found:
                listing.files.append((f"{remote.rstrip('/')}/{path}" if remote else path, size))
                if len(listing.files) >= MOST_FILES or time.monotonic() > deadline:
                    listing.is_whole = False
                    return listing
        except OSError as error:
            raise SchedulerError(f"the workspace {local} cannot be read: {error.strerror or error}") from error
    return listing


def _local(project: Path, names: Sequence[str], listing: WorkspaceListing) -> Iterator[tuple[str, int]]:
    if not project.is_dir():
        yield project.name, project.stat().st_size
        return
    ignore, name = read_patterns(project, names)
    if name:
        listing.rules.append(str(project / name))
    for here, folders, files in os.walk(project):
        below = Path(here).relative_to(project).as_posix()
        prefix = "" if below == "." else f"{below}/"
        kept = []
        for folder in folders:
            if _is_left(f"{prefix}{folder}", ignore, name, listing) and not ignore.takes_back:
                continue
            if not Path(here, folder).is_symlink():
                kept.append(folder)
        folders[:] = sorted(kept)
        for file in sorted(files):
            if not _is_left(f"{prefix}{file}", ignore, name, listing):
                yield f"{prefix}{file}", _size(Path(here, file))


def _is_left(path: str, ignore: IgnorePatterns, name: str, listing: WorkspaceListing) -> bool:
    rule = ignore.rule_for(path)
    if rule:
        key = f"{name}: {rule}"
        listing.left[key] = listing.left.get(key, 0) + 1
    return bool(rule)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _remote(url: str, names: Sequence[str]) -> Iterator[tuple[str, int]]:
    from fsspec.core import url_to_fs

    try:
        system, root = url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise SchedulerError(f"the workspace {url} cannot be opened: {error}") from error
    for path, below in wanted_files(system, root, names):
        yield below, int(system.info(path).get("size") or 0)
