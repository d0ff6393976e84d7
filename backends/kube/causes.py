"""Why a pod is in its state, the cause first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...logs.text.sanitize import plain
from ...specs.status import AppState
from ..shared.exit_reasons import format_exit
from .objects import KubernetesObject, dig
from .pods import container_statuses, main_status, terminated

_NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError")
_STARTING = ("ContainerCreating", "PodInitializing")
# What nodes' runtimes and kubelets put before what an image's registry, or the way to it, says.
_BEFORE_CAUSE = re.compile(
    r"^(?:rpc error: code = \w+ desc = |failed to pull and unpack image \"[^\"]*\": |failed to pull image \"[^\"]*\": "
    r"|Failed to pull image \"[^\"]*\": |failed to resolve reference \"[^\"]*\": |failed to do request: |"
    r"Error response from daemon: |(?:Head|Get) \"[^\"]*\": )+"
)
_NO_COMMAND = re.compile(r'exec: "(?P<command>[^"]+)": (?:executable file not found|stat .*: no such file)')
# How an error of the API server looks that Go printed with all its fields.
_GO_ERROR = re.compile(
    r'&errors\.StatusError\{ErrStatus:v1\.Status\{.*?Message:"(?P<message>(?:\\.|[^"\\])*)".*?Code:\d+\}\}', re.DOTALL
)
_ESCAPED = re.compile(r'\\(["\\])')

_NOT_MADE = {
    "CreateContainerConfigError": "its container cannot be set up",
    "CreateContainerError": "its container cannot be created",
    "RunContainerError": "its container cannot be started",
}
LONGEST = 400


# What the kubelet and Kubernetes' scheduler tell of causes. They tell them in Normal events as well.
TELLING = re.compile(r"Failed.*|NetworkNotReady|InspectFailed|Evict.*|Preempt.*")


def describe_event(event: KubernetesObject) -> str:
    """Return an event's reason and message in one line."""
    message = _describe_start_error(without_go(event.get("message", "")))
    return plain(f"{event.get('reason') or ''}: {message}".strip())[:LONGEST]


def pod_reason(pod: KubernetesObject, events: Iterable[KubernetesObject] = (), cause: str = "") -> str:
    """Explain a pod's state; empty if there is nothing to say.

    Args:
        pod: the pod.
        events: those about it.
        cause: what these events say of it.
    """
    status = pod.get("status", {})
    if status.get("phase") == "Pending":
        return _pending_reason(pod, events, cause)
    if status.get("phase") == "Failed":
        return _failed_reason(pod)
    for container in container_statuses(pod):
        waiting = dig(container, "state", "waiting")
        if waiting:
            ended = terminated(container)
            after = f" after {_ended(ended)}" if ended else ""
            return (
                f"starts again{after}" if waiting.get("reason") == "CrashLoopBackOff" else _describe_waiting(container)
            )
    if status.get("reason") == "NodeLost" or status.get("phase") == "Unknown":
        return "its node does not answer: its state is unknown"
    return ""


def event_time(event: KubernetesObject) -> str:
    """Return when an event was last seen, as the server writes times; they can be compared."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def without_go(text: str) -> str:
    """Return a text in which an error that Go printed with all its fields is its message."""
    return _GO_ERROR.sub(lambda match: _ESCAPED.sub(r"\1", match["message"]), text)


def needs_events(pod: KubernetesObject) -> bool:
    """Return whether a waiting pod's status gives no reason, so that its events are needed."""
    for container in container_statuses(pod):
        reason = dig(container, "state", "waiting", "reason")
        if reason and reason not in _STARTING:
            # Between two pulls the status no longer has the error.
            return reason == "ImagePullBackOff"
    conditions = dig(pod, "status", "conditions") or []
    return not any(
        container.get("type") == "PodScheduled" and container.get("status") == "False" and container.get("message")
        for container in conditions
    )


def together(reasons: list[tuple[str, str]]) -> str:
    """Return one reason for several replicas: the first, where it holds, and for how many more.

    Args:
        reasons: a reason and the replica's name such as ``trainer/0``, for each replica that has one.
    """
    if not reasons:
        return ""
    reason, where = reasons[0]
    same = sum(other == reason for other, _ in reasons) - 1
    return f"{reason}: {where}" + (f" and {same} more" if same else "")


