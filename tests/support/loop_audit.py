"""What the product does on the event loop that may wait: files, processes and connections are for threads."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import torchx_tui

_EVENTS = frozenset(
    [
        "open",
        "os.listdir",
        "os.scandir",
        "os.mkdir",
        "os.rename",
        "os.remove",
        "os.truncate",
        "os.utime",
        "shutil.rmtree",
        "subprocess.Popen",
        "socket.connect",
        "fcntl.flock",
        "fcntl.lockf",
    ]
)
_PRODUCT, _TESTS = str(Path(torchx_tui.__file__).parent), str(Path(__file__).parents[1])
_ENVIRONMENT = str(Path(sys.prefix))

calls: list[str] = []
"""What was called, each with where in the product."""


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _EVENTS or threading.current_thread() is not threading.main_thread():
        return
    if asyncio._get_running_loop() is None or _is_program(arguments):
        return
    if (where := _caller(sys._getframe(1))) is not None:
        calls.append(f"{event}({arguments[0] if arguments else ''}) at {where}")


def _is_program(arguments: tuple[Any, ...]) -> bool:
    """Return whether a file is part of the program, as its style sheets are."""
    return bool(arguments) and str(arguments[0]).startswith(_PRODUCT) and not str(arguments[0]).startswith(_TESTS)


def _caller(frame: FrameType | None) -> str | None:
    """Return where in the product Textual led to a call; None for an import, a traceback, and a test's own call."""
    ours: list[str] = []
    by_textual = False
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith("<frozen importlib") or path.endswith(("/linecache.py", "/traceback.py")):
            return None
        if path.startswith(_ENVIRONMENT):
            by_textual = by_textual or "textual" in path
        elif path.startswith(_TESTS):
            break
        elif path.startswith(_PRODUCT):
            ours.append(f"{path}:{frame.f_lineno}")
        frame = frame.f_back
    return " < ".join(ours[:6]) if ours and by_textual else None


sys.addaudithook(_note)
