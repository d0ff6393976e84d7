"""Jobs of Kubernetes itself: an Indexed Job for each role, and a Service by which replicas find one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....specs.errors import AppDefError
from ....specs.handles import make_unique, normalize_str
from ....specs.roles import AppDef, RetryPolicy, Role, macros
from ...kube.api_server import ApiError, ApiServer
from ...kube.objects import KubernetesObject
from ...kube.overlay import overlaid, overlay_of
from ...kube.pod_template import IMAGE_VARIABLE, make_pod
from ...kube.rights import Right
from ...shared.kept_app_def import RANK0_HOST
from ...types import Finding
from .. import labels
from .form import LaunchForm
from .gangs import GANGS

QUEUE = "kueue.x-k8s.io/queue-name"
"""Kueue's label of jobs: the LocalQueue of the namespace that they wait in."""
LOCAL_QUEUES = [f"/apis/kueue.x-k8s.io/{one}/namespaces/{{namespace}}/localqueues" for one in ("v1beta2", "v1beta1")]
"""The paths of Kueue's queues; a server may have either or both."""
_INDEX = "JOB_COMPLETION_INDEX"
_INDEX_FIELD = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


class IndexedJobForm(LaunchForm):
    """Jobs of ``batch/v1``: the first role's has the app's name and owns all else."""

    prefix = "job"
    group, version, resource = "batch", "v1", "jobs"
    more_rights = (Right("create", "services"),)
    unknown = "the server knows no Jobs (batch/v1): is it a Kubernetes API server?"

    def pod_name(self, job: str, app: AppDef, role: Role, k: int) -> str:
        return f"{_job_name(job, app, role)}-{k}"

    def manifest(self, app: AppDef, options: Any) -> list[KubernetesObject]:
        name = unique_name(app)
        is_alone = _replicas(app) == 1
        host = "localhost" if is_alone else f"{name}-0.{name}"
        jobs = []
        for index, role in enumerate(app.roles):
            spec = {**job_spec(app, index, name, host, options), **_retries(role)}
            if not is_alone:
                # Also in place of that of a job that is launched again.
                spec["template"]["spec"]["subdomain"] = name
            of_job = job_labels(app, name, options)
            jobs.append(_object("batch/v1", "Job", _job_name(name, app, role), of_job, spec))
        if len(jobs) > 1:
            jobs[0]["metadata"]["annotations"] = {labels.JOBS: str(len(jobs))}
        return [jobs[0], *([] if is_alone else [_service(app, name)]), *jobs[1:]]

    def launch_findings(self, server: ApiServer, app: AppDef, options: Any) -> list[Finding]:
        return [*common_findings(server, app, options, can_gang=True), *_retry_findings(app)]


def _job_name(name: str, app: AppDef, role: Role) -> str:
    return name if role is app.roles[0] else f"{name}-{normalize_str(role.name)}"


def unique_name(app: AppDef) -> str:
    """Return a new name for an app's job.

    Raises:
        AppDefError: the app has no roles.
    """
    if not app.roles:
        raise AppDefError(f"{app.name} has no roles: give it at least one")
    return normalize_str(make_unique(app.name))


def job_labels(app: AppDef, name: str, options: Any) -> dict[str, str]:
    """Return the labels of an app's jobs, which its pods have too."""
    given = labels.app_labels(app, name)
    return {**given, QUEUE: options.queue} if options.queue else given


def job_spec(app: AppDef, role_index: int, name: str, rank0_host: str, options: Any) -> KubernetesObject:
    """Return the spec of the Indexed Job that runs a role; it restarts nothing.

    One template serves all replicas: the kubelet puts the number of each into its arguments and variables.

    Args:
        app: the app.
        role_index: which role.
        name: the app's id.
        rank0_host: the host name of the first replica of the first role.
        options: the run options.
    """
    role = app.roles[role_index]
    values = macros.Values(
        img_root="",
        app_id=name,
        replica_id=f"$({_INDEX})" if role.num_replicas > 1 else "0",
        rank0_env=RANK0_HOST,
    )
    replica = values.apply(role)
    replica.env[RANK0_HOST] = rank0_host
    replica.env[IMAGE_VARIABLE] = replica.image
    pod = make_pod(
        normalize_str(role.name),
        replica,
        options.service_account,
        options.reserved_millicpu,
        options.reserved_memmb,
        options.efa_device_count,
    )
    if options.priority_class is not None:
        pod["spec"]["priorityClassName"] = options.priority_class
    variables = pod["spec"]["containers"][0]["env"]
    if any(_INDEX in one.get("value", "") for one in variables):
        # A variable can only refer to those before it, and the server adds this one as the last.
        variables.insert(0, {"name": _INDEX, "valueFrom": {"fieldRef": {"fieldPath": _INDEX_FIELD}}})
    pod = overlaid(pod, role, overlay_of(role), values)
    of_pod = labels.pod_labels(app, role_index, role, 0, name)
    del of_pod[labels.REPLICA_ID]
    pod["metadata"].setdefault("labels", {}).update(of_pod)
    return {
        "completionMode": "Indexed",
        "completions": role.num_replicas,
        "parallelism": role.num_replicas,
        "backoffLimit": 0,
        "template": pod,
    }


