"""The states of replicas, and how they fold into the state of their app.

A replica's state is its container's: created SUBMITTED, running RUNNING, exited SUCCEEDED or FAILED by its exit code,
dead FAILED; restarting, paused and removing are PENDING, as with TorchX. One whose container was removed by someone
else is UNKNOWN.

The app's state, by the first rule that holds:

1. RUNNING while any replica runs, whatever became of the others: they are told in words.
2. PENDING while any replica is pending, or waits to be started when others have been.
3. SUBMITTED while all replicas wait for their first start.
4. All have ended: FAILED where any failed; else UNKNOWN where one was removed; else SUCCEEDED.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from ...specs import AppState
from .containers import Summary

_OF_ENGINE = {
    "created": AppState.SUBMITTED,
    "running": AppState.RUNNING,
    "restarting": AppState.PENDING,
    "paused": AppState.PENDING,
    "removing": AppState.PENDING,
    "dead": AppState.FAILED,
}
_EXITED = re.compile(r"Exited \((?P<code>-?\d+)\)(?: (?P<ago>.+) ago)?")
_HEALTH = re.compile(r"\((?P<health>healthy|unhealthy|health: starting)\)")
_UNIT_SECONDS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
    "month": 2592000,
    "year": 31536000,
}


class ReplicaState(NamedTuple):
    """What the list of containers tells of one."""

    state: AppState
    exit_code: int | None
    """Known once it has exited."""


def replica_state(container: Summary) -> ReplicaState:
    """Return a replica's state by its container in ``/containers/json``."""
    engine_state = container.get("State", "")
    if engine_state != "exited":
        return ReplicaState(_OF_ENGINE.get(engine_state, AppState.UNKNOWN), None)
    found = _EXITED.match(container.get("Status", ""))
    code = int(found["code"]) if found else None
    return ReplicaState(exited_state(code), code)


def exited_state(code: int | None) -> AppState:
    """Return the state of a replica that exited with ``code``."""
    return AppState.SUCCEEDED if code == 0 else AppState.FAILED


def state_of(states: Collection[AppState]) -> AppState:
    """Return the state of an app whose replicas are in ``states``: the rules above."""
    if AppState.RUNNING in states:
        return AppState.RUNNING
    if AppState.PENDING in states:
        return AppState.PENDING
    if AppState.SUBMITTED in states:
        started = any(state is not AppState.SUBMITTED for state in states)
        return AppState.PENDING if started else AppState.SUBMITTED
    for state in (AppState.FAILED, AppState.UNKNOWN):
        if state in states:
            return state
    return AppState.SUCCEEDED


def seconds_since_exit(container: Summary) -> float | None:
    """Return how long ago a container exited, as roughly as the list tells: "3 hours ago"; None where it does not."""
    found = _EXITED.match(container.get("Status", ""))
    words = (found["ago"] or "") if found else ""
    if not words:
        return None
    if words.startswith("Less than"):
        return 0.0
    number, _, unit = words.rpartition(" ")
    count = int(number) if number.isdecimal() else 1  # "About an hour"
    return float(count * _UNIT_SECONDS.get(unit.rstrip("s"), 0))


def health(container: Summary) -> str:
    """Return what a container's health check found, empty where it has none."""
    found = _HEALTH.search(container.get("Status", ""))
    return found["health"].removeprefix("health: ") if found else ""
