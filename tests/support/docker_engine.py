"""Docker engines for tests: one that all share, and one that a test has for itself, to stop and to kill."""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SERVICES = Path(__file__).parent.parent / "services"
IMAGES = ("busybox:local", "python:local")

# Read before any test changes the environment.
_GIVEN = os.environ.get("DOCKER_HOST", "")
_SHARED_FOLDER = Path(os.environ.get("DOCKER_TEST_DIR") or Path(tempfile.gettempdir(), "torchx-tui-docker"))
# Each engine of a test's own takes one: a bridge and addresses cannot be shared.
_SLOTS = range(20, 27)


class NoEngineError(Exception):
    """No engine can be had here; the message says why."""


@contextmanager
def shared_engine() -> Iterator[str]:
    """Give the ``DOCKER_HOST`` of the engine that was given, else of one that every test process shares.

    Raises:
        NoEngineError: none runs, and none can be started.
    """
    if _GIVEN:
        _check_images(_GIVEN)
        yield _GIVEN
        return
    _SHARED_FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{_SHARED_FOLDER}.users", "w") as users:
        with _locked(f"{_SHARED_FOLDER}.lock"):
            host = _up({})
            # Held as long as this process uses it, however it ends; a child does not inherit it.
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield host
        finally:
            with _locked(f"{_SHARED_FOLDER}.lock"):
                try:
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    pass  # others use it still: the last one stops it
                else:
                    _run("docker-down.sh", {})


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
        _run("docker-down.sh", self._settings, "--stop")

    def kill(self) -> None:
        """Kill dockerd by SIGKILL; its containers go on without it."""
        os.kill(int((self._folder / "dockerd.pid").read_text()), signal.SIGKILL)

    def purge(self) -> None:
        """Stop it and remove everything of it."""
        _run("docker-down.sh", self._settings, "--purge")


@contextmanager
def private_engine() -> Iterator[OwnEngine]:
    """Give an engine of one's own, started; it is removed afterwards.

    Raises:
        NoEngineError: none can be started.
    """
    for slot in _SLOTS:
        with open(Path(tempfile.gettempdir(), f"torchx-tui-docker-own-{slot}.lock"), "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            # A socket's path has at most 107 characters: none of pytest's long folders.
            engine = OwnEngine(Path(tempfile.mkdtemp(prefix="txd-")), slot)
            try:
                engine.start()
                yield engine
            finally:
                engine.purge()
            return
    raise NoEngineError(f"all {len(_SLOTS)} engines of tests' own are in use")


def _up(settings: Mapping[str, str]) -> str:
    if os.getuid() != 0:
        raise NoEngineError("only root can start a Docker engine: set DOCKER_HOST to one that runs")
    said = _run("docker-up.sh", settings)
    return shlex.split(said.strip())[-1].partition("=")[2]


def _run(script: str, settings: Mapping[str, str], *arguments: str) -> str:
    result = subprocess.run(
        ["bash", str(SERVICES / script), *arguments],
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        raise NoEngineError(f"{script}: {' '.join(result.stderr.splitlines()[-3:])}")
    return result.stdout


def _check_images(host: str) -> None:
    import docker
    import docker.errors

    try:
        client = docker.DockerClient(base_url=host)
    except docker.errors.DockerException as error:
        raise NoEngineError(f"DOCKER_HOST={host}: {error}") from error
    with_tags = {tag for image in client.images.list() for tag in image.tags}
    client.close()
    if missing := set(IMAGES) - with_tags:
        raise NoEngineError(
            f"DOCKER_HOST={host} lacks {', '.join(missing)}: tests/services/docker-images.sh makes them"
        )


@contextmanager
def _locked(path: str) -> Iterator[None]:
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
