"""The labels of an app's containers: TorchX's, by which each sees the other's apps, and ours, which TorchX passes over.

Labels cannot be changed once a container exists.
"""

from __future__ import annotations

from collections.abc import Mapping

# TorchX's. All values are texts; of a container that something else made, any may be missing.
VERSION = "torchx.pytorch.org/version"
APP_ID = "torchx.pytorch.org/app-id"
ROLE_NAME = "torchx.pytorch.org/role-name"
REPLICA_ID = "torchx.pytorch.org/replica-id"

# Ours.
APP_DEF = "torchx-tui/app-def"
"""The AppDef as JSON, on the app's first replica; left out where it is longer than `APP_DEF_LIMIT`."""
APP_DEF_LEFT_OUT = "torchx-tui/app-def-left-out"
"""Why there is no `APP_DEF`, in words."""
SUBMITTED_AT = "torchx-tui/submitted-at"
"""Seconds since the epoch."""
SESSION = "torchx-tui/session"
USER = "torchx-tui/user"
"""Who launched it."""
APP_NAME = "torchx-tui/app-name"
REPLICAS = "torchx-tui/replicas"
"""How many replicas the whole app has: those that are gone are missed by it."""
ROLE_INDEX = "torchx-tui/role-index"
"""The role's place in the AppDef, from 0."""

APP_DEF_LIMIT = 32 * 1024
"""Bytes."""


def replica_number(labels: Mapping[str, str]) -> int:
    """Return which replica of its role a container is; 0 where its label is missing or no number."""
    try:
        return int(labels.get(REPLICA_ID, ""))
    except ValueError:
        return 0


def submitted_at(labels: Mapping[str, str]) -> float | None:
    """Return when the app was submitted, in seconds since the epoch; None where no label tells."""
    try:
        return float(labels.get(SUBMITTED_AT, ""))
    except ValueError:
        return None
