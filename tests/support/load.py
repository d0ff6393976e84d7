"""Keeps the processors busy while a command runs: ``python tests/support/load.py 20 make test``.

The processes end with the command, with this program however it ends, and after three hours.
"""

from __future__ import annotations

import os
import subprocess
import sys

_SECONDS = 3 * 3600
_BUSY = """
import os, sys, time
parent, until = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
while os.getppid() == parent and time.monotonic() < until:
    sum(range(1_000_000))
"""


def main(arguments: list[str]) -> int:
    """Run a command beside so many busy processes, and return its exit code."""
    count, command = int(arguments[0]), arguments[1:]
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY, str(os.getpid()), str(_SECONDS)]) for _ in range(count)]
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        for process in busy:
            process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
