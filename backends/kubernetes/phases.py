"""The states of jobs and pods, and when they entered them, by what the server keeps of them.

Phases are those of ``batch.volcano.sh/v1alpha1`` jobs and of ``v1`` pods; the table of states is TorchX's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from ...specs.status import AppState, is_terminal
from ..types import StateChange
from . import labels
from .shapes import KubernetesObject

_DEFAULT = "kubectl.kubernetes.io/default-container"
_OVER = ("Succeeded", "Failed")


_JOB_STATES = {
    "Pending": AppState.PENDING,
    "Running": AppState.RUNNING,
    "Restarting": AppState.RUNNING,
    "Completing": AppState.RUNNING,
    "Aborting": AppState.RUNNING,
    "Terminating": AppState.RUNNING,
    "Completed": AppState.SUCCEEDED,
    "Aborted": AppState.CANCELLED,
    "Terminated": AppState.FAILED,
    "Failed": AppState.FAILED,
}
_POD_STATES = {
    "Pending": AppState.PENDING,
    "Running": AppState.RUNNING,
    "Succeeded": AppState.SUCCEEDED,
    "Failed": AppState.FAILED,
}


class ContainerRun(NamedTuple):
    """How a container is doing.

    Attributes:
        number: how often it was started again; -1 where it was never started.
        is_running: whether it runs now.
        is_over: whether it has ended, and will not be started again.
    """

    number: int
    is_running: bool
    is_over: bool


def before_others(pod: KubernetesObject) -> list[str]:
    """Return the containers that prepare the others: each ends before the next one starts."""
    return [item["name"] for item in _init_containers(pod) if item.get("restartPolicy") != "Always"]


def main_container(pod: KubernetesObject, task: str = "") -> str:
    """Return the name of the replica's own container; injected ones, such as proxies, may come before it.

    Args:
        pod: the pod, or a task's template.
        task: the task, where the labels do not name it.
    """
    metadata = pod.get("metadata") or {}
    names = [item["name"] for item in (pod.get("spec") or {}).get("containers") or []]
    named = (metadata.get("annotations") or {}).get(_DEFAULT)
    own = task or (metadata.get("labels") or {}).get(labels.TASK)
    return next((str(name) for name in (named, own) if name in names), names[0] if names else "")


def run_of(pod: KubernetesObject, container: str) -> ContainerRun:
    """Return how a container is doing."""
    phase = (pod.get("status") or {}).get("phase")
    status = next((item for item in container_statuses(pod) if item.get("name") == container), {})
    state: Mapping[str, Any] = status.get("state") or {}
    count = int(status.get("restartCount") or 0)
    if "running" in state:
        return ContainerRun(count, is_running=True, is_over=False)
    if "terminated" in state:
        is_over = phase in _OVER or "deletionTimestamp" in pod["metadata"] or not _starts_again(pod, container, state)
        return ContainerRun(count, is_running=False, is_over=is_over)
    # Between two runs it waits.
    was_started = count > 0 or bool((status.get("lastState") or {}).get("terminated"))
    return ContainerRun(count if was_started else -1, is_running=False, is_over=phase in _OVER)


def _starts_again(pod: KubernetesObject, container: str, state: Mapping[str, Any]) -> bool:
    policy = (pod.get("spec") or {}).get("restartPolicy") or "Always"
    succeeded = (state.get("terminated") or {}).get("exitCode") == 0
    if container in before_others(pod):
        return not succeeded and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and not succeeded)


def _init_containers(pod: KubernetesObject) -> list[KubernetesObject]:
    return (pod.get("spec") or {}).get("initContainers") or []


def phase_of(job: KubernetesObject) -> str:
    """Return a job's phase, empty where Volcano has not looked at it yet."""
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def app_state(job: KubernetesObject) -> AppState:
    """Return a job's state; SUBMITTED while Volcano has not looked at it, which TorchX calls UNKNOWN."""
    phase = phase_of(job)
    return _JOB_STATES.get(phase, AppState.UNKNOWN) if phase else AppState.SUBMITTED


def pod_state(pod: KubernetesObject) -> AppState:
    """Return a pod's state."""
    return _POD_STATES.get((pod.get("status") or {}).get("phase") or "", AppState.UNKNOWN)


