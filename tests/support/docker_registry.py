"""A registry on this machine, for images to be pulled from and pushed to."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .waiting import wait_until

PROGRAM = shutil.which("docker-registry")
"""Debian's package of the same name has it."""


USER, PASSWORD = "alice", "secret"
"""The only login at a registry that asks for one."""
_HASHED = "$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a"


@contextmanager
def local_registry(folder: Path, *, login: bool = False) -> Iterator[str]:
    """Start a registry and give its address; engines take any on the loopback address for safe without TLS.

    Args:
        folder: where it keeps images and its log.
        login: whether it asks who somebody is.
    """
    assert PROGRAM is not None
    address = f"127.0.0.1:{free_port()}"
    config = folder / "registry.yml"
    config.write_text(
        f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {folder}/registry}}}}\n"
        f"http: {{addr: '{address}'}}\n"
    )
    if login:
        (folder / "users").write_text(f"{USER}:{_HASHED}\n")
        with config.open("a") as file:
            file.write(f"auth: {{htpasswd: {{realm: here, path: {folder}/users}}}}\n")
    with (folder / "registry.log").open("w") as log:
        process = subprocess.Popen([PROGRAM, "serve", str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_until(lambda: _answers(address), "the registry")
        yield address
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _answers(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as asked:
        return asked.connect_ex((host, int(port))) == 0
