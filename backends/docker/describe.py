"""Everything about one app: what its containers' inspection says, and the AppDef in its label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...logs.pattern.error_reader import OutputError, explain_output
from ...specs.errors import SchedulerError
from ...specs.roles import Role
from ...specs.status import NONE, AppState, ReplicaStatus, RoleStatus, is_terminal
from ..docker_engine.client import Engine
from ..docker_engine.images import variables_of
from ..shared.exit_reasons import first_cause, may_tell, signal_of
from ..types import DescribeAppResponse, PublishedPort, StateChange
from . import labels
from .app_def import read_app_def, roles_of
from .containers import (
    ContainerDetails,
    ContainerSummary,
    address,
    container_name,
    describe_health,
    exit_code,
    find_containers,
    finished_at,
    inspect_all,
    replica_number,
    role_name,
    started_at,
)
from .listing import KnownTimes
from .states import AppSummary, failure_sentence, replica_reason, summarize, why

# The last lines of each stream that are searched for an error.
_MOST_LINES = 200


def published_ports(containers: Sequence[ContainerSummary], roles: Sequence[Role], host: str) -> list[PublishedPort]:
    """Return the ports of an app's replicas that can be reached now.

    Args:
        containers: its containers.
        roles: its roles, whose `port_map` names the ports.
        host: the engine's machine, empty where that is this one.
    """
    names = {role.name: {port: name for name, port in role.port_map.items()} for role in roles}
    ports = []
    for container in containers:
        role = role_name(container)
        seen: set[int] = set()
        for port in sorted(container.get("Ports") or [], key=_order):
            inner, outer = int(port.get("PrivatePort") or 0), int(port.get("PublicPort") or 0)
            # Of a port that is published on IPv4 and IPv6, one is enough.
            if not outer or port.get("Type") != "tcp" or inner in seen:
                continue
            seen.add(inner)
            name = names.get(role, {}).get(inner, "")
            ports.append(PublishedPort(role, replica_number(container), name, inner, host, outer))
    return ports


def _order(port: Mapping[str, Any]) -> tuple[int, bool]:
    return (int(port.get("PrivatePort") or 0), ":" in str(port.get("IP", "")))


def describe_app(engine: Engine, app_id: str, times: KnownTimes, host: str) -> DescribeAppResponse | None:
    """Return everything about an app, None when there is no such app.

    Args:
        engine: the engine.
        app_id: the app's id.
        times: learns when its containers ended.
        host: the engine's machine.

    Raises:
        SchedulerError: the engine did not answer.
    """
    pairs = inspect_all(engine, find_containers(engine, app_id), app_id)
    if not pairs:
        return None
    app = summarize(app_id, [summary for summary, _ in pairs])
    inspected = [details for _, details in pairs]
    for details in inspected:
        if (at := finished_at(details)) is not None:
            times.learn(details["Id"], at)
    notes: list[str] = []
    kept = read_app_def(app.containers, notes)
    roles = kept.roles if kept else roles_of(inspected, partial(variables_of, engine), notes)
    failure = _first_failure(engine, app, inspected)
    failed, error = failure or (None, OutputError())
    reason = failure_sentence(inspected[failed], error.sentence) if failed is not None else ""
    response = DescribeAppResponse(
        app_id=app_id,
        state=app.state,
        num_restarts=max(details.get("RestartCount") or 0 for details in inspected),
        msg=why(app, reason, failed) or NONE,
        structured_error_msg=error.quote or NONE,
        metadata={**(kept.metadata if kept else {}), **_digests(inspected)},
        roles_statuses=_roles_statuses(app, inspected, roles, error.quote or NONE, failed),
        roles=roles,
        name=app.name,
        submitted_at=app.submitted_at,
        user=app.labels.get(labels.USER, ""),
        host=host,
        notes=notes,
        image=str(app.containers[0].get("Image") or ""),
        ports=published_ports(app.containers, roles, host if engine.is_remote else ""),
    )
    _set_times(response, inspected)
    return response


def _first_failure(
    engine: Engine, app: AppSummary, inspected: list[ContainerDetails]
) -> tuple[int, OutputError] | None:
    """Return the index of the first replica that failed by itself, and its error; None if none failed."""
    places = [place for place, replica in enumerate(app.replicas) if replica.state is AppState.FAILED]
    places.sort(key=lambda place: finished_at(inspected[place]) or 0.0)
    return first_cause((place, _own_error(engine, inspected[place])) for place in places)


def _own_error(engine: Engine, inspected: ContainerDetails) -> OutputError:
    """Return the error at the end of a replica's output; an empty one if the output cannot be read."""
    try:
        with engine.translate_errors():
            logs = engine.client().api.logs
            output = [
                logs(inspected["Id"], stdout=not stderr, stderr=stderr, tail=_MOST_LINES) for stderr in (True, False)
            ]
    except SchedulerError:
        return OutputError()
    ends = [data.decode("utf-8", "replace") for data in output]
    return explain_output(*ends, guess=may_tell(inspected["State"].get("ExitCode")))


