"""The journal: what was launched, when, from where, with which component, arguments, options and AppDef.

One file a launch, replaced as a whole (written beside, flushed, renamed), so that a crash at any instant leaves each
record as it was or as it became. A damaged record costs that record alone.
"""

from __future__ import annotations

import json
import logging
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import specs
from .launch_origin import LaunchOrigin
from .paths import private_folder, state_folder, write_private
from .user import user_name

if TYPE_CHECKING:
    from ..specs import AppDef

logger = logging.getLogger(__name__)

FORMAT = 1
# A folder's time of change is trusted once it is so old (ns): network file systems keep whole seconds, and lag.
_SETTLED = 5 * 10**9


@dataclass(frozen=True)
class LaunchRecord:
    """One launch, from the intent to the last state that was seen.

    Attributes:
        id: the record's name; ids sort by time.
        at: when the launch was asked for, in seconds since the epoch.
        scheduler: the scheduler's name, such as ``local_cwd``.
        session: the session part of the handle.
        app: the AppDef as `appdef_to_dict` gives it, before anything was added for the backend.
        cfg: the run options that were given, not those filled in by default.
        component: the component's name, empty when the AppDef came from elsewhere.
        arguments: the component's arguments as text, by parameter.
        overrides: what was changed in the AppDef's roles, as text, by role and field.
        relaunch_of: the id of the launch that this one repeats.
        group: what the launches of one sweep share.
        config: what config gave to it, see `LaunchOrigin`.
        world: what was around it, see `LaunchWorld`; empty until that was found out.
        expected_app_id: the id that the dry run had chosen, to find the job if the launcher died before it learnt it.
        app_id: the id that the scheduler gave; empty until it has.
        error: why the launch failed, empty if it did not.
        state: the name of the last AppState seen, empty if none was.
        cancelled_at: when this program was asked to cancel the job, before it asked the backend.
    """

    id: str
    at: float
    scheduler: str
    session: str
    app: dict[str, Any]
    cfg: dict[str, Any] = field(default_factory=dict)
    component: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    workspace: str = ""
    cwd: str = ""
    user: str = ""
    host: str = ""
    overrides: dict[str, dict[str, str]] = field(default_factory=dict)
    relaunch_of: str = ""
    group: str = ""
    config: dict[str, str] = field(default_factory=dict)
    world: dict[str, Any] = field(default_factory=dict)
    expected_app_id: str = ""
    app_id: str = ""
    error: str = ""
    state: str = ""
    state_at: float | None = None
    message: str = ""
    cancelled_at: float | None = None
    cancelled_by: str = ""
    read_only: bool = False

    @property
    def handle(self) -> str:
        """The job's app handle, or an empty text if it never got an id."""
        app_id = self.app_id or self.expected_app_id
        return f"{self.scheduler}://{self.session}/{app_id}" if app_id else ""

    def origin(self, **changes: Any) -> LaunchOrigin:
        """Return what it was made from, with some of that changed."""
        kept = {one.name: getattr(self, one.name) for one in fields(LaunchOrigin)}
        return LaunchOrigin(**{**kept, **changes})

    def app_def(self) -> AppDef:
        """Return the AppDef that was launched.

        Raises:
            AppDefError: the record holds none that can be read.
        """
        return specs.appdef_from_dict(self.app)


_FIELDS = {f.name for f in fields(LaunchRecord)} - {"read_only"}


def _decode(text: bytes) -> LaunchRecord:
    data = json.loads(text)
    version = data.pop("format")
    if not isinstance(version, int) or not isinstance(data["app"], dict) or not isinstance(data["id"], str):
        raise ValueError("not a launch record")
    known = {key: value for key, value in data.items() if key in _FIELDS}
    return LaunchRecord(**known, read_only=version > FORMAT)


def _encode(record: LaunchRecord) -> bytes:
    data = asdict(record)
    del data["read_only"]
    return json.dumps({"format": FORMAT, **data}, indent=1, default=str).encode()


