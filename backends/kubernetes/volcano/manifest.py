"""From an AppDef to Volcano's job: one task a replica, each with its pod."""

from __future__ import annotations

from ....specs.errors import AppDefError
from ....specs.handles import make_unique, normalize_str
from ....specs.roles import AppDef, RetryPolicy, Role, macros
from ...kube.objects import KubernetesObject
from ...kube.overlay import overlaid, overlay_of
from ...kube.pod_template import IMAGE_VARIABLE, RESERVED_MEMMB, RESERVED_MILLICPU, make_pod
from ...shared.kept_app_def import RANK0_HOST
from ...shared.progress import while_wanted
from ..labels import pod_labels
from .jobs import GROUP, VERSION
from .names import hosts_variable, task_name

_EVENTS = ("PodEvicted", "PodFailed")


def app_to_resource(
    app: AppDef,
    queue: str,
    service_account: str | None,
    priority_class: str | None = None,
    reserved_millicpu: int = RESERVED_MILLICPU,
    reserved_memmb: int = RESERVED_MEMMB,
    efa_device_count: int | None = None,
) -> KubernetesObject:
    """Return the job that an app becomes, as plain data that an API server takes.

    Each replica is a task of its own, since macros give each its own arguments. The job is started anew at most as
    often as the role with the fewest `max_retries` allows. What is started anew when a pod fails or is evicted is, by
    the retry policy of its role: APPLICATION: the whole job, by Volcano's RestartJob. REPLICA: what Volcano does by
    itself; there is no policy, as TorchX has it. ROLE: where it is the only role, the whole job; else the replica that
    failed, by Volcano's RestartTask, whose tasks are single replicas here: Volcano has nothing that starts several
    tasks of a job anew and not all of them.

    Args:
        app: the app, not changed.
        queue: the queue of Volcano that it waits in.
        service_account: what its pods run as.
        priority_class: how important it is.
        reserved_millicpu: thousandths of a CPU that each replica requests less than its role asks for.
        reserved_memmb: megabytes of memory that each replica requests less.
        efa_device_count: how many EFA devices each replica gets, in place of the role's own number.

    Raises:
        AppDefError: there are no roles; a mount is of an unknown kind; a pod overlay cannot be read or does not fit.
    """
    if not app.roles:
        raise AppDefError(f"{app.name} has no roles: give it at least one")
    name = normalize_str(make_unique(app.name))
    tasks: list[KubernetesObject] = []
    for role_index, role in enumerate(app.roles):
        overlay = overlay_of(role)
        for replica_id in while_wanted(range(role.num_replicas)):
            is_first = role_index == 0 and replica_id == 0
            values = macros.Values(
                img_root="",
                app_id=name,
                replica_id=str(replica_id),
                rank0_env=RANK0_HOST if is_first else hosts_variable(app.roles[0].name, 0),
            )
            replica = values.apply(role)
            if is_first:
                replica.env[RANK0_HOST] = "localhost"
            replica.env[IMAGE_VARIABLE] = replica.image
            task = task_name(role.name, replica_id)
            pod = make_pod(task, replica, service_account, reserved_millicpu, reserved_memmb, efa_device_count)
            pod = overlaid(pod, role, overlay, values)
            pod["metadata"].setdefault("labels", {}).update(pod_labels(app, role_index, role, replica_id, name))
            tasks.append({"replicas": 1, "name": task, "template": pod, **_task_policies(app, role, replica_id)})
    spec: KubernetesObject = {
        "schedulerName": "volcano",
        "queue": queue,
        "tasks": tasks,
        "maxRetry": min(role.max_retries for role in app.roles),
        # Pods find one another by name before they are ready.
        "plugins": {"svc": ["--publish-not-ready-addresses"], "env": []},
    }
    if priority_class is not None:
        spec["priorityClassName"] = priority_class
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def _task_policies(app: AppDef, role: Role, replica_id: int) -> KubernetesObject:
    """Return how often and when a replica's task is started anew, and whether the job can do without it."""
    policies: KubernetesObject = {}
    if role.max_retries > 0:
        policies["maxRetry"] = role.max_retries
        action = _action(app, role)
        policies["policies"] = [{"event": event, "action": action} for event in _EVENTS] if action else []
    if role.min_replicas is not None:
        policies["minAvailable"] = int(replica_id < role.min_replicas)
    return policies


def _action(app: AppDef, role: Role) -> str:
    policy = RetryPolicy(role.retry_policy)
    if policy is RetryPolicy.ROLE:
        return "RestartJob" if len(app.roles) == 1 else "RestartTask"
    return "RestartJob" if policy is RetryPolicy.APPLICATION else ""