def _digests(inspected: list[ContainerDetails]) -> dict[str, str]:
    """Return the digest of each role's image: what its name meant when the app was launched."""
    return {
        f"image of {(details['Config'].get('Labels') or {}).get(labels.ROLE_NAME, '')}": details["Image"]
        for details in inspected
    }


def _set_times(response: DescribeAppResponse, inspected: list[ContainerDetails]) -> None:
    submitted = response.submitted_at or 0.0
    starts = [at for details in inspected if (at := started_at(details)) is not None]
    ends = [at for details in inspected if (at := finished_at(details)) is not None]
    response.timeline = [StateChange(AppState.SUBMITTED, submitted)]
    if starts:
        response.started_at = max(submitted, min(starts))
        response.timeline.append(StateChange(AppState.RUNNING, response.started_at))
    if is_terminal(response.state) or response.state is AppState.UNKNOWN:
        response.finished_at = max([response.started_at or submitted, *ends])
        response.timeline.append(StateChange(response.state, response.finished_at))


def _roles_statuses(
    app: AppSummary, inspected: list[ContainerDetails], roles: list[Role], error: str, failed: int | None
) -> list[RoleStatus]:
    statuses: dict[str, list[ReplicaStatus]] = {}
    for place, (container, details) in enumerate(zip(app.containers, inspected, strict=True)):
        state = app.replicas[place].state
        code = exit_code(details, state)
        statuses.setdefault(role_name(container), []).append(
            ReplicaStatus(
                id=replica_number(container),
                state=state,
                role=role_name(container),
                hostname=container_name(container),
                structured_error_msg=error if place == failed else NONE,
                hostaddr=address(details),
                exit_code=code,
                signal=signal_of(code),
                reason=replica_reason(details) or describe_health(details),
                pid=details["State"].get("Pid") or None,
                started_at=started_at(details),
                finished_at=finished_at(details),
                restarts=details.get("RestartCount") or 0,
            )
        )
    if app.missing:
        _add_removed(statuses, roles)
    return [
        RoleStatus(role, sorted(replicas, key=lambda container: container.id)) for role, replicas in statuses.items()
    ]


def _add_removed(statuses: dict[str, list[ReplicaStatus]], roles: list[Role]) -> None:
    """Add the replicas whose containers were removed by someone else, as far as the AppDef names them."""
    for role in roles:
        there = {replica.id for replica in statuses.get(role.name, [])}
        for number in (k for k in range(role.num_replicas) if k not in there):
            statuses.setdefault(role.name, []).append(
                ReplicaStatus(
                    id=number,
                    state=AppState.UNKNOWN,
                    role=role.name,
                    hostname="",
                    reason="its container was removed by someone else",
                )
            )
