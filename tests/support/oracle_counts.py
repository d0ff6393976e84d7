"""How many cases were compared with TorchX, and a hash of what the cases depend on.

`make test` tries a part of the cases, `make oracle` all of them, which writes tests/interop/counted.json. As a program:
fails, and says so, where the inputs are no longer those of the last such run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ALL_CASES = bool(os.environ.get("ALL_ORACLE_CASES"))
"""Whether all cases are tried: `make oracle` sets the variable."""
COUNTED = Path(__file__).parents[1] / "interop" / "counted.json"
"""What the last `make oracle` counted, which docs/reference/compatibility.md shows, and the hash of its inputs."""
_ROOT = Path(__file__).parents[2]
_OF_WORKER = "oracle_counts"

INPUTS = (
    "specs/*.py", "components/*.py", "components/programs/*.py", "tests/interop/*.py",
    "tests/interop/*.toml", "tests/interop/*.yaml", "cli/*.py",
    "backends/torchxconfig.py", "backends/options.py", "backends/shared/kept_app_def.py",
    "backends/local/request.py", "backends/local/environment.py", "backends/local/image_provider.py",
    "backends/docker/request.py", "backends/docker/labels.py", "backends/docker/app_def.py",
    "backends/kube/names.py", "backends/kube/overlay.py", "backends/kube/pod_template.py",
    "backends/kubernetes/app_def.py", "backends/kubernetes/labels.py", "backends/kubernetes/request.py",
    "backends/kubernetes/volcano/manifest.py", "backends/kubernetes/volcano/names.py",
)  # fmt: skip
"""The files that decide what is compared; the pinned version of TorchX is hashed with them."""

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
    """Adds up the counts of pytest-xdist's workers, and prints them."""

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send the counts of a worker."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OF_WORKER] = COUNTS

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: Any) -> None:
        """Receive the counts of a worker."""
        add(getattr(node, "workeroutput", {}).get(_OF_WORKER, {}))

    def pytest_terminal_summary(self, terminalreporter: Any, exitstatus: int) -> None:
        """Print the counts; a run of all cases that passed writes them."""
        if not COUNTS:
            return
        terminalreporter.section("compared with TorchX")
        for area, mine in sorted(COUNTS.items()):
            differed = f"{mine['differed']:,} differ as {len(mine['entries'])} entries explain"
            terminalreporter.write_line(f"{area}: {mine['cases']:,} cases, {differed}")
        if ALL_CASES:
            terminalreporter.write_line(write(COUNTS) if exitstatus == 0 else "nothing is written: a test failed")


def write(counts: Counts, path: Path = COUNTED) -> str:
    """Write the counts and the hash of the inputs, unless an area is missing. Return what was done, for a person."""
    before = read_counted(path)
    missing = sorted(set(before["areas"]) - set(counts))
    if missing:
        return f"nothing is written: {', '.join(missing)} was not tried"
    areas = {area: {**mine, "entries": len(mine["entries"])} for area, mine in sorted(counts.items())}
    made = {"inputs": hash_of_inputs(), "areas": areas}
    path.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    return f"{path.name} is as it was" if made == before else f"COMMIT {path}: its counts or inputs are new"


def read_counted(path: Path = COUNTED) -> dict[str, Any]:
    """Return what the last run of all cases wrote: the hash of its `inputs`, and the counts of its `areas`."""
    return json.loads(path.read_text(encoding="utf-8"))


def hash_of_inputs(root: Path = _ROOT) -> str:
    """Return a hash of the files that the cases depend on.

    Raises:
        FileNotFoundError: an entry of `INPUTS` names no file.
    """
    found = hashlib.sha256()
    for pattern in INPUTS:
        paths = sorted(root.glob(pattern))
        if not paths:
            raise FileNotFoundError(f"INPUTS of {__file__} has {pattern}, and there is no such file: correct it")
        for path in paths:
            found.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    pinned = re.findall(r'"torchx-nightly==.*?"', (root / "pyproject.toml").read_text(encoding="utf-8"))
    return hashlib.sha256(found.digest() + repr(pinned).encode()).hexdigest()[:16]


if __name__ == "__main__" and read_counted()["inputs"] != hash_of_inputs():
    sys.exit("What is compared with TorchX has changed since the last `make oracle`.")
