"""The queue, as squeue prints it: every job of a user, those too that ended a moment ago.

The text form is taken: `squeue --json` of 22.05 has every user's jobs, ten times the bytes, and exits with 0 where the
controller is down. Fields are those of squeue(1), ``--Format``; each ends with `FIELD`, the last one with `RECORD`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from .commands import FIELD, RECORD, ask
from .jobs import Job, parse_fields
from .values import parse_count, parse_duration, parse_exit, parse_integer, parse_time, text_or_nothing
from .versions import LATER_FIELDS, more_fields

logger = logging.getLogger(__name__)

# The attributes of a job with the fields that have them, by parser.
_ATTRIBUTES = {
    str: {
        "job_id": "JobID", "name": "Name", "user": "UserName", "priority": "PriorityLong",
    },
    text_or_nothing: {
        "reason": "Reason", "partition": "Partition", "qos": "QOS", "account": "Account", "node_list": "NodeList",
        "scheduled_nodes": "SchedNodes", "dependency": "Dependency", "work_dir": "WorkDir", "command": "Command",
        "comment": "Comment", "stdout": "STDOUT", "stderr": "STDERR", "memory": "MinMemory", "tres": "tres-alloc",
        "tres_per_node": "tres-per-node", "licenses": "Licenses", "features": "Feature", "reservation": "Reservation",
        "sluid": "SLUID",
    },
    parse_count: {"nodes": "NumNodes", "cpus": "NumCPUs"},
    parse_duration: {"limit": "TimeLimit"},
    parse_integer: {"restarts": "RestartCnt"},
    parse_time: {
        "submitted_at": "SubmitTime", "eligible_at": "EligibleTime", "started_at": "StartTime",
        "finished_at": "EndTime",
    },
}  # fmt: skip
FIELDS = (
    *(name for names in _ATTRIBUTES.values() for name in names.values() if name not in LATER_FIELDS["squeue"]),
    "ArrayJobID", "ArrayTaskID", "HetJobID", "HetJobOffset", "State", "exit_code", "BatchFlag", "DerivedEC",
)  # fmt: skip
"""The fields of squeue(1), for ``--Format``; `versions` has those of releases after 20.11."""
# A job that waits has no exit status; squeue prints 0.
_UNENDED = frozenset(("PENDING", "RUNNING", "CONFIGURING", "SUSPENDED", "RESIZING", "REQUEUED", "REQUEUE_HOLD"))


def queue_command(job_id: str = "", *, all_users: bool = False) -> list[str]:
    """Return the command that asks for this user's jobs, for everybody's, or for one job of any user.

    The controller itself looks up a user's jobs, and one job; with a list of ids every job travels.
    """
    *fields, last = *FIELDS, *more_fields("squeue")
    named = [*(f"{name}:{FIELD}" for name in fields), f"{last}:{RECORD}"]
    whose = [] if all_users else ["--user", str(os.getuid())]
    chosen = ["--jobs", job_id] if job_id else whose
    return ["squeue", "--noheader", "--local", "--states=all", *chosen, "--Format", ",".join(named)]


def queue_text(job_id: str = "", *, all_users: bool = False, ask: Callable[[list[str]], str] = ask) -> str:
    """Return squeue's answer to `queue_command`, behind a record with the names of its fields.

    Raises:
        SchedulerError: squeue failed; the message is its own.
    """
    command = queue_command(job_id, all_users=all_users)
    return ",".join((*FIELDS, *more_fields("squeue"))) + RECORD + ask(command)


def parse_queue(text: str, known: Mapping[str, Job] = MappingProxyType({})) -> dict[str, Job]:
    """Return the jobs of an answer of `queue_text`, by their records.

    Args:
        text: the answer; a record that is not whole is passed over.
        known: what was returned before: what squeue says of most jobs is the same the next time.
    """
    jobs: dict[str, Job] = {}
    head, *records = text.split(RECORD)[:-1] or [""]
    fields = head.split(",")
    if not set(FIELDS) <= set(fields):
        return {}
    for record in records:
        job = known.get(record)
        if job is None:
            values = record.lstrip("\n").split(FIELD)
            if len(values) != len(fields) or not values[0].strip().isdecimal():
                logger.warning("a record of squeue is passed over: %.80r", record)
                continue
            job = _job(dict(zip(fields, map(str.strip, values), strict=True)))
        jobs[record] = job
    return jobs


def has_same_states(before: str, now: str) -> bool:
    """Return whether two answers of `queue_text` have the same jobs in the same states, whatever else changed."""
    records, later = set(before.split(RECORD)), set(now.split(RECORD))
    # Most of ten thousand records are the same: only the others are parsed.
    return _states(records - later) == _states(later - records)


def _states(records: Iterable[str]) -> dict[str, str]:
    state = FIELDS.index("State")
    split = (record.split(FIELD, state + 1) for record in records)
    return {values[0].strip(): values[state] for values in split if len(values) > state}


def _job(values: dict[str, str]) -> Job:
    tasks, het_id, state = (text_or_nothing(values[name]) for name in ("ArrayTaskID", "HetJobID", "State"))
    has_ended = state.upper() not in _UNENDED
    code, number = parse_exit(values["exit_code"]) if has_ended else (None, 0)
    return Job(
        array_id=values["ArrayJobID"] if tasks and values["ArrayJobID"].isdecimal() else "",
        tasks=tasks,
        het_id=het_id if het_id != "0" else "",
        het_offset=parse_count(values["HetJobOffset"]) if het_id else 0,
        state=state.upper(),
        is_batch=values["BatchFlag"] != "0",
        exit_code=code,
        signal=number,
        step_signal=parse_exit(values["DerivedEC"])[1] if has_ended else 0,
        **parse_fields(values, _ATTRIBUTES),
    )
