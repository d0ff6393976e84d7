"""Why a job waits: each reason of Slurm's in a sentence, and what to do.

The codes are those of squeue(1) and of Slurm's ``job_state_reason``; where Slurm has a text instead of the code, it is
recognised. Limits are named by a grammar: ``(Assoc|QOS)(Grp|Max|Min)WHAT(Minutes|RunMinutes)(PerJob|...)(Limit)``, and
``MaxWHAT(RunMins)Per(User|Account)`` for those of a QOS. A new name of that form gets a sentence, too.
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
        never: whether the job never starts without a change.
    """

    sentence: str
    hint: str = ""
    never: bool = False


# A line each: code, with ! where the job never starts without a change; sentence; hint. Slurm says NodesDown also of an
# account or a QOS that may not use the partition, until it looks again. The last codes, from NonZeroExitCode on, are
# the end of the last run of a job that was requeued.
_TABLE = """
None | the scheduler has not considered it yet
Resources | it is next, and its resources are not free yet | ask for less, or for less time
Priority | jobs with a higher priority are ahead of it
Dependency | it waits for other jobs
DependencyNeverSatisfied! | a job that it depends on did not end as required, so it never starts | cancel it
BeginTime | its begin time has not come
JobHeldUser! | it is held by its user | release it
JobHeldAdmin! | it is held by an administrator | ask them to release it
JobHoldMaxRequeue! | its launch failed several times, and it is held | check its nodes, then release it
JobArrayTaskLimit | its array runs as many tasks as it may at once | raise the array's limit (%N)
Licenses | the licences that it asks for are in use
Reservation | its reservation has not begun
ReservationDeleted! | its reservation was deleted | cancel it, and choose another reservation
ReservationInvalid! | its reservation cannot be used | choose another reservation
ReqNodeNotAvail | nodes that it asks for are down, drained or reserved | choose other nodes, or ask for less time
NodeDown | a node that it needs is down
PartitionDown | its partition is down | choose another partition
PartitionInactive | its partition is inactive: it accepts and starts no jobs | choose another partition
PartitionTimeLimit! | its time limit exceeds that of its partition | ask for less time
PartitionNodeLimit! | it asks for more or fewer nodes than its partition allows or has | ask for another number of nodes
PartitionConfig! | its partition can never run it: it asks for too much, or has no access | ask for less
AccountNotAllowed! | its account may not use this partition | choose another account or partition
QOSNotAllowed! | its QOS may not use this partition | choose another QOS or partition
BadConstraints! | no node has what it asks for | change its constraint or resources
InvalidAccount! | its account is no longer valid | choose another account
InvalidQOS! | its QOS is no longer valid | choose another QOS
QOSUsageThreshold | its QOS requires a higher fair share than it has
MaxMemPerLimit! | it asks for more memory per CPU than is allowed | ask for less memory
Cleaning | its last run is being cleaned up
Prolog | its nodes are being prepared
SchedDefer | the scheduler considers new jobs later
SystemFailure | Slurm itself failed | ask an administrator
FrontEndDown | the front-end node is down
NodesDown | no node is open to it: they are down, drained or reserved for partitions of higher priority, or its account or QOS may not use the partition | wait, or choose other nodes
BurstBufferStageIn | its data is being copied to the burst buffer
BurstBufferResources | the burst buffer is full
JobLaunchFailure | it could not be launched | check the folder of its output
BurstBufferOperation | an operation of the burst buffer failed | check its burst buffer options
MaxRequeueExceeded! | it was requeued as often as Slurm allows | release it
MaxPoweredUpNodes | the cluster has powered up as many nodes as it may
MpiPortsBusy | the ports that MPI needs on its nodes are in use
PowerNotAvail | the power that its nodes need is not available
PowerReserved | the power that its nodes need is reserved
FedJobLock | the clusters of its federation decide which of them runs it
AccountingPolicy | a limit of its account or QOS holds it back
Constraints! | no node has what it asks for | change its constraint or resources
DeadLine! | it cannot end before its deadline | set a later deadline, or ask for less time
NonZeroExitCode | its last run failed
RaisedSignal | its last run was ended by a signal
OutOfMemory | its last run ran out of memory | ask for more memory
TimeLimit | its last run reached its time limit | ask for more time
InactiveLimit | its last run was inactive for longer than Slurm allows
"""  # noqa: E501


def _read(line: str) -> tuple[str, Reason]:
    code, sentence, *hint = line.split(" | ")
    return code.rstrip("!"), Reason(sentence, "".join(hint), code.endswith("!"))


