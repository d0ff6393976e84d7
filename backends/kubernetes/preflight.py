"""What would go wrong with an app before it is launched, what is wrong with a server, and what options can be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...logs.text.sanitize import plain
from ...specs.errors import AppDefError, BackendUnavailableError, SchedulerError
from ...specs.roles import AppDef
from ..kube.api_server import ApiError, ApiServer
from ..kube.kubeconfig import read_contexts
from ..kube.objects import name_of, pods_path
from ..kube.pod_template import node_labels
from ..kube.rights import EXEC, EXEC_1_35, LOGS, PODS, Right, may
from ..types import Finding
from ..workspace.scripts import workspace_findings
from .job_kind import JobKind
from .launching.batch import LOCAL_QUEUES
from .launching.form import LaunchForm, pod_templates, role_of
from .lifecycle import describe_too_large, explain_refusal
from .request import KubernetesOpts

# The objects that an option names; more are no help to choose from.
_CHOICE_PATHS = (
    ("namespace", "/api/v1/namespaces"),
    ("queue", "/apis/scheduling.volcano.sh/v1beta1/queues"),
    *(("queue", path) for path in LOCAL_QUEUES),
    ("service_account", "/api/v1/namespaces/{namespace}/serviceaccounts"),
    ("priority_class", "/apis/scheduling.k8s.io/v1/priorityclasses"),
)
_MAX_CHOICES = 200
# Seconds: a form waits for it.
_TIMEOUT_S = 5.0
# Bytes that etcd takes of one object by default.
_MAX_BYTES = 1_500_000


def cancel_right(kind: JobKind) -> Right:
    """Return the right to cancel jobs of a kind."""
    return Right("update", kind.resource, kind.group, kind.cancel_at.lstrip("/"))


def delete_right(kind: JobKind) -> Right:
    """Return the right to delete jobs of a kind."""
    return Right("delete", kind.resource, kind.group)


def _needed(kind: JobKind, version: tuple[int, int]) -> dict[Right, str]:
    """Return the rights that this program uses, and what does not work without each."""
    needed = {
        Right("list", kind.resource, kind.group): "jobs are not shown",
        PODS: "replicas are not shown",
        LOGS: "logs are not shown",
        Right("create", kind.resource, kind.group): "nothing can be launched",
        cancel_right(kind): "nothing can be cancelled",
        delete_right(kind): "nothing can be deleted",
        EXEC: "no shell can be opened",
    }
    needed |= dict.fromkeys(kind.more_rights, "nothing of several replicas can be launched")
    return {**needed, EXEC_1_35: "no shell can be opened"} if version >= (1, 35) else needed


def server_findings(server: ApiServer, kind: JobKind, namespace: str, missing: set[Right]) -> list[Finding]:
    """Check a server: its version, what runs the jobs, the namespace, rights; or say why it cannot be used.

    Args:
        server: the server.
        kind: the kind of jobs.
        namespace: the namespace that is listed; all of them if empty.
        missing: gets the rights that this user does not have.
    """
    hint = "ask the cluster's administrator for this right"
    try:
        answer = server.request("GET", "/version")
        version = plain(str(answer.get("gitVersion") or "?"))
        where = f", context {plain(server.context)}" if server.context else ""
        findings = [Finding("ok", f"Kubernetes {version} at {server.host}{where}"), *kind.findings(server)]
        if namespace and _is_missing(server, f"/api/v1/namespaces/{namespace}"):
            findings.append(Finding("error", f"there is no namespace {plain(namespace)}", "choose another one"))
        for right, words in _needed(kind, _version_of(answer)).items():
            if not may(server, right, namespace):
                missing.add(right)
                findings.append(Finding("warning", f"you may not {right}: {words}", hint))
    except SchedulerError as error:
        return [Finding("error", str(error))]
    return findings


def _version_of(answer: Mapping[str, Any]) -> tuple[int, int]:
    """Return the version of a server as numbers; (0, 0) if it cannot be read. Some clouds write the minor as 33+."""
    found = re.match(r"v?(\d+)\.(\d+)", str(answer.get("gitVersion") or ""))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def known_values(server: ApiServer) -> dict[str, list[str]]:
    """Return the values that run options can have, as far as they can be listed."""
    values: dict[str, list[str]] = {}
    try:
        values["context"] = list(read_contexts().names)
        for option, path in _CHOICE_PATHS:
            if names := server.list_names(path.format(namespace=server.namespace), _MAX_CHOICES):
                values[option] = list(dict.fromkeys([*values.get(option, ()), *names]))
    except (SchedulerError, ValueError):
        return values
    return values


def launch_findings(
    server: ApiServer, kind: LaunchForm, app: AppDef, opts: KubernetesOpts, image_repo: str = ""
) -> list[Finding]:
    """List the faults that a launch would have; what this user may not read is skipped.

    Args:
        server: the server.
        kind: the kind of jobs.
        app: the app.
        opts: the run options.
        image_repo: the repository that images which are built from workspaces are pushed to.
    """
    findings = list(_images(app, image_repo))
    findings += [finding for role in app.roles for finding in workspace_findings(role)]
    try:
        findings += kind.launch_findings(server, app, opts)
        findings += _nodes(server, app)
        findings += _pods(server, kind, app, opts)
    except AppDefError as error:
        findings.append(Finding("error", str(error)))
    except BackendUnavailableError as error:
        findings.append(Finding("warning", f"the launch could not be checked: {error}"))
    return findings


def _images(app: AppDef, image_repo: str) -> Iterator[Finding]:
    if image_repo:
        return
    hint = "set image_repo to a repository that it can be pushed to, and that nodes can pull from"
    for role in app.roles:
        if role.workspace:
            yield Finding("error", f"{role.name}: an image is built from its workspace, but nodes cannot pull it", hint)
        elif role.image.startswith("sha256:"):
            yield Finding("error", f"{role.name}: only the local Docker engine has its image {role.image:.19}", hint)


def _nodes(server: ApiServer, app: AppDef) -> Iterator[Finding]:
    hint = "it waits until there is one: correct its capabilities, unless nodes are made when they are needed"
    for role in app.roles:
        if wanted := ",".join(f"{key}={value}" for key, value in node_labels(role).items()):
            try:
                params = {"labelSelector": wanted, "limit": 1}
                answer = server.request("GET", "/api/v1/nodes", params=params, timeout=_TIMEOUT_S)
            except ApiError:
                continue
            if answer.get("items") == []:
                yield Finding("warning", f"{role.name}: no node has the labels {wanted}", hint)


def _pods(server: ApiServer, kind: LaunchForm, app: AppDef, opts: KubernetesOpts) -> Iterator[Finding]:
    """Yield what the server has against the first pod of each role, such as an account or a class that is missing."""
    job, *others = kind.manifest(app, opts)
    if len(json.dumps(job)) > _MAX_BYTES:
        yield Finding("error", describe_too_large(job))
        return
    first: dict[str, Any] = {}
    for _, template in (found for item in (job, *others) for found in pod_templates(item)):
        first.setdefault(role_of(template), template)
    for role, template in first.items():
        spec = template["spec"] | ({"priorityClassName": opts.priority_class} if opts.priority_class else {})
        metadata = {**template["metadata"], "name": f"{name_of(job)}-{spec['containers'][0]['name']}-0"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        try:
            server.request("POST", pods_path(opts.namespace), params={"dryRun": "All"}, body=pod, timeout=_TIMEOUT_S)
        except ApiError as error:
            # The controller makes the pods: this user need not be allowed to.
            if error.is_missing_right:
                return
            # A launch that cannot succeed is refused by `validate`: this may be mended before the pods are made.
            yield Finding("warning", f"{role}: {explain_refusal(error, opts.namespace, kind, job)}")


def _is_missing(server: ApiServer, path: str) -> bool:
    """Return whether an object does not exist; one that this user may not read counts as there."""
    try:
        return server.find(path, timeout=_TIMEOUT_S) is None
    except ApiError:
        return False
