"""Creates, cancels and removes jobs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ...logs.text.sanitize import plain
from ...specs.errors import AppDefError, BackendUnavailableError, SchedulerError
from ...specs.status import is_terminal
from ..kube.api_server import ApiError, ApiServer
from ..kube.objects import KubernetesObject, dig, name_of, sanitize_for_serialization, uid_of
from ..shared.progress import current_progress
from . import labels
from .actions import apply_action
from .jobs import Jobs
from .launching.form import LaunchForm, path_of, pod_templates
from .request import KubernetesJob

_WEBHOOK = re.compile(r'admission webhook "(?P<name>[^"]+)" denied the request:\s*(?P<why>.*)', re.DOTALL)
# Refusals of admission plug-ins with their messages.
_EXPLANATIONS = (
    (
        re.compile(
            r"exceeded quota: (?P<name>\S+), requested: (?P<asked>.+?), used: (?P<used>.+?), limited: (?P<most>.+)"
        ),
        "the quota {name} of the namespace does not allow it: {asked} is asked for, {used} is used, {most} is the "
        "limit: ask for less, or wait until jobs have ended",
    ),
    (
        re.compile(r'serviceaccount "(?P<name>[^"]+)" not found'),
        "there is no service account {name} in the namespace: correct service_account, or create it",
    ),
    (
        re.compile(r"no PriorityClass with name (?P<name>\S+) was found"),
        "there is no priority class {name}: `kubectl get priorityclasses` lists them",
    ),
)
# Objects that a pod's spec names: their paths, and the refusal where one is missing.
_NEEDED = {
    "serviceAccountName": (
        "/api/v1/namespaces/{namespace}/serviceaccounts/{name}",
        "there is no service account {name} in {namespace}: correct service_account, or create it",
    ),
    "priorityClassName": (
        "/apis/scheduling.k8s.io/v1/priorityclasses/{name}",
        "there is no priority class {name}: correct priority_class; `kubectl get priorityclasses` lists them",
    ),
    "claimName": (
        "/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}",
        "there is no volume claim {name} in {namespace}: correct the mount, or create it",
    ),
}
# Complaints of a server that are shown.
_MAX_COMPLAINTS = 4


# Seconds that a server may take to create a job: webhooks have 10 each.
_TIMEOUT_S = 30.0
# What urllib3 and the socket raise before a request is sent.
_UNSENT = {"ConnectTimeoutError", "ConnectionRefusedError", "NameResolutionError", "NewConnectionError", "SSLError",
           "ProxyError", "ConfigException", "gaierror"}  # fmt: skip
# Attempts to write a status that others write at the same time.
_TRIES = 5


def explain_refusal(error: ApiError, namespace: str, kind: LaunchForm, job: KubernetesObject) -> str:
    """Explain why a job, or a pod of it, was refused, with what to do; else return the server's message.

    Args:
        error: the server's answer.
        namespace: where it was to be created.
        kind: the job's kind.
        job: the job.
    """
    answer = str(error)
    if error.status == 404:
        if error.details.get("kind") == "namespaces":
            return f"there is no namespace {namespace}: choose another one, or `kubectl create namespace {namespace}`"
        return answer if error.details.get("name") else kind.unknown
    if error.status == 409 and error.reason == "AlreadyExists":
        return f"there is a job of this name in {namespace} already: launch it again, which gives it another name"
    if error.status == 413 or "request is too large" in answer:
        return describe_too_large(job)
    for pattern, text in (*kind.explanations, *_EXPLANATIONS):
        if match := pattern.search(answer):
            return text.format(**match.groupdict())
    if match := _WEBHOOK.search(answer):
        parts = [part.strip() for part in re.split(r";\s*", plain(match["why"])) if part.strip(" .")]
        complaints = [_with_replica(part, kind, job) for part in parts[:_MAX_COMPLAINTS]]
        return f"{match['name']} refuses it: " + "; ".join(complaints)
    causes: list[Any] = error.details.get("causes") or []
    if error.status == 422 and causes:
        complaints = [_describe_cause(cause, kind, job) for cause in causes[:_MAX_COMPLAINTS]]
        left = len(causes) - _MAX_COMPLAINTS
        return "; ".join(dict.fromkeys(complaints)) + (f"; and {left} more" if left > 0 else "")
    return answer


def describe_too_large(job: KubernetesObject) -> str:
    """Describe a job of too many bytes, with what to do."""
    written = sum(1 for _ in pod_templates(job))
    many = f" with its {written} replicas, each of which is written out: ask for fewer, or" if written > 1 else ":"
    return f"the job is too large for the server{many} move long arguments and variables into the image or a file"


def _describe_cause(cause: Any, kind: LaunchForm, job: KubernetesObject) -> str:
    field, message = (plain(str(cause.get(part) or "")) for part in ("field", "message"))
    return _with_replica(f"{field}: {message}" if field else message, kind, job)


def _with_replica(complaint: str, kind: LaunchForm, job: KubernetesObject) -> str:
    """Return a complaint that begins with the path of a field, with the field's replica in front."""
    replica, rest = kind.replica_at(job, complaint)
    return f"{replica}: {rest}" if replica else complaint


