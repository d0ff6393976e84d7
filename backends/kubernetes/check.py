"""What can be done on a server: whether it is there, whether Volcano is, what this user may do and can choose from."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from ...logs.text.sanitize import plain
from ...specs import SchedulerError
from ..types import Finding
from .api_server import ApiError, ApiServer
from .contexts import read_contexts
from .jobs import GROUP, VERSION

_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
# A pod of Volcano's controller, as its own installation labels it.
_CONTROLLER = ("volcano-system", "app=volcano-controller")
# Rights are asked for again after so many seconds: they change seldom.
_RIGHTS_SECONDS = 300.0
# Where the objects are that an option names; more than so many are no help to choose from.
_PLACES = {
    "namespace": "/api/v1/namespaces",
    "queue": "/apis/scheduling.volcano.sh/v1beta1/queues",
    "service_account": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "priority_class": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
_MOST = 200


class Right(NamedTuple):
    """Something that a user may or may not do."""

    verb: str
    resource: str
    group: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        name = ".".join(part for part in (self.resource, self.group) if part)
        return f"{self.verb} {name}{f'/{self.subresource}' if self.subresource else ''}"


LIST = Right("list", "jobs", GROUP)
LAUNCH = Right("create", "jobs", GROUP)
CANCEL = Right("update", "jobs", GROUP, "status")
DELETE = Right("delete", "jobs", GROUP)
PODS = Right("list", "pods")
LOGS = Right("get", "pods", "", "log")
# Over a websocket, which is opened with GET.
SHELL = Right("get", "pods", "", "exec")

# What each is needed for, in the order in which it is told.
_NEEDED = {
    LIST: "jobs are not shown",
    PODS: "replicas are not shown",
    LOGS: "logs are not shown",
    LAUNCH: "nothing can be launched",
    CANCEL: "nothing can be cancelled",
    DELETE: "nothing can be deleted",
    SHELL: "no shell can be opened",
}


class Rights:
    """What this user may do in a namespace, asked of the server and remembered for some minutes.

    Args:
        server: the server.
        namespace: the namespace; the whole cluster where empty.
    """

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server = server
        self._namespace = namespace
        self._known: dict[Right, tuple[bool, float]] = {}
        self._lock = threading.Lock()

    def known_missing(self, right: Right) -> bool:
        """Tell whether the server has said that this is not allowed; nothing is asked."""
        with self._lock:
            return not self._known.get(right, (True, 0.0))[0]

    def refused(self, right: Right) -> None:
        """Take note that the server refused it."""
        with self._lock:
            self._known[right] = False, time.monotonic()

    def allows(self, right: Right) -> bool:
        """Return whether the server allows it (SelfSubjectAccessReview); what it does not tell counts as allowed.

        Raises:
            BackendUnavailableError: the server is away.
        """
        with self._lock:
            allowed, asked_at = self._known.get(right, (True, 0.0))
        if asked_at and time.monotonic() - asked_at < _RIGHTS_SECONDS:
            return allowed
        attributes = {"verb": right.verb, "resource": right.resource, "group": right.group,
                      "subresource": right.subresource, "namespace": self._namespace}  # fmt: skip
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
        }
        try:
            answer = self._server.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=body)
        except ApiError:
            return True
        allowed = bool((answer.get("status") or {}).get("allowed", True))
        with self._lock:
            self._known[right] = allowed, time.monotonic()
        return allowed

    def missing(self) -> dict[Right, str]:
        """List what is not allowed, and what does not work without it."""
        return {right: words for right, words in _NEEDED.items() if not self.allows(right)}


def server_findings(server: ApiServer, namespace: str, rights: Rights) -> list[Finding]:
    """Check a server: its version, Volcano, the namespace, rights; or why it cannot be used.

    Args:
        server: the server.
        namespace: the namespace that is watched; all of them where empty.
        rights: what this user may do.
    """
    try:
        version = plain(str(server.request("GET", "/version").get("gitVersion") or "?"))
        where = f", context {plain(server.context)}" if server.context else ""
        return [
            Finding("ok", f"Kubernetes {version} at {server.host}{where}"),
            *_volcano(server),
            *_namespace(server, namespace),
            *(
                Finding("warning", f"you may not {right}: {words}", "ask who runs the cluster for a role that has it")
                for right, words in rights.missing().items()
            ),
        ]
    except SchedulerError as error:
        return [Finding("error", str(error))]


def _volcano(server: ApiServer) -> list[Finding]:
    try:
        server.request("GET", f"/apis/{GROUP}/{VERSION}")
    except ApiError as error:
        if error.status == 404:
            return [
                Finding("error", "Volcano is not installed: the server knows no jobs.batch.volcano.sh",
                        "install it: https://volcano.sh/docs/installation")
            ]  # fmt: skip
        return [Finding("warning", f"whether Volcano is installed cannot be told: {error}")]
    findings = [Finding("ok", f"Volcano's jobs, {_queues(server)}")]
    namespace, selector = _CONTROLLER
    try:
        pods = server.request("GET", f"/api/v1/namespaces/{namespace}/pods", params={"labelSelector": selector})
    except ApiError:
        return findings
    items = pods.get("items") or []
    if items and not any((pod.get("status") or {}).get("phase") == "Running" for pod in items):
        findings.append(Finding("warning", "Volcano's controller does not run: jobs stay as they are",
                             f"`kubectl -n {namespace} get pods` shows why"))  # fmt: skip
    return findings


def _queues(server: ApiServer) -> str:
    try:
        items = server.request("GET", _QUEUES, params={"limit": 20}).get("items") or []
    except ApiError:
        return "queues not readable"
    names = [plain(str(item["metadata"]["name"])) for item in items]
    return f"queues {', '.join(names)}" if names else "no queue"


def _namespace(server: ApiServer, namespace: str) -> list[Finding]:
    if not namespace:
        return []
    try:
        server.request("GET", f"/api/v1/namespaces/{namespace}")
    except ApiError as error:
        if error.status == 404:
            return [Finding("error", f"there is no namespace {plain(namespace)}", "choose another one")]
    return []


def known_values(server: ApiServer) -> dict[str, list[str]]:
    """List the values that run options can have; none of what cannot be listed.

    Args:
        server: the server.
    """
    values: dict[str, list[str]] = {}
    try:
        values["context"] = list(read_contexts().names)
        for option, path in _PLACES.items():
            if names := _names(server, path.format(namespace=server.namespace)):
                values[option] = names
    except (SchedulerError, ValueError):
        return values
    return values


def _names(server: ApiServer, path: str) -> list[str]:
    try:
        items = server.request("GET", path, params={"limit": _MOST}).get("items") or []
    except ApiError:
        return []
    return [name for item in items if plain(name := str(item["metadata"]["name"])) == name]
