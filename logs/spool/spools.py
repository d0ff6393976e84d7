"""All spools of one running program: who reads which, how much they may keep, and what goes first."""

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

from ...specs.files import cache_folder, private_folder
from ...specs.processes import is_running, read_process
from .feed import Origin, SpoolFeed
from .replica_spool import ReplicaSpool

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


# Streams that nobody reads any more go on for so long (s), for whoever goes from one replica to another.
_GRACE = 0.5
_TICK = 0.25
# A job that was told to end goes on printing for so long (s): what was read of it is read on to its end.
_REST = 60.0
# How long (s) what it printed before is waited for at most, and how often that is looked for.
_LAST_SECONDS, _LOOK = 5.0, 0.05
# A segment is at most this part of what a job may keep.
_PARTS = 16


class SpoolLimits(NamedTuple):
    """How many bytes the spools keep: of one job, and in all."""

    job: int = 512_000_000
    total: int = 2_048_000_000


class _Spool:
    """A replica's spool with those who use it."""

    def __init__(self, spool: ReplicaSpool, origin: Callable[[], Origin]) -> None:
        self.spool = spool
        self.origin = origin
        self.feed: SpoolFeed | None = None
        self.users = 0
        self.left_at = 0.0
        self.wanted_until = 0.0


class _Job:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spools: dict[str, _Spool] = {}
        self.read_at = 0.0

    @property
    def size(self) -> int:
        return sum(one.spool.size for one in tuple(self.spools.values()))


