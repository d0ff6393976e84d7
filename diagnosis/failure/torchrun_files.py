"""Reader of torchrun's log folder: each rank's `error.json` of `@record` and its redirected stderr.

torchrun's report lacks the errors of earlier attempts, and there is no report if torchrun itself was killed. The folder
is ``<log dir>/<rdzv id>_<random>/attempt_<n>/<local rank>`` (torch/distributed/elastic, multiprocessing/api.py); the
fields of error.json are in multiprocessing/errors/error_handler.py.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING

from ...backends.shared.exit_reasons import error_sentence
from ...backends.types import DescribeAppResponse
from ...base.files import read_file, read_tail
from ...logs.pattern.error_reader import read_last_error
from .torchrun import RankEnd, TorchrunEnd

if TYPE_CHECKING:
    from ...specs.roles import Role

logger = logging.getLogger(__name__)

_ATTEMPT = re.compile(r"attempt_(\d{1,4})$")
_LOG_DIR = re.compile(r"--?log[-_]dir[= ]['\"]?([^'\"\s]+)")
_MAX_NAMES, _TAIL_BYTES = 4096, 16 << 10
# The clocks of a file server and of this machine may differ by this much.
_CLOCK_TOLERANCE_S = 60.0


def add_errors(
    ends: Mapping[int, TorchrunEnd], described: DescribeAppResponse, replica_count: int
) -> list[TorchrunEnd]:
    """Add to the ends of a job's torchruns the errors that their ranks left in files of this machine.

    Args:
        ends: the ends in the logs, by replica.
        described: the job.
        replica_count: the number of its replicas; for a single one, files are read even without a report.
    """
    folder = _run_folder(described) if replica_count == 1 else None
    found = []
    for end in ends.values() or [TorchrunEnd()]:
        run = next((path for failed in end.failed if (path := _reported_folder(failed))), folder)
        found.append(end if run is None else _complete(end, run) if ends else _without_report(run))
    return [end for end in found if end.failed or end.signal]


def read_error_file(folder: Path) -> str:
    """Return the error in the error.json of a rank's folder in one line; empty without one."""
    try:
        return error_sentence(read_file(folder / "error.json").decode("utf-8", "replace"))
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        logger.info("%s: %s", folder / "error.json", error)
        return ""


def _add_error(end: RankEnd, attempt: Path) -> RankEnd:
    """Add the error that a failed rank wrote or printed."""
    folder = attempt / str(end.local_rank)
    printed = read_tail(folder / "stderr.log", _TAIL_BYTES).decode("utf-8", "replace") if not end.error else ""
    return replace(end, error=end.error or read_error_file(folder)).with_error(read_last_error(printed))


def _complete(end: TorchrunEnd, run: Path) -> TorchrunEnd:
    last = len(end.earlier)
    earlier = [failed and _add_error(failed, run / f"attempt_{n}") for n, failed in enumerate(end.earlier)]
    failed = tuple(_add_error(failed, run / f"attempt_{last}") for failed in end.failed)
    return replace(end, failed=failed, earlier=tuple(earlier))


def _without_report(run: Path) -> TorchrunEnd:
    """Return the end of a torchrun that left no report, because it was killed."""
    attempts = [int(found[1]) for name in _names(run) if (found := _ATTEMPT.match(name))]
    last = run / f"attempt_{max(attempts, default=0)}"
    ranks = sorted(int(name) for name in _names(last) if name.isdigit() and len(name) < 8)
    errors = [(rank, read_error_file(last / str(rank))) for rank in ranks]
    return TorchrunEnd(tuple(RankEnd(rank, rank, error=error) for rank, error in errors if error), folder=str(last))


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, _MAX_NAMES)]
    except OSError:
        return []


def _reported_folder(failed: RankEnd) -> Path | None:
    """Return the folder of the run that contains a rank's error file, if it is on this machine and this user's."""
    path = Path(failed.error_file)
    is_error_file = path.is_absolute() and path.name == "error.json" and path.parent.name == str(failed.local_rank)
    run = path.parents[2] if is_error_file and _ATTEMPT.match(path.parent.parent.name) else None
    return run if run is not None and _started_at(run) else None


def _run_folder(described: DescribeAppResponse) -> Path | None:
    """Return the only folder that can be the one of this job's run."""
    since = (described.started_at or described.submitted_at or float("inf")) - _CLOCK_TOLERANCE_S
    until = (described.finished_at or float("inf")) + _CLOCK_TOLERANCE_S
    folders = {folder for role in described.roles for folder in _log_dirs(described, role)}
    runs = {folder / name: _started_at(folder / name) for folder in folders for name in _names(folder)}
    named = [run for run, at in runs.items() if at and run.name.startswith(f"{described.app_id}_")]
    found = named or [run for run, at in runs.items() if at and since <= at <= until]
    return found[0] if len(found) == 1 else None


def _log_dirs(described: DescribeAppResponse, role: Role) -> Iterator[Path]:
    """Yield the folders in which a role's torchrun may make one for its run."""
    # A command line for a shell is one argument.
    given = _LOG_DIR.findall(" ".join([role.entrypoint, *role.args])) or [*filter(None, [role.env.get("PET_LOG_DIR")])]
    if not given and described.log_dir:
        # The default of local jobs.
        yield Path(described.log_dir, "torchelastic", role.name)
    for text in given:
        # A relative folder is below the job's working directory.
        yield from (base / text for base in (Path(role.image), Path.cwd()) if (base / text).is_absolute())


def _started_at(run: Path) -> float:
    """Return the start of a run's first attempt, in seconds since the epoch; 0 if this user has no such run."""
    try:
        state = run.lstat()
        return (run / "attempt_0").stat().st_mtime if S_ISDIR(state.st_mode) and state.st_uid == os.getuid() else 0.0
    except (OSError, ValueError):
        return 0.0
