"""The journal: what was launched, when, from where, with which component, arguments, options and AppDef.

One file a launch, replaced as a whole (written beside, flushed, renamed), so that a crash at any instant leaves each
record as it was or as it became. A damaged record costs that record alone.

A journal may have many thousands of records. Of those that were read, only what they are looked up by stays in memory,
and the records that somebody asked for by their handles; everything is read from the newest on, and no further than is
needed.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.files import LARGE, private_folder, read_file, state_folder, user_name, write_private
from ...specs.serialize import appdef_to_dict
from .launch_record import LaunchOrigin, LaunchRecord, decode_record, encode_record

if TYPE_CHECKING:
    from ...specs.roles import AppDef

logger = logging.getLogger(__name__)

# A folder's time of change is trusted once it is so old (ns): network file systems keep whole seconds, and lag.
_SETTLED = 5 * 10**9
# Until then a folder of many records is read again after so long (s), one of fewer at every call.
_AGAIN_SECONDS = 1.0
MANY = 1000
"""The records from which a folder is many."""
# After reading for so long (s), other threads have their turn.
_TURN_SECONDS = 0.02
MAX_KEPT = 20_000
"""Records that are kept in memory: every job that backends list asks for its own again and again."""


_Stamp = tuple[int, int]


def _stamp(path: str) -> _Stamp | None:
    """Identify a file's content by its metadata; None where there is no file."""
    try:
        found = os.stat(path)  # noqa: PTH116 - called for each record
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


class _Entry(NamedTuple):
    """What a record is looked up by."""

    handle: str
    component: str
    cwd: str


class _Kept(NamedTuple):
    """A record in memory, with the state of its file, and of the folder when that was last looked at."""

    generation: int
    stamp: _Stamp
    record: LaunchRecord


