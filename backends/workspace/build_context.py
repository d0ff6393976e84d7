"""Packs a workspace for a Docker engine: a tar that is sent while it is made."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ...base.files import is_folder, open_file, read_file
from ...specs.errors import SchedulerError
from .walking import folder_patterns, is_url, open_url, url_patterns, wanted_files, wanted_paths

DOCKERFILE = "Dockerfile.torchx"
"""The file of a workspace that says how its image is built; without one, its files are copied into the image."""

_DEFAULT = b"ARG IMAGE\nFROM $IMAGE\n\nCOPY . .\n"
CONTEXT_IGNORE_FILES = (".dockerignore",)
"""Ignore files of a folder that an engine builds."""

_BLOCK = tarfile.BLOCKSIZE
_READ = 1 << 20


def dockerfile_of(workspace: str) -> bytes:
    """Read the Dockerfile of a workspace, or return the usual one.

    Raises:
        SchedulerError: the workspace cannot be read.
    """
    try:
        if is_url(workspace):
            system, root = open_url(workspace)
            path = f"{root.rstrip('/')}/{DOCKERFILE}"
            return system.cat_file(path) if system.exists(path) else _DEFAULT
        return read_file(_folder(workspace) / DOCKERFILE)
    except FileNotFoundError:
        return _DEFAULT
    except OSError as error:
        raise SchedulerError(f"the workspace {workspace} cannot be read: {error}") from error


def build_context(workspace: str) -> Iterator[bytes]:
    """Yield the parts of a tar of a workspace, without what its ``.dockerignore`` names, with its `DOCKERFILE`.

    Args:
        workspace: a folder, or a URL that fsspec can open.

    Raises:
        SchedulerError: the workspace cannot be read.
    """
    dockerfile = dockerfile_of(workspace)
    try:
        yield from _remote(workspace) if is_url(workspace) else _local(_folder(workspace))
    except OSError as error:
        raise SchedulerError(f"the workspace {workspace} cannot be read: {error}") from error
    # Also where it is ignored, or is not there.
    yield from _bytes(DOCKERFILE, dockerfile)
    yield b"\0" * (2 * _BLOCK)


def _folder(workspace: str) -> Path:
    try:
        folder = Path(workspace).expanduser()
    except RuntimeError as error:
        raise SchedulerError(f"the workspace {workspace} cannot be found: {error}") from error
    if not is_folder(folder):
        raise SchedulerError(f"the workspace {workspace} is not a folder: give the path of one, or a URL")
    return folder


def _local(folder: Path) -> Iterator[bytes]:
    for path in wanted_paths(folder, folder_patterns(folder, CONTEXT_IGNORE_FILES)):
        if path == DOCKERFILE:
            continue
        source = folder / path
        found = shipped_stat(source, folder)
        if found is None:
            continue
        if stat.S_ISLNK(found.st_mode):
            yield _head(path, kind=tarfile.SYMTYPE, link=str(source.readlink()))
        elif stat.S_ISDIR(found.st_mode):
            yield _head(path, kind=tarfile.DIRTYPE, mode=found.st_mode)
        elif stat.S_ISREG(found.st_mode):
            with os.fdopen(open_file(source), "rb") as file:
                yield from _file(path, file, found.st_size, found.st_mode, found.st_mtime)


def shipped_stat(source: Path, folder: Path) -> os.stat_result | None:
    """Return the status of a file that travels: of a link out of the workspace, its target; None without one."""
    found = source.lstat()
    if not stat.S_ISLNK(found.st_mode) or _stays_inside(source, folder):
        return found
    try:
        return source.stat()
    except OSError:
        return None


def _stays_inside(link: Path, folder: Path) -> bool:
    target = link.readlink()
    if target.is_absolute():
        return False
    try:
        return (link.parent / target).resolve().is_relative_to(folder.resolve())
    except RuntimeError:
        # Before Python 3.13, of links that lead to each other: they do so there as well.
        return True


def _remote(workspace: str) -> Iterator[bytes]:
    system, root = open_url(workspace)
    for path, below in wanted_files(system, root, url_patterns(system, root, CONTEXT_IGNORE_FILES)):
        if below == DOCKERFILE:
            continue
        about = system.info(path)
        with system.open(path, "rb") as file:
            yield from _file(below, file, int(about["size"]), int(about.get("mode") or 0o644), 0)


def _bytes(name: str, data: bytes) -> Iterator[bytes]:
    yield _head(name, size=len(data))
    yield data + b"\0" * (-len(data) % _BLOCK)


def _file(name: str, file: IO[bytes], size: int, mode: int, changed_at: float) -> Iterator[bytes]:
    """Yield a file's parts; one that grows or shrinks meanwhile is as long as it was at first."""
    yield _head(name, size=size, mode=mode, changed_at=changed_at)
    left = size
    while left and (data := file.read(min(left, _READ))):
        left -= len(data)
        yield data
    yield b"\0" * (left + -size % _BLOCK)


def _head(
    name: str, *, kind: bytes = tarfile.REGTYPE, size: int = 0, mode: int = 0o644, changed_at: float = 0, link: str = ""
) -> bytes:
    """Return the header of an entry; it belongs to root, as everything that is copied into an image."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.size, entry.mode, entry.mtime, entry.linkname = kind, size, stat.S_IMODE(mode), changed_at, link
    return entry.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
