"""Makes a scheduler of a plugin's: the one place where a plugin, and with it TorchX, is imported."""

from __future__ import annotations

import functools
import importlib
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ...specs import BackendUnavailableError, CfgVal, Role, SchedulerError, TorchXTuiError
from ...specs.calls import AwaitedCall
from ..api import Scheduler
from ..workspace import WorkspaceMixin
from .calls import LAUNCH_SECONDS, PluginCalls
from .convert import ToTorchX, our_role
from .found import FoundScheduler
from .scheduler import TorchXScheduler, given_options

# How long a plugin may take to be imported and made (s); doctor waits longer.
LOAD_SECONDS = 8.0


class TorchXWorkspaceScheduler(WorkspaceMixin[Any], TorchXScheduler):
    """Lets the plugin build the workspaces of roles; its run options already have those of its workspaces."""

    def build_workspaces(self, roles: Sequence[Role], cfg: Mapping[str, CfgVal]) -> None:
        """Let the plugin build each role's workspace, and take over what it made of the role."""
        given = given_options(dict(cfg), self.run_opts())

        def build() -> list[Any]:
            turned = ToTorchX()
            theirs = [turned.role(role) for role in roles]
            self._theirs.build_workspaces(theirs, given)
            return theirs

        for role, built in zip(roles, self._ask("build a workspace", build, LAUNCH_SECONDS), strict=True):
            made = our_role(built)
            # What a builder may change: the image, and what the replicas need to find the files.
            role.image, role.env, role.mounts, role.metadata = made.image, made.env, made.mounts, made.metadata

    def caching_build_workspace_and_update_role(
        self, role: Role, cfg: Mapping[str, CfgVal], build_cache: dict[object, object]
    ) -> None:
        """Let the plugin build one role's workspace."""
        self.build_workspaces([role], cfg)


@functools.cache
def loader_of(found: FoundScheduler) -> PluginLoader:
    """Return the loader of a plugin, the same one at each call."""
    return PluginLoader(found)


class PluginLoader:
    """Makes the schedulers of one plugin; one that hangs while it is made is waited for once, and not begun again.

    Args:
        found: the plugin.
    """

    def __init__(self, found: FoundScheduler) -> None:
        self._found = found
        self._hanging: AwaitedCall[Any] | None = None
        self._lock = threading.Lock()

    def make(self, session_name: str, **params: Any) -> Scheduler[Any]:
        """Return a new scheduler of our contract.

        Args:
            session_name: the session part of handles.
            params: keyword arguments of the plugin's factory.

        Raises:
            BackendUnavailableError: the plugin cannot be imported, raises, hangs, or gives something else.
        """
        calls = PluginCalls(self._found.name, self._found.origin)
        call = self._begin(calls, session_name, params)
        try:
            theirs = call.result()
        except BackendUnavailableError:
            raise
        except TorchXTuiError as error:
            raise BackendUnavailableError(f"{error} ({self._found.origin}): mend or uninstall it") from error
        if isinstance(theirs, Scheduler):
            return theirs  # of our contract, in TorchX's group
        return _behind_ours(self._found, calls, session_name, theirs)

    def _begin(self, calls: PluginCalls, session_name: str, params: Mapping[str, Any]) -> AwaitedCall[Any]:
        """Return the call that makes it, which has come back."""
        with self._lock:
            hanging, self._hanging = self._hanging, None
            if hanging is not None and not hanging.wait(0):
                self._hanging = hanging
                raise self._hangs("still hangs")
            call = hanging or AwaitedCall(
                lambda: calls.run("be loaded", lambda: _made(self._found, session_name, params)), f"load-{calls.name}"
            )
            if not call.wait(LOAD_SECONDS):
                self._hanging = call
                raise self._hangs(f"was not loaded within {LOAD_SECONDS:g} s")
            return call

    def _hangs(self, how: str) -> BackendUnavailableError:
        return BackendUnavailableError(
            f"{self._found.name} {how}: importing {self._found.origin}, or making its scheduler, does not end: "
            "mend or uninstall it"
        )


def _made(found: FoundScheduler, session_name: str, params: Mapping[str, Any]) -> Any:
    """Import a plugin and return what its factory gives."""
    module = importlib.import_module(found.mended_by or found.module)
    factory: Any = functools.reduce(getattr, filter(None, found.attribute.split(".")), module)
    made = factory(session_name, **{**_from_environment(), **params})
    if isinstance(made, Scheduler):
        return made
    from torchx.schedulers.api import Scheduler as TheirScheduler

    if not isinstance(made, TheirScheduler):
        raise SchedulerError(
            f"{found.name} could not be loaded: it made a {type(made).__name__}, which is no scheduler"
        )
    return made


def _from_environment() -> dict[str, Any]:
    """Return the arguments that TorchX's Runner gives every factory: each variable TORCHX_*, its name in lower case."""
    return {name.lower(): value for name, value in os.environ.items() if name.startswith("TORCHX_")}


def _behind_ours(found: FoundScheduler, calls: PluginCalls, session_name: str, theirs: Any) -> Scheduler[Any]:
    from torchx.workspace import WorkspaceMixin as TheirWorkspaceMixin

    from .scheduler import TorchXScheduler

    kind = TorchXWorkspaceScheduler if isinstance(theirs, TheirWorkspaceMixin) else TorchXScheduler
    return kind(found, calls, session_name, theirs)
