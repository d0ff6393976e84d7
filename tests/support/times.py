"""``--times``: the seconds of each folder, at the end of a run; pytest's ``--durations`` shows those of each test."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest


class Times:
    """Adds up what the tests of a folder took with their fixtures, in whichever worker they ran."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0].rpartition("/")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("seconds")
        for folder, seconds in [*sorted(self._seconds.items()), ("all", sum(self._seconds.values()))]:
            terminalreporter.write_line(f"{seconds:8.0f}  {folder}")
