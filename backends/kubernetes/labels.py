"""Labels of pods and annotations of jobs: TorchX's, and ours, which TorchX ignores."""

from __future__ import annotations

from ... import __version__
from ...specs.roles import AppDef, Role
from ..kube.names import label_value

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
JOBS = "torchx-tui/jobs"
"""How many Jobs an app of several roles has; the first one owns the others."""
CANCELLED_BY = "torchx-tui/cancelled-by"
"""Who cancelled it, where the kind of jobs has no such state."""

APP_DEF_LIMIT = 128 * 1024
"""Bytes. A server takes 256 KB of annotations in all."""


def pod_labels(app: AppDef, role_idx: int, role: Role, replica_id: int, app_id: str = "") -> dict[str, str]:
    """Return the labels of a replica's pod, by which TorchX and this program know it.

    Args:
        app: the app.
        role_idx: the role's place in it, from 0.
        role: the role.
        replica_id: the replica's number, from 0.
        app_id: the job's name.
    """
    of_role = {ROLE_INDEX: str(role_idx), ROLE_NAME: role.name, REPLICA_ID: str(replica_id)}
    return {**app_labels(app, app_id), **{name: label_value(value) for name, value in of_role.items()}}


def app_labels(app: AppDef, app_id: str = "") -> dict[str, str]:
    """Return the labels that all objects of an app have.

    Args:
        app: the app.
        app_id: the job's name.
    """
    given = {VERSION: __version__, APP_NAME: app.name, KUBERNETES_NAME: app.name, MANAGED_BY: TORCHX}
    if app_id:
        given[INSTANCE] = app_id
    return {name: label_value(value) for name, value in given.items()}
