"""Why a pod, or a whole job, is in its state, in words, the cause first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ...logs.text.sanitize import plain
from ...specs.status import AppState
from ..shared.exit_reasons import format_exit, short_time
from .phases import container_statuses, main_status, terminated
from .shapes import KubernetesObject

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
_OF_PODS = re.compile(r"^(?:\(combined from similar events\): )?Error creating pods: \[failed to create pod \S+, err: ")
_FORBIDDEN = re.compile(r'^pods "[^"]*" is forbidden: ')

# What the gang plug-in says of every group that is not ready, whatever the cause is.
_GANG = re.compile(r"pod group is (?:not )?ready|tasks in gang")
_CAUSE_IN_GANG = re.compile(r"Origin reason is|Insufficient |nodes are (?:un)?available")
_GAVE_UP = "for retry limit reached"
# How much an event tells, by its reason and words; what is not listed tells nothing. The reasons are those of Volcano's
# scheduler and controller (pkg/scheduler, pkg/controllers/job), then those of the kubelet and of Kubernetes' scheduler.
# Volcano tells causes in Normal events as well: the type says nothing.
_GANG_ONLY = 1
_TELLING: tuple[tuple[int, re.Pattern[str]], ...] = (
    (4, re.compile(r"FailedCreate|JobStatusError|PluginError|PVCError|PodGroupError")),
    (3, re.compile(r"Unschedulable|PodGroupPending")),
    (3, re.compile(r"Failed.*|NetworkNotReady|InspectFailed|Evict.*|Preempt.*")),
    (2, re.compile(r"ExecuteAction")),
)
_NOT_MADE = {
    "CreateContainerConfigError": "its container cannot be set up",
    "CreateContainerError": "its container cannot be created",
    "RunContainerError": "its container cannot be started",
}
_LONGEST = 400


def pod_reason(pod: KubernetesObject, events: Iterable[KubernetesObject] = ()) -> str:
    """Explain a pod's state, empty where there is nothing to say.

    Args:
        pod: the pod.
        events: those about it.
    """
    status = pod.get("status") or {}
    if status.get("phase") == "Pending":
        return _pending_reason(pod, list(events))
    if status.get("phase") == "Failed":
        return _failed_reason(pod)
    for container in container_statuses(pod):
        waiting = (container.get("state") or {}).get("waiting")
        if waiting:
            ended = terminated(container)
            after = f" after {_ended(ended)}" if ended else ""
            return (
                f"starts again{after}" if waiting.get("reason") == "CrashLoopBackOff" else _describe_waiting(container)
            )
    if status.get("reason") == "NodeLost" or status.get("phase") == "Unknown":
        return "its node does not answer: its state is unknown"
    return ""


def exit_code(pod: KubernetesObject) -> int | None:
    """Return a replica's exit code; None while it runs, or where it is not known."""
    now = (main_status(pod).get("state") or {}).get("terminated") or {}
    code = now.get("exitCode")
    return code if isinstance(code, int) else None


def job_message(job: KubernetesObject) -> str:
    """Return Volcano's own message on a job's state, empty where there is none."""
    state = (job.get("status") or {}).get("state") or {}
    text = ": ".join(str(part) for part in (state.get("reason"), state.get("message")) if part)
    return plain(without_go(text))[:_LONGEST]


class EventSummary(NamedTuple):
    """What events tell.

    Attributes:
        text: why something waits, or has failed; empty where it is not known.
        is_cause: whether they name a cause, not only that a gang is not complete.
    """

    text: str = ""
    is_cause: bool = False


def summarize_events(events: Iterable[KubernetesObject]) -> EventSummary:
    """Return the message of the event that explains most, the newest of several.

    Args:
        events: of one object, or of a job and its group; of any type, in any order.
    """
    sort_by_role = sorted(events, key=event_time)
    # Once a group was placed, what was said of it before is over.
    placed = [event_time(event) for event in sort_by_role if event.get("reason") == "Scheduled"]
    since = placed[-1] if placed else ""
    best, text, gave_up = 0, "", False
    for event in sort_by_role:
        if event_time(event) < since:
            continue
        message = str(event.get("message") or "")
        rank = _rank(str(event.get("reason") or ""), message)
        if rank and rank >= best:
            best, text = rank, _said_by(event)
        gave_up = gave_up or _GAVE_UP in message
    if gave_up and _GAVE_UP not in text:
        text = f"{text}; Volcano has given it up" if text else "Volcano has given it up"
    return EventSummary(plain(text)[:_LONGEST], best > _GANG_ONLY)


