"""The terminal under load: bytes that it is sent, how late the event loop is, how long keys and quitting take.

Budgets: nothing while nothing changes; at most 80 KB/s while a flood is followed on 200x50; on a link of 50 KB/s the
loop is never more than 250 ms late, and quitting takes under 2 s.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks._budget import judged, percentile
from benchmarks._dashboard import Home, home, key_seconds, open_logs
from benchmarks._sizes import scaled
from benchmarks._timed_dashboard import lateness

SLOW = 50_000
QUIET_SECONDS = float(scaled(4, 1))
FLOOD_SECONDS = float(scaled(8, 1))
KEYS = scaled(48, 2)

Row = tuple[str, str]


def idle_rows() -> list[Row]:
    """Return what reaches the terminal while nothing changes: a job that runs and is quiet, its log on screen."""
    rows = []
    with home() as place:
        place.launch("program", text="print('quiet'); import time; time.sleep(60)")
        with place.open() as screen:
            screen.wait(b"quiet")
            time.sleep(3)
            rows.append(("idle, Jobs screen, bytes in 4 s", judged(screen.bytes_in(QUIET_SECONDS), 0, "")))
            open_logs(screen)
            time.sleep(2)
            rows.append(("idle, Logs screen, bytes in 4 s", judged(screen.bytes_in(QUIET_SECONDS), 0, "")))
    return rows


def flood_rows(
    place: Home, folder: Path, label: str, *, lines: int, rate: int | None, answers: bool = True
) -> list[Row]:
    """Return bytes, lateness, keys and quitting, while a job prints so many lines a second."""
    noted = folder / "late"
    noted.write_text("")
    place.launch("flood", replicas=1, rate=lines, seconds=60)
    argv = [sys.executable, "-m", "benchmarks._timed_dashboard", str(noted)]
    with place.open(argv, rate=rate, answers=answers) as screen:
        open_logs(screen)
        time.sleep(2)
        since = time.perf_counter()
        sent = screen.bytes_in(FLOOD_SECONDS) / FLOOD_SECONDS
        keys = key_seconds(screen, KEYS)
        late = max(lateness(noted, since))
        began = time.perf_counter()
        screen.press(b"q")
        quit_seconds = screen.wait_for_end() - began
    place.cancel_all()
    keys_text = f"p50 {percentile(keys, 0.5) * 1000:.0f} ms, worst {max(keys) * 1000:.0f} ms"
    return [
        (f"{label}: to the terminal", judged(sent / 1000, min(80, (rate or SLOW * 9) / 1000), " KB/s")),
        (f"{label}: event loop late by at most", judged(late * 1000, 250, " ms")),
        (f"{label}: key to its paint", keys_text),
        (f"{label}: quit", judged(quit_seconds, 2, " s", digits=2)),
    ]


def run() -> list[Row]:
    """Return the rows of the report."""
    rows = idle_rows()
    with home() as place:
        folder = Path(place.environ["HOME"])
        rows += flood_rows(place, folder, "10,000 lines/s, 200x50", lines=10_000, rate=None)
        for lines in (100, 10_000):
            rows += flood_rows(place, folder, f"{lines:,} lines/s, 50 KB/s", lines=lines, rate=SLOW)
        rows += flood_rows(place, folder, "the same, no answers", lines=10_000, rate=SLOW, answers=False)
    return rows
