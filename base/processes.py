"""Process identity: pids are reused, so a process is identified by its start time too. And file ownership.

Standard library only: the supervisor of a local app loads this file by its path, without the package.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections import namedtuple

AnyPath = str | os.PathLike[str]
IS_LINUX = sys.platform.startswith("linux")
"""Whether this is Linux, where /proc has a folder for each process."""

Process = namedtuple("Process", "pid parent group start zombie")


def boot_id() -> str:
    """Return an id that changes with each boot of this machine."""
    if not IS_LINUX:
        return _output("sysctl", "-n", "kern.bootsessionuuid").strip()
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def is_own(path: AnyPath) -> bool:
    """Return whether a file or link exists and belongs to this user or root; others may have planted it."""
    try:
        return os.lstat(path).st_uid in (0, os.geteuid())
    except OSError:
        return False


def user_of(path: AnyPath) -> str:
    """Return the name of a file's owner, or the number if it has none. Raises OSError if there is no file."""
    uid = os.lstat(path).st_uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _output(*command: str) -> str:
    import subprocess  # slow, and not needed on Linux

    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout


def _listed(*selection: str) -> dict[int, Process]:
    rows = [line.split(None, 4) for line in _output("ps", *selection, "-opid=,ppid=,pgid=,stat=,lstart=").splitlines()]
    return {int(p): Process(int(p), int(pp), int(g), start.strip(), s[0] == "Z") for p, pp, g, s, start in rows}


def read_process(pid: int) -> Process | None:
    """Read process ``pid``; None if there is none. Source of the fields: proc_pid_stat(5)."""
    if not IS_LINUX:
        return _listed("-p", str(pid)).get(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
        fields = text[text.rindex(b")") + 2 :].split()
    except (OSError, ValueError):  # it has just ended
        return None
    return Process(pid, int(fields[1]), int(fields[2]), fields[19].decode(), fields[0] in (b"Z", b"X"))


def is_running(pid: int | None, start: str | None) -> bool:
    """Return whether the process that had this number and start time still runs."""
    process = read_process(pid) if pid else None
    return process is not None and process.start == start and not process.zombie


def has_job_id(pid: int, job_id: str) -> bool:
    """Return whether the process was started with ``TORCHX_JOB_ID=job_id`` in its environment."""
    wanted = f"TORCHX_JOB_ID={job_id}"
    if not IS_LINUX:
        return wanted in _output("ps", "-E", "-ww", "-o", "command=", "-p", str(pid)).split()
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return os.fsencode(wanted) in file.read().split(b"\0")
    except OSError:
        return False


def describe_process(pid: int) -> str:
    """Return a process's pid, program and user, such as "4711 (sleep) of root"; its program's name is not sanitised."""
    if not IS_LINUX:
        user, _, name = _output("ps", "-o", "user=,comm=", "-p", str(pid)).strip().partition(" ")
        return f"{pid} ({name.strip()}) of {user}"
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = file.read().rstrip(b"\n").decode("utf-8", "replace")
        return f"{pid} ({name}) of {user_of(f'/proc/{pid}')}"
    except OSError:  # it has just ended
        return str(pid)


def job_processes(job_id: str, roots: set[int]) -> list[Process]:
    """List the live processes of a job, except this one: ``roots``, their descendants, and those with its id."""
    if IS_LINUX:
        processes = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
        table = {process.pid: process for process in processes if process}
    else:
        table = _listed("-A")
    inside, more = set(), roots
    while more:
        inside |= more
        more = {pid for pid, process in table.items() if process.parent in inside} - inside
    live = (process for pid, process in table.items() if pid != os.getpid() and not process.zombie)
    return [process for process in live if process.pid in inside or has_job_id(process.pid, job_id)]


def send_signal(process: Process, number: int) -> None:
    """Signal a process, unless it has ended or its pid was reused."""
    try:
        if is_running(process.pid, process.start):
            os.kill(process.pid, number)
    except OSError:
        pass
