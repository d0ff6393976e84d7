"""Which Python runs a job on this machine: the project's, not the one that torchx-tui runs in."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from ...guest.interpreter import Interpreter, choose_job_interpreters
from ...guest.settings import guest_settings
from ...specs.errors import AppDefError
from ...specs.roles import Role
from ..workspace.scripts import python_command, script_of

_PYTHONS = ("python", "python3")


@dataclass(frozen=True)
class JobPython:
    """The Python of a role.

    Args:
        chosen: The one that runs it.
        others: Those that are not used.
        entrypoint: The role's program.
    """

    chosen: Interpreter
    others: Sequence[Interpreter]
    entrypoint: str

    @property
    def program(self) -> str:
        """The program that is started: the interpreter for a bare `python`."""
        bare = self.entrypoint in _PYTHONS
        if bare and (self.chosen.is_of_project or shutil.which(self.entrypoint) is None):
            return self.chosen.path
        return self.entrypoint

    @property
    def folders(self) -> list[str]:
        """The folder before PATH, as in an activated environment: for `torchrun` and what a shell starts."""
        return [str(PurePath(self.chosen.path).parent)] if self.chosen.is_of_project else []

    @property
    def sentence(self) -> str:
        """Which one runs the role and which do not."""
        others = ", ".join(map(str, self.others[:2]))
        return f"it ran with {self.chosen}{f', not with {others}' if others else ''}"


def job_python(role: Role, folder: str | None) -> JobPython | None:
    """Choose the Python of a role that runs a bare `python`, `python3` or `torchrun`, also in a shell; else None.

    Args:
        role: The role.
        folder: The folder that it starts in.

    Raises:
        AppDefError: The interpreter belongs to another user.
    """
    command = [role.entrypoint, *role.args]
    words = python_command(command)
    if not words or words[0] not in (*_PYTHONS, "torchrun") or "PATH" in role.env:
        return None
    script = Path(folder or ".", script_of(command) or "script.py")
    found = choose_job_interpreters(script, guest_settings().python)
    if not found:
        return None
    chosen, *others = found
    if fault := chosen.fault():
        raise AppDefError(f"role {role.name}: {fault}")
    return JobPython(chosen, others, role.entrypoint)
