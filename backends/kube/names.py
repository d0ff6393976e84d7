"""Names and texts that an API server takes: of namespaces, labels, ports and variables."""

from __future__ import annotations

import re

from ...specs.errors import AppDefError
from ...specs.roles import Role

# One label of a DNS name.
_LONGEST = 63
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_PORT_NAME = re.compile(r"(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_VARIABLE = re.compile(r"(?!\.$|\.\.)[-._a-zA-Z][-._a-zA-Z0-9]*")
_NO_LABEL = re.compile(r"[^A-Za-z0-9_.-]")
_LABEL_ENDS = "_.-"


def label_value(text: str) -> str:
    """Return a text as the value of a label: TorchX's, without the signs that a server refuses at its ends."""
    return _NO_LABEL.sub(".", text)[:_LONGEST].strip(_LABEL_ENDS)


def check_namespace(namespace: str) -> None:
    """Refuse a namespace that no server can have.

    Raises:
        AppDefError: its name has other characters, or too many.
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise AppDefError(
            f"The namespace is {namespace!r}: it can have small letters, digits and - between them, 63 at most"
        )


def check_role(role: Role) -> None:
    """Refuse a role whose ports or variables no pod can have.

    Raises:
        AppDefError: a name, a port or a value is not valid.
    """
    where = f"Role {role.name}"
    for name, port in role.port_map.items():
        if not _PORT_NAME.fullmatch(name):
            raise AppDefError(
                f"{where}: a port is named {name!r}: names of ports have small letters, at least one, digits and "
                "- between them, 15 characters at most"
            )
        if not 0 < port < 65536:
            raise AppDefError(f"{where}: port {port} ({name}) is not valid: ports are 1 to 65535")
    for name, value in role.env.items():
        if not _VARIABLE.fullmatch(name):
            raise AppDefError(
                f"{where}: a variable is named {name!r}: names have letters, digits, _ - and ., no digit first"
            )
        if not isinstance(value, str):
            raise AppDefError(f"{where}: the variable {name} is {value!r}: values are texts, so quote it")
