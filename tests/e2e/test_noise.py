"""What no terminal should send, a terminal that cannot draw, code that never returns: the dashboard ends when told."""

from __future__ import annotations

import os
import signal

import pytest
from support.component_files import HEADER
from support.terminal import Terminal

HANGS = f'''{HEADER}
import time

def sleeps(seconds: int = 3600) -> AppDef:
    """Sleep for an hour while the AppDef is made."""
    time.sleep(seconds)

def spins(seconds: int = 3600) -> AppDef:
    """Count for an hour while the AppDef is made."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
'''


@pytest.mark.slow
@pytest.mark.parametrize(("component", "how"), [("sleeps", "SIGTERM"), ("spins", "ctrl+q")])
def test_quitting_waits_for_no_component(terminal, tmp_path, component, how):
    path = tmp_path / "hangs.py"
    path.write_text(HANGS)
    app = terminal(wait="No jobs yet")
    app.press("n", wait="Component")
    app.press(f"hangs.py:{component}", wait=rf"{component}.*mine")
    app.press("enter", wait="Run options")
    if how == "SIGTERM":
        os.kill(app.pid, signal.SIGTERM)
    else:
        app.press(how)
    assert app.wait_for_end() == 0


def test_a_crash_is_no_success(terminal, tmp_path):
    # What ends the app without a code, as a failure of Textual's own threads does.
    (tmp_path / "sitecustomize.py").write_text(
        "def fails(self): raise ValueError('broken on purpose')\n"
        "from torchx_tui.tui.terminal.driver import TerminalDriver\n"
        "TerminalDriver.run_input_thread = fails\n"
    )
    app: Terminal = terminal(environ={"PYTHONPATH": str(tmp_path)})
    assert app.wait_for_end() == 1
    assert b"broken on purpose" in bytes(app.raw)


def test_quitting_waits_for_no_backend(terminal, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import threading\n"
        "from torchx_tui.backends.local.scheduler import LocalScheduler\n"
        "LocalScheduler.close = lambda self: threading.Event().wait(3600)\n"
    )
    app = terminal(environ={"PYTHONPATH": str(tmp_path)}, wait="No jobs yet")
    app.press("q")
    assert app.wait_for_end() == 0
