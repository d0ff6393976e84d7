"""TorchX's command line as a process; we find and end its local jobs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from support.processes import processes_of_job
from support.waiting import PATIENCE, wait_until

from torchx_tui.specs.handles import parse_app_handle

SCHEDULER = "local_cwd"
LOOP = "i=0; while :; do i=$((i+1)); echo line $i; echo wrong $i >&2; sleep 0.1; done"


class TorchXRun:
    """``torchx run -s local_cwd`` in a process of its own.

    Args:
        folder: The working folder.
        arguments: The component and its arguments.
        log_dir: Whether TorchX keeps its logs in ``logs`` of the folder.
    """

    def __init__(self, folder: Path, arguments: Sequence[str], *, log_dir: bool = True) -> None:
        self.logs = folder / "logs"
        options = ["-cfg", f"log_dir={self.logs}"] if log_dir else []
        self._stdout, self._stderr = folder / "torchx.out", folder / "torchx.err"
        # torchrun is beside the interpreter.
        env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        # It would print the handle at its end only.
        env["PYTHONUNBUFFERED"] = "1"
        with self._stdout.open("w") as out, self._stderr.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "torchx.cli.main", "run", "-s", SCHEDULER, *options, *arguments],
                cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
            )  # fmt: skip
        self._handle = ""

    @property
    def handle(self) -> str:
        """The job's handle, as TorchX prints it."""
        if not self._handle:
            found = wait_until(self._stdout.read_text, f"a handle: {self._stderr.read_text()}")
            self._handle = found.split()[0]
        return self._handle

    @property
    def app_id(self) -> str:
        return parse_app_handle(self.handle).app_id

    def wait(self) -> int:
        """Wait for TorchX's own end, and return its exit code."""
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """Leave nothing running."""
        handle = self._handle or self._stdout.read_text().strip()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(PATIENCE)
        for pid in processes_of_job(f"TORCHX_JOB_ID={handle}") if handle else ():
            if pid != os.getpid():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
