"""Scripts as components: batch scripts of sbatch, and Python scripts."""

from __future__ import annotations

from pathlib import Path

from ..specs.roles import AppDef
from .model import ComponentDoc
from .python_script import build_python, describe_python, is_python_name, python_path
from .sbatch import build_batch_script, describe_batch_script
from .sbatch_script import is_batch_name, read_script
from .values import Texts


def is_script_name(name: str) -> bool:
    """Return whether a name is that of a script: ``train.py``, ``-m package.module``, ``train.sbatch``."""
    return is_batch_name(name) or is_python_name(name)


def script_path(name: str) -> Path:
    """Return the file of a script.

    Raises:
        ComponentNotFoundException: There is no such file.
        ComponentLoadError: It is no batch script that sbatch takes.
    """
    return python_path(name) if is_python_name(name) else read_script(name).path


def describe_script(name: str) -> ComponentDoc:
    """Return the description of a script.

    Raises:
        ComponentNotFoundException: There is no such file.
        ComponentLoadError: It cannot be read.
    """
    return describe_python(name) if is_python_name(name) else describe_batch_script(name)


def build_script(name: str, arguments: Texts) -> AppDef:
    """Return the AppDef that runs a script. Raises as `build_app` does."""
    return build_python(name, arguments) if is_python_name(name) else build_batch_script(name, arguments)
