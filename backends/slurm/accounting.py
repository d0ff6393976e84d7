"""The records of accounting, as sacct prints them: jobs that have left the queue, their steps, runs and scripts.

The text form is read: `sacct --json` of 22.05 and 23.02 says exit 0 for exit 3. slurmdbd answers, so it costs the
controller nothing. Every field ends with `FIELD`, and a row with a newline besides: names may contain any of these.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from ...specs.errors import SchedulerError
from ...specs.status import is_terminal
from .client import Client
from .commands import FIELD, TIMEOUT_S, CommandError
from .jobs import App, Job, fill, parse_fields
from .values import (
    parse_count,
    parse_duration,
    parse_exit,
    parse_integer,
    parse_size,
    parse_time,
    text_or_nothing,
)
from .versions import LATER_FIELDS, more_fields

logger = logging.getLogger(__name__)

# The attributes of a job with the fields that have them, by parser.
_ATTRIBUTES = {
    str: {"user": "User", "submit_line": "SubmitLine", "usage": "TRESUsageInTot"},
    text_or_nothing: {
        "reason": "Reason", "partition": "Partition", "qos": "QOS", "account": "Account", "node_list": "NodeList",
        "work_dir": "WorkDir", "comment": "Comment", "stdout": "StdOut", "stderr": "StdErr", "sluid": "SLUID",
        "memory": "ReqMem", "tres": "AllocTRES", "failed_node": "FailedNode",
    },
    parse_count: {"nodes": "NNodes", "cpus": "NCPUS", "ntasks": "NTasks"},
    parse_duration: {"cpu_seconds": "TotalCPU"},
    parse_size: {"max_rss": "MaxRSS"},
    parse_integer: {"restarts": "Restarts", "elapsed": "ElapsedRaw"},
    parse_time: {"submitted_at": "Submit", "eligible_at": "Eligible", "started_at": "Start", "finished_at": "End"},
}  # fmt: skip

FIELDS = (
    "JobIDRaw", "JobID", "JobName", "State", "ExitCode", "DerivedExitCode", "TimelimitRaw",
    *(name for names in _ATTRIBUTES.values() for name in names.values() if name not in LATER_FIELDS["sacct"]),
)  # fmt: skip
"""The fields of sacct(1), for ``--format``; `versions` has those of releases after 20.11."""
NO_ACCOUNTING = "this cluster has no accounting"
KEPT_S = 30.0
"""Seconds for which the records of a job are kept."""
_SCRIPT_KEPT_S = 600.0
# Those of a job that has just been submitted, begun or ended are kept for less: accounting may lag behind.
_LAG_S = 2.0
_DISABLED = "accounting storage is disabled"
_NO_SUCH_JOB = "Bad job/step specified"
# Seconds after which a query of single jobs is given up.
_JOB_TIMEOUT_S = 10.0
_SCRIPT_HEAD = re.compile(r"^Batch Script for \S+\n-+\n", re.MULTILINE)
_SUBMIT_LINE = re.compile(r"^ *SubmitLine=(.*)", re.MULTILINE)
# What Slurm accepts by default (slurm.conf(5): max_script_size).
_MAX_SCRIPT_CHARACTERS = 4 << 20
_JOB = re.compile(r"(?P<id>\d+)(?:_(?P<tasks>\d+|\[[^\]]*\]?)|\+(?P<offset>\d+))?")


class NoAccountingError(SchedulerError):
    """The cluster keeps no records of jobs that have left the queue."""


class Accounting:
    """Asks accounting. Every method may be called from any thread.

    Args:
        client: runs sacct, and scontrol for what the controller has.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def history(self, days: float) -> str:
        """Return sacct's answer for this user's jobs of the last days; `NO_ACCOUNTING` if there is none.

        Raises:
            BackendUnavailableError: accounting cannot be reached.
        """
        start = f"now-{max(1, round(days * 24))}hours"
        try:
            return self._ask(["--allocations", "--user", str(os.getuid()), "--starttime", start], TIMEOUT_S, 0.0)
        except NoAccountingError:
            return NO_ACCOUNTING

    def job(self, job_id: str, keep_s: float) -> list[Job]:
        """Return the records of a job of any user, none for an unknown id."""
        try:
            text = self._ask(["--allocations", "--jobs", job_id], _JOB_TIMEOUT_S, keep_s)
        except CommandError as error:
            if _NO_SUCH_JOB in error.stderr:
                return []
            raise
        return parse_history(text)

    def details(self, app: App) -> tuple[App, list[Job]]:
        """Return an app completed by its records, and its steps; they are empty if accounting does not answer."""
        rows = self._rows(app, "steps", [], app.finished_at)
        records = {job.job_id: job for job in rows if not job.step}
        line = next((job.submit_line for job in records.values() if job.submit_line), "")
        jobs = []
        for job in app.jobs:
            record = records.get(job.job_id, job)
            if is_terminal(record.app_state):
                job = fill(job, record, "cancelled_by", "failed_node", "elapsed", "tres", "cpus")
            jobs.append(replace(job, submit_line=job.submit_line or line))
        return App(app.app_id, jobs), [job for job in rows if job.step]

    def submit_line(self, app: App) -> str:
        """Return the sbatch command of a job; empty if Slurm does not have it."""
        line = app.first.submit_line or self.details(app)[0].first.submit_line
        if line:
            return line
        # The controller has it from 26.05 on.
        command = ["scontrol", "show", "job", app.app_id]
        found = _SUBMIT_LINE.search(self._client.ask_or_empty(command, keep_s=KEPT_S))
        return found[1] if found else ""

    def earlier_runs(self, app: App) -> list[Job]:
        """Return the runs of a job before its requeues, the earliest first, as far as accounting has them."""
        if app.restarts <= 0 or app.is_array:
            return []
        rows = self._rows(app, "earlier runs", ["--allocations", "--duplicates"], app.restarts)
        # The last one is the present one.
        return [job for job in rows[:-1] if job.job_id == app.first.job_id]

    def script(self, job_id: str) -> str:
        """Return the batch script of a job, which the controller or accounting keeps; empty if neither has it."""
        text = self._client.ask_or_empty(["scontrol", "write", "batch_script", job_id, "-"], keep_s=_SCRIPT_KEPT_S)
        # For a job that it has forgotten, scontrol prints nothing and exits with 0.
        if not text.startswith("#!"):
            # It is kept by slurm.conf(5): AccountingStoreFlags.
            command = ["sacct", "--batch-script", "--jobs", job_id]
            # Behind a head of two lines; each task of an array has the same script.
            parts = _SCRIPT_HEAD.split(self._client.ask_or_empty(command, keep_s=_SCRIPT_KEPT_S))
            text = next((part.removesuffix("\n") for part in parts if part.startswith("#!")), "")
        return text if len(text) <= _MAX_SCRIPT_CHARACTERS else ""

    def _rows(self, app: App, what: str, chosen: list[str], version: Hashable) -> list[Job]:
        """Return the rows of a job, none if accounting does not answer.

        Args:
            what: the rows, for the log file.
            chosen: options of sacct.
            version: kept rows of another version are old.
        """
        last_change = max(at or 0.0 for at in (app.submitted_at, app.started_at, app.finished_at))
        keep_s = _LAG_S if time.time() - last_change < KEPT_S else KEPT_S
        try:
            return [*parse_rows(self._ask([*chosen, "--jobs", app.app_id], _JOB_TIMEOUT_S, keep_s, version))]
        except SchedulerError as error:
            logger.info("accounting has no %s of %s: %s", what, app.app_id, error)
            return []

    def _ask(self, chosen: Sequence[str], timeout: float, keep_s: float, version: Hashable = None) -> str:
        """Return sacct's answer behind a line with its field names.

        Raises:
            NoAccountingError: the cluster keeps no records.
        """
        fields = ",".join((*FIELDS, *more_fields("sacct")))
        command = ["sacct", "--noheader", "--parsable", f"--delimiter={FIELD}", *chosen, "--format", fields]
        try:
            text = self._client.ask(command, keep_s=keep_s, key=(*command, version), timeout=timeout)
        except CommandError as error:
            if _DISABLED in error.stderr:
                raise NoAccountingError(NO_ACCOUNTING) from error
            raise
        return f"{fields}\n{text}"


