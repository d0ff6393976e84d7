"""Choose the interpreter of a component without running anything."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..base.files import path_exists
from ..base.trust import ROOTS, program_fault

OLDEST = (3, 10)
"""The oldest Python that runs components."""
_OWN_SOURCE, _CONFIG, _PATH = "torchx-tui's own", "[components] python of config.toml", "PATH"
_ENVIRONMENTS = (".venv", "venv")
_VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX")


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter.

    Args:
        path: The program.
        source: The setting, variable or folder that it comes from.
        is_found: Whether it was found beside a component, not named by the user.
    """

    path: str
    source: str
    is_found: bool = False

    def __str__(self) -> str:
        return f"{self.path} ({self.source})"

    @property
    def is_of_project(self) -> bool:
        """Whether it is more than the first one on PATH."""
        return self.source != _PATH

    def fault(self) -> str:
        """Return why it must not be run and what to do, or an empty text. One that the user named is not checked."""
        fault = program_fault(Path(self.path)) if self.is_found else ""
        way = "activate an environment, or set python of [components] in config.toml"
        return f"{self.path} is not run, because {fault}: {way}" if fault else ""


def own_interpreter() -> Interpreter:
    """Return the interpreter that runs torchx-tui."""
    return Interpreter(sys.executable, _OWN_SOURCE)


def choose_interpreter(file: Path | None, configured: str = "") -> Interpreter:
    """Choose the interpreter for a component.

    Args:
        file: The component's file; None for a component of an installed package.
        configured: The program in config; empty for none.

    Returns:
        The first of: config, `VIRTUAL_ENV` or `CONDA_PREFIX`, a `.venv` or `venv` beside the file or above it up to the
        root of its repository, torchx-tui's own. Call `Interpreter.fault` before running it.
    """
    if configured:
        return Interpreter(str(Path(configured).expanduser()), _CONFIG)
    if file is None:
        return own_interpreter()
    chosen = next(_of_project(file), own_interpreter())
    is_own = os.path.realpath(Path(chosen.path).parent.parent) == os.path.realpath(sys.prefix)
    return own_interpreter() if is_own else chosen


def choose_job_interpreters(file: Path, configured: str = "") -> list[Interpreter]:
    """List the interpreters for a job on this machine: the first one runs it, the others are not used.

    Args:
        file: The job's script, or any file in the folder that it starts in.
        configured: The program in config; empty for none.

    Returns:
        As for `choose_interpreter`, then the `python3` of PATH; torchx-tui's own only where it is one of them.
    """
    found = [Interpreter(str(Path(configured).expanduser()), _CONFIG)] if configured else []
    found += _of_project(file)
    if program := shutil.which("python3") or shutil.which("python"):
        found.append(Interpreter(program, _PATH))
    by_folder: dict[str, Interpreter] = {}
    for one in found:
        by_folder.setdefault(os.path.realpath(Path(one.path).parent), one)
    return list(by_folder.values())


def _of_project(file: Path) -> Iterator[Interpreter]:
    for folder, source in _candidates(file):
        program = folder / "bin" / "python"
        if os.access(program, os.X_OK):
            yield Interpreter(str(program), source, is_found=source not in _VARIABLES)


def _candidates(file: Path) -> Iterator[tuple[Path, str]]:
    for variable in _VARIABLES:
        if os.environ.get(variable):
            yield Path(os.environ[variable]), variable
    for folder in Path(os.path.realpath(file)).parents:
        for name in _ENVIRONMENTS:
            if path_exists(folder / name / "bin" / "python"):
                yield folder / name, str(folder / name)
        if any(path_exists(folder / root) for root in ROOTS):
            return
