"""Which interpreter runs a component: that of its project, found without running anything."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..specs.files import path_exists

_OWN_SOURCE = "torchx-tui's own"
_ENVIRONMENTS = (".venv", "venv")
# A repository's root has one of these; no further up is looked.
_ROOTS = (".git", ".hg")


@dataclass(frozen=True)
class Interpreter:
    """A Python interpreter.

    Args:
        path: The program.
        source: Who says so: a setting, a variable, a folder.
    """

    path: str
    source: str

    def __str__(self) -> str:
        return f"{self.path} ({self.source})"


def own_interpreter() -> Interpreter:
    """Return the interpreter that runs torchx-tui."""
    return Interpreter(sys.executable, _OWN_SOURCE)


def choose_interpreter(file: Path | None, configured: str = "") -> Interpreter:
    """Choose the interpreter for a component.

    Args:
        file: The component's file; None for a component of an installed package.
        configured: The program that config names; empty for none.

    Returns:
        That of config, else of `VIRTUAL_ENV` or `CONDA_PREFIX`, else of a `.venv` or `venv` beside the file or above
        it up to the root of its repository, else ours.
    """
    if configured:
        return Interpreter(str(Path(configured).expanduser()), "[components] python of config.toml")
    if file is None:
        return own_interpreter()
    for folder, source in _candidates(file):
        program = folder / "bin" / "python"
        if folder.resolve() == Path(sys.prefix).resolve():
            return own_interpreter()
        if os.access(program, os.X_OK) and _is_trusted(folder):
            return Interpreter(str(program), source)
    return own_interpreter()


def _candidates(file: Path) -> Iterator[tuple[Path, str]]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]), variable
    for folder in file.resolve().parents:
        for name in _ENVIRONMENTS:
            if path_exists(folder / name / "bin" / "python"):
                yield folder / name, str(folder / name)
        if any(path_exists(folder / root) for root in _ROOTS):
            return


def _is_trusted(folder: Path) -> bool:
    """Tell whether an environment is this user's or the system's: anybody can put one into /tmp."""
    try:
        return folder.stat().st_uid in (os.getuid(), 0)
    except OSError:
        return False
