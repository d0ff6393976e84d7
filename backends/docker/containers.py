"""Finding the containers of an app: one request, whatever their number."""

from __future__ import annotations

from typing import Any

from ...specs import JobNotFoundError
from . import labels
from .engine import Engine

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
    if role not in roles:
        raise ValueError(f"{app_id} has no role {role}. Its roles: {', '.join(roles)}")
    if k not in roles[role]:
        numbers = ", ".join(str(number) for number in sorted(roles[role]))
        raise ValueError(f"Role {role} of {app_id} has no replica {k}. Its replicas: {numbers}")
    return roles[role][k]


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
    with engine.in_words():
        found = engine.client().api.containers(all=True, filters={"label": label})
    checked = [{**one, "Labels": labels.checked_labels(one.get("Labels"))} for one in found]
    return [one for one in checked if labels.APP_ID in one["Labels"]]
