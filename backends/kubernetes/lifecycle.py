"""Creates, cancels and removes jobs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from ...logs.text.sanitize import plain
from ...specs.errors import AppDefError, BackendUnavailableError, SchedulerError
from ...specs.status import is_terminal
from ..shared.progress import current_progress
from . import labels
from .api_server import ApiError, ApiServer
from .jobs import find_job, jobs_path, make_app_id, replica_of_task, tasks_of
from .listing import uid_of
from .phases import app_state
from .request.manifest import sanitize_for_serialization
from .request.request import KubernetesJob
from .shapes import KubernetesObject

_WEBHOOK = re.compile(r'admission webhook "(?P<name>[^"]+)" denied the request:\s*(?P<why>.*)', re.DOTALL)
_NO_QUEUE = re.compile(r'queues\.scheduling\.volcano\.sh "(?P<queue>[^"]+)" not found')
_QUOTA = re.compile(
    r"exceeded quota: (?P<name>\S+), requested: (?P<asked>.+?), used: (?P<used>.+?), limited: (?P<most>.+)"
)
_NO_ACCOUNT = re.compile(r'serviceaccount "(?P<name>[^"]+)" not found')
_NO_PRIORITY = re.compile(r"no PriorityClass with name (?P<name>\S+) was found")
_TASK = re.compile(r"^(?:spec\.)?tasks?\[(?P<index>\d+)\]\.?(?:template\.)?")
# How many of a server's complaints are told.
_MOST = 4


# Seconds that a server may take to create a job: webhooks have 10 each.
_TIMEOUT_S = 30.0
# What urllib3 and the socket raise before a request is sent.
_UNSENT = {"ConnectTimeoutError", "ConnectionRefusedError", "NameResolutionError", "NewConnectionError", "SSLError",
           "ProxyError", "ConfigException", "gaierror"}  # fmt: skip
# How often a status is written that was changed by someone else meanwhile.
_TRIES = 5


def explain_refusal(error: ApiError, namespace: str, job: KubernetesObject) -> str:
    """Explain why a job, or a pod of it, was refused, with what to do; else give the server's message.

    Args:
        error: the server's answer.
        namespace: where it was to be created.
        job: the job.
    """
    answer = str(error)
    if error.status == 404:
        return _describe_missing(error, namespace)
    if error.status == 409 and error.reason == "AlreadyExists":
        return f"there is a job of this name in {namespace} already: launch it again, which gives it another name"
    if error.status == 413 or "request is too large" in answer:
        return describe_too_large(job)
    if match := _WEBHOOK.search(answer):
        return _describe_webhook(match["name"], match["why"], job)
    if words := _explain_admission(answer):
        return words
    causes: list[Any] = error.details.get("causes") or []
    if error.status == 422 and causes:
        parts = [_describe_cause(cause, job) for cause in causes]
        more = f"; and {len(parts) - _MOST} more" if len(parts) > _MOST else ""
        return "; ".join(dict.fromkeys(parts[:_MOST])) + more
    return answer


def describe_missing_account(account: str, namespace: str) -> str:
    """Describe a missing service account, with what to do."""
    return f"there is no service account {account} in {namespace}: correct service_account, or create it"


def describe_too_large(job: KubernetesObject) -> str:
    """Describe a job of too many bytes, with what to do."""
    return (
        f"the job is too large for the server with its {len(tasks_of(job))} replicas, each of which is written out: "
        "ask for fewer, or move long arguments and variables into the image or a file"
    )


def _describe_missing(error: ApiError, namespace: str) -> str:
    if error.details.get("kind") == "namespaces":
        return f"there is no namespace {namespace}: choose another one, or `kubectl create namespace {namespace}`"
    if error.details.get("name"):
        return str(error)
    return (
        "the cluster has no Volcano, which runs the jobs: there is no batch.volcano.sh/v1alpha1; its administrator "
        "can install it (https://volcano.sh)"
    )


def _describe_webhook(name: str, why: str, job: KubernetesObject) -> str:
    if match := _NO_QUEUE.search(why):
        return f"there is no queue {match['queue']}: choose another one; `kubectl get queues` lists them"
    parts = [_describe_field(part.strip(), job) for part in re.split(r";\s*", plain(why)) if part.strip(" .")]
    return f"{name} refuses it: " + "; ".join(parts[:_MOST])


def _explain_admission(answer: str) -> str:
    """Describe what is missing, or used up, where an admission plug-in refused; empty for all else."""
    if match := _QUOTA.search(answer):
        return (
            f"the quota {match['name']} of the namespace does not allow it: {match['asked']} is asked for, "
            f"{match['used']} is used, {match['most']} is the limit: ask for less, or wait until jobs have ended"
        )
    if match := _NO_ACCOUNT.search(answer):
        return describe_missing_account(match["name"], "the namespace")
    if match := _NO_PRIORITY.search(answer):
        return f"there is no priority class {match['name']}: `kubectl get priorityclasses` lists them"
    return ""


def _describe_cause(cause: Any, job: KubernetesObject) -> str:
    field, message = plain(str(cause.get("field") or "")), plain(str(cause.get("message") or ""))
    return _describe_field(f"{field}: {message}" if field else message, job)


def _describe_field(text: str, job: KubernetesObject) -> str:
    """Return a complaint with the replica that it is about in front, where it names a task."""
    match = _TASK.match(text)
    tasks = tasks_of(job)
    if match is None or int(match["index"]) >= len(tasks):
        return text
    return f"{replica_of_task(tasks[int(match['index'])])}: {text[match.end() :]}"


def validate(server: ApiServer, resource: Mapping[str, Any], namespace: str = "") -> None:
    """Ask the server whether it would take a job; nothing is created.

    Args:
        server: the server.
        resource: the job.
        namespace: where it would be created; the job's own where empty.

    Raises:
        AppDefError: it would not: something in the job is at fault; the message says what.
        ApiError: it would not: the user may not, or something is missing there.
        BackendUnavailableError: it cannot be asked.
    """
    job, namespace = _placed(resource, namespace)
    _refuse_missing_accounts(server, job, namespace)
    try:
        server.request("POST", jobs_path(namespace), params={"dryRun": "All"}, body=job, timeout=_TIMEOUT_S)
    except BackendUnavailableError as error:
        raise BackendUnavailableError(f"{error}. validate_spec=false launches without this check") from error
    except ApiError as error:
        words = explain_refusal(error, namespace, job)
        if error.status in (400, 413, 422):
            raise AppDefError(f"The server would reject the job: {words}") from error
        raise ApiError(words, error.status, error.reason, error.details) from error


def launch(
    server: ApiServer,
    job: KubernetesJob,
    namespace: str = "",
    push_images: Callable[[Mapping[str, tuple[str, str]]], object] | None = None,
) -> str:
    """Create a job, after pushing its images, and return its app id.

    Args:
        server: the server.
        job: the request.
        namespace: where it is created; the job's own where empty.
        push_images: pushes `KubernetesJob.images_to_push`.

    Raises:
        AppDefError: something that its pods need is missing.
        ApiError: the server refused; the message says why. Nothing was created.
        BackendUnavailableError: the server cannot be reached; the message says where the job may have been created.
        LaunchCancelledError: the launch was ended before.
        SchedulerError: an image could not be pushed.
    """
    if job.images_to_push:
        if push_images is None:
            raise SchedulerError(f"{len(job.images_to_push)} images must be pushed, but no Docker engine can do it")
        push_images(job.images_to_push)
    made, namespace = _placed(job.resource, namespace)
    _refuse_missing_accounts(server, made, namespace)
    annotations = made["metadata"].setdefault("annotations", {})
    annotations[labels.SUBMITTED_AT] = f"{time.time():.3f}"
    current_progress().report("creating the job")
    app_id = make_app_id(made)
    try:
        server.request("POST", jobs_path(namespace), body=made, timeout=_TIMEOUT_S)
    except BackendUnavailableError as error:
        if _was_sent(error) and _was_created(server, made, namespace, error):
            return app_id
        raise BackendUnavailableError(f"{app_id} was not launched: {error}") from error
    except ApiError as error:
        if error.status == 409 and _was_created(server, made, namespace, error):
            return app_id
        words = explain_refusal(error, namespace, made)
        raise ApiError(f"{app_id} was not launched: {words}", error.status, error.reason, error.details) from error
    return app_id


def _placed(resource: Mapping[str, Any], namespace: str) -> tuple[KubernetesObject, str]:
    """Return a copy of a job as plain data, and its namespace, which stands in it as well."""
    made: KubernetesObject = sanitize_for_serialization(resource)
    metadata = made.setdefault("metadata", {})
    metadata["namespace"] = namespace or metadata.get("namespace") or "default"
    return made, metadata["namespace"]


def _refuse_missing_accounts(server: ApiServer, job: KubernetesObject, namespace: str) -> None:
    """Refuse a job whose pods name a service account that is not there: Volcano would try in vain to make them.

    Raises:
        AppDefError: there is no such account.
        BackendUnavailableError: the server cannot be asked.
    """
    specs = [(task.get("template") or {}).get("spec") or {} for task in tasks_of(job)]
    for account in dict.fromkeys(spec.get("serviceAccountName") for spec in specs):
        if account and not has_account(server, namespace, account):
            raise AppDefError(describe_missing_account(account, namespace))


def has_account(server: ApiServer, namespace: str, account: str) -> bool:
    """Tell whether a service account is there; one that this user may not look at counts as there."""
    try:
        server.request("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}")
    except ApiError as error:
        return error.status != 404
    return True


def _was_sent(error: BaseException | None) -> bool:
    """Tell whether a request that failed may have come to the server."""
    while error is not None:
        if type(error).__name__ in _UNSENT:
            return False
        error = error.__cause__ or error.__context__
    return True


def _was_created(server: ApiServer, made: KubernetesObject, namespace: str, error: SchedulerError) -> bool:
    """Tell whether a job was created although the server did not say so: its answer may have been lost.

    Raises:
        BackendUnavailableError: the server does not tell that either.
    """
    name = made["metadata"]["name"]
    try:
        there = server.request("GET", jobs_path(namespace, name))
    except ApiError:
        return False
    except BackendUnavailableError:
        raise BackendUnavailableError(
            f"{error}. Whether {namespace}:{name} was created is not known: look for it when the server is back, "
            "before launching it again"
        ) from error
    # The same moment: nobody else made it.
    annotations = (there.get("metadata") or {}).get("annotations") or {}
    return annotations.get(labels.SUBMITTED_AT) == made["metadata"]["annotations"][labels.SUBMITTED_AT]


def abort(server: ApiServer, app_id: str, uid: str) -> None:
    """Ask Volcano to end a job and keep it, as TorchX does: by writing its phase. A final or unknown one is left alone.

    Args:
        server: the server.
        app_id: the job.
        uid: which job of that name; any where empty.

    Raises:
        SchedulerError: there is another job of that name now, or the server refused.
    """
    for left in range(_TRIES - 1, -1, -1):
        job = _find(server, app_id, uid)
        if job is None or is_terminal(app_state(job)):
            return
        status: dict[str, Any] = job.setdefault("status", {})
        # As Volcano notes a transition itself. It keeps it: else the time would be that of the phase before.
        ended = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        status["state"] = {**(status.get("state") or {}), "phase": "Aborted", "lastTransitionTime": ended}
        status["conditions"] = [
            *(status.get("conditions") or []),
            {"status": "Aborted", "lastTransitionTime": ended},
        ]
        try:
            server.request("PUT", f"{_path(job)}/status", body=job)
            return
        except ApiError as error:
            # 409: Volcano, or someone else, wrote in between.
            if error.status != 409 or not left:
                raise


def remove(server: ApiServer, app_id: str, uid: str) -> None:
    """Remove a job and its pods; an unknown one is nothing to remove.

    Args:
        server: the server.
        app_id: the job.
        uid: which job of that name; any where empty.

    Raises:
        SchedulerError: there is another job of that name now, or the server refused.
    """
    job = _find(server, app_id, uid)
    if job is None:
        return
    body = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": uid_of(job)},
    }
    try:
        server.request("DELETE", _path(job), body=body)
    except ApiError as error:
        if error.status == 409:
            raise _replaced(app_id) from error
        if error.status != 404:
            raise


def _find(server: ApiServer, app_id: str, uid: str) -> KubernetesObject | None:
    job = find_job(server, app_id)
    if job is not None and uid and uid_of(job) != uid:
        raise _replaced(app_id)
    return job


def _replaced(app_id: str) -> SchedulerError:
    return SchedulerError(
        f"{app_id} is another job now: the job that was shown was deleted; check it before you cancel it"
    )


def _path(job: KubernetesObject) -> str:
    return jobs_path(job["metadata"]["namespace"], job["metadata"]["name"])
