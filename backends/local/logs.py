"""The log of one replica, line by line, and on while it grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ...logs.source.log_file import LogFile
from ...logs.source.replica_log import ReplicaLog
from ...specs.errors import JobNotFoundError, SchedulerError
from ..shared.file_lines import FileLines, Outlook, check_readable
from ..shared.replicas import pick_replica
from ..types import LogQuery, Stream
from .record import Run

# The state file is read again after this long: sooner while the reader is new, as the job may be, and short.
_LOOK_SECONDS, _SOON_SECONDS = 0.1, 0.02
_NEW_SECONDS = 2.0


def read_lines(folder: Path, query: LogQuery, look: Callable[[], Outlook]) -> FileLines:
    """Return the lines of the replica whose folder this is."""
    names = {stream: folder / f"{stream.value}.log" for stream in Stream}
    # The times of lines are beside the combined file alone.
    timed = query.since is not None or query.until is not None
    combined = names[Stream.COMBINED] if timed or query.stream is Stream.COMBINED else None
    return FileLines(ReplicaLog("", 0, combined, names[Stream.STDOUT], names[Stream.STDERR]), query, look)


def check_log(run: Run, query: LogQuery) -> None:
    """Check that a replica's log can be read.

    Raises:
        ValueError: there is no such role or replica; the message lists the valid ones.
        SchedulerError: the log was removed or is no regular file.
    """
    role_name, k, stream = query.role_name, query.k, query.stream
    if not run.document:
        raise SchedulerError(f"the log of {run.app_id} cannot be read: {run.reason}")
    roles: dict[str, dict[int, int | None]] = {}
    for entry in run.replicas:
        roles.setdefault(entry["role"], {})[entry["id"]] = entry["pid"]
    started = pick_replica(run.app_id, roles, role_name, k)
    folder = run.replica_folder(role_name, k)
    names = ("combined", "stdout") if stream == Stream.COMBINED else (stream.value,)
    paths = [folder / f"{name}.log" for name in names]
    check_readable(paths)
    if started and not any(LogFile(path).stat() for path in paths):
        raise SchedulerError(f"the log was removed: {paths[0]}")


def log_outlook(find: Callable[[str], Run | None], app_id: str) -> Callable[[], Outlook]:
    """Return a function that tells how an app that ``find`` finds is doing, at most some time ago.

    It raises `JobNotFoundError` once the app is gone.
    """
    began = time.monotonic()
    looked_at = 0.0
    last: Run | None = None

    def look() -> Outlook:
        nonlocal looked_at, last
        now = time.monotonic()
        if last is None or now - looked_at > (_SOON_SECONDS if now - began < _NEW_SECONDS else _LOOK_SECONDS):
            last = find(app_id)
            looked_at = now
        if last is None:
            raise JobNotFoundError(app_id, "local_cwd")
        return last

    return look
