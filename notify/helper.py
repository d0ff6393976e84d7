"""Hands what happened to a process of its own, which tells of it once, whoever else saw it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ..base.files import path_exists, private_folder, state_folder
from ..logs.text.sanitize import plain
from ..settings.config import Settings
from ..settings.helper_request import Happened, helper_argv, helper_request

_KEEP_S = 30 * 86400.0


def start_helper(settings: Settings, happened: Sequence[Happened]) -> None:
    """Start a helper and leave it alone; call it in a thread.

    Raises:
        OSError: it cannot be started.
    """
    process = subprocess.Popen(
        helper_argv(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
        start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin:
        process.stdin.write(helper_request(settings, happened).encode())


def tell_of(settings: Settings, happened: Sequence[Happened]) -> None:
    """Hand to a helper what is to be told of jobs whose own supervisor tells of nothing; call it in a thread.

    Raises:
        OSError: the helper cannot be started.
    """
    events = set(settings.notify.events)
    # A failure is an end too.
    events |= {"failure"} if "end" in events else set()
    told = [item for item in happened if item.event in events or is_wanted(item.handle)]
    if told and settings.notify.has_channel:
        start_helper(settings, told)


def terminal_sequence(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Return what makes a terminal notify (OSC 9) and ring its bell.

    Args:
        text: what it says.
        environ: the environment; this process's if None.
    """
    sequence = f"\x1b]9;{plain(text)}\x07"
    if (os.environ if environ is None else environ).get("TMUX"):
        sequence = "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return f"{sequence}\x07"


def claim(handle: str, event: str) -> bool:
    """Tell whether this process is the first to tell of an event of a job; it is the only one from then on."""
    return _make(f"told-{event}", handle)


def want(handle: str) -> None:
    """Note that all events of a job are told, whatever the settings say."""
    _make("wanted", handle)


def is_wanted(handle: str) -> bool:
    """Tell whether `want` was called for a job, in any process."""
    return path_exists(_path("wanted", handle))


def _path(kind: str, handle: str) -> Path:
    return state_folder() / "notify" / f"{kind}-{hashlib.sha256(handle.encode()).hexdigest()[:32]}"


def _make(kind: str, handle: str) -> bool:
    path = _path(kind, handle)
    private_folder(path.parent)
    _prune(path.parent)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    return True


def _prune(folder: Path) -> None:
    for entry in os.scandir(folder):
        with suppress(OSError):
            if entry.name.startswith(("told-", "wanted-")) and entry.stat().st_mtime < time.time() - _KEEP_S:
                Path(entry.path).unlink()
