"""Differences between the versions of Slurm.

The fields that this machine's sacct and squeue can print are asked of them once (``--helpformat``), since sites build
Slurm with patches of their own. The symbols of log file names depend on the version.
"""

from __future__ import annotations

import logging
import re
import shutil
from functools import lru_cache
from typing import NamedTuple

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
# Since then an unknown symbol with a width stays, and every backslash is removed.
_PLAIN_PADDING = "25.11"
_VERSION = re.compile(r"^slurm\S* (\d\d\.\d\d)", re.MULTILINE)


class NameRules(NamedTuple):
    """How this version of Slurm expands the name of a log file.

    Attributes:
        symbols: the letters that are replaced.
        strips_padding: whether an unknown symbol with a width, such as ``%12q``, becomes ``2q``; it stays otherwise.
        escapes: whether a backslash protects a backslash; all are removed otherwise.
    """

    symbols: frozenset[str]
    strips_padding: bool
    escapes: bool


def more_fields(program: str) -> tuple[str, ...]:
    """Return the fields of later versions that this machine's sacct or squeue can print.

    Raises:
        BackendUnavailableError: the command cannot be run, or finds no settings.
    """
    offered = _ask_once(program, "--helpformat").casefold().split()
    return tuple(name for name in _LATER_FIELDS[program] if name.casefold() in offered)


def name_rules() -> NameRules:
    """Return how file names are expanded; as the newest version does if the version is unknown."""
    try:
        found = _VERSION.search(_ask_once("scontrol", "--version"))
    except BackendUnavailableError:
        found = None
    version = found[1] if found else "99.99"
    new = [letter for since, letter in _LATER_SYMBOLS.items() if since <= version]
    is_old = version < _PLAIN_PADDING
    return NameRules(frozenset(_SYMBOLS).union(new), strips_padding=is_old, escapes=is_old)


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
