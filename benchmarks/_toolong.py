"""toolong, a viewer of logs for the terminal, to measure against; it needs another Textual, so it has its own venv."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from benchmarks._dashboard import Screen

_INSTALL_SECONDS = 120.0


@cache
def installed() -> Path | None:
    """Return its command, installed into a temporary folder; None where it cannot be had."""
    folder = Path(tempfile.mkdtemp(prefix="torchx-tui-bench-toolong-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(folder / "bin" / "pip"), "install", "--quiet", "toolong"],
        ):
            subprocess.run(command, check=True, capture_output=True, timeout=_INSTALL_SECONDS)
    except (subprocess.SubprocessError, OSError):
        return None
    return folder / "bin" / "tl"


def seconds_to_show(command: Path, path: Path, wanted: bytes) -> float:
    """Return the seconds from its start to a text on its screen."""
    began = time.perf_counter()
    screen = Screen([str(command), str(path)], {**os.environ, "TERM": "xterm-256color"}, (120, 40))
    try:
        return screen.wait(wanted) - began
    finally:
        screen.close()
