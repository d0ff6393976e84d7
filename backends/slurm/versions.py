"""Differences between the versions of Slurm.

The fields that this machine's sacct and squeue can print are asked of them once (``--helpformat``), since sites build
Slurm with patches of their own. The symbols of log file names depend on the version.
"""

from __future__ import annotations

import logging
import re
import shutil
from functools import lru_cache

from ...base.files import modified_ns
from ...specs.errors import BackendUnavailableError
from .commands import CommandError, ask

logger = logging.getLogger(__name__)

# Fields of releases after 20.11, from the manuals of 22.05, 24.11 and 26.05.
_LATER_FIELDS = {
    "sacct": ("SubmitLine", "FailedNode", "StdOut", "StdErr", "Restarts", "SLUID"),
    "squeue": ("SLUID",),
}
# Symbols of log file names, and those that a version added.
_SYMBOLS, _LATER_SYMBOLS = "AajJNnstux", {"24.11": "b", "25.11": "r", "26.05": "S"}
_VERSION = re.compile(r"^slurm\S* (\d\d\.\d\d)", re.MULTILINE)


def more_fields(program: str) -> tuple[str, ...]:
    """Return the fields of later versions that this machine's sacct or squeue can print.

    Raises:
        BackendUnavailableError: the command cannot be run, or finds no settings.
    """
    offered = _ask_once(program, "--helpformat").casefold().split()
    return tuple(name for name in _LATER_FIELDS[program] if name.casefold() in offered)


def name_symbols() -> str:
    """Return the symbols of log file names; those of the newest version if the version is unknown."""
    try:
        found = _VERSION.search(_ask_once("scontrol", "--version"))
    except BackendUnavailableError:
        found = None
    return _SYMBOLS + "".join(letter for since, letter in _LATER_SYMBOLS.items() if not found or since <= found[1])


def _ask_once(program: str, option: str) -> str:
    """Ask a command for its version or fields; ask again after an upgrade of its program."""
    path = shutil.which(program) or program
    return _ask(program, option, path, modified_ns(path))


@lru_cache(maxsize=32)
def _ask(program: str, option: str, _path: str, _modified_ns: int) -> str:
    """Return the output of a command, empty where it does not know the option, as squeue before 24.05."""
    try:
        return ask([program, option])
    except CommandError as error:
        logger.info("%s %s: %s", program, option, error)
        return ""
