"""The ports of replicas that the engine publishes on its machine's loopback address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...specs import Role
from ..responses import PublishedPort
from .containers import Summary, replica_number, role_name


def published_ports(containers: Sequence[Summary], roles: Sequence[Role], host: str) -> list[PublishedPort]:
    """Return the ports of an app's replicas that can be reached now.

    Args:
        containers: its containers.
        roles: its roles, whose `port_map` names the ports.
        host: the engine's machine, empty where that is this one.
    """
    names = {role.name: {port: name for name, port in role.port_map.items()} for role in roles}
    found = []
    for one in containers:
        role = role_name(one)
        seen: set[int] = set()
        for port in sorted(one.get("Ports") or [], key=_order):
            inner, outer = int(port.get("PrivatePort") or 0), int(port.get("PublicPort") or 0)
            # Of a port that is published on IPv4 and IPv6, one is enough.
            if not outer or port.get("Type") != "tcp" or inner in seen:
                continue
            seen.add(inner)
            name = names.get(role, {}).get(inner, "")
            found.append(PublishedPort(role, replica_number(one), name, inner, host, outer))
    return found


def _order(port: Mapping[str, Any]) -> tuple[int, bool]:
    return (int(port.get("PrivatePort") or 0), ":" in str(port.get("IP", "")))
