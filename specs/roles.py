"""AppDef and Role: what to run, how many times, with what."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from .dryrun import AppDryRunInfo
from .errors import UnknownRoleError, one_of
from .mounts import Mount
from .overrides import overridden
from .resources import Resource, null_resource
from .sentinels import MISSING
from .workspace import Workspace


class RetryPolicy(str, Enum):
    """What is started again when a replica fails, is preempted or evicted.

    REPLICA starts that replica again, APPLICATION the whole app, ROLE the replicas of that role. Every scheduler
    knows APPLICATION; which of the others it knows, its documentation says.
    """

    REPLICA = "REPLICA"
    APPLICATION = "APPLICATION"
    ROLE = "ROLE"


@dataclass
class Role:
    """A set of equal replicas with one duty in an app, such as trainer or reader.

    Args:
        name: The role's name.
        image: What the replicas run in: a container image, or a folder on this machine.
        base_image: Not used any more; kept for components written for early TorchX.
        entrypoint: The program to run. Macros are substituted.
        args: Its arguments. Macros are substituted.
        env: Environment variables. Macros are substituted in the values.
        num_replicas: How many replicas.
        max_retries: How often a failure is answered by a new start.
        retry_policy: What is started again.
        resource: What each replica needs.
        port_map: Ports by their purpose, such as `{"tensorboard": 6006}`.
        metadata: What a scheduler is told beyond this, by keys such as `kubernetes`. Macros are substituted.
        min_replicas: The fewest replicas that an elastic job runs with; None where it is not elastic.
        mounts: What the replicas see of the host.
        workspace: Local folders that travel with the job.
        overrides: Attributes whose values are made when they are first read: a callable or awaitable by name.
    """

    name: str
    image: str
    base_image: str | None = None
    entrypoint: str = MISSING
    args: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    num_replicas: int = 1
    max_retries: int = 0
    retry_policy: RetryPolicy = RetryPolicy.APPLICATION
    resource: Resource = field(default_factory=null_resource)
    port_map: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    min_replicas: int | None = None
    mounts: list[Mount] = field(default_factory=list)
    workspace: Workspace | None = None
    overrides: dict[str, Any] = field(default_factory=dict)

    def __getattribute__(self, name: str) -> Any:
        overrides = object.__getattribute__(self, "__dict__").get("overrides")
        if overrides and name in overrides:
            return overridden(overrides, name)
        return object.__getattribute__(self, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Role:
        # Overrides may hold coroutines, which cannot be copied and are awaited once: copies share them.
        state = dict(self.__dict__)
        overrides = state.pop("overrides", {})
        twin = object.__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(copy.deepcopy(state, memo), overrides=overrides or {})
        return twin

    def pre_proc(self, scheduler: str, dryrun_info: AppDryRunInfo[Any]) -> AppDryRunInfo[Any]:
        """Return the request changed as this role needs it; called for each role in order at each dry run.

        Args:
            scheduler: The scheduler's name.
            dryrun_info: The request so far.
        """
        return dryrun_info


@dataclass
class AppDef:
    """An app: one or more roles that run together.

    `app["trainer"]` is the role of that name, `"trainer" in app` whether there is one.

    Args:
        name: The app's name.
        roles: The roles, in order.
        metadata: What a scheduler is told about the app as a whole.
    """

    name: str
    roles: list[Role] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)

    # Without this, `for role in app` would try app[0], app[1] and fail with words about role names.
    __iter__: ClassVar[None] = None

    def get_role(self, name: str) -> Role:
        """Return the first role of a name.

        Raises:
            UnknownRoleError: There is none; the message lists the app's roles.
        """
        for role in self.roles:
            if role.name == name:
                return role
        names = one_of(role.name for role in self.roles)
        raise UnknownRoleError(f"The app {self.name} has no role {name}. Its roles: {names}")

    def __getitem__(self, name: str) -> Role:
        return self.get_role(name)

    def __contains__(self, name: object) -> bool:
        return any(role.name == name for role in self.roles)
