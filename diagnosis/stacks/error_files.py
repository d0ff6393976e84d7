"""What single ranks wrote to torchrun's own log folder: `error.json` of `@record`, and the end of a redirected stderr.

The report of torchrun has neither of a rank that failed in an earlier attempt, nor anything where torchrun itself was
killed. The folder is ``<log dir>/<rdzv id>_<random>/attempt_<n>/<local rank>``, as torch/distributed/elastic,
multiprocessing/api.py, makes it; without ``--log-dir`` the log dir is ``torchelastic_<random>`` in the folder for
temporary files. The fields of error.json are those of multiprocessing/errors/error_handler.py.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ...backends.types import DescribeAppResponse
from ...base.files import is_folder, read_file, read_tail
from ...base.validation import decode_json
from ...logs.text.sanitize import plain
from .conclusion import own_error
from .torchrun import MOST_SAID, Attempt, RankEnd, TorchrunEnd

if TYPE_CHECKING:
    from ...specs.roles import Role

logger = logging.getLogger(__name__)

_ATTEMPT = re.compile(r"attempt_(\d{1,4})$")
_OPTION = re.compile(r"--?log[-_]dir(?:=(.*))?$", re.DOTALL)
_MOST_FOLDERS, _MOST_RANKS, _TAIL_BYTES = 2000, 4096, 16 << 10
# The clocks of a file server and of this machine differ (s).
_TOLERANCE_S = 60.0


def fill_ends(ends: Mapping[int, TorchrunEnd], described: DescribeAppResponse, replicas: int) -> list[TorchrunEnd]:
    """Add to the ends of a job's torchruns what their ranks left in files of this machine.

    Args:
        ends: what the log of each replica tells, by its number; changed in place.
        described: the job.
        replicas: how many replicas it has; the folder of one alone is found without a report as well.
    """
    filled = dict(ends)
    folder = _run_folder(described) if replicas == 1 else None
    for number in ends or [0]:
        end = ends.get(number)
        reported = next((path for failed in end.failed if (path := _reported(failed))), None) if end else None
        run = reported or folder
        if run is None:
            continue
        if end is None:
            end = _without_report(run)
            if end is not None:
                filled[number] = end
        else:
            _fill(end, run)
    return [filled[number] for number in sorted(filled)]


def read_error(folder: Path) -> str:
    """Return the first line of the error that a rank wrote to the error.json in its folder; empty without one."""
    try:
        data = decode_json(read_file(folder / "error.json"))
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        logger.info("%s: %s", folder / "error.json", error)
        return ""
    message = data.get("message") if isinstance(data, dict) else None
    if isinstance(message, dict):
        message = message.get("message")
    lines = message.strip().splitlines() if isinstance(message, str) else []
    return plain(lines[0])[:MOST_SAID] if lines else ""


def _rank_said(folder: Path) -> str:
    """Return the error of a rank that is known to have failed: what it printed last counts as well."""
    printed = read_tail(folder / "stderr.log", _TAIL_BYTES).decode("utf-8", "replace")
    return read_error(folder) or plain(own_error(printed))


def _fill(end: TorchrunEnd, run: Path) -> None:
    """Add what ranks say to a report, and to the attempts before it."""
    last = len(end.attempts) - 1
    for failed in end.failed:
        if not failed.said:
            failed.said = _rank_said(run / f"attempt_{last}" / str(failed.local_rank))
    for number, attempt in enumerate(end.attempts[:-1]):
        if attempt.first is None:
            continue
        local_rank = attempt.first[0]
        if not attempt.error(local_rank, end.rank_of(local_rank)):
            said = _rank_said(run / f"attempt_{number}" / str(local_rank))
            attempt.output[local_rank] = deque([said] if said else [])


def _without_report(run: Path) -> TorchrunEnd | None:
    """Return the end of a torchrun that has left no report, such as one that was killed."""
    numbers = [int(found[1]) for name in _names(run) if (found := _ATTEMPT.match(name))]
    if not numbers:
        return None
    last = run / f"attempt_{max(numbers)}"
    ranks = sorted(int(name) for name in _names(last) if name.isdigit() and len(name) < 8)
    failed = [RankEnd(number, number, said=said) for number in ranks if (said := read_error(last / str(number)))]
    return TorchrunEnd([Attempt()], failed, found_in=str(last)) if failed else None


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, _MOST_RANKS)]
    except OSError:
        return []


def _reported(failed: RankEnd) -> Path | None:
    """Return the folder of the run that an error file of a report is in, where that is one of this machine and user."""
    path = Path(failed.error_file)
    is_told = path.is_absolute() and path.name == "error.json" and path.parent.name == str(failed.local_rank)
    run = path.parents[2] if is_told and _ATTEMPT.match(path.parent.parent.name) else None
    return run if run is not None and _is_own_folder(run) else None


def _run_folder(described: DescribeAppResponse) -> Path | None:
    """Return the folder of the only run that can be this job's."""
    since = (described.started_at or described.submitted_at or 0.0) - _TOLERANCE_S
    until = (described.finished_at or float("inf")) + _TOLERANCE_S
    if since < 0:
        return None
    named, others = [], []
    for role in described.roles:
        for folder, is_of_role in _log_folders(described, role):
            for name in _names(folder):
                run = folder / name
                if name.startswith(f"{described.app_id}_") and _is_own_folder(run):
                    named.append(run)
                elif is_of_role and _is_own_folder(run) and _is_of_time(run, since, until):
                    others.append(run)
    found = list(dict.fromkeys(named or others))
    return found[0] if len(found) == 1 else None


def _log_folders(described: DescribeAppResponse, role: Role) -> Iterator[tuple[Path, bool]]:
    """Yield the folders in which a role's torchrun may have one for its run, and whether the role names it."""
    told = list(_given([role.entrypoint, *role.args])) or [path for path in [role.env.get("PET_LOG_DIR")] if path]
    if not told and described.log_dir:
        # A local job's replicas are given this one.
        yield Path(described.log_dir, "torchelastic", role.name), True
    if not told:
        yield from ((path, False) for path in islice(Path(tempfile.gettempdir()).glob("torchelastic_*"), _MOST_FOLDERS))
    for text in told:
        # A relative one is in the folder that the job was started in.
        for base in (Path(role.image), Path.cwd()) if not Path(text).is_absolute() else (Path("/"),):
            if base.is_absolute():
                yield base / text, True


def _given(words: Iterable[str]) -> Iterator[str]:
    """Yield the values of ``--log-dir``, also where a command line for a shell is one of the words."""
    parts: list[str] = []
    for word in words:
        try:
            parts += shlex.split(word) if " " in word else [word]
        except ValueError:
            parts.append(word)
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        if (found := _OPTION.match(part)) and (value := found[1] if found[1] is not None else following):
            yield value


def _is_own_folder(path: Path) -> bool:
    """Tell whether a folder is this user's: the folder for temporary files is everybody's."""
    try:
        return is_folder(path) and not path.is_symlink() and path.stat().st_uid == os.getuid()
    except (OSError, ValueError):
        return False


def _is_of_time(run: Path, since: float, until: float) -> bool:
    """Tell whether a run's first attempt began within a time."""
    try:
        return since <= (run / "attempt_0").stat().st_mtime <= until
    except OSError:
        return False
