"""What a scheduler adds to itself to take local folders along with a job."""

from __future__ import annotations

import abc
import copy
import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from ...specs.errors import SchedulerError
from ...specs.roles import Role
from ...specs.run_options import CfgVal, runopts
from ...specs.workspace import Workspace
from .copying import copy_project

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
        cache: dict[object, object] = {}
        for role in roles:
            if role.workspace:
                self.caching_build_workspace_and_update_role(role, cfg, cache)

    def caching_build_workspace_and_update_role(
        self, role: Role, cfg: Mapping[str, CfgVal], build_cache: dict[object, object]
    ) -> None:
        """Build a role's workspace and set the role's image to the result.

        Several projects, or one that goes into a folder, are first merged into a temporary folder. An equal workspace
        on an equal image is not built again where the build changed nothing of its role but the image.

        Args:
            role: the role; it is changed.
            cfg: the resolved run options.
            build_cache: what was built already of one app; for builders to keep what they like in.

        Raises:
            SchedulerError: the workspace could not be built.
        """
        workspace = role.workspace
        if not workspace:
            return
        key = (role.image, workspace)
        built = build_cache.get(key)
        if isinstance(built, str):
            role.image = built
            return
        before = copy.deepcopy(role)
        if workspace.is_unmapped_single_project():
            self.build_workspace_and_update_role(role, next(iter(workspace.projects)), cfg)
        else:
            self._build_merged(role, workspace, cfg)
        if dataclasses.replace(before, image=role.image) == role:
            build_cache[key] = role.image

    def _build_merged(self, role: Role, workspace: Workspace, cfg: Mapping[str, CfgVal]) -> None:
        with tempfile.TemporaryDirectory(prefix="torchx-tui-workspace-") as folder:
            try:
                workspace.merge_into(Path(folder), copy_project)
            except OSError as error:
                raise SchedulerError(f"the workspace {workspace} cannot be copied: {error}") from error
            self.build_workspace_and_update_role(role, folder, cfg)

    def build_workspace_and_update_role(self, role: Role, workspace: str, cfg: Mapping[str, CfgVal]) -> None:
        """Build a folder, or a URL that fsspec can open, on top of ``role.image``; set that to the result.

        Subclasses provide this method, or `caching_build_workspace_and_update_role`.

        Raises:
            SchedulerError: the workspace could not be built.
        """
        raise NotImplementedError(f"{type(self).__name__} builds no workspace: write build_workspace_and_update_role")

    def planned_builds(self, roles: Sequence[Role]) -> list[str]:
        """Describe what `build_workspaces` would do; nothing is built.

        Args:
            roles: the roles; those without a workspace are left alone.
        """
        return [
            f"role {role.name}: its workspace is built first, of {_folders(role.workspace)} on top of {role.image}"
            for role in roles
            if role.workspace
        ]


def _folders(workspace: Workspace) -> str:
    return ", ".join(f"{local} as {remote}" if remote else local for local, remote in workspace.projects.items())


class DirWorkspaceMixin(WorkspaceMixin[None]):
    """Copies a workspace into the folder that the run option ``job_dir`` names; without it, nothing is copied."""

    def build_workspace_and_update_role(self, role: Role, workspace: str, cfg: Mapping[str, CfgVal]) -> None:
        """Copy a workspace and set ``role.image`` to the folder, which may not be there yet.

        Raises:
            SchedulerError: the folder is there already, or something cannot be copied.
        """
        job_dir = cfg.get("job_dir")
        if job_dir is None:
            return
        try:
            folder = Path(str(job_dir)).expanduser()
            folder.mkdir()
            copy_project(workspace, folder)
        except (OSError, RuntimeError) as error:
            raise SchedulerError(f"the workspace {workspace} cannot be copied to job_dir {job_dir}: {error}") from error
        role.image = str(folder)
