"""The states of Volcano's jobs and when they entered them (``batch.volcano.sh/v1alpha1``); the table is TorchX's."""

from __future__ import annotations

from collections.abc import Iterable

from ....specs.status import AppState, is_terminal
from ...kube.objects import KubernetesObject, dig
from ...kube.pods import first_start, pod_end, seconds_of
from ...types import StateChange
from ..times import submitted_at

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


def phase_of(job: KubernetesObject) -> str:
    """Return a job's phase, empty until Volcano has picked it up."""
    return dig(job, "status", "state", "phase") or ""


def app_state(job: KubernetesObject) -> AppState:
    """Return a job's state; SUBMITTED until Volcano has picked it up, which TorchX calls UNKNOWN."""
    phase = phase_of(job)
    return _JOB_STATES.get(phase, AppState.UNKNOWN) if phase else AppState.SUBMITTED


def timeline(
    job: KubernetesObject, ended_at: float | None = None, pods: Iterable[KubernetesObject] = ()
) -> list[StateChange]:
    """Return the states that a job went through, by Volcano's conditions; their times have whole seconds.

    Volcano writes the time of Running anew whenever the counts of pods change: pods may have started before.

    Args:
        job: the job.
        ended_at: when it ended, see `finished_at`; a final state whose time is not known is left out.
        pods: its pods, as far as they are known.
    """
    changes = [StateChange(AppState.SUBMITTED, submitted_at(job))]
    for phase, when in _transitions(job):
        state = _JOB_STATES.get(phase)
        if state is None or state is changes[-1].state:
            continue
        if state is AppState.RUNNING and phase != "Running" and phase != phase_of(job):
            # It ends, or starts again, without having run.
            continue
        if phase == phase_of(job) and is_terminal(state) and not _has_own_time(job):
            when = ended_at
            if when is None:
                continue
        changes.append(StateChange(state, max(changes[-1].at, when or 0.0)))
    began = first_start(pods)
    first = next((k for k, change in enumerate(changes) if change.state is AppState.RUNNING), None)
    if began is None or first is None or began >= changes[first].at:
        return changes
    earlier = [StateChange(change.state, min(change.at, began)) for change in changes[:first]]
    return [*earlier, StateChange(AppState.RUNNING, began), *changes[first + 1 :]]


def finished_at(job: KubernetesObject, pods: Iterable[KubernetesObject] = ()) -> float | None:
    """Return when a job ended, in seconds since the epoch; None if it has not, or if that is unknown.

    Clients that cancel a job mostly write its phase without a time: the time beside it is that of the previous phase.
    Then the time is that at which the phase was written (`managedFields`), else that of the pods' end.

    Args:
        job: the job.
        pods: its pods, as far as they are known.
    """
    if not is_terminal(app_state(job)):
        return None
    if _has_own_time(job):
        return timeline(job)[-1].at
    return _phase_written_at(job) or max((at for pod in pods if (at := pod_end(pod)) is not None), default=None)


def _transitions(job: KubernetesObject) -> list[tuple[str, float | None]]:
    """Return the phases that a job entered, and when."""
    status = job.get("status", {})
    entered = [
        (condition.get("status") or "", condition.get("lastTransitionTime"))
        for condition in status.get("conditions", [])
    ]
    entered.append((phase_of(job), dig(status, "state", "lastTransitionTime")))
    return [(phase, seconds_of(when)) for phase, when in entered]


def _has_own_time(job: KubernetesObject) -> bool:
    """Return whether the time beside a job's phase belongs to it, not to the previous phase."""
    *before, (phase, when) = _transitions(job)
    if not before or before[-1][0] == phase:
        return True
    return when is not None and when > (before[-1][1] or 0.0)


def _phase_written_at(job: KubernetesObject) -> float | None:
    """Return when a job's phase was last written."""
    for entry in job["metadata"].get("managedFields", []):
        status = entry.get("fieldsV1", {}).get("f:status")
        state = status.get("f:state") if isinstance(status, dict) else None
        # Where the server does not know the fields of the state, it notes the whole of it.
        if isinstance(state, dict) and (not state or "f:phase" in state):
            return seconds_of(entry.get("time"))
    return None
