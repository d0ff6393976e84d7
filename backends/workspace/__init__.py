"""Local folders that travel with a job."""

from __future__ import annotations

from .copying import copy_project
from .mixin import WorkspaceMixin, pin_workspace_images

__all__ = ["WorkspaceMixin", "copy_project", "pin_workspace_images"]
