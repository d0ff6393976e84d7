"""The threads that read what jobs do, for the screens that show it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from ...base.errors import describe_error
from ...diagnosis.progress.activity import Activity, JobPlace, job_place
from ...diagnosis.progress.reader import ActivityReader
from ..ui.theme import now_of

if TYPE_CHECKING:
    from ...backends.api import DescribeAppResponse
    from ...backends.runner import Runner
    from ...logs.source.replica_log import ReplicaLog
    from ...settings.config import MetricsSettings

_log = logging.getLogger(__name__)


@dataclass
class ActivityChanged(Message, bubble=False):
    """What a job is doing was looked at again."""

    handle: str


@dataclass
class ActivityFailed(Message, bubble=False):
    """What a job is doing cannot be read."""

    handle: str
    reason: str


class ActivityReaders:
    """Reads what some jobs do, each in a thread of its own, until it is closed.

    Args:
        target: who is told, by `ActivityChanged`.
        runner: the door to the backends.
        settings: the table ``[metrics]``.
    """

    def __init__(self, target: MessagePump, runner: Runner, settings: MetricsSettings) -> None:
        self._target = target
        self._runner = runner
        self._settings = settings
        # That of the app: a thread may ask for the time when its screen is left.
        self._now = partial(now_of, target.app)
        self._readers: dict[str, ActivityReader] = {}
        self._lock = threading.Lock()
        self._closed = False

    def look_up(self, handle: str) -> None:
        """Ask the backend for a job, and read what it does; the series of the last time, where it knows none."""

        def work() -> None:

            try:
                described = self._runner.job(handle).describe()
                logs = self._runner.job(handle).replica_logs(described) if described else []
            except Exception as error:
                _log.warning("what %s is doing cannot be read", handle, exc_info=True)
                self._post(ActivityFailed(handle, describe_error(error)))
                return
            self.follow(handle, described, logs)

        threading.Thread(target=work, name="look-up-job", daemon=True).start()

    def follow(self, handle: str, described: DescribeAppResponse | None, logs: Sequence[ReplicaLog]) -> None:
        """Read what a described job does; the same logs again change nothing."""
        is_final = described is None or described.has_ended
        with self._lock:
            reader = self._readers.get(handle)
            if self._closed or (reader is not None and reader.logs == tuple(logs)):
                if reader is not None:
                    reader.is_final = is_final
                return
            place = partial(job_place, self._runner, handle, described) if described else JobPlace
            settings = self._settings
            names = (settings.denied, settings.names, settings.patterns)
            new = ActivityReader(handle, logs, place, self._tell(handle), *names, self._now)
            new.is_final = is_final
            self._readers[handle] = new
        if reader is not None:
            reader.close()
        new.start()

    def latest(self, handle: str) -> Activity:
        """Return the last activity that was read of a job."""
        reader = self._readers.get(handle)
        if reader is None:
            return Activity()
        reader.acknowledge()
        return reader.latest

    def keep_only(self, handle: str) -> None:
        """Stop reading all jobs but one."""
        with self._lock:
            for other in self._readers.keys() - {handle}:
                self._readers.pop(other).close()

    def note_cores(self, handle: str, cores: Sequence[float]) -> None:
        """Take over how many processor cores each replica of a job uses."""
        reader = self._readers.get(handle)
        if reader is not None:
            reader.cores = tuple(cores)

    def close(self) -> None:
        """End all threads; none is waited for."""
        with self._lock:
            self._closed = True
            for reader in self._readers.values():
                reader.close()

    def _tell(self, handle: str) -> Callable[[], None]:
        return lambda: self._post(ActivityChanged(handle))

    def _post(self, message: Message) -> None:
        # The loop may be gone already when the app ends.
        with suppress(RuntimeError):
            self._target.post_message(message)
