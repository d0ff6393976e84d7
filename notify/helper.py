"""Starting helper processes that send notifications, and sending each event once."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from ..base.files import path_exists, private_folder, state_folder
from ..logs.text.sanitize import plain
from ..settings.config import Settings
from ..settings.helper_request import Happened, helper_argv, helper_request

_KEEP_S = 30 * 86400.0


def start_helper(settings: Settings, happened: Sequence[Happened], environ: Mapping[str, str] | None = None) -> None:
    """Start a helper and do not wait for it; blocks, so call it in a thread.

    Args:
        settings: the settings to send by.
        happened: the events.
        environ: further variables of its environment.

    Raises:
        OSError: it cannot be started.
    """
    process = subprocess.Popen(
        helper_argv(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
        start_new_session=True, env={**os.environ, **(environ or {})},
    )  # fmt: skip
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(helper_request(settings, happened).encode())


def send_events(settings: Settings, happened: Sequence[Happened]) -> None:
    """Send the wanted events of jobs that have no supervisor of ours; blocks, so call it in a thread.

    Raises:
        OSError: the helper cannot be started.
    """
    events = set(settings.notify.events)
    # A failure is an end too.
    events |= {"failure"} if "end" in events else set()
    wanted = [item for item in happened if item.event in events or is_wanted(item.handle)]
    if wanted and settings.notify.has_channel:
        start_helper(settings, wanted)


def terminal_sequence(text: str) -> str:
    """Return the sequence for a terminal's notification (OSC 9) and bell."""
    sequence = f"\x1b]9;{plain(text)}\x07"
    if os.environ.get("TMUX"):
        sequence = "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return f"{sequence}\x07"


def send_once(handle: str, event: str, send: Callable[[], bool]) -> None:
    """Send an event of a job unless it was sent before, by any process; concurrent processes wait.

    Args:
        handle: the job's handle.
        event: the event.
        send: sends it, and returns whether it was sent; if not, another process may try.
    """
    with _open(f"sent-{event}", handle) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_size == 0 and send():
            file.write(b"sent\n")


def want(handle: str) -> None:
    """Send all events of a job, whatever the settings say."""
    _open("wanted", handle).close()


def is_wanted(handle: str) -> bool:
    """Return whether `want` was called for a job, in any process."""
    return path_exists(_path("wanted", handle))


def _path(kind: str, handle: str) -> Path:
    return state_folder() / "notify" / f"{kind}-{hashlib.sha256(handle.encode()).hexdigest()[:32]}"


def _open(kind: str, handle: str) -> BinaryIO:
    path = _path(kind, handle)
    private_folder(path.parent)
    _prune(path.parent)
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "ab")


def _prune(folder: Path) -> None:
    for entry in os.scandir(folder):
        with suppress(OSError):
            if entry.name.startswith(("sent-", "wanted-")) and entry.stat().st_mtime < time.time() - _KEEP_S:
                Path(entry.path).unlink()
