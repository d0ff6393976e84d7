"""Run the benchmarks: ``make bench``, or ``make bench ARGS="log_open local_start"`` for some of them."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path


def names() -> list[str]:
    """Return the benchmarks: every module beside this one that has a ``run()``."""
    folder = Path(__file__).parent
    return sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))


def main(arguments: list[str]) -> int:
    """Run the named benchmarks, or all, and print their rows."""
    unknown = set(arguments) - set(names())
    if unknown:
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(names())}", file=sys.stderr)
        return 2
    # As installed: modules are compiled once, in the first of several rounds.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in arguments or names():
        print(f"\n{name}: {(importlib.import_module(f'benchmarks.{name}').__doc__ or '').splitlines()[0]}")
        for label, figure in importlib.import_module(f"benchmarks.{name}").run():
            print(f"  {label:<58} {figure}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
