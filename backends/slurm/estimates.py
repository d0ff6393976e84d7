"""When Slurm would start a job that is not submitted, by ``sbatch --test-only``.

It knows nothing of limits of accounts and QOS, and of dependencies: those are looked at elsewhere. For a job that never
starts it names a date centuries ahead.
"""

from __future__ import annotations

import re
import threading
import time
from typing import NamedTuple

from ...logs.text.sanitize import plain
from . import commands
from .jobs import MOST_AHEAD_S
from .request import SlurmRequest

_TOLD = re.compile(r"to start at (?P<at>\d+) using \d+ processors on nodes (?P<nodes>\S+) in partition ")
_REFUSED = re.compile(r"^(?:sbatch: error: )?allocation failure: ", re.MULTILINE)
# A question is a run of the scheduler, and its answer holds for a while.
_KEPT_S = 60.0
_MOST_KEPT = 200


class Estimate(NamedTuple):
    """Slurm's estimate for a request.

    Attributes:
        start: when it would start, in seconds since the epoch; None where it would not.
        nodes: the nodes that it would get.
        fault: why it would not start, empty where it would.
    """

    start: float | None
    nodes: str = ""
    fault: str = ""


class Estimates:
    """Asks, and keeps the answers for a minute; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, ...], tuple[float, Estimate]] = {}

    def ask(self, request: SlurmRequest) -> Estimate | None:
        """Return the estimate for a request; None where Slurm has none, as for heterogeneous jobs.

        Raises:
            BackendUnavailableError: Slurm cannot be asked.
        """
        # The comment has a key that is another each time, and so has a script of ours, which has no options in it.
        words = [word for word in request.command[1:] if word != "--parsable" and not word.startswith("--comment=")]
        if ":" in words:
            return None
        key, now = (*words, request.script if request.launch.get("script") else ""), time.monotonic()
        with self._lock:
            at, kept = self._kept.get(key, (0.0, None))
            if kept is not None and now - at < _KEPT_S:
                return kept
        env = {**commands.submit_environment(), "SLURM_TIME_FORMAT": "%s"}
        answer = commands.run(["sbatch", "--test-only", *words], stdin=request.script, env=env)
        found = parse_estimate(answer)
        if found is not None:
            with self._lock:
                if len(self._kept) >= _MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = now, found
        return found


def parse_estimate(answer: commands.Answer) -> Estimate | None:
    """Parse an answer of ``sbatch --test-only``; return None if it has no estimate.

    Raises:
        SchedulerError: sbatch does not take the request, or Slurm cannot be reached.
    """
    if answer.code == 0:
        found = _TOLD.search(answer.err)
        if found is None:
            return None
        start = float(found["at"])
        if start > time.time() + MOST_AHEAD_S:
            return Estimate(None, fault="Slurm would never start it as it is")
        return Estimate(start, plain(found["nodes"]))
    if _REFUSED.search(answer.err):
        return Estimate(None, fault=commands.error_text("sbatch", answer).replace("allocation failure: ", ""))
    raise commands.failure("sbatch", answer)
