"""The installed command in a pipe, as a script runs it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from support.terminal import COMMAND
from support.waiting import PATIENCE

# Seconds; a launch with torch takes five on a busy machine.


def shell(
    *arguments: str, cwd: Path | None = None, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``torchx-tui`` with arguments and return what it printed and how it ended."""
    return subprocess.run(
        [COMMAND, *arguments],
        cwd=cwd,
        env={**os.environ, **(environ or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=PATIENCE,
        check=False,
    )


def jobs() -> dict[str, str]:
    """Return the state of every job that the command lists, by handle."""
    printed = shell("list")
    assert printed.returncode == 0, printed.stderr
    rows = [line.split() for line in printed.stdout.splitlines()[1:]]
    return {row[0]: row[-1] for row in rows}


def launches() -> list[Path]:
    """Return the journal's records in the test's own home."""
    return sorted((Path(os.environ["XDG_STATE_HOME"]) / "torchx-tui" / "journal").glob("*.json"))
