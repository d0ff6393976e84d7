"""One answer for all sessions of a user on a host: it is kept in a file, and one of them asks when it is too old."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import operator
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from ...base.backoff import jittered
from ...base.files import cache_folder, modified_ns, private_folder, read_file, write_private
from ...base.typed_data import convert
from ...base.validation import decode_json
from ...specs.errors import BackendUnavailableError, SchedulerError
from .commands import MAX_BYTES, TIMEOUT_S, clean_environment

logger = logging.getLogger(__name__)

ACTION_S = 30.0
"""Seconds after an action of the user's for which it asks more often."""
CHANGE_S = 60.0
"""Seconds after a changed answer for which it asks at the usual interval."""
_IDLE_FACTOR = 2.5
_LONGEST_S = 120.0
# After a failure it is asked again after twice this time, and twice as long after each further one.
_FAILED_S, _LONGEST_FAILURE_S = 10.0, 60.0
QUICK_ANSWER_S = 0.5
"""Intervals grow in proportion where an answer takes longer than this."""
_LOCK_CHECK_S = 0.05


class Intervals(NamedTuple):
    """How often a question may be asked, by all sessions together.

    Attributes:
        usual: seconds between two questions; while answers stay the same, 2.5 times as long.
        quick: the same for half a minute after an action of this user's.
        least: seconds until an answer from before an action is old.
    """

    usual: float = 10.0
    quick: float = 2.0
    least: float = 0.0


@dataclass(frozen=True)
class Answered:
    """An answer.

    Args:
        text: the output of the last successful command.
        asked_at: when it was asked for, in seconds since the epoch: what happened later is not in it.
        took: how long it took, in seconds.
        error: why the last question failed; empty if it did not.
        failures: how often in a row there was none.
        changed_at: when an answer came that differs from the one before, in seconds since the epoch.
        answered_at: when `text` was asked for, in seconds since the epoch; 0 before the first answer.
    """

    text: str = ""
    asked_at: float = 0.0
    took: float = 0.0
    error: str = ""
    failures: int = 0
    changed_at: float = 0.0
    answered_at: float = 0.0


class ActionTimes:
    """The time of the last event that makes answers old, shared by all sessions on this host.

    Args:
        path: the file that keeps it; its folder is made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._here = 0.0

    def note(self) -> None:
        """Note an event."""
        self._here = time.time()
        with suppress(OSError):
            private_folder(self._path.parent)
            write_private(self._path, repr(self._here).encode(), sync=False)

    def last(self) -> float:
        """Return when the last one was, in seconds since the epoch; 0 for none."""
        try:
            noted = float(read_file(self._path, 64))
        except (OSError, ValueError):
            noted = 0.0
        # A time in the future is of a clock that was set back.
        return max(self._here, noted if noted <= time.time() else 0.0)


class SharedAnswer:
    """The answer to one question; every method may be called from any thread.

    Args:
        path: the file that keeps it; its folder is made.
        ask: asks, within `TIMEOUT_S`.
        intervals: how often it may be asked.
        actions: when the user acted; None for a question that no action makes old.
        is_same: returns whether two answers are equal in all that matters; while they are, it asks less often.
    """

    def __init__(
        self,
        path: Path,
        ask: Callable[[], str],
        intervals: Intervals,
        actions: ActionTimes | None = None,
        is_same: Callable[[str, str], bool] = operator.eq,
    ) -> None:
        self._path = path
        self._ask = ask
        self._intervals = intervals
        self._actions = actions
        self._is_same = is_same
        self._lock = threading.Lock()
        self._known = Answered()
        self._read_ns = 0

    def get(self) -> Answered:
        """Return the answer, asked for anew where it is too old.

        Raises:
            BackendUnavailableError: there is none; the next one is asked for after a growing pause.
        """
        known = self.latest()
        if known.error:
            raise BackendUnavailableError(known.error)
        return known

    def latest(self) -> Answered:
        """Return the current answer. After a failure, return the previous one with the error."""
        with self._lock:
            self._load()
            if not self._is_fresh():
                with self._one_asker():
                    self._load()
                    if not self._is_fresh():
                        self._refresh()
            return self._known

    def kept(self) -> Answered:
        """Return the last answer of all sessions, without asking."""
        with self._lock:
            self._load()
            return self._known

    def _is_fresh(self) -> bool:
        known, now = self._known, time.time()
        return 0 < known.asked_at <= now and now - known.asked_at < self._interval(known, now)

    def _interval(self, known: Answered, now: float) -> float:
        """Return the seconds from the last question to the next one."""
        if known.failures:
            # How long a failure took says nothing: clients give up after a fixed time.
            return min(_LONGEST_FAILURE_S, min(_FAILED_S, self._intervals.usual) * 2.0 ** min(known.failures, 10))
        acted = self._actions.last() if self._actions is not None else 0.0
        if acted > known.asked_at:
            return self._intervals.least
        interval = self._intervals.quick
        if now - acted >= ACTION_S:
            interval = self._intervals.usual * (_IDLE_FACTOR if now - known.changed_at >= CHANGE_S else 1.0)
        return max(interval, min(_LONGEST_S, interval * known.took / QUICK_ANSWER_S))

    def _refresh(self) -> None:
        before, asked_at, began = self._known, time.time(), time.monotonic()
        try:
            text = self._ask()
        except SchedulerError as error:
            known = replace(before, error=str(error), failures=before.failures + 1)
        else:
            is_same = bool(before.asked_at) and self._is_same(before.text, text)
            changed_at = before.changed_at if is_same else asked_at
            known = Answered(text, changed_at=changed_at, answered_at=asked_at)
        self._known = replace(known, asked_at=asked_at, took=time.monotonic() - began)
        self._store()

    def _store(self) -> None:
        import msgspec

        head = msgspec.json.encode(replace(self._known, text=""))
        try:
            private_folder(self._path.parent)
            write_private(self._path, head + b"\n" + self._known.text.encode("utf-8", "replace"), sync=False)
            self._read_ns = modified_ns(str(self._path))
        except OSError as error:
            logger.warning("the answer cannot be kept for other sessions: %s", error)

    def _load(self) -> None:
        """Take the answer of another session if it is newer."""
        changed = modified_ns(str(self._path))
        if changed in (0, self._read_ns):
            return
        self._read_ns = changed
        try:
            head, _, text = read_file(self._path, MAX_BYTES).partition(b"\n")
            found = replace(convert(decode_json(head), Answered), text=text.decode("utf-8", "replace"))
        except (OSError, ValueError) as error:
            logger.warning("%s cannot be read: %s", self._path, error)
            return
        if found.asked_at > self._known.asked_at:
            self._known = found

    @contextmanager
    def _one_asker(self) -> Iterator[None]:
        """Lock out other sessions; continue without the lock if files cannot be locked or it takes too long."""
        with ExitStack() as opened:
            with suppress(OSError):
                private_folder(self._path.parent)
                lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                opened.callback(os.close, lock)
                deadline = time.monotonic() + TIMEOUT_S
                while time.monotonic() < deadline:
                    try:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        time.sleep(jittered(_LOCK_CHECK_S))
            yield


def answers_folder() -> Path:
    """Return the folder of the answers of this host and cluster: homes are shared among hosts."""
    settings = clean_environment().get("SLURM_CONF", "")
    cluster = hashlib.sha256(f"{settings}\0{os.getuid()}".encode()).hexdigest()[:12]
    return cache_folder() / "slurm" / f"{platform.node() or 'localhost'}-{cluster}"
