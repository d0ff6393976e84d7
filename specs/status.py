"""The status of an app and its replicas, with the text and the JSON that `torchx status` prints."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import Any

from ..base.errors import TorchXTuiError
from ..base.validation import JsonObject

ALL = "all"
MISSING = "<MISSING>"
NONE = "<NONE>"
UNKNOWN = "<UNKNOWN>"
NA = "<<NA>>"
# A line ends before the first space after 80 characters, which begins the next one.
_LINE = re.compile(r".{80}[^ ]*|.+", re.DOTALL)
# torch.distributed.rpc wraps a worker's error as RuntimeError('On WorkerInfo(id=1, name=trainer:0:0):\n ... \n').
_RPC_START = re.compile(r"\w*\('On WorkerInfo\(.+\):\n")
_RPC_END = "')"
# c10 appends its own "Exception raised from ..." to the message that matters.
_EMBEDDED = re.compile(r"([^\n]+)\nException")


class AppState(int, Enum):
    """Where an app is between being described and its end. Numbers are TorchX's and part of its JSON.

    UNSUBMITTED, SUBMITTED, PENDING, RUNNING follow one another up to SUCCEEDED, FAILED or CANCELLED. A scheduler that
    preempts takes RUNNING back to PENDING. UNKNOWN is a backend that could not tell.
    """

    UNSUBMITTED = 0
    SUBMITTED = 1
    PENDING = 2
    RUNNING = 3
    SUCCEEDED = 4
    FAILED = 5
    CANCELLED = 6
    UNKNOWN = 7

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{self.name} ({self.value})"

    def __format__(self, format_spec: str) -> str:
        # Before Python 3.12 an int enum formats as its number.
        return format(self.name, format_spec)


ReplicaState = AppState
_TERMINAL = frozenset({AppState.SUCCEEDED, AppState.FAILED, AppState.CANCELLED})
_STARTED = _TERMINAL | {AppState.RUNNING}


def is_terminal(state: AppState) -> bool:
    """Return whether a state is final."""
    return state in _TERMINAL


def is_started(state: AppState) -> bool:
    """Return whether an app in the state has run or runs."""
    return state in _STARTED


def may_follow(before: AppState, after: AppState) -> bool:
    """Return whether a backend may report one state after another.

    A final state stays. A live one moves forward, back from RUNNING to PENDING (preemption, a restart), and to and
    from UNKNOWN.
    """
    if before == after or AppState.UNKNOWN in (before, after):
        return before not in _TERMINAL or before == after
    if before in _TERMINAL:
        return False
    return after > before or (before, after) == (AppState.RUNNING, AppState.PENDING)


class AppStatusError(TorchXTuiError):
    """An app did not succeed.

    Args:
        status: The status that it ended with.
        message: What to show.
    """

    def __init__(self, status: AppStatus, message: str = "") -> None:
        super().__init__(message or f"The job did not succeed: {status.state}")
        self.status = status


@dataclass
class ReplicaStatus:
    """How one replica is doing.

    Args:
        id: Its number in the role, from 0.
        state: Its state.
        role: The role's name.
        hostname: Where it runs.
        structured_error_msg: The JSON that it wrote about its failure, or `<NONE>`.
        hostaddr: Its address, the host name where None.
        exit_code: Its exit code; None if it runs, was killed, or the backend does not report it.
        signal: The signal that killed it, such as `SIGKILL`, or empty.
        reason: The reason for its state, as a sentence.
        pid: Its process, on its host.
        node: The machine that it runs on, where `hostname` is a name of its own.
        started_at: When it started, seconds since the epoch.
        finished_at: When it ended, seconds since the epoch.
        restarts: How often it was started again.
    """

    id: int
    state: ReplicaState
    role: str
    hostname: str
    structured_error_msg: str = NONE
    hostaddr: str | None = None
    exit_code: int | None = field(default=None, kw_only=True)
    signal: str = field(default="", kw_only=True)
    reason: str = field(default="", kw_only=True)
    pid: int | None = field(default=None, kw_only=True)
    node: str = field(default="", kw_only=True)
    started_at: float | None = field(default=None, kw_only=True)
    finished_at: float | None = field(default=None, kw_only=True)
    restarts: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if self.hostaddr is None:
            self.hostaddr = self.hostname

    def to_json(self) -> JsonObject:
        """Return TorchX's keys, and the additional ones that are known."""
        # TorchX lacks those that have to be named.
        left_out = {item.name for item in fields(self) if item.kw_only and getattr(self, item.name) == item.default}
        return {name: value for name, value in asdict(self).items() if name not in left_out}


