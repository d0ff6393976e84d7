"""Keeps the rows of all jobs: read once page by page, then kept by a watch, which costs no requests.

The rules are those of the API: a list has a version, a watch goes on from it; bookmarks move it on; 410 says that it is
too old, and the list is read anew.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...specs.errors import SchedulerError
from ..shared.changes import Subscribers, retry_backoff
from ..shared.streaming_response import StreamingResponse
from ..types import ListAppResponse
from .api_server import ApiError, ApiServer
from .jobs import JOBS, jobs_path, split_app_id
from .listing import Known, KnownReasons, pages, row_of, uid_of
from .phases import app_state
from .shapes import KubernetesObject, checked_job, list_version

_log = logging.getLogger(__name__)

# The server ends a watch after so many seconds; it goes on where it was.
_WATCH_SECONDS = 300
# How often a list is begun anew that grew too old between two pages.
_TRIES = 3
# A watch that held for so many seconds worked.
_WORKED_S = 5.0
# Seconds in which a watch that was cut off may be back before the list is read anew.
_SOON_S = 1.0


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
        # The uid and the version of each job.
        self._seen: dict[str, tuple[str, str]] = {}
        self._version = ""
        # How many read the list now; the jobs of which a watch has told meanwhile, and whether they are there still.
        self._readers = 0
        self._told: dict[str, bool] = {}
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
        was_cut = time.monotonic() - self._held_until < _SOON_S
        if not self._holds.wait(_SOON_S if was_cut else 0):
            self.read()
        with self._lock:
            return list(self._jobs.values())

    def read(self) -> None:
        """Read the list anew.

        Raises:
            ApiError, BackendUnavailableError: it cannot be read.
        """
        with self._lock:
            self._readers += 1
        try:
            jobs, seen, version = self._read_whole()
            with self._lock:
                self._keep_newer(jobs, seen, version)
                for uid in {uid for uid, _ in self._seen.values()} - {uid for uid, _ in seen.values()}:
                    self._reasons.forget(uid)
                self._jobs, self._seen = jobs, seen
                if not (self._told and _is_newer(self._version, version)):
                    self._version = version
                self._lists += 1
        finally:
            with self._lock:
                self._readers -= 1
                if not self._readers:
                    self._told.clear()
        self._read.set()

    def _keep_newer(self, jobs: dict[str, ListAppResponse], seen: dict[str, tuple[str, str]], version: str) -> None:
        """Bring a list up to what a watch has told while it was read."""
        if not _is_newer(self._version, version):
            return
        for app_id, (uid, at) in self._seen.items():
            if uid in self._told and _is_newer(at, version):
                jobs[app_id], seen[app_id] = self._jobs[app_id], (uid, at)
        for app_id, (uid, _) in list(seen.items()):
            if not self._told.get(uid, True):
                del jobs[app_id], seen[app_id]

    def learn(self, job: KubernetesObject, reason: str, finished_at: float | None = None) -> None:
        """Take note of a job that was looked at: why it is in its state, and when it ended."""
        self._reasons.learn(uid_of(job), Known(app_state(job), reason, finished_at))
        with self._lock:
            row = row_of(job, self._reasons)
            if row.app_id in self._jobs and self._seen.get(row.app_id) == _seen(job):
                self._jobs[row.app_id] = row

    def uid(self, app_id: str) -> str:
        """Return the uid of the job that was listed; empty where none was."""
        with self._lock:
            return self._seen.get(app_id, ("", ""))[0]

    def version(self, app_id: str) -> str:
        """Return the version of a job that a watch keeps; empty where no watch holds, or there is no such job."""
        if not self._holds.is_set():
            return ""
        with self._lock:
            return self._seen.get(app_id, ("", ""))[1]

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

    def take(self, kind: str, item: Any) -> bool:
        """Take one event of a watch; return whether a row changed.

        Args:
            kind: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``.
            item: the job; of a bookmark only its version.
        """
        version = list_version(item) if isinstance(item, dict) else ""
        job = None if kind == "BOOKMARK" else checked_job(item)
        with self._lock:
            self._version = version or self._version
            if job is None:
                return False
            row = row_of(job, self._reasons)
            if self._readers:
                self._told[uid_of(job)] = kind != "DELETED"
            if kind == "DELETED":
                self._reasons.forget(uid_of(job))
                self._seen.pop(row.app_id, None)
                return self._jobs.pop(row.app_id, None) is not None
            changed = self._jobs.get(row.app_id) != row
            self._jobs[row.app_id], self._seen[row.app_id] = row, _seen(job)
            return changed

    def _read_whole(self) -> tuple[dict[str, ListAppResponse], dict[str, tuple[str, str]], str]:
        for _ in range(_TRIES - 1):
            try:
                return self._read_pages()
            except ApiError as error:
                # 410: it changed too much between two pages.
                if error.status != 410:
                    raise
        return self._read_pages()

    def _read_pages(self) -> tuple[dict[str, ListAppResponse], dict[str, tuple[str, str]], str]:
        jobs: dict[str, ListAppResponse] = {}
        seen: dict[str, tuple[str, str]] = {}
        version = ""
        for page in pages(self._server, self._namespace):
            items, version = page
            for job in items:
                row = row_of(job, self._reasons)
                jobs[row.app_id], seen[row.app_id] = row, _seen(job)
        return jobs, seen, version


def _seen(job: KubernetesObject) -> tuple[str, str]:
    return uid_of(job), str(job["metadata"].get("resourceVersion") or "")


def _is_newer(version: str, other: str) -> bool:
    """Return whether a version of an object or a list is a later one: they are etcd's revisions, which are counted."""
    return version.isdecimal() and other.isdecimal() and int(version) > int(other)


