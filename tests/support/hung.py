"""Snapshots of jobs that hung, as recorded, some time after the recording."""

from pathlib import Path
from typing import Any

from torchx_tui.base.validation import decode_json
from torchx_tui.diagnosis.stacks.protocol import from_document
from torchx_tui.diagnosis.stacks.snapshot import StackSnapshot

SNAPSHOTS = Path(__file__).parents[1] / "diagnosis" / "data" / "snapshots"
# They were recorded a few seconds after the ranks stopped: by now the wait is longer than usual.
LATER_S = 60.0


def hung_document(kind: str, later: float = LATER_S, **changes: Any) -> dict[str, Any]:
    """Return a recorded snapshot as it is some seconds later."""
    document = decode_json((SNAPSHOTS / f"{kind}.json").read_bytes())
    document["at"] += later
    for reply in document["replies"]:
        for line in reply["lines"]:
            if "at" in line:
                line["at"] += later
    return {**document, **changes}


def hung_snapshot(kind: str, later: float = LATER_S, **changes: Any) -> StackSnapshot:
    """Return the same as a snapshot."""
    return from_document(hung_document(kind, later, **changes))
