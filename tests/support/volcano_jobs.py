"""Volcano jobs as TorchX makes them, put on a server without the code that is tested."""

from __future__ import annotations

from typing import Any

from .kubernetes_cluster import KubernetesCluster, Object

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs"


def make_job(
    name: str,
    script: str = "true",
    *,
    replicas: int = 1,
    role: str = "worker",
    image: str = "busybox:local",
    command: list[str] | None = None,
    cpu: str = "0",
    pod: Object | None = None,
    container: Object | None = None,
    **spec: Any,
) -> Object:
    """Return a job whose replicas run a shell script.

    Args:
        name: the job's.
        script: what each replica runs.
        replicas: how many.
        role: of which role.
        image: of the container.
        command: instead of the script.
        cpu: what each asks for.
        pod: more of each pod's spec.
        container: more of each container.
        spec: more of the job's spec.
    """
    labels = {
        "app.kubernetes.io/managed-by": "torchx.pytorch.org",
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/instance": name,
        "torchx.pytorch.org/app-name": name,
        "torchx.pytorch.org/role-name": role,
        "torchx.pytorch.org/role-index": "0",
    }
    tasks = []
    for k in range(replicas):
        main = {
            "name": f"{role}-{k}",
            "image": image,
            "command": command or ["sh", "-c", script],
            "resources": {"requests": {"cpu": cpu}},
            **(container or {}),
        }
        template = {
            "metadata": {"labels": {**labels, "torchx.pytorch.org/replica-id": str(k)}},
            "spec": {"restartPolicy": "Never", "containers": [main], **(pod or {})},
        }
        tasks.append({"name": f"{role}-{k}", "replicas": 1, "template": template})
    plugins = {"svc": ["--publish-not-ready-addresses"], "env": []}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"schedulerName": "volcano", "queue": "default", "plugins": plugins, "tasks": tasks, **spec},
    }


def start_job(cluster: KubernetesCluster, job: Object) -> str:
    """Put a job on the server; return its app id."""
    cluster.request("POST", JOBS.format(cluster.namespace), job)
    return f"{cluster.namespace}:{job['metadata']['name']}"


def delete_job(cluster: KubernetesCluster, name: str) -> None:
    cluster.request("DELETE", f"{JOBS.format(cluster.namespace)}/{name}")


def status_of(cluster: KubernetesCluster, name: str) -> Object:
    return cluster.request("GET", f"{JOBS.format(cluster.namespace)}/{name}").get("status", {})


def pods_of(cluster: KubernetesCluster, name: str) -> list[Object]:
    path = f"/api/v1/namespaces/{cluster.namespace}/pods?labelSelector=volcano.sh%2Fjob-name%3D{name}"
    return cluster.request("GET", path)["items"]