class ObjectWatch:
    """One watch of a list of objects.

    Args:
        server: the server.
        path: where the objects are.
        params: which of them.
    """

    def __init__(self, server: ApiServer, path: str, params: Mapping[str, str] | None = None) -> None:
        self._server = server
        self._path = path
        self._params = params or {}
        self._answer: StreamingResponse | None = None
        self._is_shut = False

    def open(self, version: str) -> None:
        """Begin to watch.

        Args:
            version: of the list that is gone on from.

        Raises:
            ApiError, BackendUnavailableError: it cannot be watched; status 410 where the version is too old.
        """
        params = {
            **self._params,
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": _WATCH_SECONDS,
        }
        self._answer = self._server.open(self._path, params)
        if self._is_shut:
            self._answer.shut()

    def events(self) -> Iterator[tuple[str, Any]]:
        """Yield what happens, as the kind of an event and its object, until the server or `shut` ends it.

        Raises:
            ApiError: the watch cannot go on; status 410 where it is too old.
            OSError, ValueError, RecursionError: it broke off, or the answer is no watch's.
        """
        for event in self._answer.objects() if self._answer is not None else ():
            kind, item = (event.get("type"), event.get("object")) if isinstance(event, dict) else (None, None)
            if not isinstance(kind, str) or not isinstance(item, dict):
                raise ValueError(f"no event of a watch: {event!r:.80}")
            if kind == "ERROR":
                code = item.get("code")
                raise ApiError(str(item.get("message") or "the watch ended"), code if isinstance(code, int) else 0)
            yield kind, item

    def shut(self) -> None:
        """End it at once, from any thread; `close` is still needed."""
        self._is_shut = True
        if (answer := self._answer) is not None:
            answer.shut()

    def close(self) -> None:
        """Release the connection; called where nobody reads."""
        if self._answer is not None:
            self._answer.close()
            self._answer = None


