"""A service that all test processes use together: the first one starts it, the last one stops it."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

SERVICES = Path(__file__).parent.parent / "services"
Found = TypeVar("Found")


class NoServiceError(Exception):
    """The service cannot be had here; the message says why."""


@contextmanager
def shared_service(folder: Path, up: Callable[[], Found], down: Callable[[], object]) -> Iterator[Found]:
    """Give what ``up`` returns.

    Args:
        folder: the service's state; files beside it say who uses it.
        up: starts it, where it does not run yet.
        down: stops it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.users", "w") as users:
        with _locked(f"{folder}.lock"):
            found = up()
            # Held as long as this process uses it, however it ends; a child does not inherit it.
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield found
        finally:
            with _locked(f"{folder}.lock"):
                try:
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    pass  # others use it still: the last one stops it
                else:
                    down()


@contextmanager
def free_slot(prefix: str, slots: range) -> Iterator[int]:
    """Give a number that no other process has, for what cannot be shared, such as ports.

    Raises:
        NoServiceError: all are taken.
    """
    for slot in slots:
        with open(f"{prefix}-{slot}.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield slot
            return
    raise NoServiceError(f"all {len(slots)} of {prefix} are in use")


def run_script(script: str, settings: Mapping[str, str], *arguments: str) -> str:
    """Return what one of the services' scripts prints.

    Args:
        script: its name.
        settings: its environment, beside our own.
        arguments: its arguments.

    Raises:
        NoServiceError: it failed.
    """
    result = subprocess.run(
        ["bash", str(SERVICES / script), *arguments],
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise NoServiceError(f"{script}: {' '.join(result.stderr.splitlines()[-3:])}")
    return result.stdout


@contextmanager
def _locked(path: str) -> Iterator[None]:
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
