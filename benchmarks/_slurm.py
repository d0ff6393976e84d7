"""A Slurm cluster for benchmarks: that of ``SLURM_CONF``, else one of its own, which is removed afterwards."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVICES = Path(__file__).parent.parent / "tests" / "services"
# What nodes and the controller itself send, and the question for the counts.
_NOT_OURS = re.compile(r"MESSAGE_|REQUEST_(?:STATS_INFO|PING|COMPLETE_|STEP_COMPLETE|LAUNCH_|KILL_|NODE_REGISTRATION)")
_COUNTED = re.compile(r"^\t(?P<type>[A-Z_0-9]+)\s+\(\s*\d+\) count:(?P<count>\d+)", re.MULTILINE)


@contextmanager
def cluster(folder: Path, settings: str = "") -> Iterator[None]:
    """Set ``SLURM_CONF`` to a cluster.

    Args:
        folder: where the state of one of its own is kept.
        settings: lines of slurm.conf for one of its own.
    """
    if os.environ.get("SLURM_CONF"):
        yield
        return
    environ = {
        **os.environ,
        "SLURM_TEST_DIR": str(folder),
        "SLURM_TEST_PORT": "27700",
        "SLURM_TEST_SETTINGS": settings,
    }
    try:
        subprocess.run([SERVICES / "slurm-up.sh"], check=True, capture_output=True, env=environ)
        os.environ["SLURM_CONF"] = str(folder / "etc" / "slurm.conf")
        yield
    finally:
        os.environ.pop("SLURM_CONF", None)
        subprocess.run([SERVICES / "slurm-down.sh", "--purge"], check=True, capture_output=True, env=environ)


def run(*command: str) -> str:
    """Return what one of Slurm's commands prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def requests() -> dict[str, int]:
    """Return how many requests of clients the controller has had since its start, by type."""
    counts = {found["type"]: int(found["count"]) for found in _COUNTED.finditer(run("sdiag"))}
    return {name: count for name, count in counts.items() if not _NOT_OURS.match(name)}
