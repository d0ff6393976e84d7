"""Looking at real processes: which belong to a job, and whether they have ended."""

from __future__ import annotations

from pathlib import Path

from torchx_tui.base.processes import read_process


def processes_of_job(marker: str) -> list[int]:
    """Return the pids of live processes whose environment holds a marker, such as an app id."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environ = (folder / "environ").read_bytes()
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if marker.encode() in environ and state not in ("Z", "X"):
            found.append(int(folder.name))
    return found


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended, though its parent may not have asked for its exit code."""
    process = read_process(pid)
    return process is None or process.zombie
