"""AppDef and Role: what to run, how many times, with what."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from string import Template
from typing import Any, ClassVar, Generic, TypeVar

from ..base.errors import join_names
from .errors import UnknownRoleError
from .mounts import Mount
from .resources import Resource, null_resource
from .status import MISSING
from .workspace import Workspace

T = TypeVar("T")


class RetryPolicy(str, Enum):
    """The part of an app that is restarted when a replica fails, is preempted or evicted.

    REPLICA restarts that replica, APPLICATION the whole app, ROLE the replicas of that role. Every scheduler supports
    APPLICATION.
    """

    REPLICA = "REPLICA"
    APPLICATION = "APPLICATION"
    ROLE = "ROLE"


@dataclass
class AppDef:
    """An app: one or more roles that run together.

    `app["trainer"]` is the role of that name, `"trainer" in app` whether there is one.

    Args:
        name: The app's name.
        roles: The roles, in order.
        metadata: Settings for the scheduler about the whole app.
    """

    name: str
    roles: list[Role] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)

    # Without this, `for role in app` would try app[0], app[1] and fail with a message about role names.
    __iter__: ClassVar[None] = None

    def get_role(self, name: str) -> Role:
        """Return the first role of a name.

        Raises:
            UnknownRoleError: There is none; the message lists the app's roles.
        """
        for role in self.roles:
            if role.name == name:
                return role
        names = join_names(role.name for role in self.roles)
        raise UnknownRoleError(f"The app {self.name} has no role {name}. Its roles: {names}")

    def __getitem__(self, name: str) -> Role:
        return self.get_role(name)

    def __contains__(self, name: object) -> bool:
        return any(role.name == name for role in self.roles)


@dataclass
class Role:
    """A set of equal replicas with one duty in an app, such as trainer or reader.

    Args:
        name: The role's name.
        image: What the replicas run in: a container image, or a folder on this machine.
        base_image: Not used; kept for components written for early TorchX.
        entrypoint: The program to run. Macros are substituted.
        args: Its arguments. Macros are substituted.
        env: Environment variables. Macros are substituted in the values.
        num_replicas: How many replicas.
        max_retries: How often it is restarted after a failure.
        retry_policy: The part of the app that is restarted.
        resource: What each replica needs.
        port_map: Ports by their purpose, such as `{"tensorboard": 6006}`.
        metadata: Further settings for a scheduler, by keys such as `kubernetes`. Macros are substituted.
        min_replicas: The fewest replicas that an elastic job runs with; None where it is not elastic.
        mounts: Files, volumes and devices of the host that replicas can use.
        workspace: Local folders that travel with the job.
        overrides: Attributes whose values are made when they are first read: a callable or coroutine by name.
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
            return resolve_override(overrides, name)
        return object.__getattribute__(self, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Role:
        # Overrides may hold coroutines, which cannot be copied and are awaited once: copies share them.
        state = dict(self.__dict__)
        overrides = state.pop("overrides", {})
        duplicate = object.__new__(type(self))
        memo[id(self)] = duplicate
        duplicate.__dict__.update(copy.deepcopy(state, memo), overrides=overrides or {})
        return duplicate

    def pre_proc(self, scheduler: str, dryrun_info: AppDryRunInfo[Any]) -> AppDryRunInfo[Any]:
        """Change the scheduler's request; called for each role in order at each dry run.

        Args:
            scheduler: The scheduler's name.
            dryrun_info: The request so far.
        """
        return dryrun_info


class AppDryRunInfo(Generic[T]):
    """A scheduler's own request for an app. `str()` of it is for people to read.

    Args:
        request: The request that is sent to the scheduler.
        fmt: Makes the readable text of the request.
    """

    def __init__(self, request: T, fmt: Callable[[T], str]) -> None:
        self.request = request
        self.app: AppDef | None = None
        self.cfg: Mapping[str, Any] = {}
        self.notes: list[str] = []
        """Notes on what the request does not say, such as an image that is built first; comments in its text."""
        self.interpreter = ""
        """The Python of a job on this machine, and its source, such as `/p/.venv/bin/python (/p/.venv)`; else empty."""
        self._fmt = fmt
        self._scheduler: str | None = None

    # These names are set and read by schedulers written for earlier TorchX.
    _app = property(lambda self: self.app, lambda self, app: setattr(self, "app", app))
    _cfg = property(lambda self: self.cfg, lambda self, cfg: setattr(self, "cfg", cfg))

    def __repr__(self) -> str:
        return "".join(f"# {note}\n" for note in self.notes) + self._fmt(self.request)


def resolve_override(overrides: dict[str, Any], name: str) -> Any:
    """Return the value that replaces an attribute; make it at the first call, for all copies of the role."""
    maker = overrides[name]
    value = _await_in_thread(maker) if isinstance(maker, Awaitable) else maker()
    overrides[name] = lambda: value
    return value


def _await_in_thread(awaitable: Awaitable[Any]) -> Any:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def wait() -> Any:
        return await awaitable

    # The caller's thread may run an event loop, in which asyncio.run is refused.
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, wait()).result()


class macros:  # noqa: N801 - TorchX's name
    """The placeholders: put them into a role's entrypoint, args, values of env, or metadata.

    `img_root` is the folder that the image was unpacked to; `app_id` the app's id; `replica_id` the replica's number,
    kept when it is started again; `rank0_env` the *name* of the environment variable that holds the first replica's
    host, to be read by a shell or the program. `$$` becomes `$`. Other texts that look like placeholders are unchanged.
    """

    img_root = "${img_root}"
    base_img_root = "${base_img_root}"
    app_id = "${app_id}"
    replica_id = "${replica_id}"
    rank0_env = "${rank0_env}"

    @dataclass
    class Values:
        """The values of the placeholders in one replica.

        Args:
            img_root: The image's folder, empty in a container.
            app_id: The app's id.
            replica_id: The replica's number, from "0".
            base_img_root: Not used.
            rank0_env: The name of the variable with the first replica's host.
        """

        img_root: str
        app_id: str
        replica_id: str
        base_img_root: str = "DEPRECATED"
        rank0_env: str = ""

        def apply(self, role: Role) -> Role:
            """Return a copy of a role with its placeholders replaced and its overrides resolved."""
            duplicate = copy.deepcopy(role)
            resolved = {name: getattr(role, name) for name in role.overrides}
            duplicate.overrides = {}
            for name, value in resolved.items():
                setattr(duplicate, name, copy.deepcopy(value))
            duplicate.entrypoint = self.substitute(duplicate.entrypoint)
            duplicate.args = [self.substitute(arg) for arg in duplicate.args]
            duplicate.env = {name: self.substitute(value) for name, value in duplicate.env.items()}
            duplicate.metadata = self._nested(duplicate.metadata)
            return duplicate

        def substitute(self, arg: str) -> str:
            """Return a text with its placeholders replaced."""
            return Template(arg).safe_substitute(asdict(self))

        def to_dict(self) -> dict[str, str]:
            """Return the values by placeholder."""
            return asdict(self)

        def _nested(self, value: Any) -> Any:
            if isinstance(value, str):
                return self.substitute(value)
            if isinstance(value, dict):
                return {key: self._nested(inner) for key, inner in value.items()}
            if type(value) in (list, tuple):
                return type(value)(self._nested(inner) for inner in value)
            return value
