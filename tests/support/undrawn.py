"""What the dashboard could not draw during a test: it goes on, so that no test would fail by itself."""

from __future__ import annotations

import logging

import pytest

failures: list[str] = []
"""What was logged of it; a test that draws badly on purpose clears it."""


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        failures.append(self.format(record))


logging.getLogger("torchx_tui.tui.ui.drawing").addHandler(_Handler())


@pytest.fixture(autouse=True)
def nothing_that_cannot_be_drawn():
    """Fail a test in which drawing raised, although the product survives it; for the tests that import this."""
    failures.clear()
    yield
    assert not failures