def _pending_reason(pod: KubernetesObject, events: Iterable[KubernetesObject], cause: str) -> str:
    status = pod.get("status", {})
    for container in container_statuses(pod):
        waiting = dig(container, "state", "waiting") or {}
        if waiting.get("reason") and waiting["reason"] not in _STARTING:
            return _describe_waiting(container, events)
        ended = dig(container, "state", "terminated")
        if ended and ended.get("exitCode"):
            return f"the container {container.get('name')}, which prepares it, failed: {_ended(ended)}"
    for condition in status.get("conditions", []):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _describe_unscheduled(condition)
    if cause:
        return cause
    if status.get("containerStatuses"):
        return "its container is being created"
    return "" if dig(pod, "spec", "nodeName") else "waits for a node"


def _describe_unscheduled(condition: Mapping[str, Any]) -> str:
    message = plain(condition.get("message", ""))[:LONGEST]
    if condition.get("reason") == "SchedulingGated":
        return f"held back by a scheduling gate: {message}"
    return f"cannot be scheduled: {message}" if message else "cannot be scheduled"


def _describe_waiting(status: Mapping[str, Any], events: Iterable[KubernetesObject] = ()) -> str:
    waiting = dig(status, "state", "waiting") or {}
    reason, message = waiting.get("reason") or "", plain(waiting.get("message", ""))[:LONGEST]
    if reason in _NO_IMAGE:
        return plain(f"image {status.get('image')} cannot be pulled: {_describe_image_error(reason, message, events)}")
    words = _NOT_MADE.get(reason, reason)
    return plain(f"{words}: {message}" if message else words)


def _describe_image_error(reason: str, message: str, events: Iterable[KubernetesObject]) -> str:
    if reason == "ErrImageNeverPull":
        return "it is not on the node, and its pull policy is Never (ErrImageNeverPull)"
    if reason == "ImagePullBackOff":
        messages = [
            event.get("message", "") for event in sorted(events, key=event_time) if event.get("reason") == "Failed"
        ]
        pulls = [text for text in messages if text.startswith("Failed to pull")]
        message = plain(pulls[-1]) if pulls else message
    cause = _BEFORE_CAUSE.sub("", message)[:LONGEST]
    return f"{cause} ({reason})" if cause else reason


def _failed_reason(pod: KubernetesObject) -> str:
    status = pod.get("status", {})
    text = plain(status.get("message", ""))[:LONGEST]
    if status.get("reason") == "Evicted":
        return f"evicted from its node: {text}"
    if status.get("reason") == "DeadlineExceeded":
        return f"ran longer than it may (DeadlineExceeded): {text}"
    for container in (main_status(pod), *container_statuses(pod)):
        ended = terminated(container)
        if ended and ended.get("exitCode"):
            return _ended(ended, _memory_limit(pod, container.get("name", "")))
    return f"{status.get('reason')}: {text}" if status.get("reason") else text


def _ended(ended: Mapping[str, Any], limit: str = "") -> str:
    code = ended.get("exitCode")
    if ended.get("reason") == "OOMKilled":
        return f"out of memory: killed{f' at its limit of {limit}' if limit else ''} (exit {code})"
    words = format_exit(code if isinstance(code, int) else None)
    message = plain(ended.get("message", "")).strip()[:LONGEST]
    if ended.get("reason") in ("ContainerCannotRun", "StartError"):
        return f"cannot be run: {_describe_start_error(message)}"
    return f"{words}: {message}" if message else words


def _describe_start_error(message: str) -> str:
    """Shorten the message of a node's runtime on a start that failed, where it is a common one."""
    if match := _NO_COMMAND.search(message):
        return f"no such command: {match['command']}: the image does not have it"
    return message.removeprefix("Error: ")


def _memory_limit(pod: KubernetesObject, container: str) -> str:
    for spec in dig(pod, "spec", "containers") or []:
        if spec.get("name") == container:
            return dig(spec, "resources", "limits", "memory") or ""
    return ""


def waits(state: AppState) -> bool:
    """Return whether something in this state is waiting to run."""
    return state in (AppState.SUBMITTED, AppState.PENDING)
