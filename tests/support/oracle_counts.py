"""How many cases were held against TorchX, area by area: counted in every worker, told at the end of a run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

COUNTED = Path(__file__).parents[1] / "interop" / "counted.json"
"""The counts of the last full run that wrote them, which docs/compatibility.md shows: see `write`."""
_WRITE = "WRITE_ORACLE_COUNTS"
_OF_WORKER = "oracle_counts"

Counts = dict[str, dict[str, Any]]
COUNTS: Counts = {}
"""Of each area: the cases that were tried, those that differed, and how many each entry of the table explained."""


def count(area: str, explained_by: str | None = None, cases: int = 1) -> None:
    """Count cases of an area, which an entry of the table explains where they differed."""
    mine = COUNTS.setdefault(area, {"cases": 0, "differed": 0, "entries": {}})
    mine["cases"] += cases
    if explained_by is not None:
        mine["differed"] += cases
        mine["entries"][explained_by] = mine["entries"].get(explained_by, 0) + cases


def add(more: Counts) -> None:
    """Add the counts of a worker."""
    for area, of_area in more.items():
        agreed = of_area["cases"] - of_area["differed"]
        if agreed:
            count(area, cases=agreed)
        for entry, number in of_area["entries"].items():
            count(area, entry, number)


class OracleCounts:
    """Brings the counts of pytest-xdist's workers together, and tells them."""

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand the counts of a worker over."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OF_WORKER] = COUNTS

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """Take the counts of a worker."""
        add(getattr(node, "workeroutput", {}).get(_OF_WORKER, {}))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Tell the counts; write them where WRITE_ORACLE_COUNTS is set."""
        if not COUNTS:
            return
        terminalreporter.section("held against TorchX")
        for area, mine in sorted(COUNTS.items()):
            told = f"{mine['cases']:,} cases, {mine['differed']:,} differ as {len(mine['entries'])} entries explain"
            terminalreporter.write_line(f"{area}: {told}")
        if os.environ.get(_WRITE):
            write(COUNTS)


def write(counts: Counts) -> None:
    """Write the file that the page is made from; an area that was not tried keeps its counts."""
    before = json.loads(COUNTED.read_text(encoding="utf-8")) if COUNTED.exists() else {}
    merged = {**before, **{area: {**mine, "entries": len(mine["entries"])} for area, mine in counts.items()}}
    COUNTED.write_text(json.dumps(dict(sorted(merged.items())), indent=2) + "\n", encoding="utf-8")