class LogSpools:
    """The spools of one program, in a folder that no other program uses.

    Every method may be called from any thread.

    Args:
        limits: how much they may keep.
        root: the folder of all programs' spools.
    """

    def __init__(self, limits: SpoolLimits | None = None, root: Path | None = None) -> None:
        self.limits = limits or SpoolLimits()
        self._root = root or cache_folder() / "spool"
        self._folder: Path | None = None
        self._jobs: dict[str, _Job] = {}
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._keeper: threading.Thread | None = None
        self._closed = False
        self._touched_at = 0.0

    def remove_stale(self) -> None:
        """Remove what programs that are dead have left behind."""
        remove_stale(self._root)

    def acquire(self, job: str, names: tuple[str, str], origin: Callable[[], Origin]) -> ReplicaSpool:
        """Begin to read a stream, or read it with those who do.

        Args:
            job: the job's handle.
            names: the spool's folder in that of its job, and the replica in words.
            origin: gives where the stream comes from.
        """
        with self._lock:
            found = self._job(job)
            found.read_at = time.monotonic()
            if names[0] not in found.spools:
                largest = max(1, self.limits.job // _PARTS)
                found.spools[names[0]] = _Spool(ReplicaSpool(found.folder / names[0], names[1], largest), origin)
            one = found.spools[names[0]]
            one.users += 1
            self._feed(one)
            return one.spool

    def release(self, job: str, name: str) -> None:
        """Read a stream no more; it ends when nobody reads it. What came of it is kept."""
        with self._lock:
            if self._closed:
                return
            one = self._jobs[job].spools[name]
            one.users -= 1
            one.left_at = self._jobs[job].read_at = time.monotonic()
        self._wake.set()

    def complete(self, job: str) -> None:
        """Read the rest of those logs of a job that were read, because they are about to go with it.

        What the job has printed until now is waited for, 5 s at most; the streams go on for a minute, for what it
        prints while it ends.

        Args:
            job: the job's handle.
        """
        now, deadline = time.time(), time.monotonic() + _LAST_SECONDS
        with self._lock:
            found = self._jobs.get(job)
            read = [one for one in found.spools.values() if not _is_over(one)] if found is not None else []
            for one in read:
                one.wanted_until = time.monotonic() + _REST
                self._feed(one)
        while any(not one.spool.has_all_until(now) for one in read):
            if self._closed or time.monotonic() > deadline:
                return
            time.sleep(_LOOK)

    def close(self) -> None:
        """End all streams and remove what came of them; returns without waiting for any stream."""
        with self._lock:
            self._closed = True
            all_spools = [one for job in self._jobs.values() for one in job.spools.values()]
            self._jobs = {}
        self._wake.set()
        for one in all_spools:
            one.spool.close()
        closing = threading.Thread(target=_close_feeds, args=(all_spools,), name="spools-close", daemon=True)
        closing.start()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # Caps

    def grew(self, spool: ReplicaSpool) -> None:
        """Drop what is over the caps."""
        with self._lock:
            for job in self._jobs.values():
                if any(one.spool is spool for one in job.spools.values()):
                    self._keep_job_cap(job)
            while sum(job.size for job in self._jobs.values()) > self.limits.total:
                why = f"the spools keep {_megabytes(self.limits.total)} in all (spool_megabytes)"
                if not any(self._drop_of(job, why) for job in self._by_use()):
                    return

    def make_room(self, spool: ReplicaSpool) -> bool:
        """Drop one segment, of the same job if it has one; tell whether there was any."""
        with self._lock:
            own = [job for job in self._jobs.values() if any(one.spool is spool for one in job.spools.values())]
            others = [job for job in self._by_use() if job not in own]
            why = f"the disk of {os.fspath(self._root)} is full"
            return any(self._drop_of(job, why, finished=True) for job in (*own, *others))

    def _keep_job_cap(self, job: _Job) -> None:
        why = f"the spool keeps {_megabytes(self.limits.job)} of a job (spool_megabytes_per_job)"
        while job.size > self.limits.job and self._drop_of(job, why):
            pass

    def _by_use(self) -> list[_Job]:
        """Return the jobs, the least recently read one first."""
        return sorted(self._jobs.values(), key=_last_use)

    def _drop_of(self, job: _Job, why: str, *, finished: bool = False) -> bool:
        """Drop the oldest segment of the replica that has most; without a finished one, the one that is written."""
        spools = [one.spool for one in job.spools.values()]
        able = [spool for spool in spools if spool.can_drop]
        if not able and not finished:
            able = [spool for spool in spools if spool.size]
            for spool in able:
                spool.finish_current()
        return bool(able) and max(able, key=lambda spool: spool.size).drop_oldest(why)

    # Housekeeping

    def _feed(self, one: _Spool) -> None:
        """Fill a spool, unless that is done already, or its log has ended."""
        if one.feed is None and not _is_over(one) and not self._closed:
            one.feed = SpoolFeed(one.spool, one.origin(), self)
            one.feed.start()
            self._keep()

    def _job(self, handle: str) -> _Job:
        if self._folder is None:
            self._folder = self._root / this_owner().folder_name
        if handle not in self._jobs:
            self._jobs[handle] = _Job(self._folder / folder_name(handle))
        return self._jobs[handle]

    def _keep(self) -> None:
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._keep_house, name="spools", daemon=True)
            self._keeper.start()
        self._wake.set()

    def _keep_house(self) -> None:
        """Look after the spools that are filled, and end streams that nobody reads."""
        while not self._closed:
            with self._lock:
                fed = [one for job in self._jobs.values() for one in job.spools.values() if one.feed is not None]
                now = time.monotonic()
                left = [one for one in fed if one.users == 0 and now - one.left_at >= _GRACE]
                left = [one for one in left if one.spool.ended or now >= one.wanted_until]
                feeds = [one.feed for one in left if one.feed is not None]
                for one in left:
                    one.feed = None
            for feed in feeds:
                feed.close()
            for one in left:
                one.spool.release()
            for one in fed:
                with suppress(OSError):
                    one.spool.tend()
            self._touch()
            self._wake.wait(_TICK if len(fed) > len(left) else None)
            self._wake.clear()

    def _touch(self) -> None:
        """Let other machines see that the folder is in use."""
        if self._folder is not None and time.monotonic() - self._touched_at > TOUCH_EVERY:
            self._touched_at = time.monotonic()
            with suppress(OSError):
                os.utime(private_folder(self._folder))


def _is_over(one: _Spool) -> bool:
    # What ended in trouble is tried again.
    return one.spool.ended and not one.spool.trouble


def _last_use(job: _Job) -> float:
    used = any(one.users for one in job.spools.values())
    return time.monotonic() if used else job.read_at


def _close_feeds(spools: list[_Spool]) -> None:
    for one in spools:
        if one.feed is not None:
            one.feed.close()


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def folder_name(text: str) -> str:
    """Return a name that is safe for a folder, and another one for every text."""
    name = quote(text, safe="-_").replace(".", "%2E")
    if len(name) <= 100:
        return name
    return f"{name[:80]}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"
