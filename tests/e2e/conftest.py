"""End to end: the installed command in a real pseudo-terminal, with real local jobs."""

import os
import signal

import psutil
import pytest
from support.processes import processes_of_job
from support.terminal import Terminal


@pytest.fixture
def terminal(own_home, tmp_path):
    """Return a function that starts the dashboard, and waits for a pattern if it is given one.

    Every process that a test left is ended after it.
    """
    started = []

    def start(wait="", **kwargs) -> Terminal:
        one = Terminal(**{"cwd": tmp_path, **kwargs})
        started.append(one)
        if wait:
            one.wait(wait)
        return one

    yield start
    for one in started:
        one.__exit__()
    # Every job of the test carries the test's own home in its environment.
    own = [os.getpid(), *[parent.pid for parent in psutil.Process().parents()]]
    for pid in processes_of_job(f"XDG_STATE_HOME={own_home}"):
        if b"torchx" in _environ(pid) and pid not in own:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _environ(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""
