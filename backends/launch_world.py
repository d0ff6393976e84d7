"""What is around a launch, the git commit and the images, and noting it beside the launch."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .git_state import GitState, differing_files, git_state

if TYPE_CHECKING:
    from .api import Scheduler
    from .journal import Journal, LaunchRecord

logger = logging.getLogger(__name__)

# Seconds that git may take.
_PATIENCE = 1.5
# Seconds that a program's end waits for what is still to be noted.
_LAST_PATIENCE = 0.5


@dataclass(frozen=True)
class LaunchWorld:
    """What was around a launch.

    Attributes:
        commit: the git commit of the folder that it was launched from, empty where that is in no work tree.
        changes: a digest of what was not committed, empty for nothing, None where it is not known.
        images: the digest of each image that the backend has here.
    """

    commit: str = ""
    changes: str | None = ""
    images: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, record: LaunchRecord) -> LaunchWorld | None:
        """Return what a record says, None where nothing was noted."""
        commit, changes, images = (record.world.get(name) for name in ("commit", "changes", "images"))
        if not isinstance(commit, str):
            return None
        found = images if isinstance(images, dict) else {}
        return cls(commit, changes if isinstance(changes, str) else None, {str(k): str(v) for k, v in found.items()})


class WorldNow:
    """What is around now. Each thing is looked up once: what many jobs ask for, and those of a sweep."""

    def __init__(self) -> None:
        self._states: dict[Path, tuple[float, GitState | None]] = {}
        self._counts: dict[tuple[Path, str], int | None] = {}
        self._digests: dict[tuple[int, str], str] = {}
        self._lock = threading.Lock()

    def git(self, folder: Path, since: float = -math.inf) -> GitState | None:
        """Return what git says of a folder.

        Args:
            folder: the folder.
            since: an answer that was asked for at this time (`time.monotonic`) or later is good enough.
        """
        with self._lock:
            asked, state = self._states.get(folder, (-math.inf, None))
            if folder not in self._states or asked < since:
                asked = time.monotonic()
                state = git_state(folder, _PATIENCE)
                self._states[folder] = (asked, state)
            return state

    def differing(self, folder: Path, commit: str) -> int | None:
        """Return how many files of a folder's work tree differ from a commit."""
        with self._lock:
            if (folder, commit) not in self._counts:
                self._counts[folder, commit] = differing_files(folder, commit, _PATIENCE)
            return self._counts[folder, commit]

    def digests(self, scheduler: Scheduler[Any], images: Sequence[str]) -> dict[str, str]:
        """Return the digests of those images that a backend has here."""
        with self._lock:
            missing = [image for image in images if (id(scheduler), image) not in self._digests]
            if missing:
                found = image_digests(scheduler, missing)
                self._digests.update({(id(scheduler), image): found.get(image, "") for image in missing})
            known = {image: self._digests[id(scheduler), image] for image in images}
        return {image: digest for image, digest in known.items() if digest}


def image_digests(scheduler: Scheduler[Any], images: Sequence[str]) -> dict[str, str]:
    """Return the digests of images, nothing where the backend cannot say."""
    try:
        return dict(scheduler.image_digests(images)) if images else {}
    except Exception as error:  # a plug-in may raise what it likes: a launch goes on without
        logger.info("digests of images: %s", error)
        return {}


class WorldNotes:
    """Notes beside each launch what is around it; never in its way.

    Args:
        journal: where it is noted.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._now = WorldNow()
        self._threads: list[threading.Thread] = []

    def begin(self, record: LaunchRecord, scheduler: Scheduler[Any], images: Sequence[str]) -> threading.Event:
        """Begin to look; once the event that is returned is set, the launch is over and its images are there.

        Args:
            record: the launch's.
            scheduler: where it is launched.
            images: the images of its roles.
        """
        over = threading.Event()
        thread = threading.Thread(
            target=self._note,
            args=(record, time.monotonic(), scheduler, list(dict.fromkeys(images)), over),
            name="world",
            daemon=True,
        )
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        try:
            thread.start()
        except RuntimeError as error:  # there are no more threads to be had
            logger.warning("what is around %s is not noted: %s", record.id, error)
        return over

    def close(self) -> None:
        """Wait a moment for what is still to be noted."""
        until = time.monotonic() + _LAST_PATIENCE
        for thread in self._threads:
            if not thread.is_alive():
                continue
            thread.join(max(0.0, until - time.monotonic()))

    def _note(
        self, record: LaunchRecord, at: float, scheduler: Scheduler[Any], images: Sequence[str], over: threading.Event
    ) -> None:
        # The launches of a sweep come faster than git answers: those that wait take the same answer.
        git = self._now.git(Path(record.cwd), at)
        over.wait()
        world = LaunchWorld(
            git.commit if git else "",
            git.changes if git else "",
            image_digests(scheduler, [one for one in images if one]),
        )
        # A job that was deleted meanwhile stays so.
        if self._journal.is_kept(record):
            self._journal.note(record, world=asdict(world))
