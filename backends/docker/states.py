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
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...logs.text.sanitize import plain
from ...specs.status import AppState, is_terminal
from ..shared.exit_reasons import format_exit, short_time
from . import labels
from .containers import ContainerSummary, replica_number, role_name

# What the engine notes for a container that it finds dead when it comes up (moby: daemon.restore).
ENGINE_DIED = 255
# A launch starts what it created within seconds, unless it died.
_STARTS_WITHIN_S = 60.0
_MEGABYTE = 1 << 20
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


def why(app: AppSummary, reason: str = "", failed: int | None = None) -> str:
    """Explain an app's state, empty where there is nothing to say.

    Args:
        app: the app.
        reason: why its first failed replica failed, where it was looked at.
        failed: the place of that replica, None where none failed.
    """
    parts = []
    if failed is not None:
        parts.append(f"{reason or describe_exit_code(app.replicas[failed].exit_code)}: {app.where(failed)}")
    if app.missing:
        parts.append(f"{_replicas(app.missing)} removed by someone else: how it ended is not known")
    if app.state is AppState.RUNNING and parts:
        running = sum(replica.state is AppState.RUNNING for replica in app.replicas)
        parts.append(f"{running} of {len(app.replicas) + app.missing} still run")
    parts += [f"its health check fails: {app.where(place)}" for place in _unhealthy(app)[:1]]
    if not parts and (waiting := _waiting(app)):
        parts.append(waiting)
    return "; ".join(parts)


def describe_exit_code(exit_code: int | None) -> str:
    """Describe how a container ended, as far as its exit code tells."""
    if exit_code is None:
        return "it is dead: the engine could not remove it"
    if exit_code == ENGINE_DIED:
        return "exit 255: its own exit code, or the engine was killed"
    return format_exit(exit_code)


def replica_reason(inspected: Mapping[str, Any]) -> str:
    """Explain a replica's state by its inspection (``/containers/ID/json``)."""
    state = inspected["State"]
    code = state.get("ExitCode") or 0
    if error := state.get("Error"):
        return plain(
            f"not started: {error}" if state.get("Status") == "created" else f"{describe_exit_code(code)}: {error}"
        )
    if state.get("OOMKilled") and not state.get("Running"):
        limit = (inspected.get("HostConfig") or {}).get("Memory") or 0
        at = f" at its limit of {limit // _MEGABYTE} MB" if limit else ""
        return f"out of memory: killed{at} (exit {code})"
    if state.get("Status") == "restarting":
        return f"starts again after {describe_exit_code(code)}"
    if state.get("Paused"):
        return "paused: `docker unpause` resumes it"
    if state.get("Status") == "exited" and code:
        return describe_exit_code(code)
    return ""


def failure_sentence(inspected: Mapping[str, Any], error: str) -> str:
    """Explain a failure: the replica's own error, then how it ended."""
    ended = replica_reason(inspected)
    return f"{error}, {ended}" if error and not inspected["State"].get("OOMKilled") else ended


def _unhealthy(app: AppSummary) -> list[int]:
    return [place for place, container in enumerate(app.containers) if health(container) == "unhealthy"]


def _waiting(app: AppSummary) -> str:
    """Describe what a live app waits for."""
    if is_terminal(app.state) or app.state is AppState.RUNNING:
        return ""
    states = [container.get("State") for container in app.containers]
    if "restarting" in states:
        return f"starts again: {app.where(states.index('restarting'))}"
    if "paused" in states:
        return f"paused: {app.where(states.index('paused'))}"
    age = time.time() - app.submitted_at
    if "created" in states and age > _STARTS_WITHIN_S:
        where = app.where(states.index("created"))
        return f"never started, {short_time(age)} after it was created: {where}: its launch failed or died; cancel it"
    return ""


def _replicas(count: int) -> str:
    return "1 replica was" if count == 1 else f"{count} replicas were"


@dataclass(frozen=True)
class AppSummary:
    """The containers of one app and what follows from them.

    Args:
        app_id: the app's id.
        containers: its containers, in order.
        replicas: the state of each of them.
        missing: how many replicas' containers were removed by someone else.
        state: the app's state.
    """

    app_id: str
    containers: list[ContainerSummary]
    replicas: list[ReplicaState]
    missing: int
    state: AppState

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the first container; those that tell of the app are on all of them."""
        return self.containers[0].get("Labels") or {}

    @property
    def name(self) -> str:
        """The name that the app was launched under."""
        # TorchX has no label for it; its ids are the name, - and a random text.
        return self.labels.get(labels.APP_NAME) or self.app_id.rpartition("-")[0] or self.app_id

    @property
    def submitted_at(self) -> float:
        """When it was submitted, in seconds since the epoch."""
        created = min(float(container.get("Created") or 0) for container in self.containers)
        return labels.submitted_at(self.labels) or created

    def where(self, place: int) -> str:
        """Return which replica a container is of, such as ``trainer/0``."""
        container = self.containers[place]
        return f"{role_name(container)}/{replica_number(container)}"


def summarize(app_id: str, containers: list[ContainerSummary]) -> AppSummary:
    """Fold the containers of one app, all of them and in order, into one summary."""
    replicas = [replica_state(container) for container in containers]
    states = [replica.state for replica in replicas]
    wanted = int((containers[0].get("Labels") or {}).get(labels.REPLICAS, "0"))
    missing = max(0, wanted - len(containers))
    if all(state is AppState.SUBMITTED for state in states):
        missing = 0  # all are created before the first starts: those that are missing are yet to come
    if missing:
        states.append(AppState.UNKNOWN)
    return AppSummary(app_id, containers, replicas, missing, state_of(states))


class ReplicaState(NamedTuple):
    """What the list of containers tells of one."""

    state: AppState
    exit_code: int | None
    """Known once it has exited."""


def replica_state(container: ContainerSummary) -> ReplicaState:
    """Return a replica's state by its container in ``/containers/json``."""
    engine_state = container.get("State", "")
    if engine_state != "exited":
        return ReplicaState(_OF_ENGINE.get(engine_state, AppState.UNKNOWN), None)
    match = _EXITED.match(container.get("Status", ""))
    code = int(match["code"]) if match else None
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


def seconds_since_exit(container: ContainerSummary) -> float | None:
    """Return how long ago a container exited, as roughly as the list tells: "3 hours ago"; None where it does not."""
    match = _EXITED.match(container.get("Status", ""))
    words = (match["ago"] or "") if match else ""
    if not words:
        return None
    if words.startswith("Less than"):
        return 0.0
    number, _, unit = words.rpartition(" ")
    count = int(number) if number.isdecimal() else 1  # "About an hour"
    return float(count * _UNIT_SECONDS.get(unit.rstrip("s"), 0))


def health(container: ContainerSummary) -> str:
    """Read the result of a container's health check from the list; empty where it has none."""
    match = _HEALTH.search(container.get("Status", ""))
    return match["health"].removeprefix("health: ") if match else ""
