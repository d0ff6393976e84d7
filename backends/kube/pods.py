"""Pods: their phases, their containers, and how those run and end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ...specs.status import AppState
from .objects import KubernetesObject, dig

MAIN = "main container"
"""A key that this program adds to a pod: the main container, by the labels of the job's kind."""
_DEFAULT = "kubectl.kubernetes.io/default-container"
_OVER = ("Succeeded", "Failed")


_POD_STATES = {
    "Pending": AppState.PENDING,
    "Running": AppState.RUNNING,
    "Succeeded": AppState.SUCCEEDED,
    "Failed": AppState.FAILED,
}


class ContainerRun(NamedTuple):
    """How a container is doing.

    Attributes:
        number: the number of restarts; -1 if it was never started.
        is_running: whether it runs now.
        is_over: whether it has ended for good.
    """

    number: int
    is_running: bool
    is_over: bool


def before_others(pod: KubernetesObject) -> list[str]:
    """Return the init containers that are no sidecars: each ends before the next one starts."""
    return [item["name"] for item in _init_containers(pod) if item.get("restartPolicy") != "Always"]


def main_container(pod: KubernetesObject, name: str = "") -> str:
    """Return the name of a pod's main container: injected ones, such as proxies, may come before it.

    Args:
        pod: the pod, or its template.
        name: the container that the job's kind names; `MAIN` of the pod if empty.
    """
    names = [item["name"] for item in dig(pod, "spec", "containers") or []]
    named = dig(pod, "metadata", "annotations", _DEFAULT)
    return next((str(one) for one in (named, name or pod.get(MAIN)) if one in names), names[0] if names else "")


def run_of(pod: KubernetesObject, container: str) -> ContainerRun:
    """Return how a container is doing."""
    phase = dig(pod, "status", "phase")
    status = next((item for item in container_statuses(pod) if item.get("name") == container), {})
    state: Mapping[str, Any] = status.get("state", {})
    count = dig(status, "restartCount") or 0
    if "running" in state:
        return ContainerRun(count, is_running=True, is_over=False)
    if "terminated" in state:
        is_over = phase in _OVER or "deletionTimestamp" in pod["metadata"] or not _starts_again(pod, container, state)
        return ContainerRun(count, is_running=False, is_over=is_over)
    # Between two runs it waits.
    was_started = count > 0 or bool(dig(status, "lastState", "terminated"))
    return ContainerRun(count if was_started else -1, is_running=False, is_over=phase in _OVER)


def _starts_again(pod: KubernetesObject, container: str, state: Mapping[str, Any]) -> bool:
    policy = dig(pod, "spec", "restartPolicy") or "Always"
    succeeded = dig(state, "terminated", "exitCode") == 0
    if container in before_others(pod):
        return not succeeded and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and not succeeded)


def _init_containers(pod: KubernetesObject) -> list[KubernetesObject]:
    return dig(pod, "spec", "initContainers") or []


def is_lost(pod: KubernetesObject) -> bool:
    """Return whether a pod's node does not answer: the phase stays, and the condition Ready has no reason.

    A kubelet gives a reason to a condition that is False; the controller that watches nodes gives none.
    """
    status = pod.get("status", {})
    if status.get("phase") != "Running":
        return status.get("phase") == "Unknown" or status.get("reason") == "NodeLost"
    return status.get("reason") == "NodeLost" or any(
        one.get("type") == "Ready" and one.get("status") in ("False", "Unknown") and not one.get("reason")
        for one in status.get("conditions") or []
    )


def pod_state(pod: KubernetesObject) -> AppState:
    """Return a pod's state; UNKNOWN where its node does not answer."""
    if is_lost(pod):
        return AppState.UNKNOWN
    return _POD_STATES.get(dig(pod, "status", "phase") or "", AppState.UNKNOWN)


def seconds_of(text: Any) -> float | None:
    """Return a time of the server in seconds since the epoch, None if there is none."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return None


def pod_end(pod: KubernetesObject) -> float | None:
    """Return when a pod's main container ended, else when the pod was asked to end."""
    ended = (main_status(pod).get("state") or {}).get("terminated") or {}
    if (at := seconds_of(ended.get("finishedAt"))) is not None:
        return at
    deadline = seconds_of(pod["metadata"].get("deletionTimestamp"))
    return None if deadline is None else deadline - (pod["metadata"].get("deletionGracePeriodSeconds") or 0)


def container_statuses(pod: KubernetesObject) -> list[Mapping[str, Any]]:
    """List the statuses of a pod's containers, those that prepare it first."""
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]


def main_status(pod: KubernetesObject) -> Mapping[str, Any]:
    """Return the status of the main container; empty if there is none yet."""
    own = main_container(pod)
    statuses = dig(pod, "status", "containerStatuses") or []
    return next((item for item in statuses if item.get("name") == own), {})


def terminated(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how a container ended last; empty if it never did."""
    now, before = status.get("state", {}), status.get("lastState", {})
    return now.get("terminated") or before.get("terminated", {})


def first_start(pods: Iterable[KubernetesObject]) -> float | None:
    """Return when the first main container of pods started, in seconds since the epoch; None if none has."""
    runs = [
        dig(status, when, how, "startedAt")
        for status in map(main_status, pods)
        for when in ("state", "lastState")
        for how in ("running", "terminated")
    ]
    return min((at for text in runs if (at := seconds_of(text))), default=None)


def image_of(pod: KubernetesObject, container: str) -> str:
    """Return the image of a pod's container."""
    return {item["name"]: item.get("image", "") for item in pod["spec"]["containers"]}.get(container, "")


def exit_code(pod: KubernetesObject) -> int | None:
    """Return a replica's exit code; None while it runs, or if it is unknown."""
    now = (main_status(pod).get("state") or {}).get("terminated") or {}
    code = now.get("exitCode")
    return code if isinstance(code, int) else None