class Journal:
    """The launch records of one state folder, shared by every process of this user.

    Args:
        folder: where the records are; the state folder's ``journal`` if None. It is created by the first launch.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or state_folder() / "journal"
        self.warnings: dict[str, str] = {}
        self.is_whole = True
        """Whether the last call had the time to read everything."""
        self._lock = threading.Lock()
        self._forgotten: set[str] = set()
        self._cache: dict[str, tuple[tuple[int, int], LaunchRecord]] = {}
        self._listed: list[LaunchRecord] = []
        self._by_handle: dict[str, LaunchRecord] = {}
        self._folder_stamp: int | None = None

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
        record = LaunchRecord(
            id=_new_id(now),
            at=now,
            scheduler=scheduler,
            session=session,
            app=specs.appdef_to_dict(app, strict=False),
            cfg=dict(cfg),
            **asdict(origin or LaunchOrigin()),
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
            current = self._read(self._path(record.id)) or record
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

    def records(self, patience: float = math.inf) -> list[LaunchRecord]:
        """Return every readable record, newest first; `warnings` then names the damaged ones.

        Args:
            patience: see `by_handle`.
        """
        self._refresh(patience)
        return list(self._listed)

    def by_handle(self, patience: float = math.inf) -> Mapping[str, LaunchRecord]:
        """Return the newest record of each app handle; the very same mapping as long as nothing changes.

        Args:
            patience: seconds that reading may take, newest first; where they are not enough, `is_whole` is false and
                the next call goes on.
        """
        self._refresh(patience)
        return self._by_handle

    def find(self, handle: str) -> LaunchRecord | None:
        """Return the record of an app handle, or None."""
        return self.by_handle().get(handle)

    def last_launch(self, component: str) -> LaunchRecord | None:
        """Return the newest launch of a component, or None."""
        return next((record for record in self.records() if record.component == component), None)

    def is_kept(self, record: LaunchRecord) -> bool:
        """Tell whether a record is still there."""
        return self._path(record.id).exists()

    def forget(self, record: LaunchRecord) -> None:
        """Remove a record; one that is gone already is no error."""
        with self._lock:
            # A thread that has something to note of it must not bring it back.
            self._forgotten.add(record.id)
            self._path(record.id).unlink(missing_ok=True)
            self._cache.pop(record.id, None)

    def _refresh(self, patience: float = math.inf) -> None:
        """Read what has changed. Records are replaced by renaming, which changes the folder's own time."""
        before = time.time_ns()
        try:
            stamp = self.folder.stat().st_mtime_ns
        except OSError:
            stamp = None
        if stamp is not None and stamp == self._folder_stamp:
            return
        found, whole = self._read_all(time.monotonic() + patience)
        found.sort(key=lambda record: record.at, reverse=True)
        settled = stamp is not None and stamp < before - _SETTLED
        self._folder_stamp, self.is_whole = stamp if whole and settled else None, whole
        if found != self._listed:
            self._listed = found
            # The newest of two with one handle comes last here, and stays.
            self._by_handle = {record.handle: record for record in reversed(found) if record.handle}

    def _read_all(self, until: float) -> tuple[list[LaunchRecord], bool]:
        """Return the records that can be read until a time (`time.monotonic`), and whether these are all."""
        found, whole = [], True
        for path in self._paths():
            if time.monotonic() < until:
                record = self._read(path)
            else:
                _, record = self._cache.get(path.stem, (None, None))
                whole = whole and record is not None
            if record is not None:
                found.append(record)
        return found, whole

    def _path(self, record_id: str) -> Path:
        return self.folder / f"{record_id}.json"

    def _paths(self) -> Iterator[Path]:
        """Yield the records' paths, newest first: their ids begin with the time."""
        try:
            with os.scandir(self.folder) as entries:
                names = [entry.name for entry in entries if entry.name.endswith(".json") and entry.name[0] != "."]
        except FileNotFoundError:
            return
        yield from (self.folder / name for name in sorted(names, reverse=True))

    def _write(self, record: LaunchRecord) -> None:
        write_private(self._path(record.id), _encode(record))

    def _read(self, path: Path) -> LaunchRecord | None:
        """Read one record, or say in `warnings` why it cannot be; unchanged files are not read again."""
        try:
            stat = path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size)
            cached = self._cache.get(path.stem)
            if cached and cached[0] == stamp:
                return cached[1]
            record = _decode(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            if path.name not in self.warnings:
                self.warnings[path.name] = f"{path} cannot be read ({error}): this launch is left out of the history"
                logger.warning(self.warnings[path.name])
            return None
        self._cache[path.stem] = (stamp, record)
        return record


def _new_id(now: float) -> str:
    """Return a record id; ids sort by time, and two launches in one microsecond still differ."""
    second = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return f"{second}-{int(now * 1e6) % 10**6:06d}-{os.urandom(4).hex()}"
