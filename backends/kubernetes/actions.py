"""Suspends, resumes and scales the jobs of Kubernetes' own kinds."""

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
    if kind.suspend is None or kind.is_queued(job):
        return []
    # A CronJob has the state of its newest job.
    if is_terminal(kind.state(job)) and not kind.shows_newest_child:
        return []
    if dig(job, *kind.suspend_at):
        return [RESUME]
    return [kind.suspend, *([SCALE] if "parallelism" in job["spec"] and len(kind.parts(job)) == 1 else [])]


def apply_action(job: KubernetesObject, kind: JobKind, action: str, value: str) -> KubernetesObject:
    """Return a job of a kind as an action leaves it.

    Raises:
        SchedulerError: the value is malformed.
    """
    spec = job["spec"]
    if action != SCALE.name:
        job = with_field(job, kind.suspend_at, action == SUSPEND.name)
    else:
        if not value.isdecimal() or not 1 <= int(value) <= MAX_REPLICAS:
            raise SchedulerError(f"{value!r} is not a number of pods: write it as 4, at most {MAX_REPLICAS}")
        # Where each index is a pod of its own, their number changes too (KEP-3715).
        names = ["parallelism", "completions"] if spec.get("completions") == spec["parallelism"] else ["parallelism"]
        job = {**job, "spec": {**spec, **dict.fromkeys(names, int(value))}}
    return {name: part for name, part in job.items() if name != CHILDREN}
