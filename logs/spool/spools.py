"""All spools of one running program: their readers, their size limits, and what is dropped first."""

from __future__ import annotations

import hashlib
import itertools
import logging
import math
import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ...base.files import cache_folder, is_folder, private_folder
from ...base.processes import read_process
from .feed import Feed, Origin
from .spool import HOLD_PARTIAL_LINE_S, Spool, SpoolWriteError

_log = logging.getLogger(__name__)

# The processes of another machine cannot be examined: a folder is stale if it was not touched for this long (s).
FOREIGN_OWNER_AGE_S = 7 * 24 * 3600.0
# How often a folder is touched while it is in use (s).
TOUCH_INTERVAL_S = 3600.0
# A stream that nobody reads is closed after this long (s): a user may go from one replica to another and back.
_CLOSE_DELAY_S = 0.5
_MAINTENANCE_INTERVAL_S = 0.25
LAST_LINES_TIMEOUT_S = 5.0
"""Seconds to wait for the lines that a job has printed already."""
QUIET_S = 1.5
"""A stream that has been quiet for this long (s), including the time to connect, has nothing more for now."""
# How often their arrival is checked (s).
_LAST_LINES_INTERVAL_S = 0.05
_counter = itertools.count()


def owner_folder(host: str, pid: int, start: str) -> str:
    """Name a spool folder of a process on a machine, another one with each call."""
    return f"{_safe_name(host)}.{pid}.{_safe_name(start)}.{next(_counter)}"


def _safe_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", text)


def remove_stale(root: Path) -> list[str]:
    """Remove the folders of processes that have ended, or of other machines and old; return their names."""
    try:
        folders = [folder for folder in root.iterdir() if not folder.is_symlink() and is_folder(folder)]
    except OSError:
        return []
    stale = [folder for folder in folders if _is_stale(folder)]
    for folder in stale:
        _log.info("removing the log spool that %s left behind", folder.name)
        shutil.rmtree(folder, ignore_errors=True)
    return [folder.name for folder in stale]


def _is_stale(folder: Path) -> bool:
    parts = folder.name.split(".")
    if len(parts) != 4 or not parts[1].isdigit():
        return False
    host, pid, start, _ = parts
    if host == _safe_name(os.uname().nodename):
        process = read_process(int(pid))
        return process is None or process.zombie or _safe_name(process.start) != start
    try:
        return time.time() - folder.stat().st_mtime > FOREIGN_OWNER_AGE_S
    except OSError:
        return False


class SpoolLimits(NamedTuple):
    """The most bytes that the spools store: of one job, and in all."""

    job: int = 512_000_000
    total: int = 2_048_000_000


MIN_FILE_BYTES = 65_536
"""The smallest size at which a spool rotates."""


