from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.hook import Hook


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()
