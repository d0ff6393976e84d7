"""What this user may do on a server (SelfSubjectAccessReview)."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from .api_server import ApiError, ApiServer

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
# Rights change seldom.
_KEPT_S = 300.0


class Right(NamedTuple):
    """Something that a user may or may not do."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        name = ".".join(part for part in (self.resource, self.group) if part)
        return f"{self.verb} {name}{f'/{self.subresource}' if self.subresource else ''}"


PODS = Right("list", "pods")
LOGS = Right("get", "pods", "", "log")
# A websocket is opened with GET; from 1.35 on "create" is checked as well.
EXEC = Right("get", "pods", "", "exec")
EXEC_1_35 = Right("create", "pods", "", "exec")


def may(server: ApiServer, right: Right, namespace: str, timeout: float | None = None) -> bool:
    """Ask whether a right is granted; a server that does not tell counts as granting it.

    Args:
        server: the server.
        right: the right.
        namespace: where; the whole cluster if empty.
        timeout: see `ApiServer.request`.

    Raises:
        BackendUnavailableError: the server is away.
    """
    attributes = {**right._asdict(), "namespace": namespace}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
    }
    try:
        answer = server.request("POST", _PATH, body=body, timeout=timeout)
    except ApiError:
        return True
    return bool((answer.get("status") or {}).get("allowed", True))


class Rights:
    """What this user may do in a namespace, remembered for five minutes.

    Args:
        server: the server.
        namespace: the namespace; the whole cluster if empty.
    """

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server = server
        self._namespace = namespace
        self._known: dict[Right, tuple[bool, float]] = {}
        self._lock = threading.Lock()

    def known_missing(self, *rights: Right) -> bool:
        """Return whether the server has said that one of these is not allowed; nothing is asked."""
        with self._lock:
            return not all(self._known.get(right, (True, 0.0))[0] for right in rights)

    def refused(self, right: Right, namespace: str) -> None:
        """Remember that the server refused something, unless that was in another namespace than ours."""
        if namespace == self._namespace:
            self._remember(right, False)

    def allows(self, right: Right) -> bool:
        """Return whether the server allows something. Raises as `may`."""
        with self._lock:
            allowed, asked_at = self._known.get(right, (True, 0.0))
        if not asked_at or time.monotonic() - asked_at >= _KEPT_S:
            allowed = may(self._server, right, self._namespace)
            self._remember(right, allowed)
        return allowed

    def _remember(self, right: Right, allowed: bool) -> None:
        with self._lock:
            self._known[right] = allowed, time.monotonic()
