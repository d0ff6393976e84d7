"""Why a job waits: each reason of Slurm's in a sentence, and what to do.

The codes are those of squeue(1) and of Slurm's ``job_state_reason``; where Slurm has a text in the code's place, it is
recognised. Limits are named by a grammar: ``(Assoc|QOS)(Grp|Max|Min)WHAT(Minutes|RunMinutes)(PerJob|...)(Limit)``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...logs.text.sanitize import plain


class Reason(NamedTuple):
    """A reason.

    Attributes:
        sentence: what it means.
        hint: what to do, empty where there is nothing but to wait.
        never: whether the job never starts as it is.
    """

    sentence: str
    hint: str = ""
    never: bool = False


_REASONS = {
    "None": Reason("the scheduler has not considered it yet"),
    "Resources": Reason("it is next, and its resources are not free yet", "ask for less, or for less time"),
    "Priority": Reason("jobs with a higher priority are ahead of it"),
    "Dependency": Reason("it waits for other jobs"),
    "DependencyNeverSatisfied": Reason(
        "a job that it depends on did not end as required, so it never starts", "cancel it", True
    ),
    "BeginTime": Reason("its begin time has not come"),
    "JobHeldUser": Reason("it is held by its user", "release it", True),
    "JobHeldAdmin": Reason("it is held by an administrator", "ask them to release it", True),
    "JobHoldMaxRequeue": Reason(
        "its launch failed several times, and it is held", "check its nodes, then release it", True
    ),
    "JobArrayTaskLimit": Reason("its array runs as many tasks as it may at once", "raise the array's limit (%N)"),
    "Licenses": Reason("the licences that it asks for are in use"),
    "Reservation": Reason("its reservation has not begun"),
    "ReservationDeleted": Reason("its reservation was deleted", "cancel it, and choose another reservation", True),
    "ReservationInvalid": Reason("its reservation cannot be used", "choose another reservation", True),
    "ReqNodeNotAvail": Reason(
        "nodes that it asks for are down, drained or reserved", "choose other nodes, or ask for less time"
    ),
    "NodeDown": Reason("a node that it needs is down"),
    "PartitionDown": Reason("its partition is down", "choose another partition"),
    "PartitionInactive": Reason("its partition is inactive: it accepts and starts no jobs", "choose another partition"),
    "PartitionTimeLimit": Reason("its time limit exceeds that of its partition", "ask for less time", True),
    "PartitionNodeLimit": Reason(
        "it asks for more or fewer nodes than its partition allows or has", "ask for another number of nodes", True
    ),
    "PartitionConfig": Reason(
        "its partition can never run it: it asks for too much, or has no access", "ask for less", True
    ),
    "AccountNotAllowed": Reason("its account may not use this partition", "choose another account or partition", True),
    "QOSNotAllowed": Reason("its QOS may not use this partition", "choose another QOS or partition", True),
    "BadConstraints": Reason("no node has what it asks for", "change its constraint or resources", True),
    "InvalidAccount": Reason("its account is no longer valid", "choose another account", True),
    "InvalidQOS": Reason("its QOS is no longer valid", "choose another QOS", True),
    "QOSUsageThreshold": Reason("its QOS requires a higher fair share than it has"),
    "MaxJobsPerAccount": Reason("its account runs as many jobs in this QOS as it may"),
    "MaxCpuPerAccount": Reason("its account's running jobs use all CPUs that it may use in this QOS"),
    "MaxGRESPerAccount": Reason("its account's running jobs use all GPUs that it may use in this QOS"),
    "MaxMemPerLimit": Reason("it asks for more memory per CPU than is allowed", "ask for less memory", True),
    "Cleaning": Reason("its last run is being cleaned up"),
    "Prolog": Reason("its nodes are being prepared"),
    "SchedDefer": Reason("the scheduler considers new jobs later"),
    "SystemFailure": Reason("Slurm itself failed", "ask an administrator"),
    "FrontEndDown": Reason("the front-end node is down"),
    "NodesDown": Reason(
        "its nodes are down, drained or reserved for partitions of higher priority", "wait, or choose other nodes"
    ),
    "BurstBufferStageIn": Reason("its data is being copied to the burst buffer"),
    "BurstBufferResources": Reason("the burst buffer is full"),
    "JobLaunchFailure": Reason("it could not be launched", "check the folder of its output"),
    "MaxRequeueExceeded": Reason("it was requeued as often as Slurm allows", "release it", True),
}
# Texts that Slurm shows in the code's place.
_TEXTS = (
    (re.compile(r"^Nodes required for job are DOWN", re.IGNORECASE), "NodesDown"),
    (re.compile(r"^ReqNodeNotAvail", re.IGNORECASE), "ReqNodeNotAvail"),
    (re.compile(r"^Job's account not permitted", re.IGNORECASE), "AccountNotAllowed"),
    (re.compile(r"^Job's QOS not permitted", re.IGNORECASE), "QOSNotAllowed"),
    (re.compile(r"^job requeued in held state", re.IGNORECASE), "JobHeldUser"),
    (re.compile(r"^launch failed requeued held", re.IGNORECASE), "JobHoldMaxRequeue"),
)
_LIMIT = re.compile(
    r"(?P<of>Assoc|QOS)(?P<kind>Grp|Max|Min)"
    r"(?P<what>SubmitJobs?|Jobs?|WallDuration|Wall|Cpu|CPU|Memory|Mem|Nodes?|GRES|Gres|BB|Billing|Energy|License|Unknown)"
    r"(?P<time>RunMinutes|Minutes)?(?P<per>PerJob|PerNode|PerUser|PerAccount)?(?:Limit|NotSatisfied)?"
)
_WHAT = {
    "cpu": "CPUs", "mem": "memory", "memory": "memory", "node": "nodes", "nodes": "nodes",
    "gres": "GPUs and other GRES", "bb": "burst buffer", "billing": "billing units", "energy": "energy",
    "license": "licences", "unknown": "resources", "job": "jobs", "jobs": "jobs", "submitjob": "queued jobs",
    "submitjobs": "queued jobs", "wall": "time", "wallduration": "time",
}  # fmt: skip
_UNCOUNTED = ("memory", "time", "energy", "burst buffer")


def code_of(text: str) -> str:
    """Return the code of a reason, where squeue shows a text in its place."""
    return next((code for pattern, code in _TEXTS if pattern.search(text)), text)


def reason(text: str) -> Reason:
    """Return the meaning of a reason; an unknown code is shown as it is."""
    code = code_of(text) or "None"
    found = _REASONS.get(code) or limit_reason(code)
    if found is None:
        return Reason(f"Slurm says {plain(text)}")
    return found


class Limit(NamedTuple):
    """A limit that a reason names.

    Attributes:
        of: ``Assoc`` or ``QOS``.
        kind: ``Grp``, ``Max`` or ``Min``.
        what: what is limited, in small letters.
        time: ``Minutes`` for a budget, ``RunMinutes`` for running work, empty for what is used at once.
        per: ``PerJob``, ``PerUser``, ``PerNode``, ``PerAccount`` or empty.
    """

    of: str
    kind: str
    what: str
    time: str
    per: str


def limit_of(code: str) -> Limit | None:
    """Return the limit that a code names, None for another code."""
    found = _LIMIT.fullmatch(code)
    if found is None:
        return None
    return Limit(found["of"], found["kind"], found["what"].lower(), found["time"] or "", found["per"] or "")


def limit_reason(code: str) -> Reason | None:
    """Return the meaning of a code that names a limit, None for another code."""
    limit = limit_of(code)
    if limit is None:
        return None
    whose = "its account" if limit.of == "Assoc" else "its QOS"
    what = _WHAT[limit.what]
    is_counted = what not in _UNCOUNTED
    much = "as many" if is_counted else "as much"
    if limit.kind == "Min":
        less = "fewer" if is_counted else "less"
        sentence = f"it asks for {less} {what} than {whose} requires of a job"
        return Reason(sentence, "ask for more, or choose another QOS", True)
    if limit.time == "Minutes" and limit.kind == "Grp":
        return Reason(f"the budget of {whose} for {what} is used up", "choose another account or QOS")
    if limit.time == "RunMinutes":
        return Reason(
            f"the running jobs of {whose}, with their time limits, reach its limit for {what}", "ask for less time"
        )
    if limit.what in ("wall", "wallduration") and limit.kind == "Max":
        return Reason(f"its time limit exceeds that of {whose}", "ask for less time", True)
    if limit.kind == "Max" and (limit.per in ("PerJob", "PerNode") or limit.time):
        of = "time and size" if limit.time else what
        return Reason(f"it asks for more {of} than {whose} allows a job", "ask for less", True)
    if what.endswith("jobs"):
        verb = "have" if what.startswith("queued") else "run"
        who, of = ("you", whose) if limit.kind == "Max" else (f"the users of {whose}", "it")
        return Reason(f"{who} {verb} as many {what} as {of} allows")
    if limit.kind == "Max":
        return Reason(f"your jobs use {much} {what} as {whose} allows you", "wait for them, or choose another QOS")
    return Reason(f"the jobs of {whose} use {much} {what} as it allows")
