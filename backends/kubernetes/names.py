"""Names: as TorchX makes them, and refusing, before anything is created, what the server would refuse or mix up."""

from __future__ import annotations

import re

from ...specs import MISSING, AppDef, AppDefError, Role, normalize_str

cleanup_str = normalize_str
"""Return a name as the server takes it; TorchX's earlier name of `normalize_str`."""

# A pod's name becomes its host name, which is one label of a DNS name.
_LONGEST = 63
# Longest random part of a job's name: a length that fits once always fits.
_RANDOM_PART = 14
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PORT_NAME = re.compile(r"(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_VARIABLE = re.compile(r"(?!\.$|\.\.)[-._a-zA-Z][-._a-zA-Z0-9]*")
_NO_LABEL = re.compile(r"[^A-Za-z0-9_.-]")
_LABEL_ENDS = "_.-"


def task_name(role: str, replica_id: int) -> str:
    """Return the name of a replica's task, which its container has as well."""
    return normalize_str(f"{role}-{replica_id}")


def label_value(text: str) -> str:
    """Return a text as the value of a label: TorchX's, without the signs that a server refuses at its ends."""
    return _NO_LABEL.sub(".", text)[:_LONGEST].strip(_LABEL_ENDS)


def hosts_variable(role: str, replica_id: int) -> str:
    """Return the variable in which Volcano tells all pods the host name of a replica."""
    return f"VC_{task_name(role, replica_id)}_HOSTS".upper().replace("-", "_")


def check_app(app: AppDef, namespace: str) -> None:
    """Refuse an app that cannot be a job.

    Raises:
        AppDefError: a name has no characters that a server takes, or too many, or would stand for two things; or there
            is nothing to run.
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise AppDefError(
            f"The namespace is {namespace!r}: it can have small letters, digits and - between them, 63 at most"
        )
    _check_some_name("The app's name", app.name)
    if not app.roles:
        raise AppDefError(f"{app.name} has no roles: give it at least one")
    seen: dict[str, str] = {}
    for role in app.roles:
        _check_some_name("The role's name", role.name)
        short = normalize_str(role.name)
        if short in seen:
            raise AppDefError(
                f"The roles {seen[short]} and {role.name} of {app.name} would have pods of one name, which has only "
                f"the small letters, digits and - of the role's ({short}): rename one of them"
            )
        seen[short] = role.name
        _check_length(app, role)
        _check_role(role)


def _check_some_name(what: str, name: str) -> None:
    if not normalize_str(name).strip("-"):
        raise AppDefError(f"{what} is {name!r}: pods are named after it, so it needs letters or digits of ASCII")


def _check_length(app: AppDef, role: Role) -> None:
    job = f"{normalize_str(app.name)}-"
    pod = f"{job}{'x' * _RANDOM_PART}-{task_name(role.name, max(0, role.num_replicas - 1))}-0"
    if len(pod) > _LONGEST:
        raise AppDefError(
            f"The names of {app.name} and its role {role.name} are {len(pod) - _LONGEST} characters too long together: "
            f"a pod's name, {job}ID-{task_name(role.name, 0)}-0, can have {_LONGEST}: shorten one of them"
        )


def _check_role(role: Role) -> None:
    where = f"Role {role.name}"
    if not role.entrypoint or role.entrypoint == MISSING:
        raise AppDefError(f"{where} has no entrypoint: nothing to run")
    if role.num_replicas < 1:
        raise AppDefError(f"{where} asks for {role.num_replicas} replicas: at least 1 is needed")
    for name, port in role.port_map.items():
        if not _PORT_NAME.fullmatch(name):
            raise AppDefError(
                f"{where}: a port is named {name!r}: names of ports have small letters, at least one, digits and "
                "- between them, 15 characters at most"
            )
        if not 0 < port < 65536:
            raise AppDefError(f"{where}: port {port} ({name}) is none: ports are 1 to 65535")
    for name, value in role.env.items():
        if not _VARIABLE.fullmatch(name):
            raise AppDefError(
                f"{where}: a variable is named {name!r}: names have letters, digits, _ - and ., no digit first"
            )
        if not isinstance(value, str):
            raise AppDefError(f"{where}: the variable {name} is {value!r}: values are texts, so quote it")
