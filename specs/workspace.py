"""Local folders that travel with a job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ..base.bounded_yaml import load_yaml
from ..base.files import is_missing
from .errors import AppDefError


@dataclass
class Workspace:
    """Local projects, and the place of each in the job's working folder.

    Args:
        projects: The place of each local path; `""` is the working folder itself.
    """

    projects: dict[str, str]

    def __bool__(self) -> bool:
        return bool(self.projects)

    def __hash__(self) -> int:
        return hash(frozenset(self.projects.items()))

    def __str__(self) -> str:
        return ";".join(f"{local}:{remote}" if remote else local for local, remote in self.projects.items())

    def is_unmapped_single_project(self) -> bool:
        """Return whether this is one project that becomes the working folder itself."""
        return list(self.projects.values()) == [""]

    def merge_into(self, outdir: str | Path, copy: Callable[[str | Path, Path], None]) -> None:
        """Copy every project to its place below a folder, over existing files.

        Args:
            outdir: The job's working folder, or a folder that becomes it.
            copy: Copies a file or folder to a path, such as `torchx_tui.backends.workspace.copy_project`.

        Raises:
            AppDefError: A project is missing, or its place is not inside the working folder.
        """
        self._check_places()
        for local, remote in self.projects.items():
            # Only the copy function can tell whether a URL exists.
            source = local if "://" in local else Path(local).expanduser()
            if isinstance(source, Path) and is_missing(source):
                raise AppDefError(f"workspace: {source} does not exist")
            copy(source, Path(outdir) / remote)

    def _check_places(self) -> None:
        for local, remote in self.projects.items():
            if remote.startswith("/") or ".." in PurePosixPath(remote).parts:
                raise AppDefError(
                    f"workspace: {remote}, the place of {local}, is outside the job's folder: "
                    "use a relative path without `..`"
                )

    @staticmethod
    def from_str(workspace: str | None) -> Workspace:
        """Parse a workspace: one path, or YAML that maps paths to folders.

        Args:
            workspace: `/home/me/project`, or `{/home/me/a: a, /home/me/b: }`; empty for no workspace.

        Raises:
            AppDefError: The text is neither, or a place is not inside the working folder.
        """
        if not workspace:
            return Workspace({})
        import yaml

        try:
            parsed: Any = load_yaml(workspace)
        except yaml.YAMLError as error:
            raise AppDefError(f"workspace: {' '.join(str(error).split())}") from error
        if isinstance(parsed, dict):
            for local, remote in parsed.items():
                # The text of nested aliases may have billions of letters.
                if isinstance(remote, (list, dict, set)):
                    raise AppDefError(f"workspace: {local} needs one folder, not a {type(remote).__name__}")
            made = Workspace({str(local): "" if remote is None else str(remote) for local, remote in parsed.items()})
            made._check_places()
            return made
        if isinstance(parsed, list):
            raise AppDefError(f"workspace: use one path, or a mapping of paths to folders, not {workspace}")
        return Workspace({workspace.strip() if not isinstance(parsed, str) else parsed: ""})
