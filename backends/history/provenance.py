"""What is around a launch, the git commit and the images, and noting it beside the launch."""

from __future__ import annotations

import hashlib
import logging
import math
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...base.errors import TorchXTuiError
from ...specs.batch_script import script_of
from ..shared.secrets import mask_text
from .launch_record import ARGUMENT_PREFIX

if TYPE_CHECKING:
    from ..api import Scheduler
    from .journal import Journal, LaunchRecord


_SHORT_COMMIT = 10
_SHORT_DIGEST = 19  # with `sha256:` before it


_BLOCK = 1 << 20
GIT_TIMEOUT_S = 1.5
"""Seconds after which git is given up."""
CLOSE_TIMEOUT_S = 0.5
"""Seconds that a program's end waits for what is still to be noted."""


@dataclass(frozen=True)
class Changed:
    """Something that is another than at a launch.

    Attributes:
        what: its name, such as ``git commit``.
        then: what it was.
        now: what it is.
    """

    what: str
    then: str
    now: str


def changed_since(
    record: LaunchRecord, scheduler: Scheduler[Any], now: WorldNow, config: Mapping[str, str] | None = None
) -> list[Changed]:
    """Compare what was noted at a launch with now.

    Args:
        record: the launch's.
        scheduler: where it would be launched again.
        now: what is around now.
        config: what config gives now, see `LaunchOrigin.config`; None where that is not to be compared.
    """
    found = [*_folder(record, scheduler), *_script(record)]
    world = LaunchWorld.of(record)
    if world is not None:
        here = Path.cwd() if scheduler.capabilities.working_folder or record.workspace else Path(record.cwd)
        if world.commit:
            found += _git_changes(world, here, now)
        digests = now.digests(scheduler, list(world.images)) if world.images else {}
        found += [
            Changed(f"image {image}", then[:_SHORT_DIGEST], digests.get(image, "not here")[:_SHORT_DIGEST])
            for image, then in world.images.items()
            if digests.get(image) != then
        ]
    return found + (_config(record, config) if config is not None else [])


def _folder(record: LaunchRecord, scheduler: Scheduler[Any]) -> list[Changed]:
    here = str(Path.cwd())
    if not record.cwd or record.cwd == here or not scheduler.capabilities.working_folder:
        return []
    return [Changed("working folder", record.cwd, here)]


def _script(record: LaunchRecord) -> Iterator[Changed]:
    """Yield the lines in which a batch script differs from what is launched again."""
    from ...components.sbatch_script import differing_lines, is_script_name, read_script

    if not is_script_name(record.component):
        return
    try:
        kept = script_of(record.app_def().roles)
        now = read_script(str(Path(record.cwd) / record.component)).text
    except TorchXTuiError as error:
        yield Changed(record.component, "a script", str(error))
        return
    if kept is not None:
        for line, then, after in differing_lines(kept.text, now):
            yield Changed(f"{record.component} line {line}", mask_text("", then) or "-", mask_text("", after) or "-")


def _git_changes(world: LaunchWorld, folder: Path, now: WorldNow) -> list[Changed]:
    state, then = now.git(folder), world.commit[:_SHORT_COMMIT]
    if state is None:
        return [Changed("git commit", then, "no git work tree here")]
    if not state.commit:
        return []
    differ = now.differing(folder, world.commit)
    files = f", {differ:,} file{'' if differ == 1 else 's'} differ{'s' if differ == 1 else ''}" if differ else ""
    if state.commit != world.commit:
        return [Changed("git commit", then, f"{state.commit[:_SHORT_COMMIT]}{files}")]
    if None in (state.changes, world.changes) or state.changes == world.changes:
        return []
    after = f"others{files}" if state.changes else "none"
    return [
        Changed("uncommitted changes", "some" if world.changes else "none", after if world.changes else f"some{files}")
    ]


def _config(record: LaunchRecord, config: Mapping[str, str]) -> list[Changed]:
    """List the config values that have changed; what a person had chosen is not compared."""
    then, now = record.config, config
    chosen = {"scheduler", *record.cfg, *(f"{ARGUMENT_PREFIX}{name}" for name in record.arguments)}
    if record.workspace:
        chosen.add("workspace")
    return [
        Changed(f"config: {key.removeprefix(ARGUMENT_PREFIX)}", then.get(key, "-"), now.get(key, "-"))
        for key in sorted({*then, *now})
        if then.get(key) != now.get(key) and (key in then or key not in chosen)
    ]


