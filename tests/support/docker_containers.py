"""Containers with an app's labels, made without a scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import docker

from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker_engine.client import Engine
from torchx_tui.specs.handles import make_unique


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
