"""Files and folders: bounded reading that never blocks, atomic private writing, and the user's XDG folders.

At the path of a state file, a config or a component there may be a named pipe, a device, or gigabytes. All code that
reads such a file whole uses `read_file`.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
from pathlib import Path

from .errors import ConfigError
from .processes import AnyPath, is_own, user_of

_APP_FOLDER = "torchx-tui"
SMALL = 1 << 20
"""Size limit of a config or ignore file in bytes."""
SOURCE = 16 << 20
"""Size limit of a Python file in bytes."""
LARGE = 64 << 20
"""Size limit in bytes of a job's state file, which has a part for each replica, and of its launch record."""
_OPEN_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KIND_NAMES = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}


def open_file(path: AnyPath) -> int:
    """Open a regular file for reading and return its descriptor, which the caller closes.

    Raises:
        OSError: the file cannot be opened, or is not a regular file; ``strerror`` is a phrase that can be shown.
    """
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
    except ValueError as error:  # a null byte in the path
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path)) from error
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):  # a socket, or a device that nothing drives
            raise _not_regular(os.stat(path).st_mode, path) from error  # noqa: PTH116 - no Path is needed
        raise
    try:
        if not stat.S_ISREG(mode := os.fstat(descriptor).st_mode):
            raise _not_regular(mode, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def path_exists(path: AnyPath) -> bool:
    """Return whether a path exists; False if that cannot be found out.

    `Path.exists`, `is_dir` and `is_file` raise for a path in a folder that may not be entered and for a name that is
    too long, before Python 3.14.
    """
    return os.path.exists(path)  # noqa: PTH110


def is_folder(path: AnyPath) -> bool:
    """Return whether a path is a folder; False if that cannot be found out."""
    return os.path.isdir(path)  # noqa: PTH112


def is_file(path: AnyPath) -> bool:
    """Return whether a path is a regular file; False if that cannot be found out."""
    return os.path.isfile(path)  # noqa: PTH113


def is_missing(path: AnyPath) -> bool:
    """Return whether a path surely does not exist; False if that cannot be found out."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:
        return False
    return False


def read_tail(path: AnyPath, limit: int) -> bytes:
    """Return the last ``limit`` bytes of a regular file; empty if it cannot be read."""
    try:
        descriptor = open_file(path)
    except OSError:
        return b""
    try:
        return os.pread(descriptor, limit, max(0, os.fstat(descriptor).st_size - limit))
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def read_file(path: AnyPath, limit: int = SMALL) -> bytes:
    """Return the content of a regular file.

    Args:
        path: the file.
        limit: the most bytes that it may have.

    Raises:
        OSError: the file cannot be read, is not a regular file, or is larger than the limit; ``strerror`` is a phrase
            that can be shown.
    """
    descriptor = open_file(path)
    try:
        parts: list[bytes] = []
        # Files in /proc report size 0, and another process may still write.
        left = limit + 1 if os.fstat(descriptor).st_size <= limit else 0
        while left > 0 and (data := os.read(descriptor, min(left, 1 << 20))):
            parts.append(data)
            left -= len(data)
    finally:
        os.close(descriptor)
    if left <= 0:
        size = f"{limit >> 20} MB" if limit >= 1 << 20 else f"{limit} bytes"
        raise OSError(errno.EFBIG, f"it has more than {size}", os.fspath(path))
    return b"".join(parts)


def write_private(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Replace the content of ``path`` atomically, readable by this user only (mode 0600).

    The bytes are written to a file beside it, which is renamed: a reader sees the old content or the new.

    Args:
        path: the file.
        data: its new content.
        sync: make sure that the content survives a crash of the machine; a cache does not need that.

    Raises:
        OSError: the folder is missing or read-only, or the disk is full; ``path`` is as it was.
    """
    import tempfile

    descriptor, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def private_folder(path: Path) -> Path:
    """Create ``path`` and its missing parents for this user only (mode 0700) and return it.

    Raises:
        OSError: the folder cannot be created.
    """
    if not path_exists(path):
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def refuse_foreign_folders() -> None:
    """Refuse a state or cache folder of another user, who could forge records or redirect writes.

    Raises:
        ConfigError: a folder belongs to another user.
    """
    for variable, find in (("XDG_STATE_HOME", state_folder), ("XDG_CACHE_HOME", cache_folder)):
        try:
            folder = find()
            for path in (folder, os.path.realpath(folder)):
                if path_exists(folder) and not is_own(path):
                    raise ConfigError(f"{path} belongs to {user_of(path)}: set {variable} to a folder of your own")
        except (NoHomeError, OSError):
            continue  # reported when the folder is needed


class NoHomeError(ConfigError):
    """There is no home folder, as in containers that run as a user without an entry in the password database."""

    def __init__(self, variable: str) -> None:
        super().__init__(
            f"there is no home folder: HOME is not set, and user {os.getuid()} is not in the password database. "
            f"Set HOME, or {variable} to a folder for torchx-tui"
        )


def home_folder() -> Path | None:
    """Return the home folder of this process's user, or None."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def current_folder() -> Path | None:
    """Return the current folder, or None if it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def modified_ns(path: str) -> int:
    """Return the modification time of a file or folder in ns; 0 if it cannot be read."""
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


def state_folder() -> Path:
    """Return the folder of the journal, the local runs and the log file (not created).

    Raises:
        NoHomeError: there is no home folder, and no variable names another; the same for the other folders.
    """
    return _xdg_folder("XDG_STATE_HOME", ".local", "state")


def cache_folder() -> Path:
    """Return the folder of data that can be fetched again, such as the log spool (not created)."""
    return _xdg_folder("XDG_CACHE_HOME", ".cache")


def config_folder() -> Path:
    """Return the folder of config.toml (not created)."""
    return _xdg_folder("XDG_CONFIG_HOME", ".config")


def user_name() -> str:
    """Return the login name of this process's user, or its number if it has no name."""
    # As `getpass.getuser`, whose module imports termios; this is on the way to the first paint.
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if name := os.environ.get(variable):
            return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _not_regular(mode: int, path: AnyPath) -> OSError:
    if stat.S_ISDIR(mode):
        return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    kind = _KIND_NAMES.get(stat.S_IFMT(mode), "a device")
    return OSError(errno.EINVAL, f"it is {kind}, not a regular file", os.fspath(path))


def _xdg_folder(variable: str, *default: str) -> Path:
    value = os.environ.get(variable, "")
    # The XDG specification says to ignore a relative path.
    if value.startswith("/"):
        return Path(value) / _APP_FOLDER
    home = home_folder()
    if home is None:
        raise NoHomeError(variable)
    return home.joinpath(*default) / _APP_FOLDER
