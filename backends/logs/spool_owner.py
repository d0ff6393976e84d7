"""Whose a spool is: a folder for each running program, so that what a dead one left behind can be told and removed."""

from __future__ import annotations

import itertools
import logging
import os
import re
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from ..processes import is_running, read_process

_log = logging.getLogger(__name__)

# Another machine's processes cannot be looked at: what it has not touched for so long (s) is left behind.
FOREIGN_AGE = 7 * 24 * 3600.0
# How often (s) a folder is touched while it is in use.
TOUCH_EVERY = 3600.0
_counter = itertools.count()


class Owner(NamedTuple):
    """A running program.

    Attributes:
        host: its machine.
        pid: its process.
        start: when that started, as the machine tells it.
        number: which of the spools of the process.
    """

    host: str
    pid: int
    start: str
    number: int

    @property
    def folder_name(self) -> str:
        """The name of its folder."""
        return f"{_plain(self.host)}.{self.pid}.{_plain(self.start)}.{self.number}"


def this_owner() -> Owner:
    """Return an owner for this process; each call gives another one."""
    process = read_process(os.getpid())
    return Owner(os.uname().nodename, os.getpid(), process.start if process else "", next(_counter))


def remove_stale(root: Path, now: float | None = None) -> list[str]:
    """Remove the folders of owners that are dead, or of other machines and old; return their names.

    Args:
        root: the folder of all owners.
        now: the time (seconds since the epoch).
    """
    try:
        folders = [folder for folder in root.iterdir() if not folder.is_symlink() and folder.is_dir()]
    except OSError:
        return []
    stale = [folder for folder in folders if _is_stale(folder, time.time() if now is None else now)]
    for folder in stale:
        _log.info("removing the log spool that %s left behind", folder.name)
        shutil.rmtree(folder, ignore_errors=True)
    return [folder.name for folder in stale]


def _is_stale(folder: Path, now: float) -> bool:
    parts = folder.name.rsplit(".", 3)
    if len(parts) < 4 or not parts[1].isdigit():
        return False
    host, pid, start, _ = parts
    if host == _plain(os.uname().nodename):
        process = read_process(int(pid))
        return process is None or _plain(process.start) != start or not is_running(process.pid, process.start)
    try:
        return now - folder.stat().st_mtime > FOREIGN_AGE
    except OSError:
        return False


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", text)
