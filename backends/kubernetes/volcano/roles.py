"""The roles of a Volcano job whose AppDef is not kept."""

from __future__ import annotations

from ....specs.roles import Role
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
    if any(policy.get("action") for task in tasks for policy in task.get("policies", [])):
        lost.append(f"{name}: its retries are not launched again")
    return role


def _command(task: KubernetesObject) -> tuple[object, object]:
    own = main_container(task.get("template", {}), task.get("name", ""))
    containers = task_spec(task).get("containers") or []
    container = next((item for item in containers if item["name"] == own), {})
    return container.get("command"), container.get("args")
