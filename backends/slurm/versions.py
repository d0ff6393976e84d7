"""What the versions of Slurm differ in: each addition is a row of a table.

The fields that this machine's sacct and squeue can print are asked of them once (``--helpformat``), since sites build
Slurm with patches of their own. The symbols of log file names go by the version.
"""

from __future__ import annotations

import logging
import re
import shutil
import threading
from typing import NamedTuple

from ...base.files import modified_ns
from ...specs.errors import BackendUnavailableError, SchedulerError
from .commands import ask

logger = logging.getLogger(__name__)


class _Addition(NamedTuple):
    """What a version added: fields of a command's output, or symbols of log file names (`_SYMBOLS`)."""

    version: str
    where: str
    names: tuple[str, ...]


_SYMBOLS = "symbols"
# From the lists of fields and the manuals of 22.05, 24.11 and 26.05; the versions between by Slurm's release notes.
_ADDED = (
    _Addition("21.08", "sacct", ("SubmitLine",)),
    _Addition("23.02", "sacct", ("FailedNode",)),
    _Addition("24.05", "sacct", ("StdOut", "StdErr")),
    _Addition("24.11", "sacct", ("Restarts", "SLUID")),
    _Addition("24.11", _SYMBOLS, ("b",)),
    _Addition("25.11", _SYMBOLS, ("r",)),
    _Addition("26.05", "squeue", ("SLUID",)),
    _Addition("26.05", _SYMBOLS, ("S",)),
)
_OLD_SYMBOLS = "AajJNnstux"
# From when an unknown symbol with a width stays, and every backslash goes.
_PLAIN_PADDING = "25.11"
_VERSION = re.compile(r"^slurm\S* (\d\d\.\d\d)", re.MULTILINE)

_lock = threading.Lock()
# What was asked, by command and by the modification time of its program: an upgrade is noticed.
_asked: dict[tuple[str, int], str] = {}


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
    return tuple(
        name for added in _ADDED if added.where == program for name in added.names if name.casefold() in offered
    )


def name_rules() -> NameRules:
    """Return how file names are expanded; as the newest version does where the version is not known."""
    try:
        found = _VERSION.search(_ask_once("scontrol", "--version"))
    except BackendUnavailableError:
        found = None
    version = _numbers(found[1] if found else "99.99")
    new = [added.names for added in _ADDED if added.where == _SYMBOLS and _numbers(added.version) <= version]
    is_old = version < _numbers(_PLAIN_PADDING)
    return NameRules(frozenset(_OLD_SYMBOLS).union(*new), strips_padding=is_old, escapes=is_old)


def _numbers(version: str) -> tuple[int, ...]:
    """Return a version such as ``24.11``, to be compared."""
    return tuple(map(int, version.split(".")))


def _ask_once(program: str, option: str) -> str:
    """Return what a command says of itself; empty where it does not know the option, as squeue before 24.05."""
    path = shutil.which(program) or program
    key = f"{path} {option}", modified_ns(path)
    with _lock:
        if key in _asked:
            return _asked[key]
    try:
        text = ask([program, option])
    except BackendUnavailableError:
        raise
    except SchedulerError as error:
        logger.info("%s %s: %s", program, option, error)
        text = ""
    with _lock:
        _asked[key] = text
    return text
