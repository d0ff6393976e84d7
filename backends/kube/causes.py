"""Why a pod is in its state, the cause first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...logs.text.sanitize import plain
from ...specs.status import AppState
from ..shared.exit_reasons import format_exit
from .objects import KubernetesObject, dig
from .pods import (
    before_others,
    container_statuses,
    is_lost,
    main_container,
    main_status,
    pod_state,
    seconds_of,
    terminated,
)

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

_OF_PODS = re.compile(
    r"^(?:\(combined from similar events\): )?Error creating(?: pods)?: (?:\[failed to create pod \S+, err: )?"
    r"(?:pods \"[^\"]*\" is forbidden: )?"
)
# Messages of servers and kubelets, and the text shown instead, with the groups of the pattern.
_MESSAGES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), text)
    for pattern, text in (
        (r'.*serviceaccount "([^"]+)" not found.*', "there is no service account {0} in the namespace"),
        (r"no PriorityClass with name (\S+) was found.*", "there is no PriorityClass {0}"),
        (
            r"exceeded quota: (\S+), requested: (.+?), used: (.+?), limited: (.+)",
            "the quota {0} allows {3}: {2} is used, {1} is asked for",
        ),
        (
            r'violates PodSecurity "([^":]+)[^"]*": (.+?\)).*',
            "the namespace allows only {0} pods: {1}",
        ),
        (r"couldn't find key (\S+) in (ConfigMap|Secret) [^/ ]+/(\S+)", "the {1} {2} has no key {0}"),
        (r'configmap "([^"]+)" not found', "the ConfigMap {0} does not exist"),
        (r'secret "([^"]+)" not found', "the Secret {0} does not exist"),
        (
            r"container has runAsNonRoot and image will run as root.*",
            "the image runs as root, which runAsNonRoot forbids",
        ),
        (r"hostPath type check failed: (\S+) is not (.+)", "{0} is not {1} on the node"),
        (
            r'(?:MountVolume|AttachVolume)\.\S+ failed for volume "([^"]+)" : (.+)',
            "its volume {0} cannot be mounted: {1}",
        ),
    )
)
# A scheduler's reasons, and the text shown if one of them holds for all nodes, with the requests of the pod.
_NODES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"\d+ Insufficient (?P<resource>cpu|\S+/\S+)", "no node has {asked} {resource} free"),
        (r"\d+ Insufficient (?P<resource>\S+)", "no node has {asked} of {resource} free"),
        (r"\d+ node\(s\) didn't match Pod's node affinity/selector", "no node has {labels}"),
        (r"\d+ node\(s\) had untolerated taint\(s\)", "every node has a taint that it does not tolerate"),
        (r"\d+ node\(s\) had untolerated taint (?P<taint>\{.*\})", "every node has the taint {taint}"),
        (r"\d+ node\(s\) were unschedulable", "every node is cordoned"),
        (
            r"\d+ node\(s\) didn't have free ports for the requested pod ports",
            "the host port {port} is taken on every node",
        ),
        (
            r'(?:\d+ plugin \S+ pre-predicates failed )?persistentvolumeclaim "(?P<claim>[^"]+)" not found',
            "the claim {claim} does not exist",
        ),
        (r"pod has unbound immediate PersistentVolumeClaims", "{claims} no volume yet"),
    )
)
_NODES_HEAD = re.compile(r"^0/\d+ nodes are (?:un)?available: (?P<reasons>.*)$", re.DOTALL)
# From here on a message is about preemption and claims.
_NODES_TAIL = re.compile(r"\.? (?:no new claims to deallocate|preemption:|not found$).*|\.$", re.DOTALL)
_BACK_OFF = re.compile(r"back-off (?P<wait>\S+) restarting failed")
_AGAIN = "starts again"
# Why a pod was taken away, by the reason of its condition DisruptionTarget.
_DISRUPTED = {
    "EvictionByEvictionAPI": "was evicted from its node, as a drain does",
    "PreemptionByScheduler": "made way for a pod of a higher priority",
    "DeletionByTaintManager": "was deleted because its node did not answer",
}
_NOT_MADE = {
    "CreateContainerConfigError": "its container cannot be set up",
    "CreateContainerError": "its container cannot be created",
    "RunContainerError": "its container cannot be started",
}
LONGEST = 400
UNSCHEDULED = "cannot be scheduled"
"""How the reason of a pod begins that no node takes, by its scheduler."""
UNPLACED = "waits for a node"
"""The reason of a pod without a condition or an event of its scheduler."""
LOOKED_AT_S = 10.0
"""Seconds within which controllers and schedulers look at something new."""
_DEFAULT_SCHEDULER = "default-scheduler"


# What the kubelet and Kubernetes' scheduler tell of causes. They tell them in Normal events as well.
TELLING = re.compile(r"Failed.*|NetworkNotReady|InspectFailed|Evict.*|Preempt.*")


def explain_message(message: str) -> str:
    """Return a message of a server or a kubelet in words; unknown ones as they are."""
    for pattern, text in _MESSAGES:
        if match := pattern.fullmatch(message.strip()):
            return text.format(*map(explain_message, match.groups()))
    return message


def explain_not_created(message: str) -> str | None:
    """Return why pods cannot be created, by the message of an event FailedCreate; None if it is another message."""
    match = _OF_PODS.match(message)
    if match is None:
        return None
    # Some controllers list all pods that they could not create; the first is enough.
    first = message[match.end() :].partition(" failed to create pod ")[0].removesuffix("]")
    return f"pods cannot be created: {explain_message(first)}"


def explain_nodes(message: str, pod: KubernetesObject | None = None) -> str:
    """Return why no node takes a pod: in words where one reason holds for all nodes, else the scheduler's message.

    Args:
        message: the scheduler's message.
        pod: the pod; the message is only shortened without it.
    """
    short = _NODES_TAIL.sub("", message)
    head = _NODES_HEAD.match(short)
    if pod is None or head is None:
        return short
    for pattern, text in _NODES:
        if match := pattern.fullmatch(head["reasons"]):
            return text.format(**match.groupdict(), **_asked_for(pod, match.groupdict().get("resource") or ""))
    return short


def _asked_for(pod: KubernetesObject, resource: str) -> dict[str, str]:
    """Return the requests of a pod, as values for `_NODES`."""
    spec = pod.get("spec", {})
    containers = spec.get("containers") or []
    amounts = [amount for one in containers if (amount := dig(one, "resources", "requests", resource))]
    pairs = [f"{name}={value}" for name, value in (spec.get("nodeSelector") or {}).items()]
    terms = dig(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for term in terms if isinstance(terms, list) else []:
        for one in dig(term, "matchExpressions") or []:
            pairs.append(f"{dig(one, 'key')}={'|'.join(map(str, dig(one, 'values') or ['...']))}")
    claims = [name for one in spec.get("volumes") or [] if (name := dig(one, "persistentVolumeClaim", "claimName"))]
    ports = [str(port["hostPort"]) for one in containers for port in one.get("ports") or [] if port.get("hostPort")]
    return {
        "asked": plain(str(amounts[0])) if len(amounts) == 1 else "enough",
        "labels": plain(f"the label{'s' if len(pairs) > 1 else ''} {', '.join(pairs)}") if pairs else "its labels",
        "claims": plain(f"the claim {claims[0]} has") if len(claims) == 1 else "its claims have",
        "port": ", ".join(ports),
    }


def describe_event(event: KubernetesObject) -> str:
    """Return an event's reason and message in one line."""
    message = _describe_start_error(without_go(event.get("message", "")))
    words = explain_not_created(message) or explain_message(message)
    if words != message:
        return plain(words)[:LONGEST]
    return plain(f"{event.get('reason') or ''}: {explain_nodes(message)}".strip())[:LONGEST]