class JobWatch:
    """Keeps rows by a watch, and calls at every change, when the server goes, and when it is back.

    Args:
        rows: the rows.
        server: the server.
        on_change: called in the thread that watches.
    """

    def __init__(self, rows: JobRows, server: ApiServer, on_change: Callable[[], None]) -> None:
        self._rows = rows
        self._on_change = on_change
        self._stop = threading.Event()
        self._watch = ObjectWatch(server, rows.path)

    def close(self) -> None:
        """End it; not waited for."""
        self._stop.set()
        self._watch.shut()

    def listen(self) -> None:
        """Watch until `close`."""
        backoff = retry_backoff()
        while not self._stop.is_set():
            number, version = self._rows.wait_for_list(self._stop)
            if self._stop.is_set():
                break
            began = time.monotonic()
            went_away = self._watch_once(number, version)
            if went_away:
                self._rows.watched(False)
                self._on_change()
            if time.monotonic() - began > _WORKED_S:
                backoff.reset()
            if went_away or time.monotonic() - began < _SOON_S:
                backoff.wait(self._stop)
        self._rows.watched(False)

    def _watch_once(self, number: int, version: str) -> bool:
        """Watch until the server ends it; return whether it broke off instead."""
        try:
            self._watch.open(version)
            if not self._stop.is_set():
                self._rows.watched(True)
            for kind, item in self._watch.events():
                if self._take(kind, item):
                    self._on_change()
        except (SchedulerError, OSError, ValueError, RecursionError) as error:
            _log.debug("the watch of jobs broke off: %s", error)
            if isinstance(error, ApiError):
                # 410, or what is not allowed any more: the list says what it is.
                self._rows.too_old(number)
            return True
        finally:
            self._watch.close()
        return False

    def _take(self, kind: str, item: Any) -> bool:
        """Take one event; an object that nobody foresaw costs its own row alone."""
        try:
            return self._rows.take(kind, item)
        except Exception:
            _log.exception("an event of a watch of jobs cannot be read: %.300r", item)
            return False


class WatchedNamespaces:
    """The rows of several namespaces; every method may be called from any thread.

    Args:
        server: the server.
        namespace: the first one; all of them where empty.
    """

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server = server
        self._all = not namespace
        self._rows = {namespace: JobRows(server, namespace)}
        self._subscribers: dict[object, tuple[Callable[[], object], list[Callable[[], object]]]] = {}
        # Those that the server refused to list, which is logged once.
        self._refused: set[str] = set()
        self._lock = threading.Lock()

    def add(self, namespace: str) -> None:
        """List the jobs of this namespace as well."""
        with self._lock:
            if self._all or namespace in self._rows:
                return
            self._rows[namespace] = added = JobRows(self._server, namespace)
            for on_change, ends in self._subscribers.values():
                ends.append(added.subscribe(on_change))

    def rows(self) -> list[ListAppResponse]:
        """Return every job, the latest first; a namespace that may not be listed hides no other; see `JobRows.rows`.

        Raises:
            ApiError, BackendUnavailableError: the server is not there, or no namespace may be listed.
        """
        with self._lock:
            watched = list(self._rows.items())
        rows: list[ListAppResponse] = []
        refused: list[ApiError] = []
        for namespace, jobs in watched:
            try:
                rows += jobs.rows()
            except ApiError as error:
                refused.append(error)
                if namespace not in self._refused:
                    self._refused.add(namespace)
                    _log.warning("the jobs of %s are not listed: %s", namespace or "all namespaces", error)
            else:
                self._refused.discard(namespace)
        if len(refused) == len(watched):
            raise refused[0]
        return sorted(rows, key=lambda row: row.submitted_at or 0.0, reverse=True)

    def subscribe(self, on_change: Callable[[], object]) -> Callable[[], object]:
        """Call ``on_change`` at changes; see `JobRows.subscribe`."""
        key = object()
        with self._lock:
            self._subscribers[key] = on_change, [rows.subscribe(on_change) for rows in self._rows.values()]

        def unsubscribe() -> None:
            with self._lock:
                _, ends = self._subscribers.pop(key, (None, []))
            for end in ends:
                end()

        return unsubscribe

    def learn(self, app_id: str, job: KubernetesObject, reason: str, finished_at: float | None = None) -> None:
        """Take note of a job that was looked at; see `JobRows.learn`."""
        self._of(app_id).learn(job, reason, finished_at)

    def version(self, app_id: str) -> str:
        """Return the version of a job that a watch keeps; see `JobRows.version`."""
        return self._of(app_id).version(app_id)

    def uid(self, app_id: str) -> str:
        """Return the uid of the job that was listed; see `JobRows.uid`."""
        return self._of(app_id).uid(app_id)

    def close(self) -> None:
        """End every watch."""
        with self._lock:
            watched = list(self._rows.values())
        for rows in watched:
            rows.close()

    def _of(self, app_id: str) -> JobRows:
        namespace, _ = split_app_id(app_id)
        with self._lock:
            return self._rows.get(namespace) or next(iter(self._rows.values()))
