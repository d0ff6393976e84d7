"""How an app and its replicas are doing, with the text and the JSON that `torchx status` prints."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any

from .errors import AppStatusError
from .sentinels import NONE
from .states import AppState, ReplicaState, is_terminal

# Fields that TorchX does not have, at the values that say nothing: left out of JSON then, so that it is TorchX's.
_OURS: dict[str, Any] = {
    "exit_code": None,
    "signal": "",
    "reason": "",
    "pid": None,
    "node": "",
    "started_at": None,
    "finished_at": None,
    "restarts": 0,
}


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
        exit_code: What it exited with; None where it runs, was killed, or the backend does not say.
        signal: The signal that killed it, such as `SIGKILL`, or empty.
        reason: Why it is in its state, in words.
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

    def to_json(self) -> dict[str, Any]:
        """Return TorchX's keys, and of ours those that are known."""
        return {name: value for name, value in asdict(self).items() if name not in _OURS or value != _OURS[name]}


@dataclass
class RoleStatus:
    """How the replicas of a role are doing.

    Args:
        role: The role's name.
        replicas: Their statuses.
    """

    role: str
    replicas: list[ReplicaStatus]

    def to_json(self) -> dict[str, Any]:
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
        """Return when the app succeeded.

        Raises:
            AppStatusError: It did not, or not yet.
        """
        if self.state != AppState.SUCCEEDED:
            raise AppStatusError(self, f"The job did not succeed: {self.state}{f': {self.msg}' if self.msg else ''}")

    def to_json(self, filter_roles: Collection[str] | None = None) -> dict[str, Any]:
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
        """Return the status as `torchx status` prints it.

        Args:
            filter_roles: The roles to leave in; all where None or empty.
        """
        from .status_text import format_app

        return format_app(self, self._chosen(filter_roles))

    def _chosen(self, names: Collection[str] | None) -> list[RoleStatus]:
        return [role for role in self.roles if not names or role.role in names]

    def __repr__(self) -> str:
        import yaml

        error: Any = self.structured_error_msg
        if error != NONE:
            try:
                error = json.loads(error)
            except ValueError:
                pass  # a job writes what it likes
        tree = {
            "state": repr(self.state),
            "num_restarts": self.num_restarts,
            "msg": self.msg,
            "structured_error_msg": error,
            "ui_url": self.ui_url,
            "roles": [_plain(role) for role in self.roles],
        }
        return yaml.safe_dump({"AppStatus": tree})


def _plain(role: RoleStatus) -> dict[str, Any]:
    replicas = [{**replica.to_json(), "state": repr(replica.state)} for replica in role.replicas]
    return {"role": role.role, "replicas": replicas}
