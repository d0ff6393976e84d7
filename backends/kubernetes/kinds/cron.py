"""CronJobs (``batch/v1``): each is shown as the newest job that it made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ....logs.text.sanitize import plain
from ....specs.errors import SchedulerError
from ....specs.status import ReplicaStatus
from ...kube.api_server import ApiServer
from ...kube.objects import METADATA, KubernetesObject, checked, dig, name_of, shape, uid_of
from ..actions import SUSPEND_SCHEDULE
from ..job_kind import JobFacts, JobStatus, Replica
from .batch import BATCH, JOB_SPEC
from .children import children_of, with_children
from .observed import SUSPENDED, ObservedJobs

_CRON = shape(
    "metadata",
    metadata=METADATA,
    spec=shape(schedule=str, suspend=bool, jobTemplate=shape(spec=JOB_SPEC)),
    status=shape(lastScheduleTime=str),
)


def _newest(job: KubernetesObject) -> KubernetesObject:
    """Return the newest job of a CronJob; if it has made none, one without a status."""
    if made := children_of(job):
        return made[-1]
    spec = dig(job, "spec", "jobTemplate", "spec") or {}
    # No pod has this owner.
    metadata = {**job["metadata"], "uid": f"none of {uid_of(job)}"}
    return {"metadata": metadata, "spec": {**spec, "suspend": bool(dig(job, "spec", "suspend"))}}


def _of_newest(name: str) -> Any:
    """Return a method that is that of the newest job."""

    def method(self: CronJobs, job: KubernetesObject, *args: Any) -> Any:
        return getattr(BATCH, name)(_newest(job), *args)

    return method


class CronJobs(ObservedJobs):
    """CronJobs of ``batch/v1``."""

    word, prefix = "CronJob", "cronjob"
    suspend = SUSPEND_SCHEDULE
    launched_as = "job"
    shows_newest_child = True
    group, version, resource = "batch", "v1", "cronjobs"

    def checked(self, item: Any) -> KubernetesObject | None:
        return checked(item, _CRON)

    def with_children(self, server: ApiServer, job: KubernetesObject) -> KubernetesObject:
        return with_children(BATCH, server, job)

    pods_selector = _of_newest("pods_selector")
    owners_of_pods = _of_newest("owners_of_pods")
    state = _of_newest("state")
    replicas = _of_newest("replicas")
    by_replica = _of_newest("by_replica")
    job_specs = _of_newest("job_specs")
    without_pod = _of_newest("without_pod")

    def needs_pods(self, job: KubernetesObject) -> bool:
        return False

    def status(self, job: KubernetesObject, pods: Iterable[KubernetesObject] = ()) -> JobStatus:
        status = BATCH.status(_newest(job), pods)
        return status._replace(places={**status.places, "schedule": plain(dig(job, "spec", "schedule") or "")})

    def replica_of(self, pod: KubernetesObject) -> Replica:
        return BATCH.replica_of(pod)

    def event_selectors(self, job: KubernetesObject, pods: Mapping[Replica, KubernetesObject]) -> list[str]:
        return BATCH.event_selectors(_newest(job), pods) if children_of(job) else []

    def read_more(self, server: ApiServer, job: KubernetesObject, now: float) -> Any:
        return BATCH.read_more(server, _newest(job), now)

    def reason(self, facts: JobFacts, replicas: Sequence[ReplicaStatus], now: float) -> str:
        job = facts.job
        if not children_of(job):
            return SUSPENDED if dig(job, "spec", "suspend") else "has made no job yet"
        newest = _newest(job)
        why = BATCH.reason(facts._replace(job=newest), replicas, now)
        return "; ".join(filter(None, (f"its newest job is {name_of(newest)}", why)))

    def cancelled(self, job: KubernetesObject) -> KubernetesObject:
        raise SchedulerError(
            f"{self.app_id(job)} is a CronJob, which makes more jobs: delete it, or suspend it by its action suspend"
        )


CRON = CronJobs()