def seconds_of(text: Any) -> float | None:
    """Return a time of the server in seconds since the epoch, None where there is none."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return None


def submitted_at(job: KubernetesObject) -> float:
    """Return when a job was submitted, in seconds since the epoch; 0 where it is not known."""
    metadata = job["metadata"]
    created = seconds_of(metadata.get("creationTimestamp")) or 0.0
    try:
        ours = float((metadata.get("annotations") or {}).get(labels.SUBMITTED_AT, ""))
    except ValueError:
        return created
    # The server's time has whole seconds; another clock may be wrong.
    return ours if abs(ours - created) < 60 else created


def timeline(job: KubernetesObject, ended_at: float | None = None) -> list[StateChange]:
    """Return the states that a job went through, by Volcano's conditions; their times have whole seconds.

    Args:
        job: the job.
        ended_at: when it ended, see `finished_at`; a final state whose time is not known is left out.
    """
    changes = [StateChange(AppState.SUBMITTED, submitted_at(job))]
    for phase, when in _transitions(job):
        state = _JOB_STATES.get(phase)
        if state is None or state is changes[-1].state:
            continue
        if phase == phase_of(job) and is_terminal(state) and not _has_own_time(job):
            when = ended_at
            if when is None:
                continue
        changes.append(StateChange(state, max(changes[-1].at, when or 0.0)))
    return changes


def started_at(job: KubernetesObject) -> float | None:
    """Return when a job first ran, in seconds since the epoch."""
    return next((change.at for change in timeline(job) if change.state is AppState.RUNNING), None)


def finished_at(job: KubernetesObject, pods: Iterable[KubernetesObject] = ()) -> float | None:
    """Return when a job ended, in seconds since the epoch; None while it has not, or where it is not known.

    Who cancels a job writes its phase and mostly no time: the time beside it is that of the phase before. Then the
    server's note of who wrote the phase tells (`managedFields`), else the job's pods.

    Args:
        job: the job.
        pods: its pods, as far as they are known.
    """
    if not is_terminal(app_state(job)):
        return None
    if _has_own_time(job):
        return timeline(job)[-1].at
    return _phase_written_at(job) or max((at for pod in pods if (at := _pod_end(pod)) is not None), default=None)


def _transitions(job: KubernetesObject) -> list[tuple[str, float | None]]:
    """Return the phases that a job entered, and when."""
    status = job.get("status") or {}
    entered = [
        (condition.get("status") or "", condition.get("lastTransitionTime"))
        for condition in status.get("conditions") or []
    ]
    entered.append((phase_of(job), (status.get("state") or {}).get("lastTransitionTime")))
    return [(phase, seconds_of(when)) for phase, when in entered]


def _has_own_time(job: KubernetesObject) -> bool:
    """Tell whether the time beside a job's phase is when it was entered, not left over from the phase before."""
    *before, (phase, when) = _transitions(job)
    if not before or before[-1][0] == phase:
        return True
    return when is not None and when > (before[-1][1] or 0.0)


def _phase_written_at(job: KubernetesObject) -> float | None:
    """Return when the one who wrote a job's phase last wrote its status."""
    for entry in job["metadata"].get("managedFields") or []:
        status = (entry.get("fieldsV1") or {}).get("f:status")
        state = status.get("f:state") if isinstance(status, dict) else None
        # Where the server does not know the fields of the state, it notes the whole of it.
        if isinstance(state, dict) and (not state or "f:phase" in state):
            return seconds_of(entry.get("time"))
    return None


def _pod_end(pod: KubernetesObject) -> float | None:
    """Return when a pod's container ended, else when the pod was told to end."""
    ended = (main_status(pod).get("state") or {}).get("terminated") or {}
    if (at := seconds_of(ended.get("finishedAt"))) is not None:
        return at
    deadline = seconds_of(pod["metadata"].get("deletionTimestamp"))
    return None if deadline is None else deadline - (pod["metadata"].get("deletionGracePeriodSeconds") or 0)


def container_statuses(pod: KubernetesObject) -> list[Mapping[str, Any]]:
    """List the statuses of a pod's containers, those that prepare it first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def main_status(pod: KubernetesObject) -> Mapping[str, Any]:
    """Return the status of the main container; empty where there is none yet."""
    own = main_container(pod)
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return next((item for item in statuses if item.get("name") == own), {})


def terminated(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how a container ended, or ended last before it was started again; empty where it never did."""
    now, before = status.get("state") or {}, status.get("lastState") or {}
    return now.get("terminated") or before.get("terminated") or {}
