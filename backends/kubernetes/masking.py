"""Jobs and pods as they are shown: values of secret variables masked, and whole manifests in annotations left out."""

from __future__ import annotations

from typing import Any

from ..secrets import MASK, is_secret, mask_args, mask_text
from . import labels

# Annotations that hold a whole manifest, secret values and all.
_WHOLE = (labels.APP_DEF, "kubectl.kubernetes.io/last-applied-configuration")


def masked(value: Any, names: set[str] | None = None) -> Any:
    """Return a copy of an object, or a part of one, as it may be shown.

    Args:
        value: plain data.
        names: gets the names of the variables whose values were masked.
    """
    if isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):
            return mask_args(value)
        return [masked(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("name"), str) and isinstance(value.get("value"), str) and is_secret(value["name"]):
        if value["value"] and names is not None:
            names.add(value["name"])
        return {**value, "value": MASK if value["value"] else ""}
    if isinstance(value.get("name"), str) and isinstance(value.get("value"), str):
        return {**value, "value": mask_text(value["name"], value["value"])}
    made = {name: masked(item, names) for name, item in value.items()}
    for name in _WHOLE:
        if isinstance(text := made.get(name), str):
            made[name] = f"<{len(text.encode())} bytes of JSON>"
    return made
