"""Reader of torchrun's log folder: each rank's `error.json` of `@record` and its redirected stderr.

torchrun's report lacks the errors of earlier attempts, and there is no report if torchrun itself was killed. The folder
is ``<log dir>/<rdzv id>_<random>/attempt_<n>/<local rank>`` (torch/distributed/elastic, multiprocessing/api.py); the
fields of error.json are in multiprocessing/errors/error_handler.py.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ...backends.shared.exit_reasons import error_sentence
from ...backends.types import DescribeAppResponse
from ...base.files import read_file, read_tail
from ...logs.pattern.error_reader import read_last_error
from .torchrun import RankEnd, TorchrunEnd

logger = logging.getLogger(__name__)

_REPORTED = re.compile(r"(?P<run>.+)/attempt_\d{1,4}/\d{1,7}/error\.json")
_ATTEMPT = re.compile(r"attempt_(\d{1,4})")
_MAX_NAMES, _TAIL_BYTES = 4096, 16 << 10


def add_errors(ends: Mapping[int, TorchrunEnd], described: DescribeAppResponse) -> list[TorchrunEnd]:
    """Add to the ends of a job's torchruns the errors that their ranks left in files of this machine.

    The folder is the one in the report, or else the only one of a local job.

    Args:
        ends: the ends in the logs, by replica.
        described: the job.
    """
    roots = [Path(described.log_dir, "torchelastic", role.name) for role in described.roles if described.log_dir]
    runs = [root / name for root in roots for name in _names(root)]
    found = []
    for end in ends.values() or [TorchrunEnd()]:
        paths = [path for failed in end.failed if (path := _REPORTED.fullmatch(failed.error_file))]
        # A relative path is below the job's working directory.
        base = described.roles[0].image if described.roles else ""
        run = Path(base, paths[0]["run"]) if paths else runs[0] if len(runs) == 1 else None
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


def _complete(end: TorchrunEnd, run: Path) -> TorchrunEnd:
    """Add the errors that failed ranks wrote or printed."""

    def add(failed: RankEnd, attempt: int) -> RankEnd:
        if failed.error:
            return failed
        folder = run / f"attempt_{attempt}" / str(failed.local_rank)
        printed = read_tail(folder / "stderr.log", _TAIL_BYTES).decode("utf-8", "replace")
        return replace(failed, error=read_error_file(folder)).with_error(read_last_error(printed))

    earlier = tuple(failed and add(failed, number) for number, failed in enumerate(end.earlier))
    return replace(end, failed=tuple(add(failed, len(earlier)) for failed in end.failed), earlier=earlier)


def _without_report(run: Path) -> TorchrunEnd:
    """Return the end of a torchrun that left no report, because it was killed."""
    attempts = [int(found[1]) for name in _names(run) if (found := _ATTEMPT.fullmatch(name))]
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
