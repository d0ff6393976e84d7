"""The last error that each ended rank printed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ...backends.abilities import KeepsLogFiles
from ...backends.types import Stream
from ...base.errors import TorchXTuiError
from ...base.files import read_tail
from ...logs.pattern.error_reader import ReadError, read_last_error

if TYPE_CHECKING:
    from ...backends.runner import Runner
    from .snapshot import StackSnapshot

_TAIL_BYTES = 16 << 10


def read_rank_errors(runner: Runner, snapshot: StackSnapshot) -> dict[int, ReadError]:
    """Return the last error of each ended rank whose log is a file of its own on this machine."""
    job = runner.job(snapshot.handle)
    if not isinstance(scheduler := job.scheduler, KeepsLogFiles):
        return {}
    errors = {}
    for rank, reply in snapshot.ends.items():
        with suppress(TorchXTuiError, ValueError):
            files = scheduler.log_files(job.app_id, snapshot.role, reply.replica)
            path = files.get(Stream.STDERR) or files.get(Stream.STDOUT)
            error = read_last_error(read_tail(path, _TAIL_BYTES).decode("utf-8", "replace")) if path else None
            if error is not None:
                errors[rank] = error
    return errors