def event_time(event: KubernetesObject) -> str:
    """Return when an event was last seen, as the server writes times; they can be compared."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def is_gang_only(message: str) -> bool:
    """Tell whether words of the scheduler say no more than that a gang is not complete."""
    return bool(_GANG.search(message)) and not _CAUSE_IN_GANG.search(message)


def without_go(text: str) -> str:
    """Return a text in which an error that Go printed with all its fields is its message."""
    return _GO_ERROR.sub(lambda match: _ESCAPED.sub(r"\1", match["message"]), text)


def _rank(reason: str, message: str) -> int:
    rank = next((rank for rank, reasons in _TELLING if reasons.fullmatch(reason)), 0)
    if reason == "ExecuteAction":
        return rank if _GAVE_UP in message else 0
    if rank and is_gang_only(message):
        # A gang that is ready has its places.
        return _GANG_ONLY if "not ready" in message else 0
    return rank


def _said_by(event: KubernetesObject) -> str:
    reason, message = str(event.get("reason") or ""), without_go(str(event.get("message") or ""))
    if match := _OF_PODS.match(message):
        # Volcano tells of all pods that it could not make in one list; the first says it.
        first = message[match.end() :].partition(" failed to create pod ")[0].removesuffix("]")
        return f"pods cannot be created: {_FORBIDDEN.sub('', first)}"
    return f"{reason}: {_describe_start_error(message)}".strip()


def needs_events(pod: KubernetesObject) -> bool:
    """Tell whether a pod that waits does not say why itself, so that its events may."""
    for container in container_statuses(pod):
        reason = ((container.get("state") or {}).get("waiting") or {}).get("reason")
        if reason and reason not in _STARTING:
            # Between two tries to pull an image its error is not told.
            return reason == "ImagePullBackOff"
    conditions = (pod.get("status") or {}).get("conditions") or []
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


def not_picked_up(job: KubernetesObject, queue_exists: bool | None, age: float) -> str:
    """Explain why Volcano has not looked at a job.

    Args:
        job: the job.
        queue_exists: whether its queue is there; None where that is not known.
        age: seconds since it was submitted.
    """
    queue = (job.get("spec") or {}).get("queue") or "default"
    if queue_exists is False:
        return f"the queue {plain(queue)} does not exist: Volcano ignores its jobs; choose another queue"
    return (
        f"Volcano has not picked the job up for {short_time(age)}: "
        "is its controller running? `kubectl -n volcano-system get pods` shows it"
    )


def _pending_reason(pod: KubernetesObject, events: list[KubernetesObject]) -> str:
    status = pod.get("status") or {}
    for container in container_statuses(pod):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") and waiting["reason"] not in _STARTING:
            return _describe_waiting(container, events)
        ended = (container.get("state") or {}).get("terminated")
        if ended and ended.get("exitCode"):
            return f"the container {container.get('name')}, which prepares it, failed: {_ended(ended)}"
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _describe_unscheduled(condition)
    if told := summarize_events(events).text:
        return told
    if status.get("containerStatuses"):
        return "its container is being created"
    return "" if (pod.get("spec") or {}).get("nodeName") else "waits for a node"


def _describe_unscheduled(condition: Mapping[str, Any]) -> str:
    message = plain(str(condition.get("message") or ""))[:_LONGEST]
    if condition.get("reason") == "SchedulingGated":
        return f"held back by a scheduling gate: {message}"
    return f"cannot be scheduled: {message}" if message else "cannot be scheduled"


def _describe_waiting(status: Mapping[str, Any], events: Iterable[KubernetesObject] = ()) -> str:
    waiting = (status.get("state") or {}).get("waiting") or {}
    reason, message = waiting.get("reason") or "", plain(str(waiting.get("message") or ""))[:_LONGEST]
    if reason in _NO_IMAGE:
        return plain(f"image {status.get('image')} cannot be pulled: {_describe_image_error(reason, message, events)}")
    words = _NOT_MADE.get(reason, reason)
    return plain(f"{words}: {message}" if message else words)


def _describe_image_error(reason: str, message: str, events: Iterable[KubernetesObject]) -> str:
    if reason == "ErrImageNeverPull":
        return "it is not on the node, and its pull policy is Never (ErrImageNeverPull)"
    if reason == "ImagePullBackOff":
        messages = [
            str(event.get("message") or "")
            for event in sorted(events, key=event_time)
            if event.get("reason") == "Failed"
        ]
        pulls = [text for text in messages if text.startswith("Failed to pull")]
        message = plain(pulls[-1]) if pulls else message
    cause = _BEFORE_CAUSE.sub("", message)[:_LONGEST]
    return f"{cause} ({reason})" if cause else reason


def _failed_reason(pod: KubernetesObject) -> str:
    status = pod.get("status") or {}
    text = plain(str(status.get("message") or ""))[:_LONGEST]
    if status.get("reason") == "Evicted":
        return f"evicted from its node: {text}"
    if status.get("reason") == "DeadlineExceeded":
        return f"ran longer than it may (DeadlineExceeded): {text}"
    for container in container_statuses(pod):
        ended = terminated(container)
        if ended and ended.get("exitCode"):
            return _ended(ended, _memory_limit(pod, str(container.get("name") or "")))
    return f"{status.get('reason')}: {text}" if status.get("reason") else text


def _ended(ended: Mapping[str, Any], limit: str = "") -> str:
    code = ended.get("exitCode")
    if ended.get("reason") == "OOMKilled":
        return f"out of memory: killed{f' at its limit of {limit}' if limit else ''} (exit {code})"
    words = format_exit(code if isinstance(code, int) else None)
    message = plain(str(ended.get("message") or "")).strip()[:_LONGEST]
    if ended.get("reason") in ("ContainerCannotRun", "StartError"):
        return f"cannot be run: {_describe_start_error(message)}"
    return f"{words}: {message}" if message else words


def _describe_start_error(message: str) -> str:
    """Shorten the message of a node's runtime on a start that failed, where it is a common one."""
    if match := _NO_COMMAND.search(message):
        return f"no such command: {match['command']}: the image does not have it"
    return message.removeprefix("Error: ")


def _memory_limit(pod: KubernetesObject, container: str) -> str:
    for spec in (pod.get("spec") or {}).get("containers") or []:
        if spec.get("name") == container:
            return str(((spec.get("resources") or {}).get("limits") or {}).get("memory") or "")
    return ""


def waits(state: AppState) -> bool:
    """Tell whether something in this state waits to run."""
    return state in (AppState.SUBMITTED, AppState.PENDING)
