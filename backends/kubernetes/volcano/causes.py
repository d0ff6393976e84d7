"""Why Volcano's jobs are in their states, by the events of Volcano, and its messages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ....logs.text.sanitize import plain
from ...kube.causes import LONGEST, TELLING, describe_event, event_time, explain_not_created, without_go
from ...kube.objects import KubernetesObject, dig
from ...shared.exit_reasons import short_time

# The gang plug-in's message for every group that is not ready, whatever the cause.
_GANG = re.compile(r"pod group is (?:not )?ready|tasks in gang")
_CAUSE_IN_GANG = re.compile(r"Origin reason is|Insufficient |nodes are (?:un)?available")
NOT_PICKED_UP = "Volcano has not picked the job up"
_GAVE_UP = "for retry limit reached"
# How much an event tells, by its reason and words; what is not listed tells nothing. The reasons are those of Volcano's
# scheduler and controller (pkg/scheduler, pkg/controllers/job), then those of the kubelet and of Kubernetes' scheduler.
# Volcano tells causes in Normal events as well: the type says nothing.
_GANG_ONLY = 1
_TELLING: tuple[tuple[int, re.Pattern[str]], ...] = (
    (4, re.compile(r"FailedCreate|JobStatusError|PluginError|PVCError|PodGroupError")),
    (3, re.compile(r"Unschedulable|PodGroupPending")),
    (3, TELLING),
    (2, re.compile(r"ExecuteAction")),
)


def job_message(job: KubernetesObject) -> str:
    """Return Volcano's own message on a job's state, empty if there is none."""
    state = dig(job, "status", "state") or {}
    text = ": ".join(str(part) for part in (state.get("reason"), state.get("message")) if part)
    return plain(without_go(text))[:LONGEST]


class EventSummary(NamedTuple):
    """What events tell.

    Attributes:
        text: why something waits, or has failed; empty where it is not known.
        is_cause: whether they name a cause, not only that a gang is not complete.
    """

    text: str = ""
    is_cause: bool = False


def summarize_events(events: Iterable[KubernetesObject]) -> EventSummary:
    """Return the message of the event that explains most, the newest of several.

    Args:
        events: of one object, or of a job and its group; of any type, in any order.
    """
    in_order = sorted(events, key=event_time)
    # Earlier events are obsolete once a group was placed.
    placed = [event_time(event) for event in in_order if event.get("reason") == "Scheduled"]
    since = placed[-1] if placed else ""
    best, text, gave_up = 0, "", False
    for event in in_order:
        if event_time(event) < since:
            continue
        message = event.get("message", "")
        rank = _rank(event.get("reason", ""), message)
        if rank and rank >= best:
            best, text = rank, _said_by(event)
        gave_up = gave_up or _GAVE_UP in message
    if gave_up and _GAVE_UP not in text:
        text = f"{text}; Volcano has given it up" if text else "Volcano has given it up"
    return EventSummary(plain(text)[:LONGEST], best > _GANG_ONLY)


def is_gang_only(message: str) -> bool:
    """Return whether a message of the scheduler says only that a gang is incomplete."""
    return bool(_GANG.search(message)) and not _CAUSE_IN_GANG.search(message)


def _rank(reason: str, message: str) -> int:
    rank = next((rank for rank, reasons in _TELLING if reasons.fullmatch(reason)), 0)
    if reason == "ExecuteAction":
        return rank if _GAVE_UP in message else 0
    if rank and is_gang_only(message):
        # A gang that is ready has its nodes.
        return _GANG_ONLY if "not ready" in message else 0
    return rank


def _said_by(event: KubernetesObject) -> str:
    return explain_not_created(without_go(event.get("message", ""))) or describe_event(event)


def not_picked_up(job: KubernetesObject, queue_exists: bool | None, age: float) -> str:
    """Explain why Volcano has not looked at a job.

    Args:
        job: the job.
        queue_exists: whether its queue is there; None if that is unknown.
        age: seconds since it was submitted.
    """
    queue = dig(job, "spec", "queue") or "default"
    if queue_exists is False:
        return f"the queue {plain(queue)} does not exist: Volcano ignores its jobs; choose another queue"
    return (
        f"{NOT_PICKED_UP} for {short_time(age)}: "
        "is its controller running? `kubectl -n volcano-system get pods` shows it"
    )
