"""A copy of a list of objects on an API server, kept up to date as client-go's Reflector does.

One thread lists, watches from the list's version, and lists again when the server says 410 Gone. Readers take a dict
under a lock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from ...base.collector import paused_collector
from ...specs.errors import BackendUnavailableError, SchedulerError
from ..shared.changes import retry_backoff
from ..shared.streaming_response import StreamingResponse
from .api_server import ApiError, ApiServer
from .objects import dig, items_of, list_version, uid_of

_log = logging.getLogger(__name__)
T = TypeVar("T")

_PAGE = 500
# A broken server may announce pages without end.
_LIST_S = 120.0
# The server ends a watch after this time; the next one goes on from its version.
_WATCH_S = 300
# A watch that lasted this long worked: the next one begins at once.
_WORKED_S = 5.0


def list_pages(
    server: ApiServer, path: str, params: Mapping[str, Any] | None = None
) -> Iterator[tuple[list[Any], str]]:
    """Yield the objects of a list page by page, each with the list's version.

    Raises:
        ApiError: the list cannot be read; status 410 if it changed too much between two pages.
        BackendUnavailableError: the server is away, or its list does not end.
    """
    query = {**(params or {}), "limit": _PAGE}
    deadline = time.monotonic() + _LIST_S
    while time.monotonic() < deadline:
        answer = server.request("GET", path, params=query)
        yield items_of(answer), list_version(answer)
        query["continue"] = dig(answer, "metadata", "continue")
        if not query["continue"]:
            return
    raise BackendUnavailableError(f"{server.host} did not list {path} within {_LIST_S:.0f} s: name a namespace")


class _WatchRefusedError(SchedulerError):
    """The server does not go on with a watch."""


class Reflector(Generic[T]):
    """A copy of a list of objects; every method may be called from any thread.

    Without `run`, each read is a list.

    Args:
        server: the server.
        path: where the objects are.
        decode: returns what is kept of an object; None leaves it out.
        params: selects the objects.
        on_change: called in the thread of `run` at each change, and when the server goes away or is back.
    """

    def __init__(
        self,
        server: ApiServer,
        path: str,
        decode: Callable[[Any], T | None],
        params: Mapping[str, str] | None = None,
        on_change: Callable[[], object] = lambda: None,
    ) -> None:
        self._server = server
        self._path = path
        self._decode = decode
        self._params = params or {}
        self._on_change = on_change
        # Held during a list, so that `run` and readers never list at a time.
        self._listing = threading.Lock()
        self._lock = threading.Condition()
        self._items: dict[str, T] = {}
        self._version = ""
        self._error: SchedulerError | None = None
        self._is_running = False
        self._is_current = False
        self._stop = threading.Event()
        self._answer: StreamingResponse | None = None

    @property
    def is_current(self) -> bool:
        """Whether a watch keeps the copy up to date."""
        return self._is_current

    @property
    def error(self) -> SchedulerError | None:
        """Why the objects could not be listed last; None if they could."""
        return self._error

    def items(self) -> dict[str, T]:
        """Return the objects by uid, or by name where a server gives none.

        Raises:
            ApiError, BackendUnavailableError: they cannot be listed now.
        """
        if not self._is_running:
            with self._listing:
                self._list()
        with self._lock:
            self._lock.wait_for(lambda: self._is_current or self._error or not self._is_running)
            if self._error is not None:
                raise self._error
            return dict(self._items)

    def known(self) -> dict[str, T]:
        """Return the objects of the last list and its watch; nothing is asked."""
        with self._lock:
            return dict(self._items)

    def start(self, name: str) -> None:
        """Start `run` in a thread of this name."""
        self._is_running = True
        threading.Thread(target=self.run, name=name, daemon=True).start()

    def run(self) -> None:
        """List and watch until `close`."""
        self._is_running = True
        backoff = retry_backoff()
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                error = self._list_and_watch()
                if error is not None:
                    _log.debug("the watch of %s ended: %s", self._path, error)
                    self._on_change()
                if time.monotonic() - began > _WORKED_S:
                    backoff.reset()
                if error is not None or time.monotonic() - began < 1.0:
                    backoff.wait(self._stop)
        finally:
            self._set(is_running=False, is_current=False)

    # `Subscribers` calls these names.
    listen = run

    def close(self) -> None:
        """End `run` at once; not waited for."""
        self._stop.set()
        if (answer := self._answer) is not None:
            answer.shut()
        self._set(is_current=False)

    def _list_and_watch(self) -> Exception | None:
        """Watch until the server ends it; return the error that ended it instead."""
        try:
            if not self._version:
                with self._listing:
                    self._list()
                self._on_change()
            self._watch()
        except _WatchRefusedError as error:
            # 410: the version is too old. A watch that is not allowed becomes a list every few seconds.
            self._version = ""
            return error
        except SchedulerError as error:
            self._set(error=error, is_current=False)
            return error
        except (OSError, ValueError, RecursionError) as error:
            # Cut off, mostly for a moment: readers wait for the next watch, which tells whether the server is away.
            self._set(is_current=False)
            return error
        return None

    def _list(self) -> None:
        items: dict[str, T] = {}
        version = ""
        with paused_collector():
            for page in list_pages(self._server, self._path, self._params):
                objects, version = page
                items.update((_key(item), kept) for item in objects if (kept := self._decoded(item)) is not None)
                # Freed before the collector could look through them.
                del page, objects
        with self._lock:
            self._items, self._version, self._error = items, version, None
            self._is_current = self._is_running
            self._lock.notify_all()

    def _watch(self) -> None:
        if not self._version:
            # Nothing can be watched from a list without a version: it is listed again.
            self._stop.wait(_WORKED_S)
            return
        params = {**self._params, "watch": "true", "resourceVersion": self._version, "allowWatchBookmarks": "true",
                  "timeoutSeconds": _WATCH_S}  # fmt: skip
        was_away = self._error is not None
        try:
            answer = self._answer = self._server.open(self._path, params)
        except ApiError as error:
            raise _WatchRefusedError(str(error)) from error
        try:
            if self._stop.is_set():
                return
            self._set(is_current=True)
            if was_away:
                self._on_change()
            for event in answer.objects():
                self._take(event)
        finally:
            self._answer = None
            answer.close()

    def _take(self, event: Any) -> None:
        kind, item = (event.get("type"), event.get("object")) if isinstance(event, dict) else (None, None)
        if not isinstance(kind, str) or not isinstance(item, dict):
            raise ValueError(f"no event of a watch: {event!r:.80}")
        if kind == "ERROR":
            raise _WatchRefusedError(str(item.get("message") or "the watch ended"))
        kept = None if kind == "BOOKMARK" else self._decoded(item)
        key = "" if kept is None else _key(item)
        with self._lock:
            self._version = list_version(item) or self._version
            if kept is None:
                return
            before = self._items.pop(key, None)
            if kind != "DELETED":
                self._items[key] = kept
        if kind == "DELETED" or kept != before:
            self._on_change()

    def _decoded(self, item: Any) -> T | None:
        """Decode an object; one that nobody foresaw costs its own row alone."""
        try:
            return self._decode(item)
        except Exception:
            _log.exception("an object of %s cannot be read: %.300r", self._path, item)
            return None

    def _set(
        self, *, error: SchedulerError | None = None, is_running: bool | None = None, is_current: bool | None = None
    ) -> None:
        with self._lock:
            self._error = error
            self._is_running = self._is_running if is_running is None else is_running
            self._is_current = self._is_current if is_current is None else is_current
            self._lock.notify_all()


def _key(item: Any) -> str:
    return uid_of(item) or str(item["metadata"].get("name"))
