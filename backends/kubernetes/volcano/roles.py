"""The roles of a Volcano job whose AppDef is not kept."""

from __future__ import annotations

from ....specs.roles import RetryPolicy, Role
from ...kube.objects import KubernetesObject
from ...kube.pod_template import role_of_template
from ...kube.pods import main_container
from .jobs import count_of, replica_of_task, task_spec, tasks_of


def roles_of(job: KubernetesObject, notes: list[str] | None = None) -> list[Role]:
    """Return the roles of a job, each from its first task.

    Args:
        job: the job.
        notes: gets what a role cannot repeat.
    """
    by_role: dict[str, list[KubernetesObject]] = {}
    for task in tasks_of(job):
        by_role.setdefault(replica_of_task(task).role, []).append(task)
    lost: list[str] = []
    roles = [_role(name, tasks, lost) for name, tasks in by_role.items()]
    if notes is not None:
        notes += list(dict.fromkeys(lost))
    return roles


def _role(name: str, tasks: list[KubernetesObject], lost: list[str]) -> Role:
    first = tasks[0]
    commands = [_command(task) for task in tasks]
    if commands != commands[:1] * len(commands):
        lost.append(f"{name}: the arguments of its replicas differ: those of the first are used for all")
    template = first.get("template", {})
    role = role_of_template(name, template, main_container(template, first.get("name", "")), lost)
    role.num_replicas = sum(count_of(task) for task in tasks)
    role.max_retries, role.retry_policy = _retries(first)
    role.min_replicas = _min_replicas(tasks)
    return role


def _command(task: KubernetesObject) -> tuple[object, object]:
    own = main_container(task.get("template", {}), task.get("name", ""))
    containers = task_spec(task).get("containers") or []
    container = next((item for item in containers if item["name"] == own), {})
    return container.get("command"), container.get("args")


def _retries(task: KubernetesObject) -> tuple[int, RetryPolicy]:
    actions = {policy.get("action") for policy in task.get("policies") or []}
    if "RestartJob" in actions:
        return task.get("maxRetry") or 0, RetryPolicy.APPLICATION
    if actions & {"RestartTask", "RestartPod"}:
        return task.get("maxRetry") or 0, RetryPolicy.ROLE
    # Volcano's webhook writes maxRetry into tasks that have none: an empty list of policies says that it was meant.
    if "policies" in task:
        return task.get("maxRetry") or 0, RetryPolicy.REPLICA
    return 0, RetryPolicy.APPLICATION


def _min_replicas(tasks: list[KubernetesObject]) -> int | None:
    """Return the fewest replicas that a role runs with; None if it is not elastic."""
    known = [task.get("minAvailable") for task in tasks]
    if all(minimum is None for minimum in known):
        return None
    least = sum(count_of(task) if minimum is None else int(minimum) for task, minimum in zip(tasks, known, strict=True))
    # Volcano's webhook writes it for all tasks, as their replicas.
    return None if least >= sum(count_of(task) for task in tasks) else least