def pod_reason(pod: KubernetesObject, events: Iterable[KubernetesObject] = (), cause: str = "") -> str:
    """Explain a pod's state; empty if there is nothing to say.

    Args:
        pod: the pod.
        events: those about it.
        cause: what these events say of it.
    """
    status = pod.get("status", {})
    taken = [one for one in status.get("conditions", []) if one.get("type") == "DisruptionTarget"]
    if taken and not is_lost(pod) and (words := _DISRUPTED.get(taken[0].get("reason") or "")):
        return words
    if status.get("phase") == "Pending":
        return _pending_reason(pod, events, cause)
    if status.get("phase") == "Failed":
        return _failed_reason(pod)
    if is_lost(pod):
        return "its node does not answer: its state is unknown"
    events = list(events)
    for container in container_statuses(pod):
        if dig(container, "state", "waiting"):
            return _describe_waiting(container, events)
    main = main_status(pod)
    code = dig(main, "state", "terminated", "exitCode")
    others = [one["name"] for one in status.get("containerStatuses", []) if "running" in one.get("state", {})]
    if code is not None and others:
        return plain(f"{format_exit(code)}, but its container {others[0]} runs on")
    if code and dig(pod, "spec", "restartPolicy") != "Never" and "deletionTimestamp" not in pod["metadata"]:
        # Between two tries.
        return plain(_describe_crash_loop(main, "", events))
    has_probe = any(
        one["name"] == main_container(pod) and "readinessProbe" in one for one in dig(pod, "spec", "containers") or []
    )
    if has_probe and "running" in main.get("state", {}) and main.get("ready") is False:
        return "is not ready: its readiness probe fails"
    return ""


