"""Local folders that travel with a job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.files import is_missing
from .errors import AppDefError

# Copies one project, a folder or a file, to a path. backends/workspace sets it, since this package touches no files.
CopyProject = Callable[[str | Path, Path], None]
_copy_project: CopyProject | None = None


def copy_projects_with(copy: CopyProject) -> None:
    """Set the function that `Workspace.merge_into` copies with.

    Args:
        copy: Called with a project's local path and the path that it shall have; both may be folders or files.
    """
    global _copy_project
    _copy_project = copy


@dataclass
class Workspace:
    """Local projects, and where in the job's working folder each goes.

    Args:
        projects: The folder for each local path; `""` is the working folder itself.
    """

    projects: dict[str, str]

    def __bool__(self) -> bool:
        return bool(self.projects)

    def __hash__(self) -> int:
        return hash(frozenset(self.projects.items()))

    def __str__(self) -> str:
        return ";".join(f"{local}:{remote}" if remote else local for local, remote in self.projects.items())

    def is_unmapped_single_project(self) -> bool:
        """Tell whether this is one project that becomes the working folder itself."""
        return list(self.projects.values()) == [""]

    def merge_into(self, outdir: str | Path, copy: CopyProject | None = None) -> None:
        """Copy every project to its place below a folder, over what is there.

        Args:
            outdir: The job's working folder, or what will become it.
            copy: Copies one project; what the backends set where None.

        Raises:
            AppDefError: A project is missing, or nothing was set that copies.
        """
        copier = copy or _copy_project
        if copier is None:
            raise AppDefError("workspace: nothing here copies projects. Import torchx_tui.backends.workspace first")
        for local, remote in self.projects.items():
            # Only the copy function can tell whether a URL exists.
            source = local if "://" in local else Path(local).expanduser()
            if isinstance(source, Path) and is_missing(source):
                raise AppDefError(f"workspace: {source} does not exist")
            copier(source, Path(outdir) / remote)

    @staticmethod
    def from_str(workspace: str | None) -> Workspace:
        """Parse a workspace: one path, or YAML that maps paths to folders.

        Args:
            workspace: `/home/me/project`, or `{/home/me/a: a, /home/me/b: }`; empty for no workspace.

        Raises:
            AppDefError: The text is neither.
        """
        if not workspace:
            return Workspace({})
        import yaml

        try:
            parsed: Any = yaml.safe_load(workspace)
        except yaml.YAMLError as error:
            raise AppDefError(f"workspace: {' '.join(str(error).split())}") from error
        if isinstance(parsed, dict):
            return Workspace({str(local): "" if remote is None else str(remote) for local, remote in parsed.items()})
        if isinstance(parsed, list):
            raise AppDefError(f"workspace: use one path, or a mapping of paths to folders, not {workspace}")
        return Workspace({workspace.strip() if not isinstance(parsed, str) else parsed: ""})
