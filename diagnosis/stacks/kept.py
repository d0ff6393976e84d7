"""Takes that are kept with their job: the latest few, so that they can be compared and looked at when it is over."""

from __future__ import annotations

import json
import logging
from hashlib import sha256
from pathlib import Path

from ...base.files import LARGE, private_folder, read_file, state_folder, write_private
from ...base.validation import decode_json
from .take import Take

logger = logging.getLogger(__name__)

_MOST_KEPT = 10


def keep_take(take: Take, instead_of: Take | None = None) -> None:
    """Keep a take; of each job the latest few are kept. A disk that is full costs this take only.

    Args:
        take: the take.
        instead_of: the one some seconds before, which it was compared with and which goes.
    """
    try:
        folder = private_folder(_folder(take.handle))
        write_private(folder / _name(take), json.dumps(take.to_document()).encode())
        if instead_of is not None and _name(instead_of) != _name(take):
            (folder / _name(instead_of)).unlink(missing_ok=True)
        for path in sorted(folder.glob("*.json"))[:-_MOST_KEPT]:
            path.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("the stacks of %s cannot be kept: %s", take.handle, error)


def kept_takes(handle: str, most: int = _MOST_KEPT) -> list[Take]:
    """Return the latest takes of a job that are kept, the latest first; what cannot be read is left out."""
    takes = []
    for path in sorted(_folder(handle).glob("*.json"), reverse=True)[:most]:
        try:
            takes.append(Take.from_document(decode_json(read_file(path, LARGE))))
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning("%s: %s", path, error)
    return takes


def _folder(handle: str) -> Path:
    return state_folder() / "stacks" / sha256(handle.encode()).hexdigest()[:24]


def _name(take: Take) -> str:
    return f"{int(take.at * 1000):015d}.json"
