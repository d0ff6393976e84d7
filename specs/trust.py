"""Which files of other users are used: none, until the user trusts their folder.

Shared folders of a cluster hold files of everybody. A component, a `.torchxconfig` or the Python of an environment that
somebody else can change would run as this user. Trusted folders are listed in a file, as by git's ``safe.directory``.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from .errors import ConfigError
from .files import NoHomeError, config_folder, path_exists, private_folder, read_file, write_private

ROOTS = (".git", ".hg")
"""A repository's root has one of these."""
_MAX_LINKS = 40  # as Linux follows at most


class UntrustedError(ConfigError):
    """A file of another user is not used until the user trusts its folder.

    Args:
        reason: Which file, and whose it is.
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
    """Return the file that lists the trusted folders, one a line. Raises NoHomeError."""
    return config_folder() / "trusted_folders"


def trust_folder(folder: Path) -> None:
    """Add a folder to the trusted ones.

    Raises:
        ConfigError: The list cannot be written, or has no way to write such a name.
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
    """Refuse a file, or a file in a folder or repository, of another user, unless that is trusted.

    Raises:
        UntrustedError: It is not to be used.
    """
    real = Path(os.path.realpath(path))
    folder = _project_folder(real)
    if _is_covered(real, _trusted_folders()):
        return
    for entry in (path, real, real.parent, folder):
        try:
            owner = entry.lstat().st_uid
        except OSError:
            # It is missing, or cannot be read either: opening it says so.
            continue
        if not _is_own(owner):
            raise UntrustedError(f"{entry} belongs to {_user(owner)}", folder)


def program_fault(path: Path) -> str:
    """Say why a program may not be run: somebody else could have put it there. Empty if it may.

    The program, each link and each folder on the way to it must belong to this user or to root, and must not be
    writable by others. Sticky folders may be: in these, nobody can replace what belongs to the user. Groups may write
    to folders of root, such as those of a project: what they put there belongs to them, and is refused for that.
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
    """Yield every folder, link and file on the way to a file, below the root folder."""
    # In reverse: the next part is the last.
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
        return f"{entry} belongs to {_user(status.st_uid)}"
    if stat.S_ISLNK(mode) or (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
        return ""
    if mode & stat.S_IWOTH:
        return f"{entry} can be written by everybody"
    if mode & stat.S_IWGRP and not _is_private_group(status.st_gid) and os.geteuid() in (status.st_uid, 0):
        return f"{entry} can be written by the group {_group(status.st_gid)}"
    return ""


def _is_own(user: int) -> bool:
    return user in (os.geteuid(), 0)


def _is_private_group(group: int) -> bool:
    """Tell whether a group has no other members: root's, or that of Linux's user private groups."""
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
    """Tell whether an entry is a trusted folder, in one, or on the way to one."""
    return any(folder == entry or folder in entry.parents or entry in folder.parents for folder in trusted)


def _project_folder(file: Path) -> Path:
    """Return the root of the repository that a file is in, else the file's folder.

    Folders of another owner end the search: a ``.git`` that somebody puts into a shared folder makes that no root.
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


def _user(number: int) -> str:
    try:
        return f"the user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"the user {number}"


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
