"""Local folders that travel with a job. Importing this gives `Workspace.merge_into` the means to copy."""

from __future__ import annotations

from ...specs.workspace import copy_projects_with
from .copying import copy_project
from .mixin import WorkspaceMixin, pin_workspace_images

__all__ = ["WorkspaceMixin", "copy_project", "pin_workspace_images"]

copy_projects_with(copy_project)
