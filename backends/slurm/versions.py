"""The fields that only later versions of sacct and squeue print.

The fields that this machine's sacct and squeue can print are asked of them once (``--helpformat``), since sites build
Slurm with patches of their own.
"""

from __future__ import annotations

import logging
import shutil
from functools import lru_cache

from ...base.files import modified_ns
from .commands import CommandError, ask

logger = logging.getLogger(__name__)

# Fields of releases after 20.11, from the manuals of 22.05, 24.11 and 26.05.
LATER_FIELDS = {
    "sacct": ("SubmitLine", "FailedNode", "StdOut", "StdErr", "Restarts", "SLUID"),
    "squeue": ("SLUID",),
}


def more_fields(program: str) -> tuple[str, ...]:
    """Return the fields of later versions that this machine's sacct or squeue can print.

    Raises:
        BackendUnavailableError: the command cannot be run, or finds no settings.
    """
    path = shutil.which(program) or program
    # It is asked again after an upgrade of its program.
    offered = _offered(program, path, modified_ns(path)).casefold().split()
    return tuple(name for name in LATER_FIELDS[program] if name.casefold() in offered)


@lru_cache(maxsize=32)
def _offered(program: str, _path: str, _modified_ns: int) -> str:
    """Return the fields that a command prints; empty where it does not know the option, as squeue before 24.05."""
    try:
        return ask([program, "--helpformat"])
    except CommandError as error:
        logger.info("%s --helpformat: %s", program, error)
        return ""
