"""Labels of pods and annotations of jobs: TorchX's, Volcano's, and ours, which both pass over."""

from __future__ import annotations

from collections.abc import Mapping

# TorchX's, on every pod (and so in the template of every task). All values are texts.
VERSION = "torchx.pytorch.org/version"
APP_NAME = "torchx.pytorch.org/app-name"
ROLE_INDEX = "torchx.pytorch.org/role-index"
ROLE_NAME = "torchx.pytorch.org/role-name"
REPLICA_ID = "torchx.pytorch.org/replica-id"
KUBERNETES_NAME = "app.kubernetes.io/name"
MANAGED_BY = "app.kubernetes.io/managed-by"
INSTANCE = "app.kubernetes.io/instance"
TORCHX = "torchx.pytorch.org"
"""The value of `MANAGED_BY`."""

# Volcano's, on every pod.
JOB_NAME = "volcano.sh/job-name"
TASK = "volcano.sh/task-spec"
"""The task, which is the name of its main container as well where TorchX made it."""
RETRY_COUNT = "volcano.sh/job-retry-count"
"""An annotation: how often the job had been started anew when the pod was made."""

# Ours, annotations of the job.
APP_DEF = "torchx-tui/app-def"
"""The AppDef as JSON; left out where it is longer than `APP_DEF_LIMIT`."""
APP_DEF_LEFT_OUT = "torchx-tui/app-def-left-out"
"""Why there is no `APP_DEF`, in words."""
SUBMITTED_AT = "torchx-tui/submitted-at"
"""Seconds since the epoch."""
USER = "torchx-tui/user"
"""Who launched it."""
SESSION = "torchx-tui/session"

APP_DEF_LIMIT = 128 * 1024
"""Bytes. A server takes 256 KB of annotations in all."""


def number(labels: Mapping[str, str], name: str, default: int = 0) -> int:
    """Return the number that a label holds, ``default`` where it is missing or none."""
    try:
        return int(labels.get(name, ""))
    except ValueError:
        return default