_REASONS = dict(map(_read, _TABLE.strip().splitlines()))
# Texts that Slurm shows instead of the code.
_TEXTS = (
    (re.compile(r"^Nodes required for job are DOWN", re.IGNORECASE), "NodesDown"),
    (re.compile(r"^ReqNodeNotAvail", re.IGNORECASE), "ReqNodeNotAvail"),
    (re.compile(r"^Job's account not permitted", re.IGNORECASE), "AccountNotAllowed"),
    (re.compile(r"^Job's QOS not permitted", re.IGNORECASE), "QOSNotAllowed"),
    (re.compile(r"^job requeued in held state", re.IGNORECASE), "JobHeldUser"),
    (re.compile(r"^launch failed requeued held", re.IGNORECASE), "JobHoldMaxRequeue"),
)
# A limit of a QOS for each account or user has no QOS in its name: MaxCpuPerAccount, MaxCpuRunMinsPerUser.
_LIMIT = re.compile(
    r"(?P<of>Assoc|QOS(?=Grp|Max|Min)|(?=Max\w+Per(?:User|Account)))(?P<kind>Grp|Max|Min)(?P<what>[A-Z][A-Za-z]*?)"
    r"(?P<time>Run(?:Minutes|Mins)|Minutes|Mins)?(?P<per>Per(?:Job|Node|User|Account))?(?:Limit|NotSatisfied)?"
)
# Before there were names for each resource.
_OLD_LIMIT = re.compile(r"(?P<of>Association|QOS)(?P<what>Job|Resource|Time)Limit")
_WHAT = {
    "cpu": "CPUs", "mem": "memory", "memory": "memory", "node": "nodes", "nodes": "nodes",
    "gres": "GPUs and other GRES", "bb": "burst buffer", "billing": "billing units", "energy": "energy",
    "license": "licences", "unknown": "resources", "resource": "resources", "job": "jobs", "jobs": "jobs",
    "submitjob": "queued jobs", "submitjobs": "queued jobs", "wall": "time", "wallduration": "time", "time": "time",
}  # fmt: skip
_UNCOUNTED = ("memory", "time", "energy", "burst buffer")


def code_of(text: str) -> str:
    """Return the code of a reason, for which squeue may show a text."""
    return next((code for pattern, code in _TEXTS if pattern.search(text)), text)


def reason(text: str) -> Reason:
    """Return the meaning of a reason; an unknown code is shown as it is."""
    code = code_of(text) or "None"
    return _REASONS.get(code) or limit_reason(code) or Reason(f"Slurm says {plain(text)}")


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

    @property
    def is_of_one_job(self) -> bool:
        """Whether a job exceeds it by itself, whatever else runs."""
        if self.kind == "Min" or self.per in ("PerJob", "PerNode"):
            return True
        return self.kind == "Max" and ("wall" in self.what or self.time == "Minutes")


def limit_of(code: str) -> Limit | None:
    """Return the limit that a code names, None for another code."""
    found = _LIMIT.fullmatch(code)
    if found is None:
        old = _OLD_LIMIT.fullmatch(code)
        return Limit(old["of"][:5], "Grp", old["what"].lower(), "", "") if old else None
    time = (found["time"] or "").replace("Mins", "Minutes")
    return Limit(found["of"] or "QOS", found["kind"], found["what"].lower(), time, found["per"] or "")


def limit_reason(code: str) -> Reason | None:
    """Return the meaning of a code that names a limit, None for another code."""
    limit = limit_of(code)
    if limit is None:
        return None
    whose = "its account" if limit.of == "Assoc" else "its QOS"
    what = plain(_WHAT.get(limit.what, limit.what))
    if limit.kind == "Min":
        less = "less" if what in _UNCOUNTED else "fewer"
        sentence = f"it asks for {less} {what} than {whose} requires of a job"
        return Reason(sentence, "ask for more, or choose another QOS", True)
    if limit.is_of_one_job:
        if "wall" in limit.what:
            return Reason(f"its time limit exceeds that of {whose}", "ask for less time", True)
        of = "time and size" if limit.time else what
        return Reason(f"it asks for more {of} than {whose} allows", "ask for less", True)
    return _group_reason(limit, whose, what)


def _group_reason(limit: Limit, whose: str, what: str) -> Reason:
    """Return the meaning of a limit that several jobs share, whether they fill it or this job alone exceeds it."""
    # Whose jobs share it: a user's, an account's, or those of all users of the account or the QOS.
    of = {"PerUser": "your", "PerAccount": "its account's", "": "your" if limit.kind == "Max" else ""}[limit.per]
    if what.endswith("jobs"):
        who = {"your": "you", "": f"the users of {whose}"}.get(of, "the users of its account")
        verb = "have" if what.startswith("queued") else "run"
        return Reason(f"{who} {verb} as many {what} as {whose if of else 'it'} allows")
    if limit.time == "Minutes":
        return Reason(f"the budget of {whose} for {what} is used up", "choose another account or QOS")
    running = "running jobs" if limit.time else "jobs"
    jobs = f"{of} {running}" if of else f"the {running.replace('jobs', f'jobs of {whose}', 1)}"
    allows = {"your": f"{whose} allows you", "": "it allows"}.get(of, f"{whose} allows an account")
    hint = "ask for less time" if limit.time else "wait for them, or choose another QOS" if of else ""
    span = " for all of their time limits" if limit.time else ""
    return Reason(f"{jobs} with this one need more {what}{span} than {allows}", hint)
