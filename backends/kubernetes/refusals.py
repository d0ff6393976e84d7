"""Why a server does not take a job or a pod, in words, from what it answers."""

from __future__ import annotations

import re
from typing import Any

from ..logs.sanitize import plain
from .api_server import ApiError
from .jobs import Object, replica_of_task, tasks_of

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


def refusal_words(error: ApiError, namespace: str, job: Object) -> str:
    """Return why a job, or a pod of it, was refused, with what to do; else what the server says.

    Args:
        error: the server's answer.
        namespace: where it was to be created.
        job: the job.
    """
    said = str(error)
    if error.status == 404:
        return _missing_words(error, namespace)
    if error.status == 409 and error.reason == "AlreadyExists":
        return f"there is a job of this name in {namespace} already: launch it again, which gives it another name"
    if error.status == 413 or "request is too large" in said:
        return too_large_words(job)
    if found := _WEBHOOK.search(said):
        return _webhook_words(found["name"], found["why"], job)
    if words := _admission_words(said):
        return words
    causes: list[Any] = error.details.get("causes") or []
    if error.status == 422 and causes:
        told = [_cause_words(cause, job) for cause in causes]
        more = f"; and {len(told) - _MOST} more" if len(told) > _MOST else ""
        return "; ".join(dict.fromkeys(told[:_MOST])) + more
    return said


def missing_account_words(account: str, namespace: str) -> str:
    """Return that there is no such service account, with what to do."""
    return f"there is no service account {account} in {namespace}: correct service_account, or create it"


def too_large_words(job: Object) -> str:
    """Return why a job has too many bytes, with what to do."""
    return (
        f"the job is too large for the server with its {len(tasks_of(job))} replicas, each of which is written out: "
        "ask for fewer, or move long arguments and variables into the image or a file"
    )


def _missing_words(error: ApiError, namespace: str) -> str:
    if error.details.get("kind") == "namespaces":
        return f"there is no namespace {namespace}: choose another one, or `kubectl create namespace {namespace}`"
    if error.details.get("name"):
        return str(error)
    return (
        "the cluster has no Volcano, which runs the jobs: there is no batch.volcano.sh/v1alpha1; who runs the cluster "
        "can install it (https://volcano.sh)"
    )


def _webhook_words(name: str, why: str, job: Object) -> str:
    if found := _NO_QUEUE.search(why):
        return f"there is no queue {found['queue']}: choose another one; `kubectl get queues` lists them"
    told = [_field_words(part.strip(), job) for part in re.split(r";\s*", plain(why)) if part.strip(" .")]
    return f"{name} refuses it: " + "; ".join(told[:_MOST])


def _admission_words(said: str) -> str:
    """Return what is missing, or used up, where the server checks more than the form; empty for all else."""
    if found := _QUOTA.search(said):
        return (
            f"the quota {found['name']} of the namespace does not allow it: {found['asked']} is asked for, "
            f"{found['used']} is used, {found['most']} is most: ask for less, or wait until jobs have ended"
        )
    if found := _NO_ACCOUNT.search(said):
        return missing_account_words(found["name"], "the namespace")
    if found := _NO_PRIORITY.search(said):
        return f"there is no priority class {found['name']}: `kubectl get priorityclasses` lists them"
    return ""


def _cause_words(cause: Any, job: Object) -> str:
    field, message = plain(str(cause.get("field") or "")), plain(str(cause.get("message") or ""))
    return _field_words(f"{field}: {message}" if field else message, job)


def _field_words(text: str, job: Object) -> str:
    """Return a complaint with the replica that it is about in front, where it names a task."""
    found = _TASK.match(text)
    tasks = tasks_of(job)
    if found is None or int(found["index"]) >= len(tasks):
        return text
    return f"{replica_of_task(tasks[int(found['index'])])}: {text[found.end() :]}"
