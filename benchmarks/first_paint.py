"""First usable paint of the installed command, against a bare Textual application, in a pseudo-terminal.

Budget: at most 1.5 times the bare application, empty state.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._sizes import scaled

ROUNDS = scaled(9, 1)
PATIENCE_SECONDS = 30.0

HELLO = """
from textual.app import App
from textual.widgets import Static

class Hello(App):
    def compose(self):
        yield Static("hello there")

Hello().run()
"""


def seconds_to(argv: list[str], wanted: bytes, environ: dict[str, str]) -> float:
    """Return the seconds from the start of a command to the first screen that holds ``wanted``."""
    began = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe(argv[0], argv, environ)
    import fcntl
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    seen = b""
    try:
        while wanted not in seen:
            ready, _, _ = select.select([terminal], [], [], PATIENCE_SECONDS)
            if not ready:
                raise TimeoutError(f"{argv[0]} did not draw {wanted!r}")
            seen += os.read(terminal, 65536)
        return time.perf_counter() - began
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def run() -> list[tuple[str, str]]:
    """Return the medians and their ratio."""
    with tempfile.TemporaryDirectory() as home:
        environ = {**os.environ, "TERM": "xterm-256color", "HOME": home, "XDG_STATE_HOME": f"{home}/state"}
        hello = Path(home, "hello.py")
        hello.write_text(HELLO)
        bare_runs, our_runs = [], []
        command = str(Path(sys.executable).with_name("torchx-tui"))
        for _ in range(ROUNDS):
            bare_runs.append(seconds_to([sys.executable, str(hello)], b"hello there", environ))
            our_runs.append(seconds_to([command], b"Jobs", environ))
    bare, ours = statistics.median(bare_runs), statistics.median(our_runs)
    return [
        ("bare Textual application", f"{bare * 1000:.0f} ms"),
        ("torchx-tui, empty state", f"{ours * 1000:.0f} ms"),
        ("ratio (budget 1.5)", f"{ours / bare:.2f}"),
    ]
