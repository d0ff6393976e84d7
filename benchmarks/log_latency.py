"""From a line that a local replica prints to the line painted, and from a key to its paint while eight replicas flood.

The installed command in a pseudo-terminal of 200x50, real local jobs. Budgets: line p50 under 60 ms; key p99 under
50 ms while 8 replicas print 100,000 lines a second in all.
"""

from __future__ import annotations

import os
import re
import sys
import time

from benchmarks._budget import judged, percentile
from benchmarks._dashboard import Home, home, key_seconds, open_logs
from benchmarks._sizes import scaled

LINES = scaled(60, 5)
KEYS = scaled(120, 2)
REPLICAS = scaled(8, 2)
LINES_A_SECOND = scaled(100_000, 1000)

# Each line is the time at which it was printed, on a clock that all processes share; the pauses are all of them
# different, so that no reader falls into step with them.
_PRINTS = f"""
import time
for n in range({LINES} + 20):
    print("at", time.perf_counter(), flush=True)
    time.sleep(0.2 + n % 7 * 0.011)
"""
_PRINTED = re.compile(rb"at (\d+\.\d+)")

# Answers each key with a letter, and does nothing else: what is left is the machine's.
_ECHO = "import os, tty\ntty.setraw(0)\nos.write(1, b'up')\nwhile True: os.read(0, 1); os.write(1, b'x')"

Row = tuple[str, str]


def line_seconds() -> list[float]:
    """Return how long after it was printed each line came to the terminal."""
    with home() as place:
        place.launch("program", text=_PRINTS)
        with place.open() as screen:
            open_logs(screen)
            since = time.perf_counter()
            time.sleep(LINES * 0.235)
            data, came = bytes(screen.data), list(screen.came)
    first: dict[float, float] = {}
    position = 0
    for at, end in came:
        # A frame may be in two reads.
        for found in _PRINTED.finditer(data, max(0, position - 40), end):
            first.setdefault(float(found[1]), at)
        position = end
    return [at - printed for printed, at in first.items() if printed > since]


def echo_seconds(place: Home, count: int) -> list[float]:
    """Return how long after each key a bare program's answer came."""
    taken = []
    with place.open([sys.executable, "-c", _ECHO]) as screen:
        screen.wait(b"up")
        for number in range(count):
            time.sleep(0.05 + number * 0.037 % 0.2)
            start, began = len(screen.data), time.perf_counter()
            screen.press(b"k")
            taken.append(screen.wait(b"x", start) - began)
    return taken


def flood_keys() -> tuple[list[float], list[float]]:
    """Return how long after each key its effect came while replicas print so many lines; and that of a bare program."""
    with home() as place:
        place.launch("flood", replicas=REPLICAS, rate=LINES_A_SECOND / REPLICAS, seconds=KEYS * 2)
        with place.open() as screen:
            open_logs(screen)
            time.sleep(3)
            return key_seconds(screen, KEYS), echo_seconds(place, KEYS)


def run() -> list[Row]:
    """Return the rows of the report."""
    lines = line_seconds()
    keys, echoes = flood_keys()
    load = f"{REPLICAS} replicas, {LINES_A_SECOND:,} lines/s"
    return [
        ("line printed to line painted, p50", judged(percentile(lines, 0.5) * 1000, 60, " ms")),
        ("line printed to line painted, p99", f"{percentile(lines, 0.99) * 1000:.0f} ms, {len(lines)} lines"),
        (f"key to paint, {load}, p50", f"{percentile(keys, 0.5) * 1000:.0f} ms"),
        (f"key to paint, {load}, p99", judged(percentile(keys, 0.99) * 1000, 50, " ms")),
        (
            f"a bare program's answer, same load, {os.cpu_count()} cores, p99",
            f"{percentile(echoes, 0.99) * 1000:.0f} ms",
        ),
    ]
