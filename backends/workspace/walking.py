"""The files of a project that travel with a job: those that its ignore file does not name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...base.files import read_file
from ...specs.errors import SchedulerError
from .ignore import IGNORE_FILES, IgnorePatterns, read_patterns

OnIgnored = Callable[[str, str], object]
"""Called with each path that is ignored, and the pattern; not with the files of an ignored folder."""


def is_url(workspace: str) -> bool:
    """Return whether a workspace is a URL, not a folder of this machine."""
    return "://" in workspace


def open_url(workspace: str, *, folder: bool = True) -> tuple[Any, str]:
    """Return fsspec's file system of a URL, and the path in it.

    Args:
        workspace: the URL.
        folder: whether it must be a folder; else it may be a file.

    Raises:
        SchedulerError: it cannot be opened, or is not a folder.
        OSError: it cannot be read.
    """
    # Imported here: fsspec takes 30 ms and more.
    from fsspec.core import url_to_fs

    try:
        system, root = url_to_fs(workspace)
    except (ValueError, ImportError) as error:
        raise SchedulerError(f"the workspace {workspace} cannot be opened: {error}") from error
    if not (system.isdir(root) or (not folder and system.isfile(root))):
        raise SchedulerError(f"the workspace {workspace} is not a folder there")
    return system, root


def folder_patterns(folder: Path, ignore_files: Sequence[str] = IGNORE_FILES) -> IgnorePatterns:
    """Read the patterns of a folder."""
    return read_patterns(ignore_files, lambda name: read_file(folder / name))


def url_patterns(system: Any, root: str, ignore_files: Sequence[str] = IGNORE_FILES) -> IgnorePatterns:
    """Read the patterns of a folder of a file system of fsspec."""
    return read_patterns(ignore_files, lambda name: system.cat_file(f"{root.rstrip('/')}/{name}"))


def wanted_paths(
    folder: Path,
    ignore: IgnorePatterns,
    on_ignored: OnIgnored = lambda *_: None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Iterator[str]:
    """Yield the paths below a folder that travel, empty folders too.

    Args:
        folder: the project.
        ignore: its patterns.
        on_ignored: see `OnIgnored`.
        is_wanted: called for each folder; false ends the walk.
    """

    def is_left(path: str) -> bool:
        if rule := ignore.rule_for(path):
            on_ignored(path, rule)
        return bool(rule)

    for here, folders, files in os.walk(folder):
        if not is_wanted():
            return
        below = Path(here).relative_to(folder).as_posix()
        prefix = "" if below == "." else f"{below}/"
        links = [name for name in folders if Path(here, name).is_symlink()]
        folders[:] = sorted(
            name for name in folders if name not in links and (ignore.has_negation or not is_left(prefix + name))
        )
        empty = [name for name in folders if not any(Path(here, name).iterdir())]
        yield from (prefix + name for name in sorted([*files, *links, *empty]) if not is_left(prefix + name))


def wanted_files(
    system: Any, root: str, ignore: IgnorePatterns, on_ignored: OnIgnored = lambda *_: None
) -> Iterator[tuple[str, str]]:
    """Yield the files of a folder of a file system of fsspec that travel: the path there, and below the folder."""
    prefix = root.rstrip("/") + "/"
    for path in system.find(root):
        below = path.removeprefix(prefix)
        if rule := ignore.rule_for(below):
            on_ignored(below, rule)
        else:
            yield path, below
