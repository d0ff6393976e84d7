"""Choose the interpreter of a component without running anything."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..base.files import path_exists
from ..base.trust import ROOTS, program_fault

OLDEST = (3, 10)
"""The oldest Python that runs components."""
_OWN_SOURCE = "torchx-tui's own"
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
        return Interpreter(str(Path(configured).expanduser()), "[components] python of config.toml")
    if file is None:
        return own_interpreter()
    for folder, source in _candidates(file):
        program = folder / "bin" / "python"
        if os.path.realpath(folder) == os.path.realpath(sys.prefix):
            return own_interpreter()
        if os.access(program, os.X_OK):
            return Interpreter(str(program), source, is_found=source not in _VARIABLES)
    return own_interpreter()


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