@dataclass
class RoleStatus:
    """How the replicas of a role are doing.

    Args:
        role: The role's name.
        replicas: Their statuses.
    """

    role: str
    replicas: list[ReplicaStatus]

    def to_json(self) -> JsonObject:
        """Return the role as JSON; a replica's state is its number, as TorchX has it."""
        return {"role": self.role, "replicas": [replica.to_json() for replica in self.replicas]}


@dataclass(repr=False)
class AppStatus:
    """How an app is doing. Replicas are those of its latest start.

    Args:
        state: Its state.
        num_restarts: How often it was started again.
        msg: What the backend says about it.
        structured_error_msg: The JSON that its first failing replica wrote, or `<NONE>`.
        ui_url: Where else it can be looked at.
        roles: Its roles.
    """

    state: AppState
    num_restarts: int = 0
    msg: str = ""
    structured_error_msg: str = NONE
    ui_url: str | None = None
    roles: list[RoleStatus] = field(default_factory=list)

    def is_terminal(self) -> bool:
        """Return whether the app has ended."""
        return is_terminal(self.state)

    def raise_for_status(self) -> None:
        """Raise an error unless the app succeeded.

        Raises:
            AppStatusError: It did not, or not yet.
        """
        if self.state != AppState.SUCCEEDED:
            raise AppStatusError(self, f"The job did not succeed: {self.state}{f': {self.msg}' if self.msg else ''}")

    def to_json(self, filter_roles: Collection[str] | None = None) -> JsonObject:
        """Return the status as JSON.

        Args:
            filter_roles: The roles to leave in; all where None or empty.
        """
        return {
            "state": str(self.state),
            "num_restarts": self.num_restarts,
            "roles": [role.to_json() for role in self._chosen(filter_roles)],
            "msg": self.msg,
            "structured_error_msg": self.structured_error_msg,
            "url": self.ui_url,
        }

    def format(self, filter_roles: Collection[str] | None = None) -> str:
        """Format the status as `torchx status` prints it.

        Args:
            filter_roles: The roles to leave in; all where None or empty.
        """
        ordered = [sorted(role.replicas, key=lambda replica: replica.id) for role in self._chosen(filter_roles)]
        lines = [
            "AppStatus:",
            f"    State: {self.state}",
            f"    Num Restarts: {self.num_restarts}",
            f"    Roles: {''.join(format_replica(replica) for replicas in ordered for replica in replicas)}",
            f"    Msg: {self.msg}",
            f"    Structured Error Msg: {self.structured_error_msg}",
            f"    UI URL: {self.ui_url}",
            "    ",
        ]
        return "\n".join(lines)

    def _chosen(self, names: Collection[str] | None) -> list[RoleStatus]:
        return [role for role in self.roles if not names or role.role in names]

    def __repr__(self) -> str:
        import yaml

        error: Any = self.structured_error_msg
        if error != NONE:
            with suppress(ValueError):  # the job may write any text
                error = json.loads(error)
        tree = {
            "state": repr(self.state),
            "num_restarts": self.num_restarts,
            "msg": self.msg,
            "structured_error_msg": error,
            "ui_url": self.ui_url,
            "roles": [
                {"role": role.role, "replicas": [{**one.to_json(), "state": repr(one.state)} for one in role.replicas]}
                for role in self.roles
            ],
        }
        return yaml.safe_dump({"AppStatus": tree})


def format_replica(replica: ReplicaStatus) -> str:
    """Format one replica, after a line break; a star marks the first of a role."""
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
    """Parse the message, time and exit code of a replica's error file; None if it has no known form.

    There are two forms: torchelastic's error file, whose message, errorCode and extraInfo.timestamp are inside
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
        "    " + _wrap(_strip_wrappers(message), "    error_msg: "),
    ]
    return "\n".join(lines)


def _local_time(timestamp: Any) -> str:
    from datetime import datetime  # of an error alone

    try:
        return str(datetime.fromtimestamp(int(timestamp)))
    except (TypeError, ValueError, OverflowError, OSError):
        return "<N/A>"


def _strip_wrappers(message: str) -> str:
    """Return the part of a message that says what went wrong, without the wrappers around it."""
    start = _RPC_START.search(message)
    if start:
        # The header's own line break may be the one before the end.
        end = message.rfind("\n" + _RPC_END, start.end() - 1)
        if end >= 0:
            message = message[start.start() : end + 1 + len(_RPC_END)]
    embedded = _EMBEDDED.search(message)
    return embedded.group(1) if embedded else message


def _wrap(message: str, header: str) -> str:
    """Break a message at the first space after every 80 characters, with later lines aligned to the first."""
    lines = _LINE.findall(message) or [""]
    return ("\n" + " " * len(header)).join([header + lines[0], *lines[1:]])
