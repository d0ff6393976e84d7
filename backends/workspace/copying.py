"""Copies the projects of a workspace, without what their ignore files name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...base.files import is_folder, read_file
from .ignore import IGNORE_FILES, IgnorePatterns


def copy_project(source: str | Path, target: Path) -> None:
    """Copy a project, a folder or one file, over what is at ``target``.

    Links are copied as links, and files keep their permissions, where the source is on this machine. Any source that
    fsspec can open by a URL, such as ``s3://bucket/project``, is accepted as well.

    Args:
        source: a path, or a URL.
        target: the path that the folder or file shall have; for one file, a folder that exists takes it in.

    Raises:
        OSError: something cannot be read or written.
    """
    if "://" in str(source):
        _copy_url(str(source), target)
        return
    source = Path(source)
    if not is_folder(source):
        _copy_file(source, target / source.name if is_folder(target) else target)
        return
    target.mkdir(parents=True, exist_ok=True)
    for path in wanted_paths(source):
        _copy_file(source / path, target / path)


def wanted_paths(folder: Path, ignore_files: Sequence[str] = IGNORE_FILES) -> Iterator[str]:
    """Yield what travels, by its path below the folder; folders that are empty too.

    Args:
        folder: the project.
        ignore_files: names of files whose patterns say what stays at home; the first one that exists counts.
    """
    ignore, _ = read_patterns(folder, ignore_files)
    for here, folders, files in os.walk(folder):
        below = Path(here).relative_to(folder).as_posix()
        prefix = "" if below == "." else f"{below}/"
        links = [name for name in folders if Path(here, name).is_symlink()]
        folders[:] = [
            name
            for name in folders
            if name not in links and (ignore.takes_back or not ignore.is_ignored(prefix + name))
        ]
        for name in sorted([*files, *links, *(name for name in folders if not any(Path(here, name).iterdir()))]):
            if not ignore.is_ignored(prefix + name):
                yield prefix + name


def read_patterns(folder: Path, ignore_files: Sequence[str]) -> tuple[IgnorePatterns, str]:
    """Return the patterns of the first of these files that a project has, and its name; none, and an empty name."""
    for name in ignore_files:
        try:
            return IgnorePatterns(read_file(folder / name).decode("utf-8-sig", "replace").splitlines()), name
        except FileNotFoundError:
            continue
    return IgnorePatterns(), ""


def _copy_file(source: Path, target: Path) -> None:
    if is_folder(source) and not source.is_symlink():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target.unlink()  # never write through a link to somewhere else

    shutil.copy2(source, target, follow_symlinks=False)


def _copy_url(url: str, target: Path) -> None:
    # fsspec is needed only here, and takes 30 ms and more to import.
    from fsspec.core import url_to_fs

    system: Any
    system, root = url_to_fs(url)
    if not system.isdir(root):
        target = target / root.rpartition("/")[2] if is_folder(target) else target
        target.parent.mkdir(parents=True, exist_ok=True)
        system.get_file(root, str(target))
        return
    target.mkdir(parents=True, exist_ok=True)
    for path, below in wanted_files(system, root):
        (target / below).parent.mkdir(parents=True, exist_ok=True)
        system.get_file(path, str(target / below))


def wanted_files(system: Any, root: str, ignore_files: Sequence[str] = IGNORE_FILES) -> Iterator[tuple[str, str]]:
    """Yield the files of a folder elsewhere that travel: the path there, and the one below the folder.

    Args:
        system: the file system, as fsspec gives it.
        root: the folder's path there.
        ignore_files: see `wanted_paths`.
    """
    prefix = root.rstrip("/") + "/"
    paths = {path: path.removeprefix(prefix) for path in system.find(root)}
    ignore, _ = patterns_there(system, prefix, paths, ignore_files)
    yield from ((path, below) for path, below in paths.items() if not ignore.is_ignored(below))


def patterns_there(
    system: Any, prefix: str, paths: Container[str], ignore_files: Sequence[str]
) -> tuple[IgnorePatterns, str]:
    """Read the patterns of a folder elsewhere, as `read_patterns` does.

    Args:
        system: the file system, as fsspec gives it.
        prefix: the folder's path there, with the last slash.
        paths: all files in it.
        ignore_files: see `wanted_paths`.
    """
    for name in ignore_files:
        if prefix + name in paths:
            return IgnorePatterns(system.cat_file(prefix + name).decode("utf-8-sig", "replace").splitlines()), name
    return IgnorePatterns(), ""
