"""All spools of one running program: their readers, their size limits, and what is dropped first."""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ...base.files import cache_folder, is_folder, private_folder
from ...base.processes import is_running, read_process
from .feed import Origin, SpoolFeed
from .replica_spool import ReplicaSpool

_log = logging.getLogger(__name__)

# The processes of another machine cannot be examined: a folder that it has not touched for so long (s) is stale.
FOREIGN_OWNER_AGE_S = 7 * 24 * 3600.0
# How often a folder is touched while it is in use (s).
TOUCH_INTERVAL_S = 3600.0
# A stream that nobody reads is closed after so long (s), since a user may go from one replica to another and back.
_CLOSE_DELAY_S = 0.5
_MAINTENANCE_INTERVAL_S = 0.25
# The streams of a job that was told to end are read for so long (s), for what it prints while it ends.
_READ_ON_S = 60.0
LAST_LINES_TIMEOUT_S = 5.0
"""How long the lines that a stream has printed already are waited for."""
# How often their arrival is checked (s).
_LAST_LINES_INTERVAL_S = 0.05
# A segment is at most this part of what a job may store.
_SEGMENTS_PER_JOB = 16
_counter = itertools.count()


class Owner(NamedTuple):
    """The process that owns a spool folder.

    Attributes:
        host: its machine.
        pid: its process.
        start: when that started, as the machine reports it.
        number: the number of the folder among those of the process.
    """

    host: str
    pid: int
    start: str
    number: int

    @property
    def folder_name(self) -> str:
        """The name of the owner's folder."""
        return f"{_safe_name(self.host)}.{self.pid}.{_safe_name(self.start)}.{self.number}"


def this_owner() -> Owner:
    """Make an owner for this process; each call makes another entry."""
    process = read_process(os.getpid())
    return Owner(os.uname().nodename, os.getpid(), process.start if process else "", next(_counter))


def remove_stale(root: Path, now: float | None = None) -> list[str]:
    """Remove the folders of owners that are dead, or of other machines and old; return their names.

    Args:
        root: the folder of all owners.
        now: the time (seconds since the epoch).
    """
    try:
        folders = [folder for folder in root.iterdir() if not folder.is_symlink() and is_folder(folder)]
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
    if host == _safe_name(os.uname().nodename):
        process = read_process(int(pid))
        return process is None or _safe_name(process.start) != start or not is_running(process.pid, process.start)
    try:
        return now - folder.stat().st_mtime > FOREIGN_OWNER_AGE_S
    except OSError:
        return False


def _safe_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", text)


class SpoolLimits(NamedTuple):
    """The most bytes that the spools store: of one job, and in all."""

    job: int = 512_000_000
    total: int = 2_048_000_000


class _SpoolEntry:
    """A replica's spool, its feed and the number of its readers."""

    def __init__(self, spool: ReplicaSpool, origin: Callable[[], Origin]) -> None:
        self.spool = spool
        self.origin = origin
        self.feed: SpoolFeed | None = None
        self.users = 0
        self.released_at = 0.0
        self.wanted_until = 0.0


class _Job:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spools: dict[str, _SpoolEntry] = {}
        self.read_at = 0.0

    @property
    def size(self) -> int:
        return sum(entry.spool.size for entry in tuple(self.spools.values()))

    @property
    def is_read(self) -> bool:
        return any(entry.users for entry in self.spools.values())


