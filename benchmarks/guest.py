"""The guest that runs components: its start beside a bare interpreter, and from an edited field to a new AppDef.

Medians of rounds that take turns. Budgets: a start costs what a bare interpreter costs and 50 ms; an AppDef of a warm
guest comes within 150 ms, that of a file which imports a library of 300 modules within 250 ms.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from torchx_tui.components import build_app
from torchx_tui.guest.host import guests

from ._budget import judged

ROUNDS = 15
_TEXT = '''
from torchx_tui.specs import AppDef, Role


def f(name: str = "x") -> AppDef:
    """Make an app."""
    return AppDef(name, [Role("r", "image", args=[name])])
'''


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
            guests.close()
            start.append(milliseconds(lambda number=number: build_app(f"{small}:f", {"name": str(number)})))
        warm = [milliseconds(lambda n=n: build_app(f"{small}:f", {"name": str(n)})) for n in range(ROUNDS)]
        build_app(f"{large}:f", {})
        loaded = [milliseconds(lambda n=n: build_app(f"{large}:f", {"name": str(n)})) for n in range(ROUNDS)]
        guests.close()
    budget = statistics.median(bare) + 50
    return [
        ("a bare interpreter, start to end", f"{statistics.median(bare):.0f} ms"),
        ("the first AppDef of a guest that is started", judged(statistics.median(start), budget, " ms")),
        ("an AppDef of a warm guest, p50", judged(statistics.median(warm), 150, " ms", digits=1)),
        ("the same, with 300 modules imported, p50", judged(statistics.median(loaded), 250, " ms", digits=1)),
    ]
