"""The threads that read what jobs do: one for each job, shared by all screens that show it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...diagnosis.progress.activity import Activity, JobPlace, job_place
from ...diagnosis.progress.reader import ActivityReader, measure_cores
from ..messages import ActivityRead
from .progress import new_tracker

if TYPE_CHECKING:
    from ...backends.api import DescribeAppResponse
    from ...backends.runner import Runner
    from ...logs.source.replica_log import ReplicaLog
    from ...settings.config import MetricsSettings
    from .poller import Post


class Activities:
    """Reads what some jobs do, while a screen or a widget follows them.

    All methods are called on the event loop, except `latest`.

    Args:
        runner: the door to the backends.
        post: posts an `ActivityRead` to the app, from any thread.
        settings: the table ``[metrics]``.
        now: the clock, in seconds since the epoch.
    """

    def __init__(self, runner: Runner, post: Post, settings: MetricsSettings, now: Callable[[], float]) -> None:
        self._runner = runner
        self._post = post
        self._settings = settings
        self._now = now
        self._readers: dict[str, ActivityReader] = {}
        self._followers: dict[str, set[object]] = {}

    def follow(
        self, follower: object, handle: str, described: DescribeAppResponse | None, logs: Sequence[ReplicaLog]
    ) -> None:
        """Read a job until its last follower leaves it; the same logs again change nothing.

        Args:
            follower: what shows the job.
            handle: the job.
            described: its description; without one, the series that were kept of it are read.
            logs: the logs of its replicas.
        """
        self._followers.setdefault(handle, set()).add(follower)
        reader = self._readers.get(handle)
        if reader is not None and (described is None or reader.logs == tuple(logs)):
            reader.is_final = reader.is_final if described is None else described.has_ended
            return
        if reader is not None:
            reader.close()
        reader = self._readers[handle] = ActivityReader(
            handle,
            logs,
            partial(job_place, self._runner, handle, described) if described else JobPlace,
            lambda: self._post(ActivityRead(handle)),
            new_tracker(self._settings),
            self._now,
            partial(measure_cores, self._runner, handle),
        )
        reader.is_final = described is None or described.has_ended
        reader.start()

    def leave(self, follower: object, keep: str = "") -> None:
        """Remove a follower of all jobs but one."""
        for handle, followers in list(self._followers.items()):
            if handle != keep:
                followers.discard(follower)
            if not followers:
                del self._followers[handle]
                self._readers.pop(handle).close()

    def latest(self, handle: str) -> Activity | None:
        """Return the last activity that was read of a job; None if nobody follows it."""
        reader = self._readers.get(handle)
        if reader is None:
            return None
        reader.acknowledge()
        return reader.latest

    def note_cores(self, handle: str, cores: Sequence[float]) -> None:
        """Take over how many processor cores each replica of a job uses."""
        if (reader := self._readers.get(handle)) is not None:
            reader.cpu.note(cores, self._now())

    def end(self) -> None:
        """End all threads without waiting for them."""
        for reader in self._readers.values():
            reader.close()
