"""Which kinds of jobs a server has."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ...kube.api_server import ApiError, ApiServer
from ...kube.objects import dig, items_of
from ..job_kind import JobKind
from ..jobs import Jobs
from ..volcano.kind import VOLCANO
from .batch import BATCH
from .cron import CRON
from .jobset import JOBSET

KINDS: tuple[JobKind, ...] = (VOLCANO, BATCH, CRON, JOBSET)
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
        self._lock = threading.Lock()

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

    def _ask(self) -> Sequence[Jobs]:
        try:
            groups = self._server.request("GET", "/apis").get("groups")
        except ApiError:
            groups = None
        served = {
            dig(version, "groupVersion")
            for group in (groups if isinstance(groups, list) else [])
            for version in items_of({"items": dig(group, "versions")})
        }
        if not served:
            # A server that does not tell: these are the kinds that are launched.
            return [self._jobs[kind.prefix] for kind in (VOLCANO, BATCH)]
        return [jobs for jobs in self._jobs.values() if f"{jobs.kind.group}/{jobs.kind.version}" in served]
