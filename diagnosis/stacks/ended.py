"""What the ranks of a job that is over wrote to stderr at their end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...backends.types import Stream
from ...specs import parse_app_handle
from ...specs.files import open_file

if TYPE_CHECKING:
    from pathlib import Path

    from ...backends.runner import Runner
    from .take import Take

_TAIL_BYTES = 16 << 10


def error_texts(runner: Runner, take: Take) -> dict[int, str]:
    """Return the end of each ended rank's stderr, of those whose log is a file of this machine and of one rank."""
    name, _, app_id = parse_app_handle(take.handle)
    scheduler = runner.scheduler(name)
    if not scheduler.capabilities.log_files:
        return {}
    streams = scheduler.capabilities.log_streams
    stream = Stream.STDERR if Stream.STDERR in streams else Stream.COMBINED
    texts = {}
    for rank, reply in take.exited.items():
        path = scheduler.log_path(app_id, take.role, reply.replica, stream) if reply else None
        if path is not None:
            texts[rank] = _tail(path)
    return texts


def _tail(path: Path) -> str:
    try:
        file = open_file(path)
    except OSError:
        return ""
    try:
        size = os.fstat(file).st_size
        return os.pread(file, _TAIL_BYTES, max(0, size - _TAIL_BYTES)).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(file)
