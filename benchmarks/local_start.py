"""From a launch to the last of 64 replicas running, beside starting the same 64 processes by hand."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks._sizes import scaled
from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.specs.roles import AppDef, Role

REPLICAS = scaled(64, 2)
ROUNDS = scaled(7, 1)
# Each replica says that it runs by a file of its own, and stays until it is ended.
_SCRIPT = ': > "$0/$1"; exec sleep 60'
_BUDGET_RATIO, _BUDGET_MS = 1.5, 100.0


def _wait_for_all(folder: Path, deadline: float = 60.0) -> float:
    end = time.perf_counter() + deadline
    while len(os.listdir(folder)) < REPLICAS:  # noqa: PTH208 - the cheapest look there is
        if time.perf_counter() > end:
            raise TimeoutError(f"not all of {REPLICAS} replicas run after {deadline:.0f} s")
        time.sleep(0.001)
    return time.perf_counter()


def _popen(folder: Path) -> float:
    """Return the milliseconds to start the processes by hand, each with two files and in a session of its own."""
    began = time.perf_counter()
    logs = folder.parent / f"{folder.name}-logs"
    logs.mkdir()
    processes = []
    for number in range(REPLICAS):
        with (logs / f"{number}.out").open("wb") as out, (logs / f"{number}.err").open("wb") as err:
            command = ["sh", "-c", _SCRIPT, str(folder), str(number)]
            processes.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    env={**os.environ},
                )
            )
    ended = _wait_for_all(folder)
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()
    return (ended - began) * 1e3


def _scheduler(folder: Path, scheduler: LocalScheduler) -> float:
    """Return the milliseconds to start them as an app."""
    role = Role(
        "r", image="", entrypoint="sh", args=["-c", _SCRIPT, str(folder), "${replica_id}"], num_replicas=REPLICAS
    )
    began = time.perf_counter()
    app_id = scheduler.submit(AppDef("bench", [role]), {})
    ended = _wait_for_all(folder)
    scheduler.cancel(app_id)
    while (described := scheduler.describe(app_id)) is not None and described.finished_at is None:
        time.sleep(0.02)
    return (ended - began) * 1e3


def run() -> list[tuple[str, str]]:
    """Return rows of what was measured and the figure."""
    by_hand, launched = [], []
    with tempfile.TemporaryDirectory(prefix="torchx-tui-bench-") as base:
        scheduler = LocalScheduler("bench", root=Path(base, "state"), grace_seconds=5, handle_signals=False)
        for number in range(ROUNDS):
            for name, figures in (("popen", by_hand), ("app", launched)):
                folder = Path(base, f"{name}{number}")
                folder.mkdir()
                figures.append(_popen(folder) if name == "popen" else _scheduler(folder, scheduler))
        scheduler.close()
    theirs, ours = statistics.median(by_hand), statistics.median(launched)
    budget = _BUDGET_RATIO * theirs + _BUDGET_MS
    return [
        (f"{REPLICAS} processes by subprocess.Popen, to the last one running", f"{theirs:.0f} ms"),
        (f"local_cwd: launch to the last of {REPLICAS} replicas running", f"{ours:.0f} ms (budget {budget:.0f} ms)"),
    ]


if __name__ == "__main__":
    for what, figure in run():
        print(f"{what}: {figure}")
