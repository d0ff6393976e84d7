"""What can be done with a job beside cancelling it: suspend, resume, scale."""

from __future__ import annotations

from ...specs.errors import SchedulerError
from ...specs.status import is_terminal
from ..kube.objects import KubernetesObject, dig
from ..types import JobAction
from .job_kind import CHILDREN, MAX_REPLICAS, JobKind, with_field

SUSPEND = JobAction(
    "suspend", "Its pods are deleted, and their logs with them. It waits until it is resumed.", ends_job=True
)
SUSPEND_SCHEDULE = JobAction("suspend", "It makes no more jobs until it is resumed.")
RESUME = JobAction("resume", "It may run again.")
SCALE = JobAction("scale", "Another number of its pods runs at a time.", value="a number, such as 4")


def job_actions(kind: JobKind, job: KubernetesObject) -> list[JobAction]:
    """List the actions that are possible in a job's present state; none of a job that a queue starts and stops."""
    if kind.is_queued(job):
        return []
    asked = [one for one in (SUSPEND, RESUME) if kind.command(job, one.name)]
    # A CronJob has the state of its newest job.
    if kind.suspend is None or (is_terminal(kind.state(job)) and not kind.shows_newest_child):
        return asked
    first = RESUME if dig(job, *kind.suspend_at) else kind.suspend
    return [first, *([scale] if (scale := kind.scale(job)) else [])]


def apply_action(job: KubernetesObject, kind: JobKind, action: str, value: str) -> KubernetesObject:
    """Return a job of a kind as an action leaves it.

    Raises:
        SchedulerError: the value is malformed.
    """
    if action == SCALE.name:
        job = kind.scaled(job, value)
    else:
        job = with_field(job, kind.suspend_at, action == SUSPEND.name)
    return {name: part for name, part in job.items() if name != CHILDREN}


def number_of_pods(value: str) -> int:
    """Return the number that a person typed.

    Raises:
        SchedulerError: it is malformed.
    """
    if not value.isdecimal() or not 1 <= int(value) <= MAX_REPLICAS:
        raise SchedulerError(f"{value!r} is not a number of pods: write it as 4, at most {MAX_REPLICAS}")
    return int(value)


def with_pods(spec: KubernetesObject, count: int) -> KubernetesObject:
    """Return the spec of a Job of which this number of pods runs at a time."""
    # Where each index is a pod of its own, their number changes too (KEP-3715).
    is_elastic = spec.get("completions") == spec.get("parallelism")
    return {**spec, **dict.fromkeys(["parallelism", "completions"] if is_elastic else ["parallelism"], count)}
