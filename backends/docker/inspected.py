"""One container as ``/containers/ID/json`` gives it, in our words."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...specs import AppState, JobNotFoundError
from ..logs.log_times import nanoseconds_of
from ..parallel import parallel_map
from .containers import Summary
from .engine import Engine
from .labels import checked_labels

Inspected = dict[str, Any]


def inspect_all(engine: Engine, containers: list[Summary], app_id: str) -> list[tuple[Summary, Inspected]]:
    """Return each container with what its inspection says, its summary brought up to that; those gone are left out."""
    found: dict[str, Inspected] = {}

    def inspect(one: Summary) -> None:
        with suppress(JobNotFoundError), engine.in_words(app_id):
            found[one["Id"]] = engine.client().api.inspect_container(one["Id"])

    for error in parallel_map(inspect, containers):
        raise error
    for inspected in found.values():
        inspected["Config"]["Labels"] = checked_labels(inspected["Config"].get("Labels"))
    return [(_as_inspected(one, found[one["Id"]]), found[one["Id"]]) for one in containers if one["Id"] in found]


def seconds_of(text: str | None) -> float | None:
    """Return a time of the engine's, RFC 3339 with nanoseconds, in seconds since the epoch; None for year 1, never."""
    if not text or text.startswith("0001-"):
        return None
    return nanoseconds_of(text) / 1e9


def started_at(inspected: Mapping[str, Any]) -> float | None:
    """Return when a container was last started, None if it never was."""
    return seconds_of(inspected["State"].get("StartedAt"))


def finished_at(inspected: Mapping[str, Any]) -> float | None:
    """Return when a container ended, None while it runs or is about to start again."""
    if inspected["State"].get("Status") not in ("exited", "dead"):
        return None
    return seconds_of(inspected["State"].get("FinishedAt"))


def health_words(inspected: Mapping[str, Any]) -> str:
    """Return what a container's health check finds, empty where it has none or all is well."""
    health = inspected["State"].get("Health") or {}
    if health.get("Status") not in ("unhealthy", "starting"):
        return ""
    return f"health check: {health['Status']}, failed {health.get('FailingStreak', 0)} times in a row"


def address(inspected: Mapping[str, Any]) -> str | None:
    """Return a container's address in the app's network, None while it has none."""
    networks = (inspected.get("NetworkSettings") or {}).get("Networks") or {}
    return next((network["IPAddress"] for network in networks.values() if network.get("IPAddress")), None)


def exit_code(inspected: Mapping[str, Any], state: AppState) -> int | None:
    """Return what a container exited with, None while it has not."""
    return inspected["State"].get("ExitCode") if state in (AppState.SUCCEEDED, AppState.FAILED) else None


def _as_inspected(one: Summary, inspected: Inspected) -> Summary:
    """Return a summary as it would be now: a container may have ended since the list was made."""
    state = inspected["State"]
    if state.get("Status", one.get("State")) == one.get("State"):
        return one
    status = f"Exited ({state.get('ExitCode')})" if state["Status"] == "exited" else ""
    return {**one, "State": state["Status"], "Status": status}
