"""The log files of batch scripts: the patterns of ``--output`` and ``--error``, expanded as Slurm does."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from ...base.files import path_exists
from ...specs.sbatch_options import script_options
from .jobs import App, Job
from .submit_line import submit_options

_SYMBOL = re.compile(r"%(?P<width>\d*)(?P<letter>[A-Za-z%])")
UNKNOWN = "\0"
"""The part of an expanded name that only the node knew."""
# The number of a task outside arrays (slurm.h: NO_VAL).
_NO_TASK = 4294967294
_MAX_WIDTH = 10


def log_files(job: Job, task: int | None = None) -> tuple[Path | None, Path | None]:
    """Return the files of a batch script's output and of its errors; None where these go to the same one.

    Older versions of accounting keep the command alone. What it says of files counts only where such a file exists:
    the script may say something else, and words of the command are not quoted there.

    Args:
        job: the job, or a task of an array.
        task: the task's number.
    """
    if not job.is_batch:
        return None, None
    is_guess = job.accounted and not job.stdout
    if is_guess:
        options = submit_options(job.submit_line)
        job = replace(job, stdout=options.get("output", ""), stderr=options.get("error", ""))
    patterns = (job.stdout or _default(task), job.stderr)
    found = [_log_file(job, pattern, task) if pattern else None for pattern in patterns]
    stdout, stderr = (path if path and (not is_guess or path_exists(path)) else None for path in found)
    return stdout, None if stderr == stdout else stderr


def with_files(app: App, script: str) -> App:
    """Return an app of accounting's records with the names of its log files, as far as its script has them.

    Args:
        app: the app.
        script: its batch script, empty if unknown.
    """
    in_script, jobs = script_options(script), []
    for job in app.jobs:
        given = submit_options(job.submit_line)
        if script and job.accounted and job.is_batch and not job.stdout and "output" not in given:
            stdout = in_script.get("output") or _default(0 if job.array_id else None)
            job = replace(job, stdout=stdout, stderr=given.get("error") or in_script.get("error", ""))
        jobs.append(job)
    return App(app.app_id, jobs)


def _default(task: int | None) -> str:
    return "slurm-%j.out" if task is None else "slurm-%A_%a.out"


def expand(pattern: str, job: Job, task: int | None, symbols: Mapping[str, str]) -> str:
    """Replace the symbols of a file name as sbatch(1) of 26.05 documents them, ``%5j`` with leading zeros.

    A backslash turns the symbols off. What only the node knows, such as its short host name, becomes a null byte.

    Args:
        pattern: the name.
        job: the job, or a task of an array.
        task: the array task's number.
        symbols: better values for a step's task: ``t``, ``s``, ``n``, ``N``, ``J``.
    """
    if "\\" in pattern:
        return pattern.replace("\\", "")
    number = _NO_TASK if task is None else task
    values = {
        "j": job.job_id,
        "A": job.array_id or job.job_id,
        "a": str(number),
        "b": str(number % 10),
        "J": job.job_id,
        "n": "0",
        "t": "0",
        "u": job.user,
        "x": job.name,
        "N": UNKNOWN,
        "s": "batch",
        "r": str(job.restarts) if job.restarts is not None else UNKNOWN,
        "S": job.sluid or UNKNOWN,
        **symbols,
    }

    def value(found: re.Match[str]) -> str:
        width, letter = found["width"], found["letter"]
        if letter == "%":
            return found[0] if width else "%"
        if letter not in values:
            return found[0]
        text = values[letter]
        # A name made of digits is no number.
        is_padded = width and letter not in "uxNS" and text.isdecimal()
        return text.zfill(min(int(width[:3]), _MAX_WIDTH)) if is_padded else text

    return _SYMBOL.sub(value, pattern)


def find_file(
    job: Job, pattern: str, task: int | None = None, symbols: Mapping[str, str] = MappingProxyType({})
) -> Path | None:
    """Return the file of a pattern, see `expand`; of several that fit unknown parts the first, None for none."""
    if "\0" in pattern + job.name or not (job.work_dir or pattern.startswith("/")):
        return None
    path = Path(job.work_dir, expand(pattern, job, task, symbols))
    if UNKNOWN not in str(path):
        return path
    whole = "*".join(map(glob.escape, str(path).split(UNKNOWN)))
    # Path.glob raises for names that are too long, before Python 3.13.
    found = glob.glob(whole)  # noqa: PTH207
    return Path(min(found)) if found else None


def _log_file(job: Job, pattern: str, task: int | None) -> Path | None:
    if task is not None and Path(pattern).name in (f"slurm-{job.job_id}.out", f"slurm-{job.array_id}.out"):
        # squeue before 24.05 shows this for the default, of which an array has another one.
        pattern = _default(task)
    return find_file(job, pattern, task)
