"""Finding the containers of an app: one request, whatever their number."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...logs.source.log_times import nanoseconds_of
from ...specs import AppState, JobNotFoundError
from ..docker_engine.client import Engine
from ..shared.parallel import parallel_map
from ..shared.replicas import pick_replica
from . import labels
from .labels import checked_labels

Inspected = dict[str, Any]


def inspect_all(engine: Engine, containers: list[Summary], app_id: str) -> list[tuple[Summary, Inspected]]:
    """Return each container with what its inspection says, its summary brought up to that; those gone are left out."""
    found: dict[str, Inspected] = {}

    def inspect(one: Summary) -> None:
        with suppress(JobNotFoundError), engine.translate_errors(app_id):
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


def describe_health(inspected: Mapping[str, Any]) -> str:
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


Summary = dict[str, Any]
"""One container as ``/containers/json`` gives it: Id, Names, Image, Created, State, Status, Labels, Ports..."""


def all_containers(engine: Engine) -> list[Summary]:
    """Return the containers of every TorchX app, ended ones included, the latest first."""
    return _asked(engine, labels.APP_ID)


def find_containers(engine: Engine, app_id: str) -> list[Summary]:
    """Return the containers of one app, by role and replica as they were launched; empty when there is no such app."""
    return in_order(_asked(engine, f"{labels.APP_ID}={app_id}"))


def in_order(found: list[Summary]) -> list[Summary]:
    """Return the containers of one app by role and replica, the AppDef's first role first."""
    # The engine gives the latest first; TorchX creates roles in their order, and has no label that tells it.
    order = {role_name(one): -place for place, one in enumerate(found)}
    for one in found:
        if index := (one.get("Labels") or {}).get(labels.ROLE_INDEX):
            order[role_name(one)] = int(index)
    return sorted(found, key=lambda one: (order[role_name(one)], replica_number(one)))


def find_replica(engine: Engine, app_id: str, role: str, k: int) -> Summary:
    """Return the container of one replica.

    Raises:
        JobNotFoundError: there is no such app.
        ValueError: it has no such role or replica; the message lists those that it has.
    """
    found = find_containers(engine, app_id)
    if not found:
        raise JobNotFoundError(app_id, "local_docker")
    roles: dict[str, dict[int, Summary]] = {}
    for one in found:
        roles.setdefault(role_name(one), {})[replica_number(one)] = one
    return pick_replica(app_id, roles, role, k)


def role_name(container: Summary) -> str:
    """Return the role that a container is of; empty where its label is missing."""
    return (container.get("Labels") or {}).get(labels.ROLE_NAME, "")


def replica_number(container: Summary) -> int:
    """Return which replica of its role a container is."""
    return labels.replica_number(container.get("Labels") or {})


def container_name(container: Summary) -> str:
    """Return a container's name, its id where it has none."""
    names = container.get("Names") or []
    return names[0].lstrip("/") if names else container["Id"][:12]


def _asked(engine: Engine, label: str) -> list[Summary]:
    """Return the containers that have a label, their labels checked; those whose app id cannot be one are left out."""
    with engine.translate_errors():
        found = engine.client().api.containers(all=True, filters={"label": label})
    checked = [{**one, "Labels": labels.checked_labels(one.get("Labels"))} for one in found]
    return [one for one in checked if labels.APP_ID in one["Labels"]]
