"""The containers of apps: their summaries, and what their inspection says."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...base.validation import find_invalid_field, is_count, is_list_of, is_name, is_object, is_text, is_time
from ...logs.source.log_times import nanoseconds_of
from ...specs.errors import JobNotFoundError, SchedulerError
from ...specs.status import AppState
from ..docker_engine.client import Engine
from ..shared.parallel import parallel_map
from ..shared.replicas import pick_replica
from . import labels
from .labels import checked_labels

ContainerSummary = dict[str, Any]
"""One container of ``/containers/json``: Id, Names, Image, Created, State, Status, Labels, Ports..."""
ContainerDetails = dict[str, Any]
"""The answer of ``/containers/ID/json``."""
_PORT = {"PrivatePort": is_count, "PublicPort": is_count}
# Fields of a container in a list besides Id and Labels; all are optional.
_FIELDS = {
    "State": is_text,
    "Status": is_text,
    "Image": is_text,
    "Created": is_time,
    "Names": is_list_of(is_text),
    "Ports": is_list_of(lambda port: is_object(port) and not find_invalid_field(port, {}, _PORT)),
}


def inspect_all(
    engine: Engine, containers: list[ContainerSummary], app_id: str
) -> list[tuple[ContainerSummary, ContainerDetails]]:
    """Return each container with what its inspection says, its summary brought up to that; those gone are left out."""
    inspected_by_id: dict[str, ContainerDetails] = {}

    def inspect(container: ContainerSummary) -> None:
        with suppress(JobNotFoundError), engine.translate_errors(app_id):
            inspected = engine.client().api.inspect_container(container["Id"])
            if not (is_object(inspected) and all(is_object(inspected.get(name)) for name in ("State", "Config"))):
                raise SchedulerError(
                    f"the engine did not describe container {container['Id']}, but said {inspected!r:.80}"
                )
            inspected_by_id[container["Id"]] = inspected

    for error in parallel_map(inspect, containers):
        raise error
    for inspected in inspected_by_id.values():
        inspected["Config"]["Labels"] = checked_labels(inspected["Config"].get("Labels"))
    return [
        (_as_inspected(container, inspected_by_id[container["Id"]]), inspected_by_id[container["Id"]])
        for container in containers
        if container["Id"] in inspected_by_id
    ]


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
    """Describe a failing health check; empty where there is none or all is well."""
    health = inspected["State"].get("Health") or {}
    if health.get("Status") not in ("unhealthy", "starting"):
        return ""
    return f"health check: {health['Status']}, failed {health.get('FailingStreak', 0)} times in a row"


def address(inspected: Mapping[str, Any]) -> str | None:
    """Return a container's address in the app's network, None while it has none."""
    networks = (inspected.get("NetworkSettings") or {}).get("Networks") or {}
    return next((network["IPAddress"] for network in networks.values() if network.get("IPAddress")), None)


def exit_code(inspected: Mapping[str, Any], state: AppState) -> int | None:
    """Return a container's exit code, None while it has not ended."""
    return inspected["State"].get("ExitCode") if state in (AppState.SUCCEEDED, AppState.FAILED) else None


def _as_inspected(container: ContainerSummary, inspected: ContainerDetails) -> ContainerSummary:
    """Return a summary as it would be now: a container may have ended since the list was made."""
    state = inspected["State"]
    if state.get("Status", container.get("State")) == container.get("State"):
        return container
    status = f"Exited ({state.get('ExitCode')})" if state["Status"] == "exited" else ""
    return {**container, "State": state["Status"], "Status": status}


def all_containers(engine: Engine) -> list[ContainerSummary]:
    """Return the containers of every TorchX app, ended ones included, the latest first."""
    return _asked(engine, labels.APP_ID)


def find_containers(engine: Engine, app_id: str) -> list[ContainerSummary]:
    """Return the containers of one app, by role and replica as they were launched; empty when there is no such app."""
    return sort_by_role(_asked(engine, f"{labels.APP_ID}={app_id}"))


def sort_by_role(containers: list[ContainerSummary]) -> list[ContainerSummary]:
    """Return the containers of one app by role and replica, the AppDef's first role first."""
    # The engine gives the latest first; TorchX creates roles in their order, and has no label that tells it.
    order = {role_name(container): -place for place, container in enumerate(containers)}
    for container in containers:
        if index := (container.get("Labels") or {}).get(labels.ROLE_INDEX):
            order[role_name(container)] = int(index)
    return sorted(containers, key=lambda container: (order[role_name(container)], replica_number(container)))


def find_replica(engine: Engine, app_id: str, role: str, k: int) -> ContainerSummary:
    """Return the container of one replica.

    Raises:
        JobNotFoundError: there is no such app.
        ValueError: it has no such role or replica; the message lists those that it has.
    """
    containers = find_containers(engine, app_id)
    if not containers:
        raise JobNotFoundError(app_id, "local_docker")
    roles: dict[str, dict[int, ContainerSummary]] = {}
    for container in containers:
        roles.setdefault(role_name(container), {})[replica_number(container)] = container
    return pick_replica(app_id, roles, role, k)


def role_name(container: ContainerSummary) -> str:
    """Return the role that a container is of; empty where its label is missing."""
    return (container.get("Labels") or {}).get(labels.ROLE_NAME, "")


def replica_number(container: ContainerSummary) -> int:
    """Return which replica of its role a container is."""
    return labels.replica_number(container.get("Labels") or {})


def container_name(container: ContainerSummary) -> str:
    """Return a container's name, its id where it has none."""
    names = container.get("Names") or []
    return names[0].lstrip("/") if names else container["Id"][:12]


def _asked(engine: Engine, label: str) -> list[ContainerSummary]:
    """Return the containers that have a label, their labels checked; those whose app id cannot be one are left out."""
    with engine.translate_errors():
        containers = engine.client().api.containers(all=True, filters={"label": label})
    if not isinstance(containers, list):
        raise SchedulerError(f"the engine did not answer with a list of containers, but with {containers!r:.80}")
    checked = [_checked(container) for container in containers if is_object(container) and is_name(container.get("Id"))]
    return [container for container in checked if labels.APP_ID in container["Labels"]]


def _checked(container: Mapping[str, Any]) -> ContainerSummary:
    """Return a container's summary without the fields whose values are invalid."""
    known = {name: value for name, value in container.items() if name not in _FIELDS or _FIELDS[name](value)}
    return {**known, "Labels": labels.checked_labels(container.get("Labels"))}
