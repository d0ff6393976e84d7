"""The installed command in a pipe, as a script runs it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.terminal import COMMAND
from support.waiting import PATIENCE


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


@contextmanager
def interrupted(*run: str) -> Iterator[tuple[str, str]]:
    """Run a job in the foreground, and interrupt it once it prints; give its handle, and what was printed then."""
    argv = [COMMAND, *run, "sh", "-c", "echo begun; sleep 3600"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        handle = process.stdout.readline().strip()
        try:
            assert process.stderr.readline() == "sh/0 begun\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 130
            yield handle, process.stderr.read()
        finally:
            shell("delete", handle)


def jobs() -> dict[str, str]:
    """Return the state of every job that the command lists, by handle."""
    printed = shell("list")
    assert printed.returncode == 0, printed.stderr
    rows = [line.split() for line in printed.stdout.splitlines()[1:]]
    return {row[0]: row[-1] for row in rows}


def launches() -> list[Path]:
    """Return the journal's records in the test's own home."""
    return sorted((Path(os.environ["XDG_STATE_HOME"]) / "torchx-tui" / "journal").glob("*.json"))
