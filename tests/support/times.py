"""``--times``: the wall and CPU seconds of each folder and of the costliest tests, told at the end of a run."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

_COSTLIEST = 30


class Times:
    """Measures every test with its fixtures, in whichever worker it runs.

    CPU seconds are those of the worker's process while the test ran and of the programs that it started and waited
    for; a service that all tests share is not among them.
    """

    def __init__(self) -> None:
        self._tests: dict[str, tuple[float, float]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Note when a test begins."""
        item.stash[_BEGAN] = (time.monotonic(), _cpu())
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """Put what the test took into its last report, which xdist's workers send."""
        try:
            return (yield)
        finally:
            wall, cpu = item.stash[_BEGAN]
            item.user_properties.append(("times", (time.monotonic() - wall, _cpu() - cpu)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a report tells."""
        if report.when == "teardown":
            times: Any = dict(report.user_properties)["times"]
            self._tests[report.nodeid] = times

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Tell the folders and the costliest tests."""
        folders: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for test, times in self._tests.items():
            folders[test.partition("::")[0].rpartition("/")[0]].append(times)
        terminalreporter.section("seconds")
        terminalreporter.write_line(f"{'tests':>6} {'wall':>8} {'CPU':>8}")
        for folder, found in [*sorted(folders.items()), ("all", list(self._tests.values()))]:
            wall, cpu = (sum(times[place] for times in found) for place in (0, 1))
            terminalreporter.write_line(f"{len(found):6} {wall:8.0f} {cpu:8.0f}  {folder}")
        terminalreporter.write_line("")
        for test, (wall, cpu) in sorted(self._tests.items(), key=lambda one: -one[1][1])[:_COSTLIEST]:
            terminalreporter.write_line(f"       {wall:8.1f} {cpu:8.1f}  {test}")


def _cpu() -> float:
    return sum(os.times()[:4])


_BEGAN = pytest.StashKey[tuple[float, float]]()