class LogSpools:
    """The spools of one program, in a folder of its own.

    Every method may be called from any thread.

    Args:
        limits: how much they may store.
        root: the folder of all programs' spools.
    """

    def __init__(self, limits: SpoolLimits | None = None, root: Path | None = None) -> None:
        self.limits = limits or SpoolLimits()
        self._root = root or cache_folder() / "spool"
        self._folder: Path | None = None
        self._jobs: dict[str, _Job] = {}
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._maintenance_thread: threading.Thread | None = None
        self._closed = False
        self._touched_at = 0.0

    def remove_stale(self) -> None:
        """Remove the folders of programs that have ended."""
        remove_stale(self._root)

    def acquire(self, job: str, folder: str, label: str, origin: Callable[[], Origin]) -> ReplicaSpool:
        """Begin to read a stream, or share one that is read.

        Args:
            job: the job's handle.
            folder: the name of the spool's folder in that of its job.
            label: the replica as it is shown, such as ``trainer/3``.
            origin: returns what opens the stream.
        """
        with self._lock:
            job_entry = self._job(job)
            job_entry.read_at = time.monotonic()
            if folder not in job_entry.spools:
                largest = max(1, self.limits.job // _SEGMENTS_PER_JOB)
                spool = ReplicaSpool(job_entry.folder / folder, label, largest)
                job_entry.spools[folder] = _SpoolEntry(spool, origin)
            entry = job_entry.spools[folder]
            entry.users += 1
            self._ensure_feed(entry)
            return entry.spool

    def find(self, job: str, folder: str) -> ReplicaSpool | None:
        """Return the spool of a stream that somebody reads; None where nobody does. See `acquire`."""
        with self._lock:
            entry = self._jobs[job].spools.get(folder) if job in self._jobs else None
            return entry.spool if entry is not None and entry.users else None

    def release(self, job: str, folder: str) -> None:
        """Stop reading a stream; it is closed when nobody reads it. Its spool stays."""
        with self._lock:
            if self._closed:
                return
            entry = self._jobs[job].spools[folder]
            entry.users -= 1
            entry.released_at = self._jobs[job].read_at = time.monotonic()
        self._wake.set()

    def complete(self, job: str) -> None:
        """Read the rest of those logs of a job that were read, because they are removed with it.

        It waits for what the job has printed until now, 5 s at most. The streams are read for another minute, for what
        it prints while it ends.

        Args:
            job: the job's handle.
        """
        now, deadline = time.time(), time.monotonic() + LAST_LINES_TIMEOUT_S
        with self._lock:
            job_entry = self._jobs.get(job)
            entries = list(job_entry.spools.values()) if job_entry is not None else []
            read = [entry for entry in entries if not _is_complete(entry)]
            for entry in read:
                entry.wanted_until = time.monotonic() + _READ_ON_S
                self._ensure_feed(entry)
        while any(not entry.spool.has_all_until(now) for entry in read):
            if self._closed or time.monotonic() > deadline:
                return
            time.sleep(_LAST_LINES_INTERVAL_S)

    def close(self) -> None:
        """End all streams and remove the spools, without waiting for any stream."""
        with self._lock:
            self._closed = True
            entries = [entry for job in self._jobs.values() for entry in job.spools.values()]
            self._jobs = {}
        self._wake.set()
        for entry in entries:
            entry.spool.close()
        closing = threading.Thread(target=_close_feeds, args=(entries,), name="spools-close", daemon=True)
        closing.start()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # Limits

    def enforce_limits(self, spool: ReplicaSpool) -> None:
        """Drop segments until the limits hold."""
        with self._lock:
            for job in self._jobs.values():
                if any(entry.spool is spool for entry in job.spools.values()):
                    self._enforce_job_limit(job)
            while sum(job.size for job in self._jobs.values()) > self.limits.total:
                why = f"the spools keep {_megabytes(self.limits.total)} in all (spool_megabytes)"
                if not any(self._drop_oldest(job, why) for job in self._least_recently_read_first()):
                    return

    def free_space(self, spool: ReplicaSpool) -> bool:
        """Drop one finished segment, of the same job if it has one; return whether there was any."""
        with self._lock:
            own = [job for job in self._jobs.values() if any(entry.spool is spool for entry in job.spools.values())]
            others = [job for job in self._least_recently_read_first() if job not in own]
            why = f"the disk of {os.fspath(self._root)} is full"
            return any(self._drop_oldest(job, why, finished=True) for job in (*own, *others))

    def _enforce_job_limit(self, job: _Job) -> None:
        why = f"the spool keeps {_megabytes(self.limits.job)} of a job (spool_megabytes_per_job)"
        while job.size > self.limits.job and self._drop_oldest(job, why):
            pass

    def _least_recently_read_first(self) -> list[_Job]:
        """List the jobs, the least recently read one first."""
        now = time.monotonic()
        return sorted(self._jobs.values(), key=lambda job: now if job.is_read else job.read_at)

    def _drop_oldest(self, job: _Job, why: str, *, finished: bool = False) -> bool:
        """Drop the oldest segment of the largest replica; without a finished one, finish the current ones first."""
        spools = [entry.spool for entry in job.spools.values()]
        able = [spool for spool in spools if spool.can_drop]
        if not able and not finished:
            able = [spool for spool in spools if spool.size]
            for spool in able:
                spool.finish_current()
        return bool(able) and max(able, key=lambda spool: spool.size).drop_oldest(why)

    # Maintenance

    def _ensure_feed(self, entry: _SpoolEntry) -> None:
        """Start a feed of a spool, unless it has one or its log has ended."""
        if entry.feed is None and not _is_complete(entry) and not self._closed:
            entry.feed = SpoolFeed(entry.spool, entry.origin(), self)
            entry.feed.start()
            self._start_maintenance()

    def _job(self, handle: str) -> _Job:
        if self._folder is None:
            self._folder = self._root / this_owner().folder_name
        if handle not in self._jobs:
            self._jobs[handle] = _Job(self._folder / folder_name(handle))
        return self._jobs[handle]

    def _start_maintenance(self) -> None:
        if self._maintenance_thread is None:
            self._maintenance_thread = threading.Thread(target=self._maintain, name="spools", daemon=True)
            self._maintenance_thread.start()
        self._wake.set()

    def _maintain(self) -> None:
        """Look after the spools that are fed, and end streams that nobody reads."""
        while not self._closed:
            with self._lock:
                fed = [entry for job in self._jobs.values() for entry in job.spools.values() if entry.feed is not None]
                now = time.monotonic()
                left = [entry for entry in fed if entry.users == 0 and now - entry.released_at >= _CLOSE_DELAY_S]
                left = [entry for entry in left if entry.spool.ended or now >= entry.wanted_until]
                feeds = [entry.feed for entry in left if entry.feed is not None]
                for entry in left:
                    entry.feed = None
            for feed in feeds:
                feed.close()
            for entry in left:
                entry.spool.release()
            for entry in fed:
                with suppress(OSError):
                    entry.spool.tend()
            self._touch()
            self._wake.wait(_MAINTENANCE_INTERVAL_S if len(fed) > len(left) else None)
            self._wake.clear()

    def _touch(self) -> None:
        """Touch the folder, so that other machines see that it is in use."""
        if self._folder is not None and time.monotonic() - self._touched_at > TOUCH_INTERVAL_S:
            self._touched_at = time.monotonic()
            with suppress(OSError):
                os.utime(private_folder(self._folder))


def _is_complete(entry: _SpoolEntry) -> bool:
    # A log that ended in trouble is tried again.
    return entry.spool.ended and not entry.spool.trouble


def _close_feeds(spools: list[_SpoolEntry]) -> None:
    for entry in spools:
        if entry.feed is not None:
            entry.feed.close()


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def folder_name(text: str) -> str:
    """Make a safe folder name, a different entry for every text."""
    name = quote(text, safe="-_").replace(".", "%2E")
    if len(name) <= 100:
        return name
    return f"{name[:80]}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"
