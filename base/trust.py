"""Refuse files of other users until the user trusts their folder.

A component, a `.torchxconfig` or a Python interpreter runs with the rights of this user. In shared folders of a cluster
other users may be able to change them. Trusted folders are listed in a file, like git's ``safe.directory``.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .errors import ConfigError
from .files import NoHomeError, config_folder, path_exists, private_folder, read_file, write_private

ROOTS = (".git", ".hg")
"""Entries that mark the root of a repository."""
_MAX_LINKS = 40  # the limit of Linux


class UntrustedError(ConfigError):
    """A file of another user is not used until the user trusts its folder.

    Args:
        reason: The path of the file and its owner.
        folder: The folder to trust.
    """

    def __init__(self, reason: str, folder: Path) -> None:
        self.reason = reason
        self.folder = folder
        super().__init__(
            f"{reason}, so it is not used. If you trust everything in {folder}, "
            f"add this folder as a line to {trusted_list()}"
        )


def trusted_list() -> Path:
    """Return the file that lists the trusted folders, one per line. Raises NoHomeError."""
    return config_folder() / "trusted_folders"


def trust_folder(folder: Path) -> None:
    """Add a folder to the list of trusted folders.

    Raises:
        ConfigError: The list cannot be written, or the name has a control character.
    """
    line = os.fsencode(folder)
    if any(byte < 0x20 for byte in line):
        raise ConfigError(f"{folder} cannot be trusted: its name has a control character")
    path = trusted_list()
    try:
        before = read_file(path) if path_exists(path) else b""
        private_folder(path.parent)
        write_private(path, before + (b"" if before.endswith(b"\n") or not before else b"\n") + line + b"\n")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


def check_owner(path: Path) -> None:
    """Check that a file, its folder and its repository belong to this user or root, or are trusted.

    Raises:
        UntrustedError: One of them belongs to another user.
    """
    real = Path(os.path.realpath(path))
    if _is_covered(real, _trusted_folders()):
        return
    if foreign := _foreign_entry(path):
        entry, owner = foreign
        raise UntrustedError(f"{entry} belongs to the user {_name_of(pwd.getpwuid, owner)}", _project_folder(real))


def owner_of(path: Path) -> str | None:
    """Return the name of the user whose file it is; empty for this user, None if there is no such file.

    A file in a folder or a repository of another user is that user's, as for `check_owner`.
    """
    try:
        foreign = _foreign_entry(path)
        owner = foreign[1] if foreign else path.stat().st_uid
    except OSError:
        return None
    return "" if owner == os.geteuid() else _name_of(pwd.getpwuid, owner)


def _foreign_entry(path: Path) -> tuple[Path, int] | None:
    """Return the first of a file, its folder and its repository that another user owns, and the owner's number."""
    real = Path(os.path.realpath(path))
    for entry in (path, real, real.parent, _project_folder(real)):
        try:
            owner = entry.lstat().st_uid
        except OSError:
            # Opening the file later reports that it is missing or not readable.
            continue
        if not _is_own(owner):
            return entry, owner
    return None


def program_fault(path: Path) -> str:
    """Return why a program must not be run; empty if it may. Another user could have put it there.

    The program, each link and each folder on the way to it must belong to this user or to root, and must not be
    writable by others. Two kinds of folders may be writable. In sticky folders nobody can replace files of the user. In
    folders of root, such as those of a project, a group may add files; these have another owner and are refused.
    """
    trusted = _trusted_folders()
    try:
        for entry in _way_to(path):
            fault = "" if _is_covered(entry, trusted) else _entry_fault(entry)
            if fault:
                return fault
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{path} cannot be checked: {error.strerror}"
    return ""


def _way_to(path: Path) -> Iterator[Path]:
    """Yield every folder and link on the way to a file, and the file itself; the root folder is left out."""
    # A stack of parts: the next one is at the end.
    parts = [*reversed(path.absolute().parts)]
    folder, links = Path("/"), 0
    while parts:
        part = parts.pop()
        if part in ("/", ".."):
            folder = Path("/") if part == "/" else folder.parent
            continue
        entry = folder / part
        yield entry
        if entry.is_symlink():
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            parts += reversed(entry.readlink().parts)
        else:
            folder = entry


def _entry_fault(entry: Path) -> str:
    status = entry.lstat()
    mode = status.st_mode
    if not _is_own(status.st_uid):
        return f"{entry} belongs to the user {_name_of(pwd.getpwuid, status.st_uid)}"
    if stat.S_ISLNK(mode) or (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
        return ""
    if mode & stat.S_IWOTH:
        return f"{entry} can be written by everybody"
    if mode & stat.S_IWGRP and not _is_private_group(status.st_gid) and os.geteuid() in (status.st_uid, 0):
        return f"{entry} can be written by the group {_name_of(grp.getgrgid, status.st_gid)}"
    return ""


def _is_own(user: int) -> bool:
    return user in (os.geteuid(), 0)


def _is_private_group(group: int) -> bool:
    """Return whether a group has no other members: the group of root, or a user private group."""
    if group == 0:
        return True
    try:
        user = pwd.getpwuid(os.geteuid())
        found = grp.getgrgid(group)
    except KeyError:
        return False
    return user.pw_gid == group and found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}


def _trusted_folders() -> list[Path]:
    try:
        lines = read_file(trusted_list()).splitlines()
    except (OSError, NoHomeError):
        return []
    return [Path(os.path.realpath(os.fsdecode(line))) for line in lines if line.startswith(b"/")]


def _is_covered(entry: Path, trusted: list[Path]) -> bool:
    """Return whether an entry is a trusted folder, is inside one, or is on the way to one."""
    return any(folder == entry or folder in entry.parents or entry in folder.parents for folder in trusted)


def _project_folder(file: Path) -> Path:
    """Return the root of a file's repository, or the file's folder if it is in none.

    The search stops at a folder of another owner, so that a ``.git`` in a shared folder has no effect.
    """
    owners = {}
    for folder in file.parents:
        try:
            owners[folder.stat().st_uid] = None
        except OSError:
            break
        if len(owners) > 1:
            break
        if any(os.access(folder / root, os.F_OK) for root in ROOTS):
            return folder
    return file.parent


def _name_of(find: Callable[[int], Sequence[Any]], number: int) -> str:
    """Return the name of a user or a group, or the number if it has none."""
    try:
        return find(number)[0]
    except KeyError:
        return str(number)
