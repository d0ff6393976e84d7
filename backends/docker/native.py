"""What the engine itself says of an app's containers, as YAML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..readable_yaml import readable_yaml
from ..secrets import mask_data
from .command_text import shown_labels
from .inspected import Inspected


def native_text(inspected: Sequence[Inspected]) -> str:
    """Return the inspection of containers as one YAML document each, secret values masked."""
    return "---\n".join(readable_yaml(mask_data(_shortened(one))) for one in inspected)


def _shortened(inspected: Inspected) -> dict[str, Any]:
    config = inspected.get("Config") or {}
    return {**inspected, "Config": {**config, "Labels": shown_labels(config.get("Labels") or {})}}
