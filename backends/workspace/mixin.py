"""What a scheduler adds to itself to take local folders along with a job."""

from __future__ import annotations

import abc
import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from ...specs import CfgVal, Role, SchedulerError, Workspace, runopts

T = TypeVar("T")


class WorkspaceMixin(abc.ABC, Generic[T]):
    """Builds images, or fills folders, from the workspaces of roles before their app is submitted."""

    def workspace_opts(self) -> runopts:
        """Return the run options that building a workspace adds to the scheduler's."""
        return runopts()

    def build_workspaces(self, roles: Sequence[Role], cfg: Mapping[str, CfgVal]) -> None:
        """Build each role's workspace and set its image to the result; equal ones are built once.

        Args:
            roles: the roles; those without a workspace are left alone.
            cfg: the resolved run options.

        Raises:
            SchedulerError: a workspace could not be built.
        """
        built: dict[tuple[str, Workspace], str] = {}
        for role in roles:
            if not role.workspace:
                continue
            key = (role.image, role.workspace)
            if key not in built:
                twin = copy.deepcopy(role)
                self.build_workspace_and_update_role(twin, role.workspace, cfg)
                built[key] = twin.image
            role.image = built[key]

    def build_workspace_and_update_role(self, role: Role, workspace: Workspace, cfg: Mapping[str, CfgVal]) -> None:
        """Build one workspace and set the role's image to the result.

        Several projects, or one that goes into a folder, are first merged into a temporary folder.

        Raises:
            SchedulerError: the workspace could not be built.
        """
        if workspace.is_unmapped_single_project():
            self.caching_build_workspace_and_update_role(role, next(iter(workspace.projects)), cfg)
            return
        import tempfile

        with tempfile.TemporaryDirectory(prefix="torchx-tui-workspace-") as folder:
            try:
                workspace.merge_into(Path(folder))
            except OSError as error:
                raise SchedulerError(f"the workspace {workspace} cannot be copied: {error}") from error
            self.caching_build_workspace_and_update_role(role, folder, cfg)

    def planned_builds(self, roles: Sequence[Role]) -> list[str]:
        """Return what `build_workspaces` would do, in words; nothing is built.

        Args:
            roles: the roles; those without a workspace are left alone.
        """
        return [
            f"role {role.name}: its workspace is built first, of {_words(role.workspace)} on top of {role.image}"
            for role in roles
            if role.workspace
        ]

    @abc.abstractmethod
    def caching_build_workspace_and_update_role(self, role: Role, workspace: str, cfg: Mapping[str, CfgVal]) -> None:
        """Build the folder ``workspace`` on top of ``role.image`` and set ``role.image`` to the result.

        What is already built is used again.
        """


def _words(workspace: Workspace) -> str:
    return ", ".join(f"{local} as {remote}" if remote else local for local, remote in workspace.projects.items())
