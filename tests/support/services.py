"""Services that tests use: those that run. `make services-up` starts them, and they stay up between runs."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SERVICES = Path(__file__).parent.parent / "services"
HOW = "`make services-up` starts {}, for root on Debian"
"""What is said of a service that does not run."""


class NoServiceError(Exception):
    """The service cannot be had here; the message says why."""


@contextmanager
def free_slot(prefix: str, slots: range, ports: Callable[[int], range] = lambda slot: range(0)) -> Iterator[int]:
    """Give a number that no other process has, for what cannot be shared, such as ports.

    Args:
        prefix: of the paths of the locks.
        slots: the numbers.
        ports: returns the ports of a number; one of which any is taken is passed over.

    Raises:
        NoServiceError: all are taken.
    """
    for slot in slots:
        with open(f"{prefix}-{slot}.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            # A process that was killed may have left its service behind, and the lock is free.
            if not all(map(_is_free, ports(slot))):
                continue
            yield slot
            return
    raise NoServiceError(f"all {len(slots)} of {prefix} are in use")


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        # What is only left of ended connections takes no port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


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
