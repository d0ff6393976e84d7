"""The code of a launch: its git commit, whether files differed from that, and what has changed since."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.errors import TorchXTuiError
from ...base.files import LARGE
from ...specs.batch_script import script_of
from ..shared.bounded_command import run_command
from ..shared.secrets import mask_text
from .launch_record import ARGUMENT_PREFIX

if TYPE_CHECKING:
    from ..api import Scheduler
    from .journal import Journal, LaunchRecord

GIT_TIMEOUT_S = 1.5
CLOSE_TIMEOUT_S = 0.5
"""Seconds that the program's end waits for unfinished notes."""
_SHORT_COMMIT = 10
# Without locks the index is not written, as the user may be committing now. Without the file system monitor no program
# runs that a repository names.
_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C")
_STATUS = ("status", "--porcelain=v2", "--branch", "--untracked-files=no", "--no-renames", "--ignore-submodules=dirty")
_COMMIT = "# branch.oid "
_NO_COMMIT = "(initial)"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Changed:
    """A difference from an earlier launch.

    Attributes:
        what: its name, such as ``git commit``.
        then: the earlier value.
        now: the present value.
    """

    what: str
    then: str
    now: str


@dataclass(frozen=True)
class GitState:
    """The state of a work tree; both fields are unknown if git failed or was too slow.

    Args:
        commit: the commit that is checked out; empty if unknown.
        dirty: whether files that git tracks differ from it; None if unknown.
    """

    commit: str = ""
    dirty: bool | None = None

    @classmethod
    def of(cls, record: LaunchRecord) -> GitState | None:
        """Return the state that was noted beside a launch; None if none was."""
        commit, dirty = record.world.get("commit"), record.world.get("dirty")
        if not isinstance(commit, str):
            return None
        # Records of earlier versions have a digest of the changes, empty for none.
        digest = record.world.get("changes")
        if dirty is None and isinstance(digest, str):
            dirty = digest != ""
        return cls(commit, dirty if isinstance(dirty, bool) else None)


def git_state(folder: Path, timeout_s: float) -> GitState | None:
    """Return the state of the work tree of a folder; None if there is no commit, no work tree or no git."""
    try:
        done = run_command(
            [*_GIT, str(folder), *_STATUS], timeout_s=timeout_s, max_bytes=LARGE, env={**os.environ, "LC_ALL": "C"}
        )
    except OSError:
        return None
    except OverflowError:
        return GitState()
    if done.code != 0:
        return None if b"not a git repository" in done.err else GitState()
    lines = done.out.decode("utf-8", "replace").splitlines()
    commit = next((line.removeprefix(_COMMIT) for line in lines if line.startswith(_COMMIT)), _NO_COMMIT)
    return None if commit == _NO_COMMIT else GitState(commit, any(not line.startswith("#") for line in lines))


class GitStates:
    """The present states of work trees; concurrent callers share one call of git."""

    def __init__(self) -> None:
        self._states: dict[Path, tuple[float, GitState | None]] = {}
        self._lock = threading.Lock()

    def git(self, folder: Path, since: float = -math.inf) -> GitState | None:
        """Return the state of a folder's work tree, not older than a time (`time.monotonic`)."""
        with self._lock:
            began, state = self._states.get(folder, (-math.inf, None))
            if folder not in self._states or began < since:
                began = time.monotonic()
                state = git_state(folder, GIT_TIMEOUT_S)
                self._states[folder] = began, state
            return state


class GitNotes:
    """Notes the git state beside each launch, in a thread: a launch does not wait for git.

    Args:
        journal: the journal of the launches.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._now = GitStates()
        self._threads: list[threading.Thread] = []

    def begin(self, record: LaunchRecord) -> None:
        """Begin to note the state for a launch."""
        args = record, time.monotonic()
        thread = threading.Thread(target=self._note, args=args, name="git-state", daemon=True)
        self._threads = [running for running in self._threads if running.is_alive()] + [thread]
        try:
            thread.start()
        except RuntimeError as error:  # the limit of threads is reached
            logger.warning("the git commit of %s is not noted: %s", record.id, error)

    def close(self) -> None:
        """Wait a moment for unfinished notes."""
        until = time.monotonic() + CLOSE_TIMEOUT_S
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, until - time.monotonic()))

    def _note(self, record: LaunchRecord, at: float) -> None:
        state = self._now.git(Path(record.cwd), at) or GitState("", False)
        # A job that was deleted in between stays so.
        if self._journal.is_kept(record):
            self._journal.note(record, world=asdict(state))


def changed_since(
    record: LaunchRecord, scheduler: Scheduler[Any], now: GitStates, config: Mapping[str, str] | None = None
) -> list[Changed]:
    """Compare a launch with the present: working folder, batch script, git state and config.

    Args:
        record: the launch's.
        scheduler: where it would be launched again.
        now: the present git states.
        config: the values that config gives now, see `LaunchOrigin.config`; None to leave config out.
    """
    then = GitState.of(record)
    git = []
    if then is not None and then.commit:
        is_here = scheduler.capabilities.working_folder or record.workspace
        git = _git_changes(then, now.git(Path.cwd() if is_here else Path(record.cwd)))
    changed = [*_folder(record, scheduler), *_script(record), *git]
    return changed if config is None else [*changed, *_config(record, config)]


def _git_changes(then: GitState, now: GitState | None) -> list[Changed]:
    if now is None:
        return [Changed("git commit", then.commit[:_SHORT_COMMIT], "no git work tree here")]
    if not now.commit:
        return []
    if now.commit != then.commit:
        return [Changed("git commit", then.commit[:_SHORT_COMMIT], now.commit[:_SHORT_COMMIT])]
    if None in (then.dirty, now.dirty) or then.dirty == now.dirty:
        return []
    return [Changed("uncommitted changes", "some" if then.dirty else "none", "some" if now.dirty else "none")]


def _folder(record: LaunchRecord, scheduler: Scheduler[Any]) -> list[Changed]:
    here = str(Path.cwd())
    if not record.cwd or record.cwd == here or not scheduler.capabilities.working_folder:
        return []
    return [Changed("working folder", record.cwd, here)]


def _script(record: LaunchRecord) -> Iterator[Changed]:
    """Yield the lines in which a batch script differs from what is launched again."""
    from ...components.sbatch_script import differing_lines, is_batch_name, read_script

    if not is_batch_name(record.component):
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
