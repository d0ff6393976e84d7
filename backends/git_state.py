"""What git says of a folder: the commit, and what was not committed. Nothing of the repository is changed or locked."""

from __future__ import annotations

import hashlib
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_BLOCK = 1 << 20


@dataclass(frozen=True)
class GitState:
    """A work tree at one time.

    Args:
        commit: the commit that is checked out.
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
        return None
    return GitState(commit[0], _digest_of_changes(folder, max(0.0, until - time.monotonic())))


def differing_files(folder: Path, commit: str, patience: float) -> int | None:
    """Return how many files that git knows differ now from a commit; None where that cannot be told."""
    names = _lines(folder, patience, "diff", "--name-only", "--no-ext-diff", commit, "--")
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
    # Without the locks that only make the next call faster: somebody may be committing just now.
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
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
