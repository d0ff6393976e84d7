"""Where TorchX keeps the logs of local jobs: the option ``log_dir`` of ``.torchxconfig``."""

from __future__ import annotations

import functools
import logging
from pathlib import Path

from ..specs import ConfigError
from .torchxconfig import PLACEHOLDER, find_configs, read_config

logger = logging.getLogger(__name__)

_SCHEDULER, _OPTION = "local_cwd", "log_dir"


def configured_log_dirs() -> list[Path]:
    """Return the folders that the files name, the one that wins first; a file that cannot be read names none.

    Each counts: TorchX takes the home folder's file before the project's, this program the other way round.
    """
    try:
        paths = [Path(name) for name in find_configs()]
        return [folder for path in paths if (folder := _log_dir(path, path.stat().st_mtime_ns)) is not None]
    except (OSError, RuntimeError, ConfigError) as error:  # no home, or the current folder is gone
        logger.debug("no log_dir of .torchxconfig: %s", error)
        return []


@functools.lru_cache(maxsize=16)
def _log_dir(path: Path, changed_at: int) -> Path | None:
    """Return the folder that a file names; it is read again when it has changed."""
    del changed_at
    try:
        section = read_config(path).get(_SCHEDULER, {})
    except ConfigError as error:
        logger.debug("%s", error)
        return None
    values = [value.text for key, value in section.items() if key.replace("_", "").lower() == _OPTION.replace("_", "")]
    if not values or values[0] in ("", "None") or values[0].startswith(PLACEHOLDER):
        return None
    return Path(values[0]).expanduser().absolute()
