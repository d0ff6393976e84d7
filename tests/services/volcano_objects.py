"""What Volcano makes of a job: its defaults, its pods and its pod group; shapes as a Volcano of 2026 makes them."""

from __future__ import annotations

import json
from typing import Any

from plain_kubernetes import Object

GROUP = "batch.volcano.sh/v1alpha1"
SCHEDULING = "scheduling.volcano.sh/v1beta1"
# What the webhook makes of a `maxRetry` of 0.
MAX_RETRY = 3
# How much more than there is the plug-in overcommit lets wait for pods.
OVERCOMMIT = 1.2


def job_path(job: Object) -> str:
    return f"/apis/{GROUP}/namespaces/{job['metadata']['namespace']}/jobs/{job['metadata']['name']}"


def pod_group_name(job: Object) -> str:
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"


def replicas_of(task: Object) -> int:
    return task.get("replicas", 1)


def defaults_of(job: Object) -> Object:
    """Return a job's spec as the webhook completes it."""
    spec = dict(job["spec"])
    spec["maxRetry"] = spec.get("maxRetry") or MAX_RETRY
    spec.setdefault("queue", "default")
    spec.setdefault("schedulerName", "volcano")
    tasks: list[Object] = []
    for number, given in enumerate(spec.get("tasks") or []):
        task = {"name": f"default{number}", "replicas": 1, **given}
        task["maxRetry"] = task.get("maxRetry") or MAX_RETRY
        task.setdefault("minAvailable", task["replicas"])
        tasks.append(task)
    spec["tasks"] = tasks
    spec["minAvailable"] = spec.get("minAvailable") or sum(task["minAvailable"] for task in tasks)
    return spec


def owner_of(job: Object) -> list[Object]:
    return [
        {
            "apiVersion": GROUP, "kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"],
            "controller": True, "blockOwnerDeletion": True,
        }
    ]  # fmt: skip


def make_pods(job: Object, retry: int, version: int, scheduler: str) -> list[Object]:
    """Return all pods that a job should have.

    Args:
        job: the job, complete.
        retry: how often it was started again.
        version: how often its pods were killed.
        scheduler: which scheduler is to place them.
    """
    return [
        _make_pod(job, task, index, retry, version, scheduler)
        for task in job["spec"]["tasks"]
        for index in range(replicas_of(task))
    ]


def _make_pod(job: Object, task: Object, index: int, retry: int, version: int, scheduler: str) -> Object:
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    template = task.get("template") or {}
    given = template.get("metadata") or {}
    labels = {
        "volcano.sh/job-name": name,
        "volcano.sh/job-namespace": namespace,
        "volcano.sh/queue-name": job["spec"]["queue"],
        "volcano.sh/task-index": str(index),
        "volcano.sh/task-spec": task["name"],
    }
    annotations = {
        "scheduling.k8s.io/group-name": pod_group_name(job),
        "volcano.sh/job-name": name,
        "volcano.sh/job-retry-count": str(retry),
        "volcano.sh/job-version": str(version),
        "volcano.sh/queue-name": job["spec"]["queue"],
        "volcano.sh/task-index": str(index),
        "volcano.sh/task-spec": task["name"],
        "volcano.sh/template-uid": f"{name}-{task['name']}",
    }
    metadata = {
        "name": f"{name}-{task['name']}-{index}",
        "namespace": namespace,
        "labels": {**(given.get("labels") or {}), **labels},
        "annotations": {**(given.get("annotations") or {}), **annotations},
        "ownerReferences": owner_of(job),
    }
    spec = _pod_spec(job, template.get("spec") or {}, index, metadata["name"])
    priority = job["spec"].get("priorityClassName")
    if priority:
        spec.setdefault("priorityClassName", priority)
    spec["schedulerName"] = scheduler
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _pod_spec(job: Object, given: Object, index: int, pod_name: str) -> Object:
    spec = dict(given)
    plugins = job["spec"].get("plugins") or {}
    environment: list[Object] = []
    if "env" in plugins:
        environment += [{"name": name, "value": str(index)} for name in ("VK_TASK_INDEX", "VC_TASK_INDEX")]
    if "svc" in plugins:
        spec.setdefault("hostname", pod_name)
        spec.setdefault("subdomain", job["metadata"]["name"])
        environment += _hosts_of(job)
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            spec[kind] = [{**one, "env": [*(one.get("env") or []), *environment]} for one in spec[kind]]
    return spec


def _hosts_of(job: Object) -> list[Object]:
    name = job["metadata"]["name"]
    found: list[Object] = []
    for task in job["spec"]["tasks"]:
        hosts = [f"{name}-{task['name']}-{index}.{name}" for index in range(replicas_of(task))]
        prefix = f"VC_{task['name'].upper().replace('-', '_')}"
        found.append({"name": f"{prefix}_HOSTS", "value": ",".join(hosts)})
        found.append({"name": f"{prefix}_NUM", "value": str(len(hosts))})
    return found


