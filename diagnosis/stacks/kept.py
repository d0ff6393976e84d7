"""The latest snapshots of each job, kept on disk to compare them and to look at them after the job has ended."""

from __future__ import annotations

import json
import logging
from hashlib import sha256
from pathlib import Path

from ...base.files import LARGE, private_folder, read_file, state_folder, write_private
from ...base.validation import decode_json
from .protocol import from_document, to_document
from .snapshot import StackSnapshot

logger = logging.getLogger(__name__)

_MAX_KEPT = 10


def keep_snapshot(snapshot: StackSnapshot, instead_of: StackSnapshot | None = None) -> None:
    """Keep a snapshot, and delete the oldest ones of its job; a full disk loses only this one.

    Args:
        snapshot: the snapshot.
        instead_of: an earlier one, which is deleted.
    """
    try:
        folder = private_folder(_folder(snapshot.handle))
        write_private(folder / _name(snapshot), json.dumps(to_document(snapshot)).encode())
        if instead_of is not None and _name(instead_of) != _name(snapshot):
            (folder / _name(instead_of)).unlink(missing_ok=True)
        for path in sorted(folder.glob("*.json"))[:-_MAX_KEPT]:
            path.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("the stacks of %s were not kept: %s", snapshot.handle, error)


def kept_snapshots(handle: str, limit: int = _MAX_KEPT, *, has_recorders: bool = True) -> list[StackSnapshot]:
    """Return the readable snapshots of a job, the latest first.

    Args:
        handle: the job.
        limit: maximum snapshots to read.
        has_recorders: whether to parse their flight recorders, which takes most of the time.
    """
    snapshots = []
    for path in sorted(_folder(handle).glob("*.json"), reverse=True)[:limit]:
        try:
            snapshots.append(from_document(decode_json(read_file(path, LARGE)), has_recorders=has_recorders))
        except (OSError, ValueError) as error:
            logger.warning("%s: %s", path, error)
    return snapshots


def _folder(handle: str) -> Path:
    return state_folder() / "stacks" / sha256(handle.encode()).hexdigest()[:24]


def _name(snapshot: StackSnapshot) -> str:
    return f"{int(snapshot.at * 1000):015d}.json"
