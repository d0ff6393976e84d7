"""Keeps the rows of all jobs: read once page by page, then kept by a watch, which costs no requests.

The rules are those of the API: a list has a version, a watch goes on from it; bookmarks move it on; 410 says that it is
too old, and the list is read anew.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ...specs import SchedulerError
from ..changes import Retry, Subscribers
from ..long_answer import LongAnswer
from ..responses import ListAppResponse
from .api_server import ApiError, ApiServer
from .jobs import JOBS, Object, jobs_path
from .listing import KnownReasons, pages, row_of, uid_of

_log = logging.getLogger(__name__)

# The server ends a watch after so many seconds; it goes on where it was.
_WATCH_SECONDS = 300
# How often a list is begun anew that grew too old between two pages.
_TRIES = 3
# A watch that held for so many seconds worked.
_WORKED = 5.0
# Seconds in which a watch that was cut off may be back before the list is read anew.
_SOON = 1.0


class JobRows:
    """The rows of the jobs of a namespace; every method may be called from any thread.

    Args:
        server: the server.
        namespace: the namespace; all of them where empty.
    """

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server = server
        self._namespace = namespace
        self._reasons = KnownReasons()
        self._lock = threading.Lock()
        self._jobs: dict[str, ListAppResponse] = {}
        self._uids: dict[str, str] = {}
        self._version = ""
        self._lists = 0
        self._holds = threading.Event()
        self._held_until = 0.0
        self._read = threading.Event()
        self._subscribers = Subscribers("kubernetes-watch", lambda on_change: JobWatch(self, server, on_change))

    def subscribe(self, on_change: Callable[[], object]) -> Callable[[], object]:
        """Call ``on_change`` at changes, see `Subscribers.subscribe`; from then on a watch keeps the rows."""
        return self._subscribers.subscribe(on_change)

    def rows(self) -> list[ListAppResponse]:
        """Return every job; without a request while a watch holds.

        Raises:
            ApiError, BackendUnavailableError: the list cannot be read.
        """
        # A watch that was cut off goes on where it was, mostly at once.
        was_cut = time.monotonic() - self._held_until < _SOON
        if not self._holds.wait(_SOON if was_cut else 0):
            self.read()
        with self._lock:
            return list(self._jobs.values())

    def read(self) -> None:
        """Read the list anew.

        Raises:
            ApiError, BackendUnavailableError: it cannot be read.
        """
        jobs, uids, version = self._read_whole()
        with self._lock:
            for uid in set(self._uids.values()) - set(uids.values()):
                self._reasons.forget(uid)
            self._jobs, self._uids, self._version = jobs, uids, version
            self._lists += 1
        self._read.set()

    def learn(self, job: Object, reason: str) -> None:
        """Take note of a job that was looked at, and of why it is in its state."""
        self._reasons.learn(uid_of(job), row_of(job, self._reasons).state, reason)
        with self._lock:
            row = row_of(job, self._reasons)
            if row.app_id in self._jobs and self._uids.get(row.app_id) == uid_of(job):
                self._jobs[row.app_id] = row

    def uid(self, app_id: str) -> str:
        """Return what tells the job that was listed from another one of the same name; empty where none was."""
        with self._lock:
            return self._uids.get(app_id, "")

    def close(self) -> None:
        """End the watch."""
        self._subscribers.close()

    # For the watch

    @property
    def path(self) -> str:
        """Where the jobs are."""
        return jobs_path(self._namespace) if self._namespace else JOBS

    def wait_for_list(self, stop: threading.Event) -> tuple[int, str]:
        """Wait until the list was read; return which one it is, and the version to go on from.

        Nothing of it is worth anything where ``stop`` came first.
        """
        while not stop.is_set():
            if self._read.wait(0.2):
                with self._lock:
                    return self._lists, self._version
        return 0, ""

    def watched(self, holds: bool) -> None:
        """Say whether a watch holds: only then the rows need not be read."""
        if holds:
            self._holds.set()
        elif self._holds.is_set():
            self._holds.clear()
            self._held_until = time.monotonic()

    def too_old(self, number: int) -> None:
        """Let the next one who asks read the list anew, unless that was done since.

        Args:
            number: which list could not be gone on from.
        """
        with self._lock:
            if number == self._lists:
                self._read.clear()
        self._holds.clear()
        self._held_until = 0.0

    def take(self, kind: str, job: Object) -> bool:
        """Take one event of a watch; return whether a row changed.

        Args:
            kind: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``.
            job: the job; of a bookmark only its version.
        """
        version = str(job["metadata"].get("resourceVersion") or "")
        with self._lock:
            self._version = version or self._version
            if kind == "BOOKMARK":
                return False
            row = row_of(job, self._reasons)
            if kind == "DELETED":
                self._reasons.forget(uid_of(job))
                self._uids.pop(row.app_id, None)
                return self._jobs.pop(row.app_id, None) is not None
            changed = self._jobs.get(row.app_id) != row
            self._jobs[row.app_id], self._uids[row.app_id] = row, uid_of(job)
            return changed

    def _read_whole(self) -> tuple[dict[str, ListAppResponse], dict[str, str], str]:
        for _ in range(_TRIES - 1):
            try:
                return self._read_pages()
            except ApiError as error:
                # 410: it changed too much between two pages.
                if error.status != 410:
                    raise
        return self._read_pages()

    def _read_pages(self) -> tuple[dict[str, ListAppResponse], dict[str, str], str]:
        jobs: dict[str, ListAppResponse] = {}
        uids: dict[str, str] = {}
        version = ""
        for page in pages(self._server, self._namespace):
            items, version = page
            for job in items:
                row = row_of(job, self._reasons)
                jobs[row.app_id], uids[row.app_id] = row, uid_of(job)
        return jobs, uids, version


class JobWatch:
    """Keeps rows by a watch, and calls at every change, when the server goes, and when it is back.

    Args:
        rows: the rows.
        server: the server.
        on_change: called in the thread that watches.
    """

    def __init__(self, rows: JobRows, server: ApiServer, on_change: Callable[[], None]) -> None:
        self._rows = rows
        self._server = server
        self._on_change = on_change
        self._stop = threading.Event()
        self._answer: LongAnswer | None = None

    def close(self) -> None:
        """End it; not waited for."""
        self._stop.set()
        answer = self._answer
        if answer is not None:
            answer.shut()

    def listen(self) -> None:
        """Watch until `close`."""
        retry = Retry(self._stop)
        while not self._stop.is_set():
            number, version = self._rows.wait_for_list(self._stop)
            if self._stop.is_set():
                break
            began = time.monotonic()
            went_away = self._watch_once(number, version)
            if went_away:
                self._rows.watched(False)
                self._on_change()
            if time.monotonic() - began > _WORKED:
                retry.worked()
            if went_away or time.monotonic() - began < _SOON:
                retry.wait()
        self._rows.watched(False)

    def _watch_once(self, number: int, version: str) -> bool:
        """Watch until the server ends it; return whether it broke off instead."""
        try:
            self._watch(version)
        except (SchedulerError, OSError, ValueError, KeyError, TypeError) as error:
            _log.debug("the watch of jobs broke off: %s", error)
            if isinstance(error, ApiError):
                # 410, or what is not allowed any more: the list says what it is.
                self._rows.too_old(number)
            return True
        finally:
            if self._answer is not None:
                self._answer.close()
                self._answer = None
        return False

    def _watch(self, version: str) -> None:
        params = {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": _WATCH_SECONDS,
        }
        self._answer = self._server.open(self._rows.path, params)
        if self._stop.is_set():
            return
        self._rows.watched(True)
        for event in self._answer.objects():
            self._take(event)

    def _take(self, event: Mapping[str, Any]) -> None:
        """Take one event.

        Raises:
            ApiError: it says that the watch cannot go on.
        """
        kind, found = event["type"], event["object"]
        if kind == "ERROR":
            raise ApiError(str(found.get("message") or "the watch ended"), int(found.get("code") or 0))
        if self._rows.take(kind, found):
            self._on_change()
