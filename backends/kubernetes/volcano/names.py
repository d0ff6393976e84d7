"""Names as TorchX makes them."""

from __future__ import annotations

from ....specs.handles import normalize_str
from ....specs.roles import AppDef, Role


def cleanup_str(data: str) -> str:
    """Return a text in lower case, without everything that is not in ``[a-z0-9]``."""
    return normalize_str(data).replace("-", "")


def task_name(role: str, replica_id: int) -> str:
    """Return the name of a replica's task, which its container has as well."""
    return normalize_str(f"{role}-{replica_id}")


def hosts_variable(role: str, replica_id: int) -> str:
    """Return the variable in which Volcano tells all pods the host name of a replica."""
    return f"VC_{task_name(role, replica_id)}_HOSTS".upper().replace("-", "_")


def pod_name(job: str, app: AppDef, role: Role, k: int) -> str:
    """Return the name of a replica's pod."""
    return f"{job}-{task_name(role.name, k)}-0"
