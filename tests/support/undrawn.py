"""What the dashboard could not draw during a test: it goes on, so that no test would fail by itself."""

from __future__ import annotations

import logging

failures: list[str] = []
"""What was logged of it; a test that draws badly on purpose clears it."""


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        failures.append(self.format(record))


logging.getLogger("torchx_tui.tui.ui.drawing").addHandler(_Handler())
