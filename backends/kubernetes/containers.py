"""The containers of a pod: in which order they run, which one is the replica, how each is doing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .jobs import Object
from .phases import container_statuses

_DEFAULT = "kubectl.kubernetes.io/default-container"
_OVER = ("Succeeded", "Failed")


class Run(NamedTuple):
    """How a container is doing.

    Attributes:
        number: how often it was started again; -1 where it was never started.
        is_running: whether it runs now.
        is_over: whether it has ended, and will not be started again.
    """

    number: int
    is_running: bool
    is_over: bool


def before_others(pod: Object) -> list[str]:
    """Return the containers that prepare the others: each ends before the next one starts."""
    return [one["name"] for one in _init_containers(pod) if one.get("restartPolicy") != "Always"]


def side_by_side(pod: Object) -> list[str]:
    """Return the containers that run at the same time, the replica's own first."""
    spec = pod.get("spec") or {}
    names = [one["name"] for one in spec.get("containers") or []]
    names += [one["name"] for one in _init_containers(pod) if one.get("restartPolicy") == "Always"]
    own = main_container(pod)
    return [own, *(name for name in names if name != own)]


def main_container(pod: Object) -> str:
    """Return the container that is the replica: the one that the pod names, else the first."""
    names = [one["name"] for one in (pod.get("spec") or {}).get("containers") or []]
    named = (pod["metadata"].get("annotations") or {}).get(_DEFAULT)
    return str(named) if named in names else (names[0] if names else "")


def run_of(pod: Object, container: str) -> Run:
    """Return how a container is doing."""
    phase = (pod.get("status") or {}).get("phase")
    status = next((one for one in container_statuses(pod) if one.get("name") == container), {})
    state: Mapping[str, Any] = status.get("state") or {}
    count = int(status.get("restartCount") or 0)
    if "running" in state:
        return Run(count, is_running=True, is_over=False)
    if "terminated" in state:
        is_over = phase in _OVER or "deletionTimestamp" in pod["metadata"] or not _starts_again(pod, container, state)
        return Run(count, is_running=False, is_over=is_over)
    # Between two runs it waits.
    was_started = count > 0 or bool((status.get("lastState") or {}).get("terminated"))
    return Run(count if was_started else -1, is_running=False, is_over=phase in _OVER)


def _starts_again(pod: Object, container: str, state: Mapping[str, Any]) -> bool:
    policy = (pod.get("spec") or {}).get("restartPolicy") or "Always"
    succeeded = (state.get("terminated") or {}).get("exitCode") == 0
    if container in before_others(pod):
        return not succeeded and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and not succeeded)


def _init_containers(pod: Object) -> list[Object]:
    return (pod.get("spec") or {}).get("initContainers") or []
