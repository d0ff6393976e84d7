"""The states of jobs and pods, and when they entered them, by what the server keeps of them.

Phases are those of ``batch.volcano.sh/v1alpha1`` jobs and of ``v1`` pods; the table of states is TorchX's.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...specs import AppState, is_terminal
from ..responses import StateChange
from . import labels
from .jobs import Object

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


def phase_of(job: Object) -> str:
    """Return a job's phase, empty where Volcano has not looked at it yet."""
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def app_state(job: Object) -> AppState:
    """Return a job's state; SUBMITTED while Volcano has not looked at it, which TorchX calls UNKNOWN."""
    phase = phase_of(job)
    return _JOB_STATES.get(phase, AppState.UNKNOWN) if phase else AppState.SUBMITTED


def pod_state(pod: Object) -> AppState:
    """Return a pod's state."""
    return _POD_STATES.get((pod.get("status") or {}).get("phase") or "", AppState.UNKNOWN)


def seconds_of(text: Any) -> float | None:
    """Return a time of the server in seconds since the epoch, None where there is none."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def submitted_at(job: Object) -> float:
    """Return when a job was submitted, in seconds since the epoch; 0 where nothing tells."""
    metadata = job["metadata"]
    created = seconds_of(metadata.get("creationTimestamp")) or 0.0
    try:
        ours = float((metadata.get("annotations") or {}).get(labels.SUBMITTED_AT, ""))
    except ValueError:
        return created
    # The server's time has whole seconds; another clock may be wrong.
    return ours if abs(ours - created) < 60 else created


def timeline(job: Object) -> list[StateChange]:
    """Return the states that a job went through, by Volcano's conditions; their times have whole seconds."""
    first = submitted_at(job)
    found = [StateChange(AppState.SUBMITTED, first)]
    status = job.get("status") or {}
    entered = [
        *((str(one.get("status") or ""), one.get("lastTransitionTime")) for one in status.get("conditions") or []),
        (phase_of(job), (status.get("state") or {}).get("lastTransitionTime")),
    ]
    for phase, when in entered:
        state = _JOB_STATES.get(phase)
        if state is not None and state is not found[-1].state:
            found.append(StateChange(state, max(found[-1].at, seconds_of(when) or 0.0)))
    return found


def started_at(job: Object) -> float | None:
    """Return when a job first ran, in seconds since the epoch."""
    return next((change.at for change in timeline(job) if change.state is AppState.RUNNING), None)


def finished_at(job: Object) -> float | None:
    """Return when a job ended, in seconds since the epoch; None while it has not."""
    if not is_terminal(app_state(job)):
        return None
    return timeline(job)[-1].at


def container_statuses(pod: Object) -> list[Mapping[str, Any]]:
    """Return what is known of a pod's containers: those that prepare it first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def main_status(pod: Object) -> Mapping[str, Any]:
    """Return what is known of the container that is the replica: the first one; empty where nothing is yet."""
    first = next((one.get("name") for one in (pod.get("spec") or {}).get("containers") or []), None)
    found = (pod.get("status") or {}).get("containerStatuses") or []
    return next((one for one in found if one.get("name") == first), found[0] if found else {})


def terminated(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how a container ended, or ended last before it was started again; empty where it never did."""
    now, before = status.get("state") or {}, status.get("lastState") or {}
    return now.get("terminated") or before.get("terminated") or {}
