"""What the engine itself says of an app's containers, as YAML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..readable_yaml import readable_yaml
from ..secrets import MASK, is_secret
from .command_text import shown_labels
from .inspected import Inspected


def native_text(inspected: Sequence[Inspected]) -> str:
    """Return the inspection of containers as one YAML document each, secret values masked."""
    return "---\n".join(readable_yaml(_masked(one)) for one in inspected)


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _masked_item(name, item) for name, item in value.items()}


def _masked_item(name: str, item: Any) -> Any:
    if name == "Env" and isinstance(item, list):
        return [_masked_pair(pair) for pair in item]
    if name == "Labels" and isinstance(item, dict):
        return shown_labels(item)
    return MASK if isinstance(item, str) and item and is_secret(name) else _masked(item)


def _masked_pair(pair: str) -> str:
    name, sign, value = pair.partition("=")
    return f"{name}{sign}{MASK if value and is_secret(name) else value}"
