"""What this user may do on a server and can choose from, and what would go wrong with an app before it is launched."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ...logs.text.sanitize import plain
from ...specs.errors import AppDefError, BackendUnavailableError, SchedulerError
from ...specs.handles import normalize_str
from ...specs.roles import AppDef
from ..types import Finding
from ..workspace.scripts import workspace_findings
from .api_server import ApiError, ApiServer
from .jobs import GROUP, VERSION, pods_path, tasks_of
from .kubeconfig import read_contexts
from .lifecycle import describe_missing_account, describe_too_large, explain_refusal, has_account
from .request.manifest import app_to_resource
from .request.pods import node_labels
from .request.request import KubernetesOpts
from .shapes import KubernetesObject

# A pod of Volcano's controller, as its own installation labels it.
_CONTROLLER = ("volcano-system", "app=volcano-controller")
# Rights are asked for again after so many seconds: they change seldom.
_RIGHTS_SECONDS = 300.0
# Where the objects are that an option names; more than so many are no help to choose from.
_CHOICE_PATHS = {
    "namespace": "/api/v1/namespaces",
    "queue": "/apis/scheduling.volcano.sh/v1beta1/queues",
    "service_account": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "priority_class": "/apis/scheduling.k8s.io/v1/priorityclasses",
}
_MOST_CHOICES = 200
_MOST_QUEUES = 20


# Seconds: a form waits for it.
_TIMEOUT_S = 5.0
# Bytes that etcd takes of one object, unless it is told to take more.
_LARGEST = 1_500_000
_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


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
# A websocket is opened with GET; from 1.35 on "create" is checked as well.
SHELL = Right("get", "pods", "", "exec")
SHELL_1_35 = Right("create", "pods", "", "exec")

# What each is needed for, in the order in which it is told.
_NEEDED = {
    LIST: "jobs are not shown",
    PODS: "replicas are not shown",
    LOGS: "logs are not shown",
    LAUNCH: "nothing can be launched",
    CANCEL: "nothing can be cancelled",
    DELETE: "nothing can be deleted",
    SHELL: "no shell can be opened",
    SHELL_1_35: "no shell can be opened",
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

    def known_missing(self, *rights: Right) -> bool:
        """Return whether the server has said that one of these is not allowed; nothing is asked."""
        with self._lock:
            return not all(self._known.get(right, (True, 0.0))[0] for right in rights)

    def refused(self, right: Right, namespace: str) -> None:
        """Remember that the server refused something, unless that was in another namespace than ours."""
        if namespace == self._namespace:
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

    def missing(self, version: tuple[int, int]) -> dict[Right, str]:
        """List what is not allowed on a server of this version, and what does not work without it."""
        needed = {right: words for right, words in _NEEDED.items() if right != SHELL_1_35 or version >= (1, 35)}
        return {right: words for right, words in needed.items() if not self.allows(right)}


def server_findings(server: ApiServer, namespace: str, rights: Rights) -> list[Finding]:
    """Check a server: its version, Volcano, the namespace, rights; or why it cannot be used.

    Args:
        server: the server.
        namespace: the namespace that is watched; all of them where empty.
        rights: what this user may do.
    """
    try:
        answer = server.request("GET", "/version")
        version = plain(str(answer.get("gitVersion") or "?"))
        where = f", context {plain(server.context)}" if server.context else ""
        return [
            Finding("ok", f"Kubernetes {version} at {server.host}{where}"),
            *_volcano(server),
            *_namespace(server, namespace),
            *(
                Finding("warning", f"you may not {right}: {words}", "ask the cluster's administrator for this right")
                for right, words in rights.missing(_version_of(answer)).items()
            ),
        ]
    except SchedulerError as error:
        return [Finding("error", str(error))]


def _version_of(answer: Mapping[str, Any]) -> tuple[int, int]:
    """Return the version of a server as numbers; (0, 0) if it cannot be read. Some clouds write the minor as 33+."""
    found = re.match(r"v?(\d+)\.(\d+)", str(answer.get("gitVersion") or ""))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _volcano(server: ApiServer) -> list[Finding]:
    try:
        server.request("GET", f"/apis/{GROUP}/{VERSION}")
    except ApiError as error:
        if error.status == 404:
            return [
                Finding("error", "Volcano is not installed: the server knows no jobs.batch.volcano.sh",
                        "install it: https://volcano.sh/docs/installation")
            ]  # fmt: skip
        return [Finding("warning", f"whether Volcano is installed cannot be checked: {error}")]
    findings = [Finding("ok", f"Volcano's jobs, {_queues(server)}")]
    namespace, selector = _CONTROLLER
    try:
        pods = server.request("GET", f"/api/v1/namespaces/{namespace}/pods", params={"labelSelector": selector})
    except ApiError:
        return findings
    items = pods.get("items") or []
    if items and not any((pod.get("status") or {}).get("phase") == "Running" for pod in items):
        findings.append(Finding("warning", "Volcano's controller is not running: jobs stay as they are",
                             f"`kubectl -n {namespace} get pods` shows why"))  # fmt: skip
    return findings


def _queues(server: ApiServer) -> str:
    try:
        items = server.request("GET", _QUEUES, params={"limit": _MOST_QUEUES}).get("items") or []
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
        for option, path in _CHOICE_PATHS.items():
            if names := _list_names(server, path.format(namespace=server.namespace)):
                values[option] = names
    except (SchedulerError, ValueError):
        return values
    return values


def _list_names(server: ApiServer, path: str) -> list[str]:
    try:
        items = server.request("GET", path, params={"limit": _MOST_CHOICES}).get("items") or []
    except ApiError:
        return []
    return [name for item in items if plain(name := str(item["metadata"]["name"])) == name]


def launch_findings(server: ApiServer, app: AppDef, opts: KubernetesOpts, image_repo: str = "") -> list[Finding]:
    """List the faults that a launch would have; what this user may not look at is passed over.

    Args:
        server: the server.
        app: the app.
        opts: the run options.
        image_repo: the repository that images which are built from workspaces are pushed to.
    """
    findings = [*_images(app, image_repo), *_names(app)]
    findings += [finding for role in app.roles for finding in workspace_findings(role)]
    try:
        findings += _place(server, opts)
        if any(known.level == "error" for known in findings):
            return findings
        findings += _nodes(server, app)
        findings += _pods(server, app, opts)
    except BackendUnavailableError as error:
        what, _, hint = str(error).partition(": ")
        findings.append(Finding("error", what, hint))
    except AppDefError as error:
        findings.append(Finding("error", str(error)))
    return findings


def _images(app: AppDef, image_repo: str | None) -> Iterator[Finding]:
    if image_repo:
        return
    hint = "set image_repo to a repository that it can be pushed to, and that nodes can pull from"
    for role in app.roles:
        if role.workspace:
            yield Finding("error", f"{role.name}: an image is built from its workspace, but nodes cannot pull it", hint)
        elif role.image.startswith("sha256:"):
            yield Finding("error", f"{role.name}: only the local Docker engine has its image {role.image:.19}", hint)


def _names(app: AppDef) -> Iterator[Finding]:
    if normalize_str(app.name)[:1].isdigit():
        yield Finding(
            "warning",
            f"the job's name begins with a digit, as {app.name} does",
            "Volcano makes a Service of the same name, which servers before Kubernetes 1.34 refuse: the job would hang",
        )


def _place(server: ApiServer, opts: KubernetesOpts) -> Iterator[Finding]:
    """Yield what is missing of the cluster: Volcano, the namespace, the queue, the right to launch, and the like."""
    if _get(server, f"/apis/{GROUP}/{VERSION}") is None:
        yield Finding(
            "error", "the cluster has no Volcano, which runs the jobs", "see https://volcano.sh to install it"
        )
        return
    namespace = opts.namespace
    if _get(server, f"/api/v1/namespaces/{namespace}") is None:
        yield Finding(
            "error", f"there is no namespace {namespace}", f"choose another, or `kubectl create namespace {namespace}`"
        )
        return
    if not _may_create(server, namespace):
        yield Finding(
            "error",
            f"you may not create jobs.{GROUP} in namespace {namespace}",
            "ask the cluster's administrator for this right, or choose another namespace",
        )
    yield from _queue(server, opts.queue)
    if (
        opts.priority_class
        and _get(server, f"/apis/scheduling.k8s.io/v1/priorityclasses/{opts.priority_class}") is None
    ):
        yield Finding(
            "error", f"there is no priority class {opts.priority_class}", "`kubectl get priorityclasses` lists them"
        )
    account = opts.service_account
    if account and not has_account(server, namespace, account):
        what, _, hint = describe_missing_account(account, namespace).partition(": ")
        yield Finding("error", what, hint)


def _queue(server: ApiServer, queue: str) -> Iterator[Finding]:
    answer = _get(server, f"{_QUEUES}/{queue}")
    if answer is None:
        yield Finding(
            "warning",
            f"there is no queue {queue}",
            "Volcano would ignore the job without a message: `kubectl get queues` lists them",
        )
    elif (state := (answer.get("status") or {}).get("state") or "Open") in ("Closed", "Closing"):
        yield Finding(
            "warning", f"the queue {queue} is {state.lower()}", "choose another one, or wait until it is open"
        )


def _nodes(server: ApiServer, app: AppDef) -> Iterator[Finding]:
    for role in app.roles:
        if wanted := ",".join(f"{key}={value}" for key, value in node_labels(role).items()):
            answer = _get(server, "/api/v1/nodes", labelSelector=wanted, limit=1)
            if answer is not None and answer.get("items") == []:
                yield Finding(
                    "warning",
                    f"{role.name}: no node has the labels {wanted}",
                    "it waits until there is one: correct its capabilities, unless nodes are made when they are needed",
                )


def _pods(server: ApiServer, app: AppDef, opts: KubernetesOpts) -> Iterator[Finding]:
    """Yield what the server has against the pods, of which it is asked about the first of each role."""
    job = app_to_resource(
        app,
        opts.queue,
        opts.service_account,
        opts.priority_class,
        reserved_millicpu=opts.reserved_millicpu,
        reserved_memmb=opts.reserved_memmb,
        efa_device_count=opts.efa_device_count,
    )
    if len(json.dumps(job)) > _LARGEST:
        yield Finding("error", describe_too_large(job))
        return
    tasks, place = tasks_of(job), 0
    for role in app.roles:
        task = tasks[place]
        place += role.num_replicas
        template = task["template"]
        metadata = {**template["metadata"], "name": f"{job['metadata']['name']}-{task['name']}-0"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        try:
            server.request("POST", pods_path(opts.namespace), params={"dryRun": "All"}, body=pod, timeout=_TIMEOUT_S)
        except ApiError as error:
            # Volcano makes the pods: this user need not be allowed to.
            if error.status == 403 and str(error).startswith("not allowed:"):
                return
            level = "warning" if "quota" in str(error) else "error"
            yield Finding(level, f"{role.name}: {explain_refusal(error, opts.namespace, job)}")


def _may_create(server: ApiServer, namespace: str) -> bool:
    asked: KubernetesObject = {"namespace": namespace, "verb": "create", "group": GROUP, "resource": "jobs"}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    body_spec: dict[str, Any] = {**body, "spec": {"resourceAttributes": asked}}
    try:
        answer = server.request("POST", _REVIEWS, body=body_spec, timeout=_TIMEOUT_S)
    except ApiError:
        return True
    return bool((answer.get("status") or {}).get("allowed", True))


def _get(server: ApiServer, path: str, **params: Any) -> KubernetesObject | None:
    """Return an object, None where there is none; an empty one where this user may not look."""
    try:
        return server.request("GET", path, params=params or None, timeout=_TIMEOUT_S)
    except ApiError as error:
        return None if error.status == 404 else {}
