"""Copies the projects of a workspace, without what their ignore files name."""

from __future__ import annotations

import shutil
from pathlib import Path

from ...base.files import is_folder
from .walking import folder_patterns, is_url, open_url, url_patterns, wanted_files, wanted_paths


def copy_project(source: str | Path, target: Path) -> None:
    """Copy a project, a folder or one file, over what is at ``target``.

    Links are copied as links, and files of this machine keep their permissions.

    Args:
        source: a path, or a URL that fsspec can open, such as ``s3://bucket/project``.
        target: the new path of the folder or file; a file is copied into a folder that exists.

    Raises:
        OSError: something cannot be read or written.
    """
    if is_url(str(source)):
        _copy_url(str(source), target)
        return
    source = Path(source).expanduser()
    if not is_folder(source):
        _copy_file(source, target / source.name if is_folder(target) else target)
        return
    target.mkdir(parents=True, exist_ok=True)
    for path in wanted_paths(source, folder_patterns(source)):
        _copy_file(source / path, target / path)


def _copy_file(source: Path, target: Path) -> None:
    if is_folder(source) and not source.is_symlink():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target.unlink()  # never write through a link to somewhere else

    shutil.copy2(source, target, follow_symlinks=False)


def _copy_url(url: str, target: Path) -> None:
    system, root = open_url(url, folder=False)
    if not system.isdir(root):
        target = target / root.rpartition("/")[2] if is_folder(target) else target
        target.parent.mkdir(parents=True, exist_ok=True)
        system.get_file(root, str(target))
        return
    target.mkdir(parents=True, exist_ok=True)
    for path, below in wanted_files(system, root, url_patterns(system, root)):
        (target / below).parent.mkdir(parents=True, exist_ok=True)
        system.get_file(path, str(target / below))
