"""Jobs that are described again and again: what was read of a job is used until a watch reports a change.

A description takes two requests or more (see `describe`). The watch that keeps the list reports changes of the job
itself. While the job is looked at, its pods are watched as well, and the events of its namespace where they may say
why it waits: an API server selects the events of one object only, and a job, its group and its pods are many. A job
that does not change then costs no request. Where there is no watch, it is read anew each time.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from ...specs.errors import SchedulerError
from ...specs.status import is_terminal
from ..types import DescribeAppResponse
from .api_server import ApiError, ApiServer
from .describe import JobFacts, by_object, describe_facts, is_overdue, look
from .jobs import events_path, owners_of, pods_path, pods_selector
from .listing import uid_of
from .phases import app_state
from .shapes import KubernetesObject, checked_event, checked_pod
from .watching import ObjectWatch

_log = logging.getLogger(__name__)

# Jobs of which the last look is kept, the latest; each has at most two watches.
_MOST_KEPT = 3
# What was read is watched on from where it was read, when the job is described again within so many seconds.
_SOON_S = 15.0
# After a watch failed, or was refused, so many seconds pass before another; meanwhile a look holds for a shorter time.
_RETRY_S, _UNWATCHED_S = 30.0, 3.0
# Events of one job that are kept, the latest.
_MOST_EVENTS = 500
# Events of every start that tell of no cause: the server leaves them out.
_NO_CAUSE = ("Pulling", "Pulled", "Created", "Started", "Killing", "SuccessfulCreate")


class FollowedJob:
    """What was last read of a job, and whether that still holds.

    Args:
        server: the server.
        facts: what was read.
        now: when, in seconds since the epoch.
    """

    def __init__(self, server: ApiServer, facts: JobFacts, now: float) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._facts = facts
        self._read_at = now
        self._events = {_event_key(event): event for events in facts.events.values() for event in events}
        self._has_new_events = False
        self._changed = False
        self._watches: dict[str, ObjectWatch] = {}
        self._is_closed = False
        self.failed_at = 0.0
        """When a watch failed, in seconds since the epoch; 0 where none did."""

    @property
    def uid(self) -> str:
        """Which job of its name it is."""
        return uid_of(self._facts.job)

    @property
    def is_followed(self) -> bool:
        """Whether its watches go on."""
        with self._lock:
            return "pods" in self._watches and not self._is_closed

    def facts(self) -> JobFacts:
        """Return the facts that were read, with the events that have come since."""
        with self._lock:
            if self._has_new_events:
                self._has_new_events = False
                self._facts = self._facts._replace(events=by_object(self._events.values()))
            return self._facts

    def known_events(self) -> list[KubernetesObject] | None:
        """Return the job's events where a watch keeps them; None where they have to be asked for."""
        with self._lock:
            return list(self._events.values()) if "events" in self._watches else None

    def holds(self, version: str, now: float) -> bool:
        """Tell whether what was read is what the server would answer now.

        Args:
            version: the job's version by the watch of the list; empty where none holds.
            now: the time, in seconds since the epoch.
        """
        facts = self._facts
        if not version or version != facts.job["metadata"].get("resourceVersion") or self._changed:
            return False
        # Whether its queue is there is asked once the job is overdue.
        if is_overdue(facts.job, now) and not is_overdue(facts.job, self._read_at):
            return False
        age = now - self._read_at
        if self.failed_at:
            return age < _UNWATCHED_S
        return self.is_followed or age < _SOON_S

    def begin_look(self) -> None:
        """Say that the job is read anew: what changes from now on is not in it."""
        self._changed = False

    def take(self, facts: JobFacts, now: float) -> None:
        """Take what was read anew."""
        with self._lock:
            for events in facts.events.values():
                for event in events:
                    self._events.setdefault(_event_key(event), event)
            self._facts, self._read_at, self._has_new_events = facts, now, True

    def follow(self) -> None:
        """Watch the pods, and the events where they were asked for, from where they were read on."""
        metadata = self._facts.job["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        selected = {"labelSelector": pods_selector(name)}
        self._begin("pods", pods_path(namespace), selected, self._facts.pods_version, self._take_pod)
        telling = {"fieldSelector": ",".join(f"reason!={reason}" for reason in _NO_CAUSE)}
        self._begin("events", events_path(namespace), telling, self._facts.events_version, self._take_event)

    def close(self) -> None:
        """End the watches; not waited for."""
        with self._lock:
            self._is_closed = True
            watches = list(self._watches.values())
        for watch in watches:
            watch.shut()

    def _begin(self, name: str, path: str, params: dict[str, str], version: str, take: Callable[[Any], None]) -> None:
        with self._lock:
            if not version or name in self._watches or self._is_closed or self.failed_at:
                return
            watch = self._watches[name] = ObjectWatch(self._server, path, params)
        threading.Thread(
            target=self._watch, args=(watch, version, take), name=f"kubernetes-{name}", daemon=True
        ).start()

    def _watch(self, watch: ObjectWatch, version: str, take: Callable[[Any], None]) -> None:
        """Watch until the server ends it, or it fails; then the job is read anew, and watched from there."""
        try:
            watch.open(version)
            for kind, item in watch.events():
                if kind != "BOOKMARK":
                    take(item)
        except (SchedulerError, OSError, ValueError, RecursionError) as error:
            _log.debug("the watch of %s broke off: %s", self._facts.job["metadata"]["name"], error)
            # 410: the version was too old, that of the next look is not.
            if not (isinstance(error, ApiError) and error.status == 410):
                self.failed_at = time.time()
        except Exception:
            _log.exception("the watch of %s ended", self._facts.job["metadata"]["name"])
            self.failed_at = time.time()
        finally:
            watch.close()
            self._changed = True
            self.close()

    def _take_pod(self, item: Any) -> None:
        pod = checked_pod(item)
        if pod is None or self.uid in owners_of(pod):
            self._changed = True

    def _take_event(self, item: Any) -> None:
        event = checked_event(item)
        about = str(((event or {}).get("involvedObject") or {}).get("name") or "")
        name = self._facts.job["metadata"]["name"]
        if event is None or not (about == name or about.startswith(f"{name}-")):
            return
        with self._lock:
            # The server drops events after an hour; what they tell may hold for longer.
            self._events.pop(_event_key(event), None)
            self._events[_event_key(event)] = event
            while len(self._events) > _MOST_EVENTS:
                del self._events[next(iter(self._events))]
            self._has_new_events = True


class JobLooks:
    """Describes jobs; every method may be called from any thread.

    Args:
        server: the server.
        version_of: returns the version of a job by the watch of the list; empty where none holds.
    """

    def __init__(self, server: ApiServer, version_of: Callable[[str], str]) -> None:
        self._server = server
        self._version_of = version_of
        self._jobs: dict[str, FollowedJob] = {}
        self._failed_at = 0.0
        self._lock = threading.Lock()

    def describe(self, app_id: str) -> tuple[KubernetesObject, DescribeAppResponse] | None:
        """Return a job and everything about it, None when there is no such job; see `look`.

        Raises:
            SchedulerError: the server did not answer.
        """
        now = time.time()
        with self._lock:
            job = self._jobs.get(app_id)
        if job is not None and job.holds(self._version_of(app_id), now):
            if now - self._failed_at > _RETRY_S:
                job.follow()
        else:
            job = self._read(app_id, job, now)
            if job is None:
                return None
        facts = job.facts()
        return facts.job, describe_facts(self._server, facts, now)

    def forget(self, app_id: str) -> None:
        """Read a job anew when it is described next, as it is about to be changed by us."""
        with self._lock:
            job = self._jobs.pop(app_id, None)
        if job is not None:
            job.close()

    def close(self) -> None:
        """End all watches."""
        with self._lock:
            jobs, self._jobs = list(self._jobs.values()), {}
        for job in jobs:
            job.close()

    def _read(self, app_id: str, job: FollowedJob | None, now: float) -> FollowedJob | None:
        """Read a job, and keep it for the next time."""
        if job is not None and job.is_followed:
            job.begin_look()
        else:
            if job is not None and job.failed_at:
                self._failed_at = max(self._failed_at, job.failed_at)
            self.forget(app_id)
            job = None
        facts = look(self._server, app_id, now, None if job is None else job.known_events())
        if facts is None:
            self.forget(app_id)
            return None
        if job is not None and job.uid == uid_of(facts.job):
            job.take(facts, now)
        else:
            job = FollowedJob(self._server, facts, now)
            job.failed_at = self._failed_at if now - self._failed_at < _RETRY_S else 0.0
        self._keep(app_id, job, is_over=is_terminal(app_state(facts.job)))
        return job

    def _keep(self, app_id: str, job: FollowedJob, *, is_over: bool) -> None:
        with self._lock:
            before = self._jobs.pop(app_id, None)
            dropped = [before] if before is not None and before is not job else []
            if is_over:
                # Nothing of it changes but its pods, which go.
                dropped.append(job)
            else:
                self._jobs[app_id] = job
            while len(self._jobs) > _MOST_KEPT:
                dropped.append(self._jobs.pop(next(iter(self._jobs))))
        for old in dropped:
            old.close()


def _event_key(event: KubernetesObject) -> str:
    metadata = event.get("metadata") or {}
    return str(metadata.get("uid") or id(event))
