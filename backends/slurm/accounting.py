"""The records of accounting, as sacct prints them: jobs that have left the queue, and their steps.

The text form is taken: `sacct --json` of 22.05 and 23.02 says exit 0 for exit 3. It costs the controller nothing, for
slurmdbd answers. Every field ends with `FIELD`, and a row with a line's end besides: names may have any of these.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from ...specs.errors import BackendUnavailableError, SchedulerError
from .commands import FIELD, TIMEOUT_S, ask
from .jobs import Job, parse_count, parse_exit, parse_time, parse_tres, text_or_nothing
from .versions import more_fields

FIELDS = (
    "JobIDRaw", "JobID", "JobName", "User", "State", "ExitCode", "DerivedExitCode", "Reason", "Submit", "Eligible",
    "Start", "End", "ElapsedRaw", "TimelimitRaw", "Partition", "QOS", "Account", "NNodes", "NCPUS", "NTasks",
    "NodeList", "ReqMem", "MaxRSS", "TotalCPU", "AllocTRES", "WorkDir", "Comment",
    "TRESUsageInTot",
)  # fmt: skip
"""The fields of sacct(1), for ``--format``; `versions` has those of releases after 20.11."""
_DISABLED = "accounting storage is disabled"
# Seconds after which a query of single jobs is given up.
_JOB_TIMEOUT_S = 10.0
# How many ids one question has: a command line has its limits.
_MOST_IDS = 500
_SCRIPT_HEAD = re.compile(r"^Batch Script for \S+\n-+\n", re.MULTILINE)
_JOB = re.compile(r"(?P<id>\d+)(?:_(?P<tasks>\d+|\[[^\]]*\]?)|\+(?P<offset>\d+))?")
_CLOCK = re.compile(r"(?:(?P<days>\d+)-)?(?:(?P<hours>\d+):)?(?P<minutes>\d+):(?P<seconds>\d+(?:\.\d+)?)")
_SIZE = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,6})?)(?P<unit>[KMGTP]?)(?P<per>[nc]?)")
_UNITS = {unit: 1 << (10 * power) for power, unit in enumerate(("", "K", "M", "G", "T", "P"))}


NO_ACCOUNTING = "this cluster has no accounting"


class NoAccountingError(SchedulerError):
    """The cluster keeps no records of jobs that have left the queue."""


@dataclass(frozen=True)
class Step:
    """A step of a job: the batch script, or what one ``srun`` started.

    Args:
        job_id: the raw id of its job.
        name: ``batch``, ``extern``, a number.
        label: what the step is called.
        state: Slurm's word.
        exit_code: the highest of its tasks; None where one was killed.
        signal: the number of the signal that ended it, 0 for none.
        tasks: how many tasks it had.
        cpu_seconds: what its processes took of processors.
        max_rss: the most that one of its tasks had in memory, in bytes; None where that was not measured.
        gpu_util: the utilisation of its GPUs in percent, added up over GPUs and tasks; None where the site does not
            gather it (slurm.conf(5): AccountingStorageTRES with gres/gpuutil).
        gpu_memory: the GPU memory of all its tasks, in bytes; None likewise (gres/gpumem).
        stdout: the pattern of its output's file, empty where the version does not keep it or there is none.
        stderr: the pattern of its errors' file, likewise.
    """

    job_id: str
    name: str
    label: str = ""
    state: str = ""
    exit_code: int | None = None
    signal: int = 0
    tasks: int = 0
    cpu_seconds: float = 0.0
    max_rss: int | None = None
    gpu_util: int | None = None
    gpu_memory: int | None = None
    started_at: float | None = None
    finished_at: float | None = None
    node_list: str = ""
    stdout: str = ""
    stderr: str = ""


def history_text(days: float) -> str:
    """Return sacct's answer for this user's jobs of the last days; `NO_ACCOUNTING` where there is none.

    Raises:
        BackendUnavailableError: accounting cannot be reached.
    """
    start = f"now-{max(1, round(days * 24))}hours"
    try:
        return _ask(["--allocations", "--user", str(os.getuid()), "--starttime", start])
    except NoAccountingError:
        return NO_ACCOUNTING


def parse_history(text: str) -> list[Job]:
    """Return the jobs of an answer of `history_text`."""
    return [job for job, step in parse_rows(text) if step is None]


def jobs_by_id(job_ids: Sequence[str]) -> list[Job]:
    """Return the accounting records of jobs of any user; unknown ids are left out."""
    found: list[Job] = []
    for first in range(0, len(job_ids), _MOST_IDS):
        chosen = ["--allocations", "--jobs", ",".join(job_ids[first : first + _MOST_IDS])]
        found += [job for job, step in _rows(chosen) if step is None]
    return found


def job_with_steps(app_id: str) -> tuple[list[Job], list[Step]]:
    """Return the records and the steps of one job, array or heterogeneous job."""
    jobs, steps = [], []
    for job, step in _rows(["--jobs", app_id]):
        if step is None:
            jobs.append(job)
        else:
            steps.append(step)
    return jobs, steps


def earlier_runs(app_id: str) -> list[Job]:
    """Return every run of a job, those before a requeue too, the earliest first."""
    return [job for job, step in _rows(["--allocations", "--duplicates", "--jobs", app_id]) if step is None]


def batch_script(job_id: str) -> str:
    """Return the batch script of a job that accounting keeps, empty for none (slurm.conf(5): AccountingStoreFlags)."""
    text = ask(["sacct", "--batch-script", "--jobs", job_id])
    # Behind a head of two lines; each task of an array has the same script.
    first = [part.removesuffix("\n") for part in _SCRIPT_HEAD.split(text) if part.startswith("#!")][:1]
    return "".join(first)


def parse_rows(text: str) -> Iterator[tuple[Job, Step | None]]:
    """Yield the record of each row, and its step where it is one; a row that is not whole is passed over.

    Args:
        text: what sacct prints, behind a line with the names of its fields.
    """
    names, _, text = text.partition("\n")
    fields = names.split(",")
    if fields[0] != FIELDS[0] or not set(FIELDS) <= set(fields):
        return
    values = text.split(FIELD)
    first, last = 0, len(values) - len(fields)
    while first < last:
        if first and not values[first].startswith("\n"):
            # A field had the mark in it, and that row is lost: go on with the next one.
            first += 1
            continue
        row = dict(zip(fields, values[first : first + len(fields)], strict=True))
        row[fields[0]] = row[fields[0]].lstrip("\n")
        raw, point, name = row["JobIDRaw"].partition(".")
        found = _JOB.match(row["JobID"])
        if found is None or not raw.isdecimal():
            first += 1
            continue
        first += len(fields)
        job = _job(row, raw, found)
        yield job, _step(row, job, name) if point else None


def parse_size(text: str) -> int | None:
    """Return a size such as ``4876K`` in bytes; None for none. What follows it, ``n`` or ``c``, is passed over."""
    found = _SIZE.fullmatch(text)
    return None if found is None else round(float(found["number"]) * _UNITS[found["unit"]])


def _rows(chosen: Sequence[str]) -> Iterator[tuple[Job, Step | None]]:
    return parse_rows(_ask(chosen, _JOB_TIMEOUT_S))


def _ask(chosen: Sequence[str], timeout: float = TIMEOUT_S) -> str:
    """Return sacct's answer behind a line with its field names.

    Raises:
        NoAccountingError: the cluster keeps no records.
    """
    fields = (*FIELDS, *more_fields("sacct"))
    try:
        command = ["sacct", "--noheader", "--parsable", f"--delimiter={FIELD}", *chosen, "--format", ",".join(fields)]
        text = ask(command, timeout=timeout)
    except BackendUnavailableError:
        raise
    except SchedulerError as error:
        if _DISABLED in str(error):
            raise NoAccountingError(NO_ACCOUNTING) from error
        raise
    return ",".join(fields) + "\n" + text


def _job(row: dict[str, str], raw: str, found: re.Match[str]) -> Job:
    # Such as `CANCELLED by 1000`, and `COMPLETED+` where a column was too narrow.
    state, _, by = row["State"].partition(" by ")
    code, number = parse_exit(row["ExitCode"])
    derived = parse_exit(row["DerivedExitCode"])
    if code and derived == (None, code):
        # A script that exits with 128 and a signal's number, as srun does, reads as one that exited with that number.
        code, number = derived
    offset, tasks = found["offset"], found["tasks"]
    word = state.split(" ")[0].rstrip("+").upper()
    limit = row["TimelimitRaw"]
    restarts = row.get("Restarts", "")
    submit_line = row.get("SubmitLine", "")
    return Job(
        job_id=raw if raw.isdecimal() else found["id"],
        array_id=found["id"] if tasks else "",
        tasks=(tasks or "").strip("[]"),
        het_id=found["id"] if offset else "",
        het_offset=int(offset[:6]) if offset else 0,
        # The name is not known at first.
        name="" if row["JobName"] == "allocation" else row["JobName"],
        user=row["User"],
        state=word,
        reason=text_or_nothing(row["Reason"]),
        submitted_at=parse_time(row["Submit"]),
        eligible_at=parse_time(row["Eligible"]),
        started_at=parse_time(row["Start"]),
        finished_at=parse_time(row["End"]),
        limit=int(limit) * 60 if limit.isdecimal() and len(limit) < 12 else None,
        partition=row["Partition"],
        qos=row["QOS"],
        account=row["Account"],
        nodes=parse_count(row["NNodes"]),
        cpus=parse_count(row["NCPUS"]),
        node_list=text_or_nothing(row["NodeList"]),
        work_dir=row["WorkDir"],
        submit_line=submit_line,
        is_batch=PurePath(submit_line.partition(" ")[0]).name not in ("srun", "salloc"),
        comment=row["Comment"],
        stdout=row.get("StdOut", ""),
        stderr=row.get("StdErr", ""),
        restarts=int(restarts) if restarts.isdecimal() and len(restarts) < 10 else None,
        sluid=row.get("SLUID", ""),
        exit_code=code,
        signal=number,
        step_signal=derived[1],
        memory=row["ReqMem"],
        tres=row["AllocTRES"],
        cancelled_by=by,
        failed_node=text_or_nothing(row.get("FailedNode", "")),
        elapsed=float(row["ElapsedRaw"]) if row["ElapsedRaw"].isdecimal() and len(row["ElapsedRaw"]) < 12 else None,
        accounted=True,
    )


def _step(row: dict[str, str], job: Job, name: str) -> Step:
    used = parse_tres(row["TRESUsageInTot"])
    util = used.get("gres/gpuutil", "")
    return Step(
        job_id=job.job_id,
        name=name,
        label=row["JobName"],
        state=job.state,
        exit_code=job.exit_code,
        signal=job.signal,
        tasks=parse_count(row["NTasks"]),
        cpu_seconds=parse_clock(row["TotalCPU"]),
        max_rss=parse_size(row["MaxRSS"]),
        gpu_util=parse_count(util) if util else None,
        gpu_memory=parse_size(used.get("gres/gpumem", "")),
        started_at=job.started_at,
        finished_at=job.finished_at,
        node_list=job.node_list,
        stdout=job.stdout,
        stderr=job.stderr,
    )


def parse_clock(text: str) -> float:
    """Return a time such as ``1-02:03:04`` or ``02:03.500`` in seconds; 0 for none."""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return 0.0
    whole = int(found["days"] or 0) * 86400 + int(found["hours"] or 0) * 3600 + int(found["minutes"]) * 60
    return whole + float(found["seconds"])
