"""Where state, caches and settings are kept, and how a file is written so that a crash leaves the old one or the new.

Folders follow the XDG base directory specification on every system, so that a home shared by machines has one place.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..specs.errors import ConfigError

_NAME = "torchx-tui"


class NoHomeError(ConfigError):
    """There is no home folder, as in containers that run under a number without an entry for a user."""

    def __init__(self, variable: str) -> None:
        super().__init__(
            f"there is no home folder: HOME is not set, and user {os.getuid()} is not in the password database. "
            f"Set HOME, or {variable} to a folder for torchx-tui"
        )


def home_folder() -> Path | None:
    """Return the home folder of this process's user, None where there is none."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def current_folder() -> Path | None:
    """Return the current folder, None where it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _xdg_folder(variable: str, *default: str) -> Path:
    value = os.environ.get(variable, "")
    # The specification says that a relative path is to be ignored.
    if value.startswith("/"):
        return Path(value) / _NAME
    home = home_folder()
    if home is None:
        raise NoHomeError(variable)
    return home.joinpath(*default) / _NAME


def state_folder() -> Path:
    """Return the folder of the journal, the local runs and the log file (not created).

    Raises:
        NoHomeError: there is no home folder, and no variable names another; so for the other folders.
    """
    return _xdg_folder("XDG_STATE_HOME", ".local", "state")


def cache_folder() -> Path:
    """Return the folder of what can be fetched again, such as the log spool (not created)."""
    return _xdg_folder("XDG_CACHE_HOME", ".cache")


def config_folder() -> Path:
    """Return the folder of config.toml (not created)."""
    return _xdg_folder("XDG_CONFIG_HOME", ".config")


def private_folder(path: Path) -> Path:
    """Create ``path`` and its missing parents for this user only (mode 0700) and return it.

    Raises:
        OSError: the folder cannot be created.
    """
    for folder in reversed([path, *path.parents]):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)
    return path


def write_private(path: Path, data: bytes) -> None:
    """Replace ``path`` by ``data`` at once, readable by this user only (mode 0600).

    The bytes go to a file beside it, reach the disk, and are renamed: a reader sees the old content or the new one.

    Raises:
        OSError: the folder is missing or read-only, or the disk is full; ``path`` is as it was.
    """
    import tempfile

    descriptor, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
