"""Jobs of TorchX by their processes: which roles and replicas live, and in which folder their logs are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .processes import SCHEME, JobProcess

_JOB_ID = re.compile(rf"{SCHEME}(?P<session>.*)/(?P<app_id>[^/]+)")
# The letters of TorchX's random ids; nearly all have 11 to 14 of them.
_RANDOM = re.compile(r"[bcdfghjklmnpqrstvwxz][bcdfghjklmnpqrstvwxz012345679]{7,15}")
# Of a folder's name and of a path on Linux, in bytes; no file is at a longer one.
_MOST_NAME, _MOST_PATH = 255, 4095
_MOST_DIGITS = 6

Place = tuple[str, int]
"""A role's name and the number of a replica."""


@dataclass
class LiveJob:
    """A job of which a process lives.

    Args:
        app_id: its id.
        job_id: the TORCHX_JOB_ID of its processes.
        folder: the folder of its logs, None where it is not known.
        leaders: the first process of each replica that lives.
        processes: all of its processes.
    """

    app_id: str
    job_id: str
    folder: Path | None = None
    leaders: dict[Place, JobProcess] = field(default_factory=dict)
    processes: list[JobProcess] = field(default_factory=list)

    @property
    def started_at(self) -> float:
        """When its oldest process started, in seconds since the epoch."""
        return min(process.started_at for process in self.processes)


def live_jobs(processes: Iterable[JobProcess]) -> list[LiveJob]:
    """Return the jobs that processes belong to, by their TORCHX_JOB_ID."""
    by_id: dict[str, list[JobProcess]] = {}
    for process in processes:
        by_id.setdefault(process.job_id, []).append(process)
    jobs: dict[str, LiveJob] = {}
    for job_id, members in by_id.items():
        found = _JOB_ID.fullmatch(job_id)
        if found is None or found["app_id"] in (".", "..") or _is_too_long(found["app_id"]):
            continue
        job = LiveJob(
            found["app_id"], job_id, processes=sorted(members, key=lambda member: (int(member.start), member.pid))
        )
        _place(job, found["session"])
        # Of two sessions' jobs with one id, the handle means the older one.
        other = jobs.get(job.app_id)
        if other is None or job.started_at < other.started_at:
            jobs[job.app_id] = job
    return list(jobs.values())


def _place(job: LiveJob, session: str) -> None:
    """Find the replicas of a job; the oldest process says where its folder is."""
    path = [part for part in session.split("/") if part] + [job.app_id]
    members: dict[Place, list[JobProcess]] = {}
    for process in job.processes:
        found = _read_error_file(process, path)
        if found is None or job.folder not in (None, found[0]):
            continue  # a worker of torchrun has a file of its own; its parent tells
        job.folder = found[0]
        members.setdefault(found[1], []).append(process)
    if not members:
        members = _unplaced(job)
    for place, processes in members.items():
        job.leaders[place] = min(
            processes, key=lambda process: (process.pid != process.group, int(process.start), process.pid)
        )
    job.leaders = dict(sorted(job.leaders.items(), key=lambda item: (int(item[1].start), item[1].pid)))


def _read_error_file(process: JobProcess, path: list[str]) -> tuple[Path, Place] | None:
    """Return the job's folder and the replica, where a process's error file is the one that TorchX gives it.

    Args:
        process: the process.
        path: with what the folder must end: session and app id.
    """
    file = Path(process.error_file)
    parts = file.parts
    if len(parts) < len(path) + 3 or parts[-1] != "error.json" or list(parts[-3 - len(path) : -3]) != path:
        return None
    role, number = parts[-3], parts[-2]
    if (
        _is_too_long(process.error_file)
        or role == ".."
        or not (number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS)
    ):
        return None
    if not file.is_absolute():
        found = _absolute(process, file)
        if found is None:
            return None
        file = found
    return file.parent.parent.parent, (role, int(number))


def _is_too_long(path: str) -> bool:
    """Tell whether a path, or a name in it, is too long to be one."""
    encoded = path.encode()
    return len(encoded) > _MOST_PATH or any(len(name) > _MOST_NAME for name in encoded.split(b"/"))


def is_there(path: Path) -> bool:
    """Tell whether there is something at a path that another process named; what cannot be looked at is not."""
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True


def _absolute(process: JobProcess, file: Path) -> Path | None:
    """Return where a relative path of a process is; None where nothing of it is there."""
    try:
        # TorchX opened stdout.log beside it as the standard output; the working folder may be another one by now.
        output = Path(os.readlink(f"/proc/{process.pid}/fd/1"))  # noqa: PTH115 - a link's text, not its target
        if output.name == "stdout.log" and output.parent.parts[-len(file.parent.parts) :] == file.parent.parts:
            return output.parent / file.name
        beside = Path(os.readlink(f"/proc/{process.pid}/cwd")) / file  # noqa: PTH115
        return beside if str(beside).isprintable() and is_there(beside.parent) else None
    except (OSError, ValueError):
        return None


def _unplaced(job: LiveJob) -> dict[Place, list[JobProcess]]:
    """Return replicas by process groups, where the role's own environment has another error file."""
    pids = {process.pid for process in job.processes}
    first = [process for process in job.processes if process.parent not in pids]
    groups = dict.fromkeys(process.group for process in first)
    name = app_name(job.app_id)
    return {
        (name, number): [process for process in first if process.group == group] for number, group in enumerate(groups)
    }


def app_name(app_id: str) -> str:
    """Return the name that an app was launched under: its id without the random part."""
    name, _, random = app_id.rpartition("-")
    return name if name and _RANDOM.fullmatch(random) else app_id
