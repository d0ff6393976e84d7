"""Which kinds of jobs a server has."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ...kube.api_server import ApiError, ApiServer
from ...kube.objects import dig
from ..job_kind import JobKind
from ..jobs import Jobs, Watched
from ..volcano.kind import VOLCANO
from .batch import BATCH
from .cron import CRON
from .jobset import JOBSET
from .training import TRAINING

KINDS: tuple[JobKind, ...] = (VOLCANO, BATCH, CRON, JOBSET, *TRAINING)
"""Every kind of jobs, those that are launched first."""


class ServerKinds:
    """The kinds of jobs on a server; every method may be called from any thread.

    Args:
        server: the server.
    """

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._jobs = {kind.prefix: Jobs(server, kind) for kind in KINDS}
        self._found: Sequence[Jobs] = ()
        self._served: set[str] = set()
        self._lock = threading.Lock()

    def answer_from(self, watched: Watched) -> None:
        """Take snapshots from watches where there are some: they cost no request."""
        for jobs in self._jobs.values():
            jobs.watched = watched

    def of(self, app_id: str) -> Jobs:
        """Return the jobs of the kind that an app id names; Volcano's where it names none."""
        _, *prefix, _ = app_id.split(":") if app_id.count(":") == 2 else ("", "")
        return self._jobs.get("".join(prefix)) or self._jobs[""]

    def find(self) -> Sequence[Jobs]:
        """Return the jobs of each kind that the server has; it is asked once.

        Raises:
            BackendUnavailableError: the server is away.
        """
        with self._lock:
            if not self._found:
                self._found = self._ask()
            return self._found

    def serves(self, version: str) -> bool:
        """Return whether the server has an API group in this version; it is asked once.

        Raises:
            BackendUnavailableError: the server is away.
        """
        self.find()
        return version in self._served

    def _ask(self) -> Sequence[Jobs]:
        try:
            groups = self._server.request("GET", "/apis").get("groups")
        except ApiError:
            groups = None
        versions = [version for group in _list(groups) for version in _list(dig(group, "versions"))]
        self._served = {str(dig(version, "groupVersion")) for version in versions}
        found = [jobs for jobs in self._jobs.values() if f"{jobs.kind.group}/{jobs.kind.version}" in self._served]
        # Without an answer, assume the kinds that are launched.
        return found or [self._jobs[kind.prefix] for kind in (VOLCANO, BATCH)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
