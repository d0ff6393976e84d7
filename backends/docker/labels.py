"""The labels of an app's containers: TorchX's, by which each sees the other's apps, and ours, which TorchX passes over.

Labels cannot be changed once a container exists.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...base.validation import Check, epoch_seconds, is_name
from ...specs.serialize import MAX_REPLICAS

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


_COUNT = re.compile(r"[0-9]{1,9}")


def _is_count(text: str) -> bool:
    return _COUNT.fullmatch(text) is not None and int(text) <= MAX_REPLICAS


def _is_time(text: str) -> bool:
    return epoch_seconds(text) is not None


_CHECKS: dict[str, Check] = {
    **dict.fromkeys((APP_ID, ROLE_NAME, APP_NAME, USER), is_name),
    **dict.fromkeys((REPLICA_ID, REPLICAS, ROLE_INDEX), _is_count),
    SUBMITTED_AT: _is_time,
}


def checked_labels(given: Any) -> dict[str, str]:
    """Return the labels of a container without those whose values cannot be: anybody can label a container.

    Args:
        given: ``Labels`` as the engine gives them: None where there are none.
    """
    if not isinstance(given, Mapping):
        return {}
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    for name, is_valid in _CHECKS.items():
        if name in texts and not is_valid(texts[name]):
            del texts[name]
    return texts


def replica_number(labels: Mapping[str, str]) -> int:
    """Return which replica of its role a container is; 0 where no label says it."""
    return int(labels.get(REPLICA_ID, "0"))


def submitted_at(labels: Mapping[str, str]) -> float | None:
    """Return when the app was submitted, in seconds since the epoch; None where no label says it."""
    return epoch_seconds(labels.get(SUBMITTED_AT))
