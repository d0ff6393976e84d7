from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from backend.local.support import Local, document

from torchx_tui.backends.local.record import Run


@pytest.fixture
def make_local(tmp_path):
    made: list[Local] = []

    def make(root: Path | None = None, **arguments: Any) -> Local:
        made.append(Local(root or tmp_path / "state", **arguments))
        return made[-1]

    yield make
    for local in made:
        local.end_all()
        local.scheduler.close()


@pytest.fixture
def local(make_local):
    return make_local()


@pytest.fixture
def make(local):
    """Return a function that writes the state file of the app job-1, and reads it."""

    def made(*replicas: dict[str, Any], **fields: Any) -> Run:
        local.put("job-1", document(*replicas, **fields))
        return local.run("job-1")

    yield made
    # Its processes may be this one.
    (local.root / "session" / "job-1" / "state.json").unlink(missing_ok=True)