@dataclass(frozen=True)
class GitState:
    """A work tree at one time.

    Args:
        commit: the commit that is checked out; empty where it was not found out in time.
        changes: a digest of what differs from it in files that git knows, empty for nothing; None where it was not
            found out in time.
    """

    commit: str
    changes: str | None


def git_state(folder: Path, patience: float) -> GitState | None:
    """Return the state of the work tree that a folder is in; None where it is in none, or git is not there.

    Args:
        folder: the folder.
        patience: seconds that it may take; a large tree on a slow disk takes more.
    """
    until = time.monotonic() + patience
    commit = _lines(folder, patience, "rev-parse", "--verify", "--quiet", "HEAD")
    if not commit:
        # Git that took too long was ended, and nobody knows.
        return None if time.monotonic() < until else GitState("", None)
    return GitState(commit[0], _digest_of_changes(folder, max(0.0, until - time.monotonic())))


def differing_files(folder: Path, commit: str, patience: float) -> int | None:
    """Return how many files that git knows differ now from a commit; None where that cannot be told."""
    names = _lines(folder, patience, "diff", "--numstat", "--no-ext-diff", commit, "--")
    return None if names is None else len(names)


def _lines(folder: Path, patience: float, *arguments: str) -> list[str] | None:
    with _git(folder, patience, *arguments) as (process, output):
        if process is None or output is None:
            return None
        text = output.read().decode("utf-8", "replace")
        return text.splitlines() if process.wait() == 0 else None


def _digest_of_changes(folder: Path, patience: float) -> str | None:
    arguments = ("diff", "HEAD", "--no-ext-diff", "--no-textconv", "--no-color", "--full-index")
    digest, length = hashlib.sha256(), 0
    with _git(folder, patience, *arguments) as (process, output):
        if process is None or output is None:
            return None
        while block := output.read(_BLOCK):
            digest.update(block)
            length += len(block)
        if process.wait() != 0:
            return None
    return digest.hexdigest() if length else ""


@contextmanager
def _git(
    folder: Path, patience: float, *arguments: str
) -> Iterator[tuple[subprocess.Popen[bytes] | None, IO[bytes] | None]]:
    """Run git, which is ended once it has taken too long."""
    # Do not lock the index: the user may be committing now. Disable the file system monitor: a repository may
    # name any program as one.
    options = ("-c", "diff.autoRefreshIndex=false", "-c", "core.fsmonitor=false")
    command = ["git", "--no-optional-locks", *options, "-C", str(folder), *arguments]
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        yield None, None
        return
    timer = threading.Timer(patience, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield process, process.stdout
    finally:
        timer.cancel()
        process.kill()
        process.communicate()


logger = logging.getLogger(__name__)


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
        """Parse what was noted beside a record; None where nothing was."""
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
        """Ask git for the state of a folder.

        Args:
            folder: the folder.
            since: an answer that was asked for at this time (`time.monotonic`) or later is good enough.
        """
        with self._lock:
            asked, state = self._states.get(folder, (-math.inf, None))
            if folder not in self._states or asked < since:
                asked = time.monotonic()
                state = git_state(folder, GIT_TIMEOUT_S)
                self._states[folder] = (asked, state)
            return state

    def differing(self, folder: Path, commit: str) -> int | None:
        """Return how many files of a folder's work tree differ from a commit."""
        with self._lock:
            if (folder, commit) not in self._counts:
                self._counts[folder, commit] = differing_files(folder, commit, GIT_TIMEOUT_S)
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
        identify = getattr(scheduler, "image_digests", None)
        return dict(identify(images)) if images and identify else {}
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
        self._threads = [running for running in self._threads if running.is_alive()] + [thread]
        try:
            thread.start()
        except RuntimeError as error:  # there are no more threads to be had
            logger.warning("what is around %s is not noted: %s", record.id, error)
        return over

    def close(self) -> None:
        """Wait a moment for what is still to be noted."""
        until = time.monotonic() + CLOSE_TIMEOUT_S
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
            image_digests(scheduler, [image for image in images if image]),
        )
        # A job that was deleted meanwhile stays so.
        if self._journal.is_kept(record):
            self._journal.note(record, world=asdict(world))