def make_pod_group(job: Object) -> Object:
    """Return the group that holds a job's pods together."""
    spec = job["spec"]
    return {
        "apiVersion": SCHEDULING,
        "kind": "PodGroup",
        "metadata": {
            "name": pod_group_name(job),
            "namespace": job["metadata"]["namespace"],
            "ownerReferences": owner_of(job),
        },
        "spec": {
            "minMember": spec["minAvailable"],
            "minTaskMember": {task["name"]: task["minAvailable"] for task in spec["tasks"]},
            "minResources": {"count/pods": str(spec["minAvailable"]), "pods": str(spec["minAvailable"])},
            "queue": spec["queue"],
        },
    }


def pod_group_status(job: Object, pods: list[Object], now: str) -> Object:
    """Return how a pod group is doing: the scheduler's words where pods have no place."""
    placed = [pod for pod in pods if pod["spec"].get("nodeName")]
    wanted = job["spec"]["minAvailable"]
    if len(placed) >= wanted:
        reason = "tasks in gang are ready to be scheduled"
        return {
            "phase": "Running",
            "running": len(placed),
            "conditions": [{"type": "Scheduled", "status": "True", "reason": reason, "lastTransitionTime": now}],
        }
    return {
        "phase": "Inqueue",
        "conditions": [
            {
                "type": "Unschedulable",
                "status": "True",
                "reason": "NotEnoughResources",
                "message": why_pending(job, pods),
                "lastTransitionTime": now,
            }
        ],
    }


def why_pending(job: Object, pods: list[Object]) -> str:
    """Return in Volcano's words why a gang has no place."""
    without = [pod for pod in pods if not pod["spec"].get("nodeName")]
    words = [(pod, _unschedulable(pod)) for pod in without]
    named = [(pod["metadata"]["name"], why) for pod, why in words if why]
    pending, wanted = len(without), job["spec"]["minAvailable"]
    text = f"{len(named)}/{len(pods)} tasks in gang unschedulable: pod group is not ready"
    if pending:
        text += f", {pending} Pending"
    text += f", {wanted} minAvailable"
    if named:
        name, why = named[0]
        text += f"; Pending: {len(named)} Unschedulable. Origin reason is {name}: {why}"
    return text


def _unschedulable(pod: Object) -> str:
    conditions: list[Any] = pod.get("status", {}).get("conditions") or []
    for condition in conditions:
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return condition.get("message", "")
    return ""


def why_not_enqueued(job: Object, queue: Object, nodes: list[Object]) -> str:
    """Return in Volcano's words why a group has to wait before its pods are made; empty where it has not.

    Those are the words of its plug-ins overcommit and proportion, of which it makes Normal events.

    Args:
        job: the job, complete.
        queue: its queue.
        nodes: all nodes; where there are none, nothing is known of the cluster.
    """
    wanted = sum(replicas_of(task) * _cpu_of(task) for task in job["spec"]["tasks"])
    most = ((queue.get("spec") or {}).get("capability") or {}).get("cpu")
    if most is not None and wanted > _cores(most):
        return "queue resource quota insufficient: insufficient cpu"
    there = sum(_cores(node["status"]["allocatable"]["cpu"]) for node in nodes)
    if nodes and wanted > OVERCOMMIT * there:
        return "resource in cluster is overused: overused cpu"
    return ""


def _cpu_of(task: Object) -> float:
    spec = (task.get("template") or {}).get("spec") or {}
    found = [one.get("resources") or {} for one in spec.get("containers") or []]
    return sum(_cores({**(one.get("limits") or {}), **(one.get("requests") or {})}.get("cpu") or "0") for one in found)


def _cores(quantity: Any) -> float:
    text = str(quantity)
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


def not_created_words(refused: list[tuple[str, int, str]]) -> str:
    """Return what Volcano says of pods that the server refused: Go's dump of each error.

    Args:
        refused: the name of each pod, the HTTP status and the server's message.
    """
    dumps = [
        f"failed to create pod {name}, err: &errors.StatusError{{ErrStatus:v1.Status{{TypeMeta:v1.TypeMeta"
        '{Kind:"", APIVersion:""}, ListMeta:v1.ListMeta{SelfLink:"", ResourceVersion:"", Continue:"", '
        'RemainingItemCount:(*int64)(nil), ShardInfo:(*v1.ShardInfo)(nil)}, Status:"Failure", '
        f'Message:{json.dumps(message)}, Reason:"Forbidden", Details:(*v1.StatusDetails)(0x1), Code:{status}}}}}'
        for name, status, message in refused
    ]
    return f"Error creating pods: [{' '.join(dumps)}]"
