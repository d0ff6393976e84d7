"""Workspaces that are copied to a folder, for schedulers whose jobs share a file system."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from ...specs import CfgVal, Role, SchedulerError
from .copying import copy_project
from .mixin import WorkspaceMixin


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
        folder = Path(str(job_dir))
        try:
            folder.mkdir()
            copy_project(workspace, folder)
        except OSError as error:
            raise SchedulerError(f"the workspace {workspace} cannot be copied to job_dir {folder}: {error}") from error
        role.image = str(folder)


class TmpDirWorkspaceMixin(WorkspaceMixin[None]):
    """Copies a workspace into a temporary folder, which whoever made it has to remove."""

    def build_workspace_and_update_role(self, role: Role, workspace: str, cfg: Mapping[str, CfgVal]) -> None:
        """Copy a workspace and set ``role.image`` to the folder.

        Raises:
            SchedulerError: something cannot be copied.
        """
        folder = tempfile.mkdtemp(prefix="torchx_workspace")
        try:
            copy_project(workspace, Path(folder))
        except OSError as error:
            raise SchedulerError(f"the workspace {workspace} cannot be copied: {error}") from error
        role.image = folder