def parse_history(text: str) -> list[Job]:
    """Return the jobs of an answer of sacct."""
    return [job for job in parse_rows(text) if not job.step]


def parse_rows(text: str) -> Iterator[Job]:
    """Yield the record of each row, of a job or of a step; an incomplete row is skipped.

    Args:
        text: the output of sacct, behind a line with the names of its fields.
    """
    names, _, text = text.partition("\n")
    fields = names.split(",")
    if fields[0] != FIELDS[0] or not set(FIELDS) <= set(fields):
        return
    values = text.split(FIELD)
    first, last = 0, len(values) - len(fields)
    while first < last:
        row = dict(zip(fields, values[first : first + len(fields)], strict=True))
        raw, _, step = row["JobIDRaw"].lstrip("\n").partition(".")
        found = _JOB.match(row["JobID"])
        if (first and not values[first].startswith("\n")) or found is None or not raw.isdecimal():
            # A field had the mark in it, and that row is lost: go on with the next one.
            first += 1
            continue
        first += len(fields)
        yield _job(row, raw, step, found)


def _job(row: dict[str, str], raw: str, step: str, found: re.Match[str]) -> Job:
    # Such as `CANCELLED by 1000`, and `COMPLETED+` where a column was too narrow.
    state, _, by = row["State"].partition(" by ")
    code, number = parse_exit(row["ExitCode"])
    derived = parse_exit(row["DerivedExitCode"])
    if code and derived == (None, code):
        # A script that exits with 128 and a signal's number, as srun does, reads as one that exited with that number.
        code, number = derived
    offset, tasks, limit = found["offset"], found["tasks"], parse_integer(row["TimelimitRaw"])
    program = row.get("SubmitLine", "").partition(" ")[0]
    return Job(
        job_id=raw,
        step=step,
        array_id=found["id"] if tasks else "",
        tasks=(tasks or "").strip("[]"),
        het_id=found["id"] if offset else "",
        het_offset=int(offset[:6]) if offset else 0,
        # The name is not known at first.
        name="" if row["JobName"] == "allocation" else row["JobName"],
        state=state.split(" ")[0].rstrip("+").upper(),
        limit=None if limit is None else limit * 60,
        is_batch=PurePath(program).name not in ("srun", "salloc"),
        exit_code=code,
        signal=number,
        step_signal=derived[1],
        cancelled_by=by,
        accounted=True,
        **parse_fields(row, _ATTRIBUTES),
    )
