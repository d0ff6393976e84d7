"""Which replica is meant; errors list the valid choices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from ...base.errors import join_names
from ...specs.errors import UnknownReplicaError

T = TypeVar("T")


def pick_replica(app_id: str, roles: Mapping[str, Mapping[int, T]], role: str, k: int) -> T:
    """Pick what belongs to one replica.

    Args:
        app_id: the app.
        roles: what belongs to its replicas, by role and number.
        role: the role's name.
        k: the replica's number in the role.

    Raises:
        UnknownReplicaError: there is no such role or replica; the message lists the valid ones.
    """
    if role not in roles:
        raise UnknownReplicaError(f"{app_id} has no role {role}. Its roles: {join_names(roles)}")
    if k not in roles[role]:
        raise UnknownReplicaError(f"Role {role} of {app_id} has no replica {k}. Valid: {format_numbers(roles[role])}")
    return roles[role][k]


def format_numbers(numbers: Iterable[int]) -> str:
    """Format numbers with those that follow one another as a range, such as ``0 to 3, 7``."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return join_names(f"{first} to {last}" if last > first else str(first) for first, last in ranges)
