"""The text of an app's status, as `torchx status` prints it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from .sentinels import NONE
from .states import ReplicaState

if TYPE_CHECKING:
    from .status import AppStatus, ReplicaStatus, RoleStatus

_WIDTH = 80
# torch.distributed.rpc wraps a worker's error as RuntimeError('On WorkerInfo(id=1, name=trainer:0:0):\n ... \n').
_RPC_START = re.compile(r"\w*\('On WorkerInfo\(.+\):\n")
_RPC_END = "')"
# c10 appends its own "Exception raised from ..." to the message that matters.
_EMBEDDED = re.compile(r"([^\n]+)\nException")


def format_app(status: AppStatus, roles: Iterable[RoleStatus]) -> str:
    """Return the text of a status.

    Args:
        status: The app's status.
        roles: Those of its roles that are shown.
    """
    replicas = [replica for role in roles for replica in sorted(role.replicas, key=lambda replica: replica.id)]
    lines = [
        "AppStatus:",
        f"    State: {status.state}",
        f"    Num Restarts: {status.num_restarts}",
        f"    Roles: {''.join(map(format_replica, replicas))}",
        f"    Msg: {status.msg}",
        f"    Structured Error Msg: {status.structured_error_msg}",
        f"    UI URL: {status.ui_url}",
        "    ",
    ]
    return "\n".join(lines)


def format_replica(replica: ReplicaStatus) -> str:
    """Return the lines of one replica, begun by a line break; a star marks the first of a role."""
    if replica.structured_error_msg != NONE:
        error = read_error(replica.structured_error_msg)
        if error is None:
            return replica.structured_error_msg
        text = _format_error(replica, *error)
    else:
        ended_badly = replica.state in (ReplicaState.CANCELLED, ReplicaState.FAILED)
        text = f"{replica.state}{' (no reply file)' if ended_badly else ''}"
    return f"\n {'*' if replica.id == 0 else ' '}{replica.role}[{replica.id}]:{text}"


def read_error(structured_error_msg: str) -> tuple[str, Any, Any] | None:
    """Return message, time and exit code of what a replica wrote about its failure, or None where it is neither form.

    Two forms are known: torchelastic's error file, whose message, errorCode and extraInfo.timestamp are inside
    "message", and the flat one that schedulers write.

    Args:
        structured_error_msg: The JSON text.
    """
    try:
        data = json.loads(structured_error_msg)
    except ValueError:
        return None
    message = data.get("message") if isinstance(data, dict) else None
    if isinstance(message, str):
        return message, data.get("timestamp"), data.get("errorCode")
    if isinstance(message, dict) and isinstance(message.get("message"), str):
        extra = message.get("extraInfo")
        timestamp = extra.get("timestamp") if isinstance(extra, dict) else None
        return message["message"], timestamp, message.get("errorCode")
    return None


def _format_error(replica: ReplicaStatus, message: str, timestamp: Any, exit_code: Any) -> str:
    lines = [
        f"{replica.state} (exitcode: {exit_code or '<N/A>'})",
        f"        timestamp: {_local_time(timestamp)}",
        f"        hostname: {replica.hostname}",
        "    " + _wrapped(_essence(message), "    error_msg: "),
    ]
    return "\n".join(lines)


def _local_time(timestamp: Any) -> str:
    try:
        return str(datetime.fromtimestamp(int(timestamp)))
    except (TypeError, ValueError, OverflowError, OSError):
        return "<N/A>"


def _essence(message: str) -> str:
    """Return the part of a message that says what went wrong, without the wrappings around it."""
    start = _RPC_START.search(message)
    if start:
        # The header's own line break may be the one before the end.
        end = message.rfind("\n" + _RPC_END, start.end() - 1)
        if end >= 0:
            message = message[start.start() : end + 1 + len(_RPC_END)]
    embedded = _EMBEDDED.search(message)
    return embedded.group(1) if embedded else message


def _wrapped(message: str, header: str) -> str:
    """Return the message broken at the first space after every 80 characters, later lines under the first."""
    lines: list[str] = []
    start = 0
    while True:
        space = message.find(" ", start + _WIDTH)
        lines.append(message[start:] if space < 0 else message[start:space])
        if space < 0:
            break
        start = space
    return ("\n" + " " * len(header)).join([header + lines[0], *lines[1:]])
