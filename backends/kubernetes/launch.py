"""Creates the job of an app, and asks the server before whether it would take it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ...specs import AppDefError, BackendUnavailableError, SchedulerError
from ..progress import current_progress
from . import labels
from .api_server import ApiError, ApiServer
from .jobs import Object, jobs_path, make_app_id, tasks_of
from .refusals import missing_account_words, refusal_words
from .request import KubernetesJob
from .sanitize import sanitize_for_serialization

# Seconds that a server may take to create a job: webhooks have 10 each.
_PATIENCE = 30.0
# What urllib3 and the socket raise before a request is sent.
_UNSENT = {"ConnectTimeoutError", "ConnectionRefusedError", "NameResolutionError", "NewConnectionError", "SSLError",
           "ProxyError", "ConfigException", "gaierror"}  # fmt: skip


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
        server.request("POST", jobs_path(namespace), params={"dryRun": "All"}, body=job, timeout=_PATIENCE)
    except BackendUnavailableError as error:
        raise BackendUnavailableError(
            f"{error}. The job was to be checked there: with validate_spec off it is not"
        ) from error
    except ApiError as error:
        words = refusal_words(error, namespace, job)
        if error.status in (400, 413, 422):
            raise AppDefError(f"The server would not take the job: {words}") from error
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
            raise SchedulerError(f"{len(job.images_to_push)} images are to be pushed, and nothing is there to do it")
        push_images(job.images_to_push)
    made, namespace = _placed(job.resource, namespace)
    _refuse_missing_accounts(server, made, namespace)
    annotations = made["metadata"].setdefault("annotations", {})
    annotations[labels.SUBMITTED_AT] = f"{time.time():.3f}"
    current_progress().report("creating the job")
    app_id = make_app_id(made)
    try:
        server.request("POST", jobs_path(namespace), body=made, timeout=_PATIENCE)
    except BackendUnavailableError as error:
        if _was_sent(error) and _was_created(server, made, namespace, error):
            return app_id
        raise BackendUnavailableError(f"{app_id} was not launched: {error}") from error
    except ApiError as error:
        if error.status == 409 and _was_created(server, made, namespace, error):
            return app_id
        words = refusal_words(error, namespace, made)
        raise ApiError(f"{app_id} was not launched: {words}", error.status, error.reason, error.details) from error
    return app_id


def _placed(resource: Mapping[str, Any], namespace: str) -> tuple[Object, str]:
    """Return a copy of a job as plain data, and its namespace, which stands in it as well."""
    made: Object = sanitize_for_serialization(resource)
    metadata = made.setdefault("metadata", {})
    metadata["namespace"] = namespace or metadata.get("namespace") or "default"
    return made, metadata["namespace"]


def _refuse_missing_accounts(server: ApiServer, job: Object, namespace: str) -> None:
    """Refuse a job whose pods name a service account that is not there: Volcano would try in vain to make them.

    Raises:
        AppDefError: there is no such account.
        BackendUnavailableError: the server cannot be asked.
    """
    specs = [(task.get("template") or {}).get("spec") or {} for task in tasks_of(job)]
    for account in dict.fromkeys(spec.get("serviceAccountName") for spec in specs):
        if account and not has_account(server, namespace, account):
            raise AppDefError(missing_account_words(account, namespace))


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


def _was_created(server: ApiServer, made: Object, namespace: str, error: SchedulerError) -> bool:
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
    found = (there.get("metadata") or {}).get("annotations") or {}
    return found.get(labels.SUBMITTED_AT) == made["metadata"]["annotations"][labels.SUBMITTED_AT]
