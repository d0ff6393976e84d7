"""This user's processes that carry the id of a local job of TorchX in their environment, looked for each second.

TorchX gives every replica of its scheduler local_cwd ``TORCHX_JOB_ID`` and ``TORCHELASTIC_ERROR_FILE``, the file
``error.json`` in the folder of the replica's logs, and all that a replica starts inherits them.
"""

from __future__ import annotations

import logging
import os
import time
from typing import NamedTuple

from ....base.processes import read_process
from ..environment import ERROR_FILE, JOB_ID

logger = logging.getLogger(__name__)

SCHEME = "local_cwd://"
# Between fork and exec a process still has its parent's environment: a young one is looked at again.
_SETTLED_SECONDS = 2.0
_MOST_BYTES = 1 << 22
_WANTED = f"{JOB_ID}={SCHEME}".encode()


class JobProcess(NamedTuple):
    """One process of a job.

    Args:
        pid: its number.
        start: its start time as the kernel counts it, which tells it from a later process of the same number.
        group: its process group.
        parent: its parent's number.
        started_at: when it started, in seconds since the epoch.
        job_id: its TORCHX_JOB_ID.
        error_file: its TORCHELASTIC_ERROR_FILE; empty where there is none that could be a path on a screen.
    """

    pid: int
    start: str
    group: int
    parent: int
    started_at: float
    job_id: str
    error_file: str


class _Known(NamedTuple):
    inode: tuple[int, int]
    start: str
    job_id: str
    error_file: str


class JobProcesses:
    """Finds them again and again; the environment of a process is read once."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._user = os.geteuid()

    def look(self) -> list[JobProcess]:
        """Return them as they are now; none where there is no /proc."""
        try:
            names = os.listdir("/proc")  # noqa: PTH208 - called each second
            uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
            own_files = os.stat("/proc/self/ns/mnt").st_ino  # noqa: PTH116
        except (OSError, AttributeError):
            return []
        booted_at, ticks = time.time() - uptime, os.sysconf("SC_CLK_TCK")
        found: list[JobProcess] = []
        known: dict[str, _Known] = {}
        for name in names:
            inode = self._inode(name) if name.isdigit() else None
            if inode is None:
                continue
            known_process = self._known.get(name)
            if known_process is not None and known_process.inode == inode and not known_process.job_id:
                known[name] = known_process  # still the same process; most are none of a job's
                continue
            process = read_process(int(name))
            if process is None or process.zombie:
                continue
            started = int(process.start) / ticks
            if known_process is None or known_process.start != process.start:
                known_process = _Known(inode, process.start, *_environment(name, own_files))
            known_process = known_process._replace(inode=inode)
            if uptime - started >= _SETTLED_SECONDS:
                known[name] = known_process
            if known_process.job_id:
                place = process.pid, process.start, process.group, process.parent, booted_at + started
                found.append(JobProcess(*place, known_process.job_id, known_process.error_file))
        self._known = known
        return found

    def _inode(self, name: str) -> tuple[int, int] | None:
        """Identify a process beyond its number; None for other users' processes."""
        try:
            found = os.stat(f"/proc/{name}")  # noqa: PTH116 - called for each process
        except OSError:
            return None  # it has just ended
        return (found.st_ino, found.st_ctime_ns) if found.st_uid == self._user else None


def _environment(name: str, own_files: int) -> tuple[str, str]:
    """Return a process's TORCHX_JOB_ID, empty where it is of no local job, and its TORCHELASTIC_ERROR_FILE."""
    try:
        with open(f"/proc/{name}/environ", "rb") as file:  # noqa: PTH123 - called for each process
            data = file.read(_MOST_BYTES)
        # A process in a container names files that are others here.
        if _WANTED not in data or os.stat(f"/proc/{name}/ns/mnt").st_ino != own_files:  # noqa: PTH116
            return "", ""
    except OSError:
        return "", ""
    variables = data.split(b"\0")
    job_id = _value(variables, JOB_ID)
    return (job_id, _value(variables, ERROR_FILE)) if job_id.startswith(SCHEME) else ("", "")


def _value(variables: list[bytes], name: str) -> str:
    """Return a variable's value as getenv(3) would; empty where it is no text of one line."""
    prefix = f"{name}=".encode()
    for pair in variables:
        if pair.startswith(prefix):
            try:
                value = pair[len(prefix) :].decode()
            except UnicodeDecodeError:
                return ""
            return value if value.isprintable() else ""
    return ""