def validate(
    server: ApiServer, kind: LaunchForm, resource: Mapping[str, Any], others: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Ask the server whether it would take a job; nothing is created.

    Args:
        server: the server.
        kind: the job's kind.
        resource: the job.
        others: what is created after it.

    Raises:
        AppDefError: it would not: something in the job is at fault; the message says what.
        ApiError: it would not: the user may not, or something is missing there.
        BackendUnavailableError: it cannot be asked.
    """
    job, namespace = _placed(resource)
    items = [job, *(_placed(other)[0] for other in others)]
    for item in items:
        path = kind.path(namespace) if item is job else path_of(item, namespace)
        try:
            answer = server.request("POST", path, params={"dryRun": "All"}, body=item, timeout=_TIMEOUT_S)
        except BackendUnavailableError as error:
            raise BackendUnavailableError(f"{error}. validate_spec=false launches without this check") from error
        except ApiError as error:
            words = explain_refusal(error, namespace, kind, item)
            if error.status in (400, 413, 422):
                what = "job" if item is job else f"{item['kind']} {name_of(item)}"
                raise AppDefError(f"The server would reject the {what}: {words}") from error
            error.args = (words,)
            raise
        if _is_numbered(item) and not dig(answer, "spec", "completionMode"):
            what = f"The server does not number the replicas of {name_of(item)}"
            raise AppDefError(f"{what}: Kubernetes 1.22 and later do; use kind=volcano")
    # Last: only a job that the server would take is known to be of the right form.
    _refuse_missing(server, items, namespace)


def _is_numbered(item: KubernetesObject) -> bool:
    """Return whether a Job has replicas that need their numbers; old servers drop the field without a word."""
    return dig(item, "spec", "completionMode") == "Indexed" and dig(item, "spec", "completions") > 1


def launch(
    server: ApiServer,
    kind: LaunchForm,
    job: KubernetesJob,
    push_images: Callable[[Mapping[str, tuple[str, str]]], object] | None = None,
) -> str:
    """Create a job and what belongs to it, after pushing its images, and return its app id.

    Args:
        server: the server.
        kind: the job's kind.
        job: the request.
        push_images: pushes `KubernetesJob.images_to_push`.

    Raises:
        AppDefError: something that its pods need is missing.
        ApiError: the server refused; the message says why. Nothing was created, or it was removed again.
        BackendUnavailableError: the server cannot be reached; the message says where the job may have been created.
        LaunchCancelledError: the launch was ended before.
        SchedulerError: an image could not be pushed.
    """
    if job.images_to_push:
        if push_images is None:
            raise SchedulerError(f"{len(job.images_to_push)} images must be pushed, but no Docker engine can do it")
        push_images(job.images_to_push)
    made, namespace = _placed(job.resource)
    others = [_placed(other)[0] for other in job.others]
    _refuse_missing(server, [made, *others], namespace)
    current_progress().report("creating the job")
    now, app_id = f"{time.time():.3f}", kind.app_id(made)
    created = _create(server, kind, made, kind.path(namespace), app_id, now)
    owner = {part: made[part] for part in ("apiVersion", "kind")}
    owner |= {"name": name_of(made), "uid": dig(created, "metadata", "uid")}
    try:
        for other in others:
            other["metadata"]["ownerReferences"] = [owner]
            _create(server, kind, other, path_of(other, namespace), f"{app_id}: its {other['kind']}", now)
    except SchedulerError as error:
        try:
            _delete(server, kind.path(namespace, name_of(made)), owner["uid"])
        except SchedulerError:
            error.args = (f"{error}. {app_id} was created without it, and could not be removed again: delete it",)
        raise
    return app_id


def _create(
    server: ApiServer, kind: LaunchForm, made: KubernetesObject, path: str, what: str, now: str
) -> KubernetesObject:
    """Create an object once, and return it as the server has it.

    Args:
        server: the server.
        kind: the job's kind.
        made: the object.
        path: where it is created.
        what: its name in messages.
        now: when, by which it is known if the answer is lost.

    Raises:
        ApiError: the server refused.
        BackendUnavailableError: the server cannot be reached; the message says if the object may have been created.
    """
    made["metadata"].setdefault("annotations", {})[labels.SUBMITTED_AT] = now
    try:
        return server.request("POST", path, body=made, timeout=_TIMEOUT_S)
    except BackendUnavailableError as error:
        if _was_sent(error) and (there := _find_created(server, path, made, what, error)):
            return there
        raise BackendUnavailableError(f"{what} was not launched: {error}") from error
    except ApiError as error:
        if error.status == 409 and (there := _find_created(server, path, made, what, error)):
            return there
        error.args = (f"{what} was not launched: {explain_refusal(error, made['metadata']['namespace'], kind, made)}",)
        raise


def _placed(resource: Mapping[str, Any]) -> tuple[KubernetesObject, str]:
    """Return a copy of an object as plain data, and its namespace."""
    made: KubernetesObject = sanitize_for_serialization(resource)
    return made, made["metadata"].setdefault("namespace", "default")


def _refuse_missing(server: ApiServer, items: Sequence[KubernetesObject], namespace: str) -> None:
    """Refuse jobs whose pods need an object that does not exist: their controller would try in vain.

    Raises:
        AppDefError: there is no such service account, priority class or volume claim.
        BackendUnavailableError: the server cannot be asked.
    """
    needed = [("priorityClassName", dig(item, "spec", "priorityClassName")) for item in items]
    for _, template in (found for item in items for found in pod_templates(item)):
        spec = dig(template, "spec") or {}
        needed += [(field, spec.get(field)) for field in ("serviceAccountName", "priorityClassName")]
        needed += [("claimName", dig(one, "persistentVolumeClaim", "claimName")) for one in spec.get("volumes") or []]
    for field, name in dict.fromkeys(needed):
        path, words = _NEEDED[field]
        try:
            if name and server.find(path.format(namespace=namespace, name=name)) is None:
                raise AppDefError(words.format(namespace=namespace, name=name))
        except ApiError:
            # One that this user may not read counts as there.
            continue


def _was_sent(error: BaseException | None) -> bool:
    """Return whether a failed request may have reached the server."""
    while error is not None:
        if type(error).__name__ in _UNSENT:
            return False
        error = error.__cause__ or error.__context__
    return True


def _find_created(
    server: ApiServer, path: str, made: KubernetesObject, what: str, error: SchedulerError
) -> KubernetesObject | None:
    """Return an object that exists although its creation was not confirmed: the answer may have been lost.

    Raises:
        BackendUnavailableError: the server does not tell that either.
    """
    try:
        there = server.find(f"{path}/{name_of(made)}")
    except ApiError:
        return None
    except BackendUnavailableError:
        raise BackendUnavailableError(
            f"{error}. Whether {what} was created is not known: look for it when the server is back, "
            "before launching it again"
        ) from error
    # The same moment: nobody else made it.
    at = dig(there, "metadata", "annotations", labels.SUBMITTED_AT)
    return there if at == made["metadata"]["annotations"][labels.SUBMITTED_AT] else None


def abort(jobs: Jobs, app_id: str, uid: str) -> None:
    """Ask a job's controller to end it and keep it. A final or unknown job is left alone.

    Args:
        jobs: the server and the kind of the jobs.
        app_id: the job.
        uid: which job of that name; any if empty.

    Raises:
        SchedulerError: there is another job of that name now, or the server refused.
    """
    job = _find(jobs, app_id, uid)
    if job is not None and not is_terminal(jobs.kind.state(job)):
        change(jobs, app_id, uid, jobs.kind.cancelled, jobs.kind.cancel_at)


def change(
    jobs: Jobs, app_id: str, uid: str, make: Callable[[KubernetesObject], KubernetesObject], below: str = ""
) -> None:
    """Replace each object of a job. An unknown job is left alone.

    Args:
        jobs: the server and the kind of the jobs.
        app_id: the job.
        uid: which job of that name; any if empty.
        make: returns the object in the place of one.
        below: what follows the path of an object, such as ``/status``.

    Raises:
        SchedulerError: there is another job of that name now, or the server refused.
    """
    for left in range(_TRIES - 1, -1, -1):
        job = _find(jobs, app_id, uid)
        try:
            for part in jobs.kind.parts(job) if job is not None else ():
                jobs.server.request("PUT", f"{_path(jobs, part)}{below}", body=make(part))
            return
        except ApiError as error:
            # 409: the controller, or someone else, wrote in between.
            if error.status != 409 or not left:
                raise


def act(jobs: Jobs, app_id: str, uid: str, action: str, value: str) -> None:
    """Do one of `job_actions` with a job. An unknown job is left alone.

    Args:
        jobs: the server and the kind of the jobs.
        app_id: the job.
        uid: which job of that name; any if empty.
        action: the action's name.
        value: what it needs.

    Raises:
        SchedulerError: the value is malformed, there is another job of that name now, or the server refused.
    """
    job = _find(jobs, app_id, uid)
    if job is None:
        return
    namespace, command = job["metadata"].get("namespace"), jobs.kind.command(job, action)
    try:
        if command is None:
            change(jobs, app_id, uid, partial(apply_action, kind=jobs.kind, action=action, value=value))
        else:
            jobs.server.request("POST", f"/apis/{command['apiVersion']}/namespaces/{namespace}/commands", body=command)
    except ApiError as error:
        error.args = (explain_refusal(error, namespace, jobs.kind, job),)
        raise


def remove(jobs: Jobs, app_id: str, uid: str) -> None:
    """Remove a job and its pods; an unknown one is nothing to remove. Arguments and errors are those of `abort`."""
    job = _find(jobs, app_id, uid)
    if job is None:
        return
    try:
        _delete(jobs.server, _path(jobs, job), uid_of(job))
    except ApiError as error:
        if error.status == 409:
            raise _replaced(app_id) from error
        if error.status != 404:
            raise


def _delete(server: ApiServer, path: str, uid: str) -> None:
    """Delete the object of a uid, and then what it owns."""
    body = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": uid},
    }
    server.request("DELETE", path, body=body)


def _find(jobs: Jobs, app_id: str, uid: str) -> KubernetesObject | None:
    job = jobs.find(app_id)
    if job is not None and uid and uid_of(job) != uid:
        raise _replaced(app_id)
    return job


def _replaced(app_id: str) -> SchedulerError:
    return SchedulerError(
        f"{app_id} is another job now: the job that was shown was deleted; check it before you cancel it"
    )


def _path(jobs: Jobs, job: KubernetesObject) -> str:
    return jobs.kind.path(job["metadata"]["namespace"], name_of(job))
