"""How the ports of replicas are reached from a person's own machine: lines for ``kubectl``, ready to copy."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from ..responses import PublishedPort
from .containers import main_container, run_of
from .jobs import Object, replicas_of


def forwarded_ports(context: str, job: Object, pods: Mapping[str, Object]) -> list[PublishedPort]:
    """Return the ports of a job's running replicas, each with the command that makes it reachable.

    Args:
        context: the context of the kubeconfig; empty for the current one.
        job: the job.
        pods: its pods by name.
    """
    found: list[PublishedPort] = []
    for replica, _, pod_name in replicas_of(job):
        pod = pods.get(pod_name)
        if pod is None or not run_of(pod, main_container(pod)).is_running:
            continue
        own = main_container(pod)
        containers = (pod.get("spec") or {}).get("containers") or []
        for port in next((one.get("ports") or [] for one in containers if one.get("name") == own), []):
            number = int(port.get("containerPort") or 0)
            if not number or port.get("protocol", "TCP") != "TCP":
                continue
            command = port_forward_line(context, job["metadata"]["namespace"], pod_name, number)
            name = str(port.get("name") or "")
            found.append(PublishedPort(replica.role, replica.number, name, number, "", _local_port(number), command))
    return found


def port_forward_line(context: str, namespace: str, pod: str, port: int) -> str:
    """Return the command that makes a port of a pod reachable at the same port of the machine it is run on.

    Args:
        context: the context of the kubeconfig; empty for the current one.
        namespace: the pod's.
        pod: its name.
        port: the port within the pod.
    """
    of_context = ["--context", context] if context else []
    local = _local_port(port)
    return shlex.join(
        ["kubectl", *of_context, "--namespace", namespace, "port-forward", f"pod/{pod}", f"{local}:{port}"]
    )


def _local_port(port: int) -> int:
    # Ports below 1024 belong to the administrator.
    return port if port >= 1024 else port + 8000
