"""The names of containers, and refusing, before anything is created, what the engine would refuse or mix up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...specs import MISSING, AppDef, AppDefError
from ..responses import NameFault

_ALLOWED = re.compile(r"[a-zA-Z0-9_.-]+")
_MOST = 30
# Linux's limit of a host name is 64 bytes, a resolver's of one label 63.
_LONGEST_HOST_NAME = 63


def container_name(app_id: str, role: str, number: int) -> str:
    """Return a container's name, TorchX's: so that names stay short, the ends of the id and the beginnings of roles."""
    return re.sub(r"^[^a-zA-Z0-9]+", "", f"{app_id[-_MOST:]}-{role[:_MOST]}-{number}")


def host_name(name: str, number: int) -> str:
    """Return a container's host name: its name, less of its role where the kernel would refuse so long a one."""
    end = f"-{number}"
    return name if len(name) <= _LONGEST_HOST_NAME else name[: _LONGEST_HOST_NAME - len(end)] + end


def check_app(app: AppDef) -> None:
    """Refuse an app that cannot be containers.

    Raises:
        AppDefError: a name has characters that a container's cannot have, two roles would have the same containers,
            or there is nothing to run.
    """
    if not app.roles:
        raise AppDefError(f"{app.name} has no roles: give it at least one")
    for fault in name_faults(app):
        if fault.refused:
            raise AppDefError(f"{fault.what} is {fault.name!r}: {fault.words}")
    for role in app.roles:
        if not role.entrypoint or role.entrypoint == MISSING:
            raise AppDefError(f"Role {role.name} has no entrypoint: nothing to run")
        if role.num_replicas < 1:
            raise AppDefError(f"Role {role.name} asks for {role.num_replicas} replicas: at least 1 is needed")
        _check_ports(role.name, role.port_map)


def name_faults(app: AppDef) -> Iterator[NameFault]:
    """Yield the names of an app and its roles that containers cannot have, and those that they have in part."""
    seen: dict[str, str] = {}
    for role, name in [("", app.name), *((role.name, role.name) for role in app.roles)]:
        short = name[:_MOST]
        if not _ALLOWED.fullmatch(name):
            allowed = "it can have letters and digits of ASCII, and _ . -"
            yield NameFault(role, name, "containers are named after it", allowed)
        elif role and short in seen:
            pair = f"the roles {seen[short]} and {name} would have containers of one name"
            yield NameFault(role, name, f"{pair}, which has the first {_MOST} characters", "rename one of them")
        elif role and short != name:
            reason = f"containers have its first {_MOST} characters only"
            yield NameFault(role, name, reason, f"they are named {short}", refused=False)
        if role:
            seen.setdefault(short, name)


def _check_ports(role: str, port_map: dict[str, int]) -> None:
    for name, port in port_map.items():
        if not 0 < port < 65536:
            raise AppDefError(f"Role {role}: port {port} ({name}) is none: ports are 1 to 65535")
