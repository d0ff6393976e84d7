"""A Slurm cluster for benchmarks: that of ``SLURM_CONF``, else one of its own, which is removed afterwards."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from support.slurm_cluster import private_slurm

# What nodes and the controller itself send, and the question for the counts.
_NOT_OURS = re.compile(r"MESSAGE_|REQUEST_(?:STATS_INFO|PING|COMPLETE_|STEP_COMPLETE|LAUNCH_|KILL_|NODE_REGISTRATION)")
_COUNTED = re.compile(r"^\t(?P<type>[A-Z_0-9]+)\s+\(\s*\d+\) count:(?P<count>\d+)", re.MULTILINE)


@contextmanager
def cluster(settings: str = "") -> Iterator[None]:
    """Set ``SLURM_CONF`` to a cluster.

    Args:
        settings: lines of slurm.conf for one of its own.

    Raises:
        NoServiceError: none can be started here.
    """
    if os.environ.get("SLURM_CONF"):
        yield
        return
    with private_slurm(settings) as made:
        os.environ["SLURM_CONF"] = made.settings
        try:
            yield
        finally:
            del os.environ["SLURM_CONF"]


def run(*command: str) -> str:
    """Return what one of Slurm's commands prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def requests() -> dict[str, int]:
    """Return how many requests of clients the controller has had since its start, by type."""
    counts = {found["type"]: int(found["count"]) for found in _COUNTED.finditer(run("sdiag"))}
    return {name: count for name, count in counts.items() if not _NOT_OURS.match(name)}
