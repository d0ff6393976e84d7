"""The run options of kubernetes."""

from __future__ import annotations

from dataclasses import dataclass

from ..structured_opts import StructuredOpts


@dataclass
class KubernetesOpts(StructuredOpts):
    """Names and texts are TorchX's, as `torchx runopts kubernetes` prints them; `context` is ours."""

    queue: str
    """Volcano queue to schedule job in."""

    namespace: str = "default"
    """Kubernetes namespace to schedule job in."""

    service_account: str | None = None
    """The service account name to set on the pod specs."""

    priority_class: str | None = None
    """The name of the PriorityClass to set on the job specs."""

    validate_spec: bool = True
    """Validate job spec using Kubernetes API dry-run before submission."""

    reserved_millicpu: int = 100
    """Amount of CPU in millicores to reserve for Kubernetes system overhead (default: 100)."""

    reserved_memmb: int = 1024
    """Amount of memory in MB to reserve for Kubernetes system overhead (default: 1024)."""

    efa_device_count: int | None = None
    """EFA device count override: None/unset=use resource spec, 0=remove EFA, N>0=set EFA count to N."""

    context: str | None = None
    """Context of the kubeconfig to use. None: the cluster that this program runs in, else the current context."""
