"""Slurm: what three idle dashboards ask the controller for in 5 minutes, with a job that runs and two that wait.

Budget: 6 requests a minute together. Requests are counted by ``sdiag``. Nobody else may use the cluster meanwhile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks import _slurm
from benchmarks._budget import judged
from benchmarks._dashboard import home
from benchmarks._sizes import scaled

SESSIONS = scaled(3, 1)
SECONDS = scaled(300, 2)
# What an action of the user's makes more frequent is over.
SETTLED_SECONDS = scaled(100, 1)

Row = tuple[str, str]


def run() -> Iterator[Row]:
    """Yield the requests of each type, and all of them."""
    with _slurm.cluster(), home() as place:
        place.environ["SLURM_CONF"] = os.environ["SLURM_CONF"]
        ids = [
            _slurm.run("sbatch", "--parsable", "--output=/dev/null", *options, "--wrap=sleep 3600").strip()
            for options in ([], ["--hold"], ["--nodes=3", "--exclusive", "--job-name=waits"])
        ]
        try:
            with ExitStack() as stack:
                for _ in range(SESSIONS):
                    screen = stack.enter_context(place.open())
                    screen.wait(b"waits")
                time.sleep(SETTLED_SECONDS)
                before = _slurm.requests()
                time.sleep(SECONDS)
                after = _slurm.requests()
        finally:
            _slurm.run("scancel", *ids)
    counts = {name: after[name] - before.get(name, 0) for name in after if after[name] != before.get(name, 0)}
    for name, count in sorted(counts.items(), key=lambda item: -item[1]):
        yield f"{name}, a minute", f"{60 * count / SECONDS:.1f}"
    label = f"{SESSIONS} dashboards, idle for {SECONDS:.0f} s: requests a minute"
    yield label, judged(60 * sum(counts.values()) / SECONDS, 6, "", digits=1)
