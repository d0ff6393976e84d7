"""The form of a script with many arguments: from enter to its first field, and from a letter to its paint.

Budgets: 0.3 s to the form, 50 ms to the letter, with 1,000 arguments.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks._budget import judged, percentile
from benchmarks._dashboard import COMMAND, Screen
from benchmarks._sizes import scaled

ROUNDS, LETTERS = scaled(5, 1), scaled(10, 1)
OPEN_BUDGET_MS, LETTER_BUDGET_MS = 300.0, 50.0


def open_form(arguments: int) -> tuple[float, list[float]]:
    """Return the milliseconds to the form of a script, and those to the paint of each of several letters."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        homes = {f"XDG_{kind}_HOME": f"{folder}/{kind}" for kind in ("STATE", "CACHE", "CONFIG")}
        added = (f"parser.add_argument('--arg_{number}', type=float, default=0.5)" for number in range(arguments))
        script = ["import argparse", "parser = argparse.ArgumentParser()", *added, "args = parser.parse_args()"]
        Path(folder, "large.py").write_text("\n".join(script))
        screen = Screen(["env", f"--chdir={folder}", COMMAND], {**os.environ, "TERM": "xterm-256color", **homes})

        def milliseconds(keys: bytes, wanted: bytes) -> float:
            start, began = len(screen.data), time.perf_counter()
            screen.press(keys)
            return (screen.wait(wanted, start) - began) * 1000

        try:
            screen.wait(b"No jobs yet")
            milliseconds(b"n", b"Component")
            milliseconds(b"large.py", b"script")
            # The list of components is complete, and its documentation shown.
            time.sleep(1.0)
            to_form = milliseconds(b"\r", "▌".encode())
            # The later rows have come.
            time.sleep(3.0)
            letters = []
            for _ in range(LETTERS):
                letters.append(milliseconds(b"7", b"7"))
                # The dry run of the letter before has ended.
                time.sleep(0.6)
            return to_form, letters
        finally:
            screen.close()


def run() -> list[tuple[str, str]]:
    """Return the medians beside their budgets."""
    rows = []
    for arguments in (20, 1000):
        opened, letters = zip(*(open_form(arguments) for _ in range(ROUNDS)), strict=True)
        painted = [letter for one in letters for letter in one]
        rows += [
            (f"{arguments:,} arguments: enter to the form", judged(statistics.median(opened), OPEN_BUDGET_MS, " ms")),
            (
                f"{arguments:,} arguments: letter to paint, p95",
                judged(percentile(painted, 0.95), LETTER_BUDGET_MS, " ms"),
            ),
        ]
    return rows
