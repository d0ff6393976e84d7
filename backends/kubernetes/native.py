"""What the server itself says of a job and its pods, as YAML, secret values masked."""

from __future__ import annotations

from typing import Any

from ..readable_yaml import readable_yaml
from ..secrets import MASK, is_secret
from .jobs import Object


def native_text(job: Object, pods: list[Object]) -> str:
    """Return a job and its pods as one YAML document each; less what only the server's own bookkeeping needs."""
    return "---\n".join(readable_yaml(_masked(_less(one))) for one in (job, *pods))


def _less(found: Object) -> Object:
    metadata = {name: value for name, value in found["metadata"].items() if name != "managedFields"}
    return {**found, "metadata": metadata}


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("name"), str) and isinstance(value.get("value"), str) and is_secret(value["name"]):
        return {**value, "value": MASK if value["value"] else ""}
    return {name: _masked(item) for name, item in value.items()}