def unplaced_reason(pod: KubernetesObject, now: float) -> str:
    """Explain why a pod waits for a node of which no condition or event says anything."""
    scheduler = dig(pod, "spec", "schedulerName") or _DEFAULT_SCHEDULER
    created = seconds_of(pod["metadata"].get("creationTimestamp"))
    conditions = {one.get("type") for one in dig(pod, "status", "conditions") or []}
    if created is None or now - created <= LOOKED_AT_S or "PodScheduled" in conditions:
        return UNPLACED
    return plain(f"waits for the scheduler {scheduler}, which has said nothing about it")


def event_time(event: KubernetesObject) -> str:
    """Return when an event was last seen, as the server writes times; they can be compared."""
    # An event that was repeated keeps its eventTime; its series has the time of the last one.
    return str(dig(event, "series", "lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or "")


def newest_cause(pod: KubernetesObject, events: Iterable[KubernetesObject]) -> str:
    """Return the text of the newest event of a pod that names a cause; empty if there is none."""
    telling = [event for event in sorted(events, key=event_time) if TELLING.fullmatch(event.get("reason") or "")]
    if not telling:
        return ""
    if telling[-1].get("reason") != "FailedScheduling":
        return describe_event(telling[-1])
    # It is over once the pod is on a node.
    words = explain_nodes(telling[-1].get("message") or "", pod)
    return "" if dig(pod, "spec", "nodeName") else plain(f"{UNSCHEDULED}: {words}")[:LONGEST]


def without_go(text: str) -> str:
    """Return a text in which an error that Go printed with all its fields is its message."""
    return _GO_ERROR.sub(lambda match: _ESCAPED.sub(r"\1", match["message"]), text)


def needs_events(pod: KubernetesObject) -> bool:
    """Return whether a waiting pod's status gives no reason, so that its events are needed."""
    for container in container_statuses(pod):
        reason = dig(container, "state", "waiting", "reason")
        if reason and reason not in _STARTING:
            # Between two pulls older kubelets leave the error out; a probe that kills is only in events.
            return reason in ("ImagePullBackOff", "CrashLoopBackOff")
    conditions = dig(pod, "status", "conditions") or []
    return not any(
        container.get("type") == "PodScheduled" and container.get("status") == "False" and container.get("message")
        for container in conditions
    )


def is_silent(pod: KubernetesObject) -> bool:
    """Return whether only events may explain why a pod waits or restarts."""
    state = pod_state(pod)
    restarts = any(one.get("restartCount") for one in container_statuses(pod))
    return (state is AppState.PENDING or (state is AppState.RUNNING and restarts)) and needs_events(pod)


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
            words = _describe_waiting(container, events)
            return f"the init container {container['name']} {words}" if words.startswith(_AGAIN) else words
        ended = dig(container, "state", "terminated")
        if ended and ended.get("exitCode"):
            return f"the init container {container.get('name')} failed: {_ended(ended)}"
        if container.get("name") in before_others(pod) and "running" in container.get("state", {}):
            return f"the init container {container.get('name')} is running"
    for condition in status.get("conditions", []):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _describe_unscheduled(condition, pod)
    if cause:
        return cause
    if status.get("containerStatuses"):
        return "its container is being created"
    return "" if dig(pod, "spec", "nodeName") else UNPLACED


def _describe_unscheduled(condition: Mapping[str, Any], pod: KubernetesObject) -> str:
    message = plain(explain_nodes(condition.get("message", ""), pod))[:LONGEST]
    if condition.get("reason") == "SchedulingGated":
        gates = [plain(str(dig(gate, "name"))) for gate in dig(pod, "spec", "schedulingGates") or []]
        return f"held by the scheduling gate {', '.join(gates)}" if gates else f"held by a scheduling gate: {message}"
    return f"{UNSCHEDULED}: {message}" if message else UNSCHEDULED


def _describe_waiting(status: Mapping[str, Any], events: Iterable[KubernetesObject] = ()) -> str:
    waiting = dig(status, "state", "waiting") or {}
    reason, message = waiting.get("reason") or "", plain(waiting.get("message", ""))[:LONGEST]
    events = list(events)
    if reason == "CrashLoopBackOff":
        return plain(_describe_crash_loop(status, message, events))
    if reason in _NO_IMAGE:
        return plain(f"image {status.get('image')} cannot be pulled: {_describe_image_error(reason, message, events)}")
    words = _NOT_MADE.get(reason, reason)
    return plain(f"{words}: {explain_message(message)}" if message else words)


def _describe_crash_loop(status: Mapping[str, Any], message: str, events: Iterable[KubernetesObject]) -> str:
    ended, count, wait = terminated(status), status.get("restartCount") or 0, _BACK_OFF.search(message)
    probed = any("failed liveness probe" in (event.get("message") or "") for event in events)
    words = _AGAIN + (f" after {_ended(ended)}" if ended else "")
    words += ", killed by its liveness probe" if probed else ""
    if not count:
        return words
    next_one = f", the next one within {wait['wait']}" if wait else ""
    return f"{words} ({count} restart{'s' if count > 1 else ''}{next_one})"


def _describe_image_error(reason: str, message: str, events: Iterable[KubernetesObject]) -> str:
    if reason == "ErrImageNeverPull":
        return "it is not on the node, and its pull policy is Never (ErrImageNeverPull)"
    if reason == "InvalidImageName":
        return f"{message.rpartition('invalid reference format: ')[2]} ({reason})"
    if reason == "ImagePullBackOff":
        # Between two pulls newer kubelets put the error into the status.
        message = message.partition(": ErrImagePull: ")[2] or message
        messages = [
            event.get("message", "") for event in sorted(events, key=event_time) if event.get("reason") == "Failed"
        ]
        pulls = [text for text in messages if text.startswith("Failed to pull")]
        message = plain(pulls[-1]) if pulls else message
    cause = _BEFORE_CAUSE.sub("", message)[:LONGEST]
    return f"{cause} ({reason})" if cause else reason


def _failed_reason(pod: KubernetesObject) -> str:
    status = pod.get("status", {})
    text = plain(status.get("message", "")).strip(" .")[:LONGEST]
    if status.get("reason") == "Evicted":
        return f"evicted from its node: {text}"
    if status.get("reason") == "DeadlineExceeded":
        return f"ran longer than it may (DeadlineExceeded): {text}"
    for container in (main_status(pod), *container_statuses(pod)):
        ended = terminated(container)
        if ended and ended.get("exitCode"):
            words = _ended(ended, _memory_limit(pod, container.get("name", "")))
            of_init = container.get("name") in before_others(pod)
            return plain(f"the init container {container.get('name')} failed: {words}") if of_init else words
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
