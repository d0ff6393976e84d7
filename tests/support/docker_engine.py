"""Docker engines for tests: one that all share, and one that a test has for itself, to stop and to kill."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .services import HOW, NoServiceError, free_slot, run_script

IMAGES = ("busybox:local", "python:local")

# Read before any test changes the environment.
_GIVEN = os.environ.get("DOCKER_HOST", "")
_SHARED = Path(os.environ.get("DOCKER_TEST_SOCK") or Path(tempfile.gettempdir(), "torchx-tui-docker.sock"))
# Each engine of a test's own takes one: a bridge and addresses cannot be shared.
_SLOTS = range(20, 27)


def shared_engine() -> str:
    """Return the ``DOCKER_HOST`` of the engine that was given, else of the one that runs for tests.

    Raises:
        NoServiceError: none runs, or it lacks the images.
    """
    host = _GIVEN or f"unix://{_SHARED}"
    if not _GIVEN and not _SHARED.is_socket():
        raise NoServiceError(f"{HOW.format('an engine')}, or set DOCKER_HOST to one that runs")
    _check_images(host)
    return host


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

    def start(self, *, python: bool = False) -> None:
        """Start it, unless it runs; its images and containers are as they were.

        Args:
            python: with the image python:local as well, which takes seconds to make.
        """
        images = IMAGES if python else IMAGES[:1]
        run_script("docker-up.sh", {**self._settings, "DOCKER_TEST_IMAGES": " ".join(images)})

    def stop(self) -> None:
        """Stop it as a machine that shuts down does: its containers end, and are kept."""
        run_script("docker-down.sh", self._settings, "--stop")

    def kill(self) -> None:
        """Kill dockerd by SIGKILL; its containers go on without it."""
        os.kill(int((self._folder / "dockerd.pid").read_text()), signal.SIGKILL)

    def remove_containers(self) -> None:
        """Remove all of its containers with their volumes."""
        import docker

        client = docker.DockerClient(base_url=self.host)
        for container in client.containers.list(all=True):
            container.remove(force=True, v=True)
        client.close()

    def purge(self) -> None:
        """Stop it and remove everything of it."""
        run_script("docker-down.sh", self._settings, "--purge")


@contextmanager
def private_engine() -> Iterator[OwnEngine]:
    """Give an engine of one's own, started; it is removed afterwards.

    Raises:
        NoServiceError: none can be started.
    """
    # Where an engine was given, docker-up.sh installs one for tests that stop it; nothing is installed unasked.
    if os.geteuid() != 0 or not (_GIVEN or shutil.which("dockerd", path="/usr/sbin:/usr/bin")):
        raise NoServiceError(HOW.format("an engine"))
    with free_slot(str(Path(tempfile.gettempdir(), "torchx-tui-docker-own")), _SLOTS) as slot:
        # A socket's path has at most 107 characters: none of pytest's long folders.
        engine = OwnEngine(Path(tempfile.mkdtemp(prefix="txd-")), slot)
        try:
            engine.start()
            yield engine
        finally:
            engine.purge()


def _check_images(host: str) -> None:
    import docker
    import docker.errors

    try:
        client = docker.DockerClient(base_url=host)
    except docker.errors.DockerException as error:
        raise NoServiceError(f"DOCKER_HOST={host}: {error}") from error
    with_tags = {tag for image in client.api.images() for tag in image["RepoTags"] or ()}
    client.close()
    if missing := set(IMAGES) - with_tags:
        raise NoServiceError(
            f"DOCKER_HOST={host} lacks {', '.join(missing)}: tests/services/docker-images.sh makes them"
        )
