"""A local app's state file as text."""

from __future__ import annotations

import json
from typing import Any

from ..secrets import MASK, is_secret
from .record import Run


def native_text(run: Run) -> str:
    """Return the state file, one value a line, secret values masked."""
    if not run.document:
        return run.reason
    return json.dumps(_masked(run.document), indent=2, ensure_ascii=False)


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if isinstance(value, dict):
        return {
            name: MASK if isinstance(item, str) and item and is_secret(name) else _masked(item)
            for name, item in value.items()
        }
    return value
