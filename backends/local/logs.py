"""What must hold before a replica's log can be read, and how its reader learns that nothing more comes."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...specs import JobNotFoundError, SchedulerError
from ...specs.errors import one_of
from ..logs.log_file import LogFile
from ..responses import Stream
from .log_iterator import Outlook
from .record import Run

# The state file is read again after this long: sooner while the reader is new, as the job may be, and short.
_LOOK_SECONDS, _SOON_SECONDS = 0.1, 0.02
_NEW_SECONDS = 2.0


def check_log(run: Run, role_name: str, k: int, streams: Stream | str | None) -> Stream:
    """Return the stream to read.

    Raises:
        ValueError: there is no such stream, role or replica; the message lists the valid ones.
        SchedulerError: the log was removed.
    """
    try:
        stream = Stream.COMBINED if streams is None else Stream(streams)
    except ValueError:
        raise ValueError(f"there is no stream {streams}. Valid: {one_of(item.value for item in Stream)}") from None
    if not run.document:
        raise SchedulerError(f"the log of {run.app_id} cannot be read: {run.reason}")
    if run.log_folder is None:
        raise SchedulerError(f"the log of {run.app_id} cannot be read: its processes do not tell where TorchX keeps it")
    roles: dict[str, list[int]] = {}
    for entry in run.replicas:
        roles.setdefault(entry["role"], []).append(entry["id"])
    if role_name not in roles:
        raise ValueError(f"{run.app_id} has no role {role_name}. Its roles: {one_of(roles)}")
    if k not in roles[role_name]:
        last = len(roles[role_name]) - 1
        raise ValueError(f"{role_name} has no replica {k}. Valid: {f'0 to {last}' if last else '0'}")
    started = next(entry["pid"] for entry in run.replicas if (entry["role"], entry["id"]) == (role_name, k))
    folder = run.replica_folder(role_name, k)
    names = ("combined", "stdout") if stream == Stream.COMBINED else (stream.value,)
    if started and not any(LogFile(folder / f"{name}.log").look() for name in names):
        raise SchedulerError(f"the log was removed: {folder / names[0]}.log")
    return stream


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
