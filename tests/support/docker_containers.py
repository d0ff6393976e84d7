"""Containers with an app's labels, made without a scheduler."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import docker

from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker.engine import Engine
from torchx_tui.backends.logs.stream import Cursor, LogStream
from torchx_tui.specs import SchedulerError, make_unique

PATIENCE = 60.0
"""Seconds after which something that should have come about has not."""


class Replicas:
    """Makes the containers of one app, and removes them."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.app_id = make_unique("test")

    @property
    def client(self) -> docker.DockerClient:
        return self.engine.client()

    def start(self, script: str, k: int = 0, **options: Any) -> Any:
        """Start a replica of role ``worker`` that runs a shell script."""
        return self.run("busybox:local", ["sh", "-c", script], k, **options)

    def python(self, script: str, k: int = 0, **options: Any) -> Any:
        return self.run("python:local", ["python3", "-c", script], k, **options)

    def run(self, image: str, command: list[str], k: int = 0, **options: Any) -> Any:
        marks = {labels.APP_ID: self.app_id, labels.ROLE_NAME: "worker", labels.REPLICA_ID: str(k)}
        return self.client.containers.run(image, command, detach=True, labels=marks, **options)

    def remove(self) -> None:
        for one in self.client.containers.list(all=True, filters={"label": f"{labels.APP_ID}={self.app_id}"}):
            one.remove(force=True, v=True)
        self.engine.close()


@contextmanager
def replicas() -> Iterator[Replicas]:
    made = Replicas()
    try:
        yield made
    finally:
        made.remove()


def output_of(client: docker.DockerClient, image: str, *command: str) -> str:
    """Return what a program prints in a container.

    The SDK's own way follows the log of a container that ends, of which engines may leave out the last lines.
    """
    container = client.containers.run(image, list(command), detach=True)
    try:
        container.wait()
        return container.logs().decode()
    finally:
        container.remove(force=True)


def wait_for(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Return what ``condition`` returns as soon as that is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not come about within {seconds:.0f} s"
        time.sleep(0.02)
    return found


class Follower:
    """Reads a stream in a thread, and takes it up where it broke off, as the spools do."""

    def __init__(self, open_stream: Callable[[Cursor | None], LogStream]) -> None:
        self._open = open_stream
        self.records: list[Any] = []
        self.size = 0
        self.cuts: list[str] = []
        self._closed = False
        self.stream = open_stream(None)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    @property
    def data(self) -> bytes:
        return b"".join(record.data for record in tuple(self.records))

    def of(self, letter: str) -> bytes:
        return b"".join(record.data for record in tuple(self.records) if record.stream == letter)

    def join(self) -> None:
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive(), "the stream did not end"

    def close(self) -> None:
        self._closed = True
        self.stream.close()

    def _read(self) -> None:
        while not self._closed:
            try:
                for record in self.stream:
                    self.records.append(record)
                    self.size += len(record.data)
                return
            except (SchedulerError, OSError) as error:
                self.cuts.append(str(error))
                time.sleep(0.2)
                self.stream = self._open(self.stream.cursor)