def replica_retries(role: Role) -> KubernetesObject:
    """Return the fields of a Job that let each replica be started again alone."""
    most = role.max_retries
    # A replacement has its predecessor's host name: it waits until that is gone.
    fields: KubernetesObject = {"podReplacementPolicy": "Failed"}
    if role.num_replicas == 1:
        return {**fields, "backoffLimit": most}
    # The server sets a backoffLimit without an effect beside this one.
    return {**fields, "backoffLimit": None, "backoffLimitPerIndex": most, "maxFailedIndexes": 0}


def _retries(role: Role) -> KubernetesObject:
    if role.max_retries <= 0:
        return {}
    if RetryPolicy(role.retry_policy) is RetryPolicy.REPLICA:
        return replica_retries(role)
    return {"podReplacementPolicy": "Failed", "backoffLimit": role.max_retries}


def _retry_findings(app: AppDef) -> Iterator[Finding]:
    for role in app.roles:
        is_whole = RetryPolicy(role.retry_policy) is not RetryPolicy.REPLICA and _replicas(app) > 1
        if role.max_retries > 0 and is_whole:
            hint = "retry_policy=REPLICA says so; JobSet and Volcano can restart all replicas"
            yield Finding("warning", f"{role.name}: a Job restarts a replica that failed alone", hint)


def common_findings(server: ApiServer, app: AppDef, options: Any, can_gang: bool = False) -> Iterator[Finding]:
    """Yield what a launch without Volcano lacks: a queue that exists, replicas that start together.

    Args:
        server: the server.
        app: the app.
        options: the run options.
        can_gang: whether `add_gangs` is used where the server has gangs.
    """
    partial = [role for role in app.roles if role.min_replicas is not None]
    if partial and not (can_gang and _has_gangs(server)):
        for role in partial:
            yield Finding("warning", f"{role.name}: min_replicas is ignored", "only Volcano starts with fewer replicas")
    if options.queue:
        try:
            paths = (f"{path.format(namespace=options.namespace)}/{options.queue}" for path in LOCAL_QUEUES)
            if all(server.find(path) is None for path in paths):
                hint = "`kubectl get localqueues` lists them; without Kueue, leave queue out"
                what = f"there is no LocalQueue {options.queue} of Kueue in {options.namespace}"
                yield Finding("warning", what, hint)
        except ApiError:
            return
    elif _replicas(app) > 1:
        hint = "queue=NAME waits in a LocalQueue of Kueue until there is room for all"
        yield Finding("warning", "replicas may start one by one, as nodes become free", hint)


def _has_gangs(server: ApiServer) -> bool:
    try:
        return server.find(f"/apis/{GANGS}") is not None
    except ApiError:
        return False


def _replicas(app: AppDef) -> int:
    return sum(role.num_replicas for role in app.roles)


def _service(app: AppDef, name: str) -> KubernetesObject:
    """Return the headless Service that gives each pod of an app a host name."""
    spec = {
        "clusterIP": "None",
        # Replicas find one another before they are ready.
        "publishNotReadyAddresses": True,
        "selector": {labels.INSTANCE: labels.app_labels(app, name)[labels.INSTANCE]},
    }
    return _object("v1", "Service", name, labels.app_labels(app, name), spec)


def _object(version: str, kind: str, name: str, of_object: dict[str, str], spec: KubernetesObject) -> KubernetesObject:
    made = {key: value for key, value in spec.items() if value is not None}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": of_object}, "spec": made}
