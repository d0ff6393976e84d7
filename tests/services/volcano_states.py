"""What becomes of a job in Volcano, told from its status and its pods."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from plain_kubernetes import Object
from volcano_objects import replicas_of

ENDED = ("Completed", "Failed", "Aborted", "Terminated")
# What follows once the pods of these have died.
ENDING = {"Completing": "Completed", "Aborting": "Aborted", "Terminating": "Terminated", "Restarting": "Pending"}
ACTIONS = {"CompleteJob": "Completing", "AbortJob": "Aborting", "TerminateJob": "Terminating"}
RESTARTS = ("RestartJob", "RestartTask", "RestartPod")
_COUNTED = {"Pending": "pending", "Running": "running", "Succeeded": "succeeded", "Failed": "failed"}


@dataclass
class Step:
    """What is to be done next.

    Args:
        phase: the job's phase from now on.
        retry: how often the job was started again.
        kill: the pods that have to go.
        make: whether pods that are missing are made.
        action: the action of a policy that was carried out.
    """

    phase: str
    retry: int
    kill: list[Object] = field(default_factory=list)
    make: bool = False
    action: str = ""


def next_step(job: Object, pods: list[Object]) -> Step:
    """Return what Volcano does next with a job.

    Args:
        job: the job, complete.
        pods: its pods.
    """
    status = job.get("status") or {}
    phase, retry = (status.get("state") or {}).get("phase") or "Pending", status.get("retryCount", 0)
    if phase in ENDED:
        # A client may have written this: what lives is killed.
        return Step(phase, retry, kill=_living(pods))
    if phase == "Restarting" and retry >= job["spec"]["maxRetry"]:
        return Step("Failed", retry, kill=_living(pods))
    if phase in ENDING:
        # Which pods go when it is started again was decided as that began.
        left = [pod for pod in pods if _is_going(pod)] if phase == "Restarting" else _living(pods)
        return Step(phase, retry, kill=left) if left else Step(ENDING[phase], retry, make=phase == "Restarting")
    action, task = _action_for(job, pods)
    if action in RESTARTS:
        mine = [pod for pod in pods if action == "RestartJob" or _task_of(pod) == task]
        if action == "RestartPod":
            mine = [pod for pod in mine if _phase_of(pod) == "Failed"]
        return Step("Restarting", retry + 1, kill=mine, action=action)
    if action in ACTIONS:
        return Step(ACTIONS[action], retry, kill=_living(pods), action=action)
    return Step(_phase_by_counts(job, present(pods), phase), retry, make=True)


def present(pods: list[Object]) -> list[Object]:
    """Return the pods that nobody has deleted."""
    return [pod for pod in pods if not _is_going(pod)]


def has_died(pod: Object) -> bool:
    """Tell whether a pod was deleted, and its containers have ended."""
    return _is_going(pod) and _phase_of(pod) in ("Succeeded", "Failed")


def status_of(job: Object, pods: list[Object], step: Step, version: int, age: float, now: str) -> Object:
    """Return the status that a step leaves.

    Args:
        job: the job.
        pods: its pods.
        step: what was done.
        version: how often its pods were killed.
        age: of the job, in seconds.
        now: the time as the server writes times.
    """
    before = job.get("status") or {}
    state, conditions = before.get("state") or {}, list(before.get("conditions") or [])
    if state.get("phase") != step.phase:
        state = {"phase": step.phase, "lastTransitionTime": now}
        conditions.append({"status": step.phase, "lastTransitionTime": now})
    status: Object = {"state": state, "conditions": conditions, "minAvailable": job["spec"]["minAvailable"]}
    if step.retry:
        status["retryCount"] = step.retry
    if version:
        status["version"] = version
    if step.phase in ENDED or step.phase in ENDING:
        # No counts from now on but of those that die.
        if step.phase != "Restarting":
            status["runningDuration"] = before.get("runningDuration") or f"{int(age)}s"
        if dying := len(_living(pods)):
            status["terminating"] = dying
        return status
    status.update(_counts(present(pods)))
    if dying := len(pods) - len(present(pods)):
        status["terminating"] = dying
    if plugins := job["spec"].get("plugins"):
        status["controlledResources"] = {f"plugin-{name}": name for name in plugins}
    return status


def _counts(pods: list[Object]) -> Object:
    counts: Object = {}
    for phase, number in Counter(_phase_of(pod) for pod in pods).items():
        if phase in _COUNTED:
            counts[_COUNTED[phase]] = number
    tasks: dict[str, dict[str, dict[str, int]]] = {}
    for pod in pods:
        phases = tasks.setdefault(_task_of(pod), {"phase": {}})["phase"]
        phases[_phase_of(pod)] = phases.get(_phase_of(pod), 0) + 1
    if tasks:
        counts["taskStatusCount"] = tasks
    return counts


def _phase_by_counts(job: Object, pods: list[Object], phase: str) -> str:
    counts = Counter(_phase_of(pod) for pod in pods)
    total = sum(replicas_of(task) for task in job["spec"]["tasks"])
    wanted = job["spec"]["minAvailable"]
    started = counts["Running"] + counts["Succeeded"] + counts["Failed"]
    if phase == "Pending":
        return "Running" if started >= wanted else "Pending"
    if counts["Succeeded"] + counts["Failed"] < total:
        return phase
    return "Completed" if counts["Succeeded"] >= wanted else "Failed"


def _action_for(job: Object, pods: list[Object]) -> tuple[str, str]:
    """Return the action of the first policy that something has happened for, and the task; a task's own come first."""
    for task in job["spec"]["tasks"]:
        mine = [pod for pod in pods if _task_of(pod) == task["name"]]
        events = _events_of(task, mine)
        for policy in [*(task.get("policies") or []), *(job["spec"].get("policies") or [])]:
            wanted = {policy.get("event"), *(policy.get("events") or [])}
            if (
                wanted & events
                or ("*" in wanted and events & {"PodFailed", "PodEvicted"})
                or _has_exit_code(policy, mine)
            ):
                return policy.get("action", ""), task["name"]
    return "", ""


def _events_of(task: Object, pods: list[Object]) -> set[str]:
    events: set[str] = set()
    for pod in pods:
        # Whoever deletes a pod evicts it, however its containers end.
        if _is_going(pod) or pod["status"].get("reason") == "Evicted":
            events.add("PodEvicted")
        elif _phase_of(pod) == "Failed":
            events.add("PodFailed")
    if pods and sum(_phase_of(pod) == "Succeeded" for pod in pods) == replicas_of(task):
        events.add("TaskCompleted")
    return events


def _has_exit_code(policy: Object, pods: list[Object]) -> bool:
    wanted = policy.get("exitCode")
    return wanted is not None and any(
        ((status.get("state") or {}).get("terminated") or {}).get("exitCode") == wanted
        for pod in pods
        for status in pod["status"].get("containerStatuses") or []
    )


def _living(pods: list[Object]) -> list[Object]:
    return [pod for pod in pods if _phase_of(pod) not in ("Succeeded", "Failed")]


def _is_going(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _phase_of(pod: Object) -> str:
    return (pod.get("status") or {}).get("phase") or "Unknown"


def _task_of(pod: Object) -> str:
    return pod["metadata"]["labels"].get("volcano.sh/task-spec", "")
