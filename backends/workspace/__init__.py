"""Local folders that travel with a job."""

from __future__ import annotations

from .copying import copy_project
from .mixin import WorkspaceMixin

__all__ = ["WorkspaceMixin", "copy_project"]
