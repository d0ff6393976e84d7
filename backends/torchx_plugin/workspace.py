"""A scheduler of TorchX's that takes local folders along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...specs import CfgVal, Role
from ..workspace import WorkspaceMixin
from .calls import LAUNCH_SECONDS
from .from_torchx import our_role
from .options import given_options
from .scheduler import TorchXScheduler
from .to_torchx import ToTorchX


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
