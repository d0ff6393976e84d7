"""The guest that runs components: its start beside a bare interpreter, and from an edited field to a new AppDef.

Medians of rounds that take turns. Budgets: a start costs what a bare interpreter costs and 50 ms; an AppDef of a warm
guest comes within 150 ms, that of a file which imports a library of 300 modules within 250 ms. A letter typed into the
form is painted within 100 ms (p99), whatever the component does meanwhile.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from torchx_tui.components.build import build_app
from torchx_tui.guest.pool import pool

from ._budget import judged, percentile
from ._dashboard import COMMAND, Home, home
from ._sizes import scaled

ROUNDS = scaled(15, 1)
LETTERS = scaled(8, 1)
_TEXT = '''
from torchx_tui.specs import AppDef, Role


def f(name: str = "x") -> AppDef:
    """Make an app."""
    return AppDef(name, [Role("r", "image", args=[name])])
'''

# What components do while a letter is typed into their form.
_BAD = (
    "return AppDef(name, [Role('r', 'image')])",
    "time.sleep(1000)",
    "while True: pass",
    "sys.exit(1)",
    "os._exit(3)",
    "os.kill(os.getpid(), signal.SIGSEGV)",
    "os.kill(os.getppid(), signal.SIGKILL); time.sleep(1000)",
    "input()",
    "open('/dev/tty')",
    "for _ in range(50): os.fork() or time.sleep(1000)",
    "threading.Thread(target=time.sleep, args=(1000,)).start()",
    "x = bytearray(2 << 30)",
    "print('x' * 10_000_000)",
    "while True: print('\\33[2J' * 1000)",
    "os.closerange(0, 5000)",
    "def again(): again()\n    again()",
    "return AppDef('a', [Role('r', 'i')] * 100_000)",
    "return AppDef('a', [Role('r', 'i', num_replicas=100_000)])",
    "return AppDef('a', [Role('r', 'x' * (8 << 20))])",
    "return AppDef('a', [Role('r', 'x' * 900_000)])",
    "return AppDef(name=5)",
)


def letter_seconds(place: Home, body: str) -> list[float]:
    """Return how long after each letter it was painted in the form of a component that does this."""
    head = "import os, signal, sys, threading, time\nfrom torchx_tui.specs import AppDef, Role\n\n"
    place.components.write_text(f'{head}def bad(name: str = "") -> AppDef:\n    """Do."""\n    {body}\n')
    taken = []
    with place.open(["sh", "-c", f"cd {place.components.parent} && exec {COMMAND}"]) as screen:
        screen.wait(b"No jobs")
        screen.press(b"n")
        screen.wait(b"Component")
        screen.press(b"jobs.py:bad")
        screen.wait(b"mine")
        screen.press(b"\r")
        # The first field has the focus: a key before that goes elsewhere.
        screen.wait("▌".encode())
        screen.press(b"q")
        for number in range(2, LETTERS + 2):
            # Longer than the form waits before it asks for the AppDef of what is typed.
            time.sleep(0.4 + number * 0.037 % 0.2)
            start, began = len(screen.data), time.perf_counter()
            screen.press(b"q")
            taken.append(screen.wait(b"q" * number, start) - began)
    return taken


def milliseconds(call: Callable[[], object]) -> float:
    """Return how long a call takes, in milliseconds."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


def run() -> list[tuple[str, str]]:
    """Return the figures."""
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, "small", "jobs.py")
        large = Path(folder, "large", "jobs.py")
        for path in (small, large):
            path.parent.mkdir()
            path.write_text(_TEXT)
        for number in range(300):
            (large.parent / f"library_{number}.py").write_text("import re\n" * 50)
        large.write_text("".join(f"import library_{number}\n" for number in range(300)) + _TEXT)
        bare, start = [], []
        for number in range(ROUNDS):
            bare.append(milliseconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)))
            pool.close()
            start.append(milliseconds(lambda number=number: build_app(f"{small}:f", {"name": str(number)})))
        warm = [milliseconds(lambda n=n: build_app(f"{small}:f", {"name": str(n)})) for n in range(ROUNDS)]
        build_app(f"{large}:f", {})
        loaded = [milliseconds(lambda n=n: build_app(f"{large}:f", {"name": str(n)})) for n in range(ROUNDS)]
        pool.close()
    with home() as place:
        letters = [seconds * 1e3 for body in _BAD[: scaled(len(_BAD), 2)] for seconds in letter_seconds(place, body)]
    budget = statistics.median(bare) + 50
    return [
        ("a bare interpreter, start to end", f"{statistics.median(bare):.0f} ms"),
        ("the first AppDef of a guest that is started", judged(statistics.median(start), budget, " ms")),
        ("an AppDef of a warm guest, p50", judged(statistics.median(warm), 150, " ms", digits=1)),
        ("the same, with 300 modules imported, p50", judged(statistics.median(loaded), 250, " ms", digits=1)),
        (f"a letter painted, {len(_BAD)} components that misbehave, p50", f"{percentile(letters, 0.5):.0f} ms"),
        ("the same, p99", judged(percentile(letters, 0.99), 100, " ms")),
        ("the same, longest", f"{max(letters):.0f} ms"),
    ]
