from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from backend.local.support import Local


@pytest.fixture
def make_local(tmp_path: Path) -> Iterator[Callable[..., Local]]:
    made: list[Local] = []

    def make(root: Path | None = None, **arguments: Any) -> Local:
        made.append(Local(root or tmp_path / "state", **arguments))
        return made[-1]

    yield make
    for local in made:
        local.end_all()
        local.scheduler.close()


@pytest.fixture
def local(make_local: Callable[..., Local]) -> Local:
    return make_local()
