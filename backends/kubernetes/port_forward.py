"""How the ports of replicas are reached from a person's own machine: lines for ``kubectl``, ready to copy."""

from __future__ import annotations

import shlex


def port_forward_line(context: str, namespace: str, pod: str, port: int) -> str:
    """Return the command that makes a port of a pod reachable at the same port of the machine it is run on.

    Args:
        context: the context of the kubeconfig; empty for the current one.
        namespace: the pod's.
        pod: its name.
        port: the port within the pod.
    """
    of_context = ["--context", context] if context else []
    # Ports below 1024 belong to the administrator.
    local = port if port >= 1024 else port + 8000
    return shlex.join(
        ["kubectl", *of_context, "--namespace", namespace, "port-forward", f"pod/{pod}", f"{local}:{port}"]
    )
