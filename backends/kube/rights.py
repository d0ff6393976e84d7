"""What this user may do on a server (SelfSubjectAccessReview)."""

from __future__ import annotations

from typing import NamedTuple

from .api_server import ApiError, ApiServer

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


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
