"""A local app's state file as text."""

from __future__ import annotations

import json

from ..secrets import mask_data
from .record import Run


def native_text(run: Run) -> str:
    """Return the state file, one value a line, secret values masked."""
    if not run.document:
        return run.reason
    return json.dumps(mask_data(run.document), indent=2, ensure_ascii=False)
