"""From a line that a local replica writes to the same line in combined.log and out of log_iter."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks._sizes import scaled
from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.specs.roles import AppDef, Role

LINES = scaled(100, 10)
# Each line is the time at which it was written; the pauses vary, so that no poll falls into step with them.
_PROGRAM = "import time, sys\nfor n in range({lines}): print(time.time(), flush=True); time.sleep(0.02 + n % 7 * 0.011)"


def _combined_latencies(index: Path, combined: Path) -> list[float]:
    """Return how long after its writing each line was in combined.log, by the index."""
    times = {}
    for record in index.read_text().splitlines():
        offset, at, _ = record.split()
        times[int(offset)] = float(at)
    latencies, offset = [], 0
    for line in combined.read_bytes().splitlines(keepends=True):
        if offset in times:
            latencies.append((times[offset] - float(line)) * 1e3)
        offset += len(line)
    return latencies


def run() -> list[tuple[str, str]]:
    """Return rows of what was measured and the figure."""
    delivered = []
    with tempfile.TemporaryDirectory(prefix="torchx-tui-bench-") as base:
        scheduler = LocalScheduler("bench", root=Path(base), handle_signals=False)
        role = Role("r", image="", entrypoint="python3", args=["-c", _PROGRAM.format(lines=LINES)])
        app_id = scheduler.submit(AppDef("bench", [role]), {})
        for line in scheduler.log_iter(app_id, "r", should_tail=True):
            delivered.append((time.time() - float(line)) * 1e3)
        described = scheduler.describe(app_id)
        assert described is not None
        folder = Path(described.log_dir, "r", "0")
        combined = _combined_latencies(folder / "combined.index", folder / "combined.log")
        while (described := scheduler.describe(app_id)) is not None and described.finished_at is None:
            time.sleep(0.02)
        scheduler.close()
    return [
        ("local_cwd: line written to line in combined.log", _figures(combined)),
        ("local_cwd: line written to line out of log_iter", _figures(delivered)),
    ]


def _figures(latencies: list[float]) -> str:
    ordered = sorted(latencies)
    return f"p50 {statistics.median(ordered):.0f} ms, p95 {ordered[int(len(ordered) * 0.95)]:.0f} ms"


if __name__ == "__main__":
    for what, figure in run():
        print(f"{what}: {figure}")