class Journal:
    """The launch records of one state folder, shared by every process of this user.

    Args:
        folder: where the records are; the state folder's ``journal`` if None. It is created by the first launch.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or state_folder() / "journal"
        self.warnings: dict[str, str] = {}
        self.is_whole = True
        """Whether the last call had the time to read everything that it was asked for."""
        self._lock = threading.Lock()
        self._reading = threading.RLock()
        self._forgotten: set[str] = set()
        # All ids, newest first, and those of them that were not read yet, newest last.
        self._ids: list[str] = []
        self._unread: list[str] = []
        self._entries: dict[str, _Entry] = {}
        self._by_handle: dict[str, str] = {}
        # Records whose handle may change, without an app id or damaged, with the state of their files.
        self._unsettled: dict[str, _Stamp | None] = {}
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._generation = 0
        self._folder_stamp: int | None = None
        self._listed_at = -math.inf
        self._settled = False

    def record_intent(
        self,
        app: AppDef,
        scheduler: str,
        session: str,
        cfg: Mapping[str, Any],
        *,
        origin: LaunchOrigin | None = None,
        workspace: str = "",
        expected_app_id: str = "",
    ) -> LaunchRecord:
        """Write down what is about to be launched, before the scheduler hears of it.

        Raises:
            OSError: the record could not be written; nothing may be launched then.
        """
        now = time.time()
        how: dict[str, Any] = asdict(origin or LaunchOrigin())
        record = LaunchRecord(
            id=_new_id(now),
            at=now,
            scheduler=scheduler,
            session=session,
            app=appdef_to_dict(app, strict=False),
            cfg=dict(cfg),
            **how,
            workspace=workspace,
            cwd=str(Path.cwd()),
            user=user_name(),
            host=os.uname().nodename,
            expected_app_id=expected_app_id,
        )
        private_folder(self.folder)
        self._write(record)
        return record

    def update(self, record: LaunchRecord, **changes: Any) -> LaunchRecord:
        """Replace fields of a record and return the new one; a record of a newer format is left as it is.

        Raises:
            OSError: the record could not be written.
        """
        # Of two threads that change one record, the second changes what the first has written.
        with self._lock:
            if record.id in self._forgotten:
                return record
            current = self._load(record.id) or record
            changed = replace(current, **changes)
            if current.read_only or changed == current:
                return current
            self._write(changed)
            return changed

    def note(self, record: LaunchRecord, **changes: Any) -> None:
        """Update a record after the fact; a full disk then costs the note, not the job."""
        try:
            self.update(record, **changes)
        except OSError as error:
            logger.warning("the journal could not note %s of %s: %s", sorted(changes), record.id, error)

    def pages(self, first: int = 200, size: int = 1000) -> Iterator[tuple[list[LaunchRecord], int]]:
        """Yield all readable records, newest first, in lists that are read when they are asked for.

        Args:
            first: how many files the first list is made of.
            size: how many files each of the others is made of.

        Yields:
            A list of records, and how many files are left.
        """
        ids, start, count = self._list_ids(), 0, first
        while start < len(ids):
            found = [record for record_id in ids[start : start + count] if (record := self._load(record_id))]
            # Ids begin with the time, but a clock may have been set meanwhile.
            found.sort(key=lambda record: record.at, reverse=True)
            start, count = start + count, size
            yield found, max(0, len(ids) - start)

    def records(self) -> list[LaunchRecord]:
        """Return every readable record, newest first; `warnings` then names the damaged ones."""
        found = [record for page, _ in self.pages() for record in page]
        return sorted(found, key=lambda record: record.at, reverse=True)

    def find_all(self, handles: Iterable[str], patience: float = math.inf) -> dict[str, LaunchRecord]:
        """Return the newest record of each of these app handles that has one.

        Args:
            handles: the app handles.
            patience: seconds that reading may take, newest first; where they are not enough, `is_whole` is false and
                the next call goes on.
        """
        self._refresh()
        wanted = set(handles)
        missing = list(wanted - self._by_handle.keys())

        def is_enough() -> bool:
            while missing and missing[-1] in self._by_handle:
                missing.pop()
            return not missing

        self._read_on(time.monotonic() + patience, is_enough)
        found: dict[str, LaunchRecord] = {}
        with self._reading:
            self.is_whole = is_enough() or not self._unread
            for handle in wanted & self._by_handle.keys():
                if record := self._load(self._by_handle[handle], keep=True):
                    found[handle] = record
        return found

    def find(self, handle: str) -> LaunchRecord | None:
        """Return the record of an app handle, or None."""
        return self.find_all([handle]).get(handle)

    def read_on(self, patience: float) -> bool:
        """Read further for `find_all`, for some seconds at the most; return whether everything has been read."""
        self._read_on(time.monotonic() + patience)
        return not self._unread

    def launches(
        self, is_wanted: Callable[[str, str], bool], most: int = sys.maxsize, patience: float = math.inf
    ) -> list[LaunchRecord]:
        """Return launches of components, newest first.

        Args:
            is_wanted: tells whether a component, named as it was typed in a folder, is wanted; called newest first.
            most: how many are returned at the most.
            patience: see `find_all`.
        """
        self._refresh()
        until = time.monotonic() + patience
        found: list[LaunchRecord] = []
        for record_id in self._ids:
            if record_id not in self._entries:
                self._read_on(until, lambda record_id=record_id: record_id in self._entries)
            entry = self._entries.get(record_id)
            if entry is None or len(found) >= most:
                break
            if entry.component and is_wanted(entry.component, entry.cwd) and (record := self._load(record_id)):
                found.append(record)
        return found

    def last_launch(self, component: str) -> LaunchRecord | None:
        """Return the newest launch of a component, or None."""
        return next(iter(self.launches(lambda name, _: name == component, 1)), None)

    def is_kept(self, record: LaunchRecord) -> bool:
        """Tell whether a record is still there."""
        return _stamp(self._path(record.id)) is not None

    def forget(self, record: LaunchRecord) -> None:
        """Remove a record; one that is gone already is no error."""
        with self._lock:
            # A thread that has something to note of it must not bring it back.
            self._forgotten.add(record.id)
            Path(self._path(record.id)).unlink(missing_ok=True)
        with self._reading:
            self._drop(record.id)

    def _refresh(self) -> None:
        """Look which records there are. Records are replaced by renaming, which changes the folder's own time."""
        before, now = time.time_ns(), time.monotonic()
        try:
            stamp = self.folder.stat().st_mtime_ns
        except OSError:
            stamp = None
        with self._reading:
            again = _AGAIN_SECONDS if len(self._ids) > MANY else 0.0
            if stamp is not None and stamp == self._folder_stamp and (self._settled or now < self._listed_at + again):
                return
            self._folder_stamp, self._listed_at = stamp, now
            self._settled = stamp is not None and stamp < before - _SETTLED
            self._generation += 1
            self._ids = self._list_ids()
            there = set(self._ids)
            for record_id in [entry for entry in self._entries if entry not in there]:
                self._drop(record_id)
            for record_id, known in list(self._unsettled.items()):
                if known is None or known != _stamp(self._path(record_id)):
                    self._note(record_id)
            self._unread = [entry for entry in reversed(self._ids) if entry not in self._entries]

    def _list_ids(self) -> list[str]:
        """Return the ids of all records, newest first: they begin with the time."""
        try:
            names = os.listdir(self.folder)  # noqa: PTH208 - of 100,000 a Path each would be made
        except OSError:
            return []
        return sorted((name[:-5] for name in names if name.endswith(".json") and name[0] != "."), reverse=True)

    def _read_on(self, until: float, is_enough: Callable[[], bool] = lambda: False) -> None:
        """Read records that were not read yet, newest first, until a time (`time.monotonic`) or until it is enough."""
        while self._unread and time.monotonic() < until and not is_enough():
            turn = min(until, time.monotonic() + _TURN_SECONDS)
            with self._reading:
                while self._unread and time.monotonic() < turn and not is_enough():
                    self._note(self._unread.pop())
            time.sleep(0.001)

    def _note(self, record_id: str) -> None:
        """Read a record and keep what it is looked up by."""
        stamp = _stamp(self._path(record_id))
        record = self._load(record_id)
        self._drop(record_id)
        if record is None or not (record.app_id or record.error):
            self._unsettled[record_id] = stamp
        if record is None:
            self._entries[record_id] = _Entry("", "", "")
            return
        handle = record.handle
        self._entries[record_id] = _Entry(handle, sys.intern(record.component), sys.intern(record.cwd))
        if handle and self._by_handle.get(handle, "") < record_id:
            self._by_handle[handle] = record_id

    def _drop(self, record_id: str) -> None:
        entry = self._entries.pop(record_id, None)
        self._unsettled.pop(record_id, None)
        if entry is not None and self._by_handle.get(entry.handle) == record_id:
            del self._by_handle[entry.handle]

    def _path(self, record_id: str) -> str:
        return f"{self.folder}/{record_id}.json"  # a Path would take a third of the time that a record takes

    def _write(self, record: LaunchRecord) -> None:
        write_private(Path(self._path(record.id)), encode_record(record))
        with self._reading:
            self._unsettled[record.id] = None
            self._folder_stamp = None

    def _load(self, record_id: str, *, keep: bool = False) -> LaunchRecord | None:
        """Return a record, or None and say in `warnings` why it cannot be read; with ``keep`` it stays in memory."""
        kept, stamp = self._kept.get(record_id), None
        if keep and kept is not None and kept.generation == self._generation:
            return kept.record
        path = self._path(record_id)
        try:
            if keep or kept is not None:
                stamp = _stamp(path)
            if kept is not None and kept.stamp == stamp:
                record = kept.record
            else:
                record = decode_record(read_file(path, LARGE), record_id)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            if record_id not in self.warnings:
                self.warnings[record_id] = f"{path} cannot be read ({reason}): this launch is left out of the history"
                logger.warning(self.warnings[record_id])
            return None
        if keep and stamp is not None:
            self._kept[record_id] = _Kept(self._generation, stamp, record)
            self._kept.move_to_end(record_id)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return record


def _new_id(now: float) -> str:
    """Return a record id; ids sort by time, and two launches in one microsecond still differ."""
    second = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return f"{second}-{int(now * 1e6) % 10**6:06d}-{os.urandom(4).hex()}"