def rotation_bytes(job_bytes: int, spools: int) -> int:
    """Return the size at which a spool rotates: half its share of its job's limit, since it has two files."""
    return max(MIN_FILE_BYTES, job_bytes // 2 // spools)


class _Entry:
    """A replica's spool, its feed and its readers."""

    def __init__(self, spool: Spool, origin: Callable[[], Origin]) -> None:
        self.spool = spool
        self.origin = origin
        self.feed: Feed | None = None
        self.users: set[object] = set()
        self.read_at = 0.0

    @property
    def last_read(self) -> float:
        return math.inf if self.users else self.read_at


class LogSpools:
    """The spools of one program, in a folder of its own. Every method may be called from any thread.

    A spool's key is its job's handle and the name of its folder in that of the job.

    Args:
        limits: how much they may store.
        root: the folder of all programs' spools.
    """

    def __init__(self, limits: SpoolLimits | None = None, root: Path | None = None) -> None:
        self.limits = limits or SpoolLimits()
        self._root = root or cache_folder() / "spool"
        self._jobs: dict[str, dict[str, _Entry]] = {}
        self._lock = threading.RLock()
        self._dropping = threading.Lock()
        self._wake = threading.Event()
        self._maintenance_thread: threading.Thread | None = None
        self._closed = False
        self._touched_at = 0.0

    def remove_stale(self) -> None:
        """Remove the folders of programs that have ended."""
        remove_stale(self._root)

    def acquire(self, key: tuple[str, str], label: str, origin: Callable[[], Origin], user: object) -> Spool:
        """Begin to read a stream, or share one that is read.

        Args:
            key: the spool's key.
            label: the replica as it is shown, such as ``trainer/3``.
            origin: returns what opens the stream.
            user: the reader, for `release`.
        """
        job, folder = key
        with self._lock:
            entries = self._jobs.setdefault(job, {})
            if folder not in entries:
                spool = Spool(
                    self._folder / folder_name(job) / folder,
                    label,
                    lambda: rotation_bytes(min(self.limits), len(entries)),
                    self._job_limit,
                )
                entries[folder] = _Entry(spool, origin)
            self._add_user(entries[folder], user)
            return entries[folder].spool

    def find(self, key: tuple[str, str]) -> Spool | None:
        """Return the spool of a stream that somebody reads; None where nobody does."""
        with self._lock:
            entry = self._entry(key)
            return entry.spool if entry is not None and entry.users else None

    def release(self, key: tuple[str, str], user: object) -> None:
        """Stop reading a stream; it is closed when nobody reads it. Its spool stays. A second call does nothing."""
        with self._lock:
            entry = self._entry(key)
            if entry is not None and user in entry.users:
                entry.users.remove(user)
                entry.read_at = time.monotonic()
        self._wake.set()

    def complete(self, job: str) -> None:
        """Read what a job has printed until now, 5 s at most, in those logs that were read: they are removed with it.

        Args:
            job: the job's handle.
        """
        now, deadline, user = time.time(), time.monotonic() + LAST_LINES_TIMEOUT_S, object()
        with self._lock:
            read = {folder: entry for folder, entry in self._jobs.get(job, {}).items() if not entry.spool.is_complete}
            for entry in read.values():
                self._add_user(entry, user)
        while any(not entry.spool.has_all_until(now, QUIET_S) for entry in read.values()):
            if self._closed or time.monotonic() > deadline:
                break
            time.sleep(_LAST_LINES_INTERVAL_S)
        for folder in read:
            self.release((job, folder), user)

    def close(self) -> None:
        """End all streams and remove the spools, without waiting for any stream."""
        with self._lock:
            self._closed = True
            entries = self._entries()
            self._jobs = {}
        self._wake.set()
        for entry in entries:
            # A feed that is late adds nothing.
            entry.spool.begin(None)
        feeds = [entry.feed for entry in entries if entry.feed is not None]
        threading.Thread(target=_close_feeds, args=(feeds,), name="spools-close", daemon=True).start()
        if entries:
            shutil.rmtree(self._folder, ignore_errors=True)

    @cached_property
    def _folder(self) -> Path:
        process = read_process(os.getpid())
        return self._root / owner_folder(os.uname().nodename, os.getpid(), process.start if process else "")

    def _entry(self, key: tuple[str, str]) -> _Entry | None:
        return self._jobs.get(key[0], {}).get(key[1])

    def _entries(self) -> list[_Entry]:
        return [entry for entries in self._jobs.values() for entry in entries.values()]

    def _add_user(self, entry: _Entry, user: object) -> None:
        """Add a reader, and start a feed if there is none or the last one ended in trouble."""
        entry.users.add(user)
        if self._closed or not (entry.spool.trouble if entry.spool.ended else entry.feed is None):
            return
        entry.feed = Feed(entry.spool, entry.origin())
        entry.feed.start()
        if self._maintenance_thread is None:
            self._maintenance_thread = threading.Thread(target=self._maintain, name="spools", daemon=True)
            self._maintenance_thread.start()
        self._wake.set()

    # Limits

    @property
    def _job_limit(self) -> str:
        return f"the spool keeps {_megabytes(self.limits.job)} of a job (spool_megabytes_per_job)"

    def enforce_limits(self) -> None:
        """Drop files until the limits hold, those of the least recently read job first."""
        with self._lock:
            jobs = [list(entries.values()) for entries in self._jobs.values() if entries]
        jobs.sort(key=lambda entries: max(entry.last_read for entry in entries))
        spools = [[entry.spool for entry in entries] for entries in jobs]
        in_all = f"the spools keep {_megabytes(self.limits.total)} in all (spool_megabytes)"
        # Two threads that count the same files would drop too many.
        with self._dropping:
            for job in spools:
                _drop_until([job], self.limits.job, self._job_limit)
            _drop_until(spools, self.limits.total, in_all)

    # Maintenance

    def _maintain(self) -> None:
        """Close the streams that nobody reads, add the lines that were held, and enforce the limits."""
        while not self._closed:
            with self._lock:
                now = time.monotonic()
                fed = [entry for entry in self._entries() if entry.feed is not None]
                unread = [entry for entry in fed if now - entry.last_read >= _CLOSE_DELAY_S]
                feeds = [entry.feed for entry in unread if entry.feed is not None]
                for entry in unread:
                    entry.feed = None
            _close_feeds(feeds)
            for entry in fed:
                # A full disk ends the feed with its next record.
                with suppress(SpoolWriteError):
                    entry.spool.flush(HOLD_PARTIAL_LINE_S, wait=False)
            self.enforce_limits()
            self._touch()
            self._wake.wait(_MAINTENANCE_INTERVAL_S if len(fed) > len(unread) else None)
            self._wake.clear()

    def _touch(self) -> None:
        """Touch the folder, so that other machines see that it is in use."""
        if time.monotonic() - self._touched_at > TOUCH_INTERVAL_S:
            self._touched_at = time.monotonic()
            with suppress(OSError):
                os.utime(private_folder(self._folder))


def _drop_until(jobs: list[list[Spool]], limit: int, why: str) -> None:
    """Drop files of the jobs in their order until all of them keep ``limit`` bytes, previous files before current."""
    for job in jobs:
        while sum(spool.size for spools in jobs for spool in spools) > limit:
            largest = max(job, key=lambda spool: (len(spool.parts), spool.size))
            parts = largest.parts
            if not parts:
                break
            largest.drop_oldest(parts[0], why)


def _close_feeds(feeds: list[Feed]) -> None:
    for feed in feeds:
        feed.close()


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def folder_name(text: str) -> str:
    """Make a safe folder name, another one for every text."""
    name = quote(text, safe="-_").replace(".", "%2E")
    if len(name) <= 100:
        return name
    return f"{name[:80]}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"
