"""Why an app is in its state, in words, the cause first."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ...specs import AppState, is_terminal
from ..endings import ended_words, error_sentence, short_time
from ..logs.sanitize import plain
from .states import health
from .summary import AppSummary

# What the engine notes for a container that it finds dead when it comes up (moby: daemon.restore).
ENGINE_DIED = 255
# A launch starts what it created within seconds, unless it died.
_STARTS_WITHIN = 60.0
_MEGABYTE = 1 << 20


def why(app: AppSummary, reason: str = "", failed: int | None = None) -> str:
    """Return why an app is in its state, empty when there is nothing to say.

    Args:
        app: the app.
        reason: why its first failed replica failed, where it was looked at.
        failed: the place of that replica, None where none failed.
    """
    told = []
    if failed is not None:
        told.append(f"{reason or exit_words(app.replicas[failed].exit_code)}: {app.where(failed)}")
    if app.missing:
        told.append(f"{_replicas(app.missing)} removed by someone else: how it ended is not known")
    if app.state is AppState.RUNNING and told:
        running = sum(one.state is AppState.RUNNING for one in app.replicas)
        told.append(f"{running} of {len(app.replicas) + app.missing} still run")
    told += [f"its health check fails: {app.where(place)}" for place in _unhealthy(app)[:1]]
    if not told and (waiting := _waiting(app)):
        told.append(waiting)
    return "; ".join(told)


def exit_words(exit_code: int | None) -> str:
    """Return how a container ended, as far as its exit code tells."""
    if exit_code is None:
        return "it is dead: the engine could not remove it"
    if exit_code == ENGINE_DIED:
        return "exit 255: it exited so, or the engine was killed while it ran"
    return ended_words(exit_code)


def replica_reason(inspected: Mapping[str, Any]) -> str:
    """Return why one replica is in its state, by what ``/containers/ID/json`` says of it."""
    state = inspected["State"]
    code = state.get("ExitCode") or 0
    if error := state.get("Error"):
        return plain(f"not started: {error}" if state.get("Status") == "created" else f"{exit_words(code)}: {error}")
    if state.get("OOMKilled") and not state.get("Running"):
        limit = (inspected.get("HostConfig") or {}).get("Memory") or 0
        at = f" at its limit of {limit // _MEGABYTE} MB" if limit else ""
        return f"out of memory: killed{at} (exit {code})"
    if state.get("Status") == "restarting":
        return f"starts again after {exit_words(code)}"
    if state.get("Paused"):
        return "paused: `docker unpause` lets it go on"
    if state.get("Status") == "exited" and code:
        return exit_words(code)
    return ""


def failure_sentence(inspected: Mapping[str, Any], error: str) -> str:
    """Return why a replica failed: what its own error says, then how it ended."""
    ended = replica_reason(inspected)
    said = error_sentence(error)
    return f"{said}, {ended}" if said and not inspected["State"].get("OOMKilled") else ended


def _unhealthy(app: AppSummary) -> list[int]:
    return [place for place, one in enumerate(app.containers) if health(one) == "unhealthy"]


def _waiting(app: AppSummary) -> str:
    """Return what a live app waits for."""
    if is_terminal(app.state) or app.state is AppState.RUNNING:
        return ""
    states = [one.get("State") for one in app.containers]
    if "restarting" in states:
        return f"starts again: {app.where(states.index('restarting'))}"
    if "paused" in states:
        return f"paused: {app.where(states.index('paused'))}"
    age = time.time() - app.submitted_at
    if "created" in states and age > _STARTS_WITHIN:
        where = app.where(states.index("created"))
        return f"never started, {short_time(age)} after it was created: {where}: its launch failed or died; cancel it"
    return ""


def _replicas(count: int) -> str:
    return "1 replica was" if count == 1 else f"{count} replicas were"
