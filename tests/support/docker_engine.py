"""Docker engines for tests: one that all share, and one that a test has for itself, to stop and to kill."""

from __future__ import annotations

import os
import shlex
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .shared_service import NoServiceError, free_slot, run_script, shared_service

IMAGES = ("busybox:local", "python:local")

# Read before any test changes the environment.
_GIVEN = os.environ.get("DOCKER_HOST", "")
_SHARED_FOLDER = Path(os.environ.get("DOCKER_TEST_DIR") or Path(tempfile.gettempdir(), "torchx-tui-docker"))
# Each engine of a test's own takes one: a bridge and addresses cannot be shared.
_SLOTS = range(20, 27)


@contextmanager
def shared_engine() -> Iterator[str]:
    """Give the ``DOCKER_HOST`` of the engine that was given, else of one that every test process shares.

    Raises:
        NoServiceError: none runs, and none can be started.
    """
    if _GIVEN:
        _check_images(_GIVEN)
        yield _GIVEN
        return
    with shared_service(_SHARED_FOLDER, lambda: _up({}), lambda: run_script("docker-down.sh", {})) as host:
        yield host


class OwnEngine:
    """An engine that one test starts, stops and kills as it likes.

    Args:
        folder: where its state is kept.
        slot: which of the bridges and addresses is its own.
    """

    def __init__(self, folder: Path, slot: int) -> None:
        self._folder = folder
        self._settings = {
            "DOCKER_TEST_DIR": str(folder),
            "DOCKER_TEST_SOCK": f"{folder}.sock",
            "DOCKER_TEST_BRIDGE": f"txtuiown{slot}",
            "DOCKER_TEST_NET": f"172.{slot}",
        }
        self.host = f"unix://{folder}.sock"

    def start(self) -> None:
        """Start it; its images and containers are as they were."""
        _up(self._settings)

    def stop(self) -> None:
        """Stop it as a machine that shuts down does: its containers end, and are kept."""
        run_script("docker-down.sh", self._settings, "--stop")

    def kill(self) -> None:
        """Kill dockerd by SIGKILL; its containers go on without it."""
        os.kill(int((self._folder / "dockerd.pid").read_text()), signal.SIGKILL)

    def purge(self) -> None:
        """Stop it and remove everything of it."""
        run_script("docker-down.sh", self._settings, "--purge")


@contextmanager
def private_engine() -> Iterator[OwnEngine]:
    """Give an engine of one's own, started; it is removed afterwards.

    Raises:
        NoServiceError: none can be started.
    """
    with free_slot(str(Path(tempfile.gettempdir(), "torchx-tui-docker-own")), _SLOTS) as slot:
        # A socket's path has at most 107 characters: none of pytest's long folders.
        engine = OwnEngine(Path(tempfile.mkdtemp(prefix="txd-")), slot)
        try:
            engine.start()
            yield engine
        finally:
            engine.purge()


def _up(settings: Mapping[str, str]) -> str:
    if os.getuid() != 0:
        raise NoServiceError("only root can start a Docker engine: set DOCKER_HOST to one that runs")
    said = run_script("docker-up.sh", settings)
    return shlex.split(said.strip())[-1].partition("=")[2]


def _check_images(host: str) -> None:
    import docker
    import docker.errors

    try:
        client = docker.DockerClient(base_url=host)
    except docker.errors.DockerException as error:
        raise NoServiceError(f"DOCKER_HOST={host}: {error}") from error
    with_tags = {tag for image in client.images.list() for tag in image.tags}
    client.close()
    if missing := set(IMAGES) - with_tags:
        raise NoServiceError(
            f"DOCKER_HOST={host} lacks {', '.join(missing)}: tests/services/docker-images.sh makes them"
        )
