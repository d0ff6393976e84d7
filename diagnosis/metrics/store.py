"""The series of jobs on disk, so that a finished or reopened job has its curves at once.

One file a job: `$XDG_STATE_HOME/torchx-tui/metrics/<handle>.msgpack`. A new format has a new version; a file of another
version, or a broken one, is no file.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ...base.files import LARGE, private_folder, read_file, state_folder, write_private
from ...base.typed_data import convert
from ...logs.spool.spools import folder_name
from .series import Series

_VERSION = 1
# The most jobs that are kept, and their bytes; the oldest go first.
_MOST_JOBS = 500
_MOST_BYTES = 500_000_000


@dataclass
class _File:
    version: int
    facts: dict[str, float]
    series: list[Series]


def metrics_path(handle: str) -> Path:
    """Return where the series of a job are kept."""
    return state_folder() / "metrics" / f"{folder_name(handle)}.msgpack"


def save_series(handle: str, series: Mapping[str, Series], facts: Mapping[str, float] | None = None) -> None:
    """Keep the series of a job, and drop the oldest jobs where there are too many.

    Args:
        handle: the job's handle.
        series: its series.
        facts: what else is known of it, such as its step.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    path = metrics_path(handle)
    private_folder(path.parent)
    kept = _File(_VERSION, dict(facts or {}), list(series.values()))
    write_private(path, msgspec.msgpack.encode(kept, enc_hook=array.tobytes))
    _drop_oldest(path.parent)


def load_series(handle: str) -> tuple[dict[str, Series], dict[str, float]]:
    """Return the series of a job as they were kept, and what else was known; none where nothing usable was kept."""
    try:
        plain = msgspec.msgpack.decode(read_file(metrics_path(handle), LARGE))
        kept: _File = convert(plain, _File, lambda _, cells: array("d", cells))
    except (OSError, ValueError):
        return {}, {}
    return ({series.name: series for series in kept.series}, kept.facts) if kept.version == _VERSION else ({}, {})


def _drop_oldest(folder: Path) -> None:
    files = []
    for path in folder.glob("*.msgpack"):
        with contextlib.suppress(OSError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    files.sort(reverse=True)
    size = 0
    for number, (_, bytes_of_file, path) in enumerate(files):
        size += bytes_of_file
        if number and (number >= _MOST_JOBS or size > _MOST_BYTES):
            path.unlink(missing_ok=True)
