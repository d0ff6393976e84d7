"""The names of containers, and refusing, before anything is created, what the engine would refuse or mix up."""

from __future__ import annotations

import re

from ...specs import MISSING, AppDef, AppDefError

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
    _check_name("The app's name", app.name)
    if not app.roles:
        raise AppDefError(f"{app.name} has no roles: give it at least one")
    seen: dict[str, str] = {}
    for role in app.roles:
        _check_name("The role's name", role.name)
        short = role.name[:_MOST]
        if short in seen:
            raise AppDefError(
                f"The roles {seen[short]} and {role.name} of {app.name} would have containers of one name, which has "
                f"the first {_MOST} characters of the role's: rename one of them"
            )
        seen[short] = role.name
        if not role.entrypoint or role.entrypoint == MISSING:
            raise AppDefError(f"Role {role.name} has no entrypoint: nothing to run")
        if role.num_replicas < 1:
            raise AppDefError(f"Role {role.name} asks for {role.num_replicas} replicas: at least 1 is needed")
        _check_ports(role.name, role.port_map)


def _check_name(what: str, name: str) -> None:
    if not _ALLOWED.fullmatch(name):
        raise AppDefError(
            f"{what} is {name!r}: containers are named after it, so it can have letters and digits of ASCII, and _ . -"
        )


def _check_ports(role: str, port_map: dict[str, int]) -> None:
    for name, port in port_map.items():
        if not 0 < port < 65536:
            raise AppDefError(f"Role {role}: port {port} ({name}) is none: ports are 1 to 65535")
