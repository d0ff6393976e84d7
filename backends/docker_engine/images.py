"""Pulls, pushes and builds images on a Docker engine, with progress in words, ended at once by who waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...base.timeouts import AwaitedCall
from ...specs.errors import LaunchCancelledError, SchedulerError
from ..shared.progress import current_progress
from ..shared.streaming_response import StreamingResponse
from .client import Engine
from .streams import ask

if TYPE_CHECKING:
    import docker


_log = logging.getLogger(__name__)
_CHECK_INTERVAL_S = 0.05

LOCAL_REGISTRY = "localhost/"
"""Podman's prefix of images that were built here."""
# An image that was built here and has no name cannot be pulled.
_LOCAL = "sha256:"
# The variables of images, by id: an id means the same on every engine, for ever.
_variables: dict[str, frozenset[str]] = {}


# Layers that are here, in the words of the engine.
_DONE = ("Pull complete", "Already exists", "Pushed", "Layer already exists", "Mounted from")
# What a build's output says of itself.
_HOUSEKEEPING = ("---> ", "Removing intermediate container")
# How many of a build's last lines an error repeats.
_LAST_LINES = 8
# Why an image could not be had, by what is found in the engine's answer, in lower case. The first that fits counts.
_REASONS = (
    (("manifest unknown", "not found: manifest", "no such image", "not found"), "there is no such image or tag there"),
    (("access denied", "denied:", "unauthorized", "authentication required", "no basic auth credentials"),
     "you may not: log in with `docker login`, or correct the name"),
    (("no such host", "connection refused", "i/o timeout", "timeout exceeded", "network is unreachable",
      "proxyconnect", "no route to host", "client.timeout", "server misbehaving", "eof"),
     "its registry cannot be reached"),
    (("no space left",), "the engine's disk is full: `docker system prune` makes room"),
)  # fmt: skip


def ensure_images(engine: Engine, images: Iterable[str], pull: bool = True) -> None:
    """Have every image on the engine, as TorchX does: pull it, and take what is there where that fails.

    The current progress is told how far it is, and ends it.

    Args:
        engine: the engine.
        images: their names; ids that begin with ``sha256:`` are never pulled.
        pull: whether to pull what is there already, in case it is newer elsewhere.

    Raises:
        LaunchCancelledError: the launch was cancelled.
        BackendUnavailableError: the engine cannot be reached.
        SchedulerError: an image is not there and cannot be pulled; the message says why.
    """
    for image in dict.fromkeys(images):
        with engine.translate_errors():
            client = engine.new_client(None)
            try:
                _ensure(client, image, pull)
            finally:
                client.close()


def variables_of(engine: Engine, image_id: str) -> frozenset[str]:
    """Return the variables, ``name=value``, that an image gives to its containers; none where it is gone.

    Raises:
        SchedulerError: the engine did not answer.
    """
    if image_id not in _variables:
        import docker.errors

        with engine.translate_errors():
            try:
                config = engine.client().api.inspect_image(image_id).get("Config") or {}
            except docker.errors.NotFound:
                return frozenset()
        _variables[image_id] = frozenset(config.get("Env") or [])
    return _variables[image_id]


def _ensure(client: docker.DockerClient, image: str, wanted: bool) -> None:
    is_here = _is_here(client, image)
    if image.startswith(_LOCAL):
        if not is_here:
            raise SchedulerError(f"the engine has no image {image}: it was removed, or built on another engine")
        return
    if is_here and not wanted:
        return
    failure = try_to_pull(client, image)
    if failure is None:
        return
    if not is_here:
        raise SchedulerError(f"{failure}. The engine has none of that name either") from failure
    _log.info("%s: %s; the one that is there is used", image, failure)
    current_progress().report(f"{image} is used as it is here: {failure}")


def is_short_name(image: str) -> bool:
    """Return whether an image's name has no registry, so that Podman may have it as ``localhost/NAME``."""
    first, slash, _ = image.partition("/")
    return not (slash and (first == "localhost" or "." in first or ":" in first)) and not image.startswith(_LOCAL)


def _is_here(client: docker.DockerClient, image: str) -> bool:
    import docker.errors

    for name in (image, LOCAL_REGISTRY + image) if is_short_name(image) else (image,):
        with suppress(docker.errors.NotFound):
            client.api.inspect_image(name)
            return True
    return False


def pull(client: docker.DockerClient, image: str) -> None:
    """Pull an image, telling the current progress.

    Args:
        client: a client that nobody else uses meanwhile.
        image: its name, with a tag, a digest, or neither for ``latest``.

    Raises:
        LaunchCancelledError: the launch was cancelled; the engine has stopped to pull.
        SchedulerError: it cannot be pulled; the message says why.
        docker.errors.DockerException, OSError: the engine cannot be reached.
    """
    import docker.errors
    from docker import auth
    from docker.utils import parse_repository_tag

    repository, tag = parse_repository_tag(image)
    params = {"fromImage": repository, "tag": tag or "latest"}
    try:
        registry, _ = auth.resolve_repository_name(repository)
        layers = Layers(f"pulling {image}")
        for event in _events(client, "/images/create", params, _login(client, registry)):
            if "error" in event:
                raise SchedulerError(_refused(f"{image} cannot be pulled", event["error"]))
            layers.add(event)
    except docker.errors.InvalidRepository as error:
        raise SchedulerError(f"{image} is not a name of an image: {error}") from error
    except docker.errors.APIError as error:
        raise SchedulerError(_refused(f"{image} cannot be pulled", error.explanation or str(error))) from error


def try_to_pull(client: docker.DockerClient, image: str) -> SchedulerError | None:
    """Pull an image where that is possible; return why it is not, for those who can do with what is there.

    Raises:
        LaunchCancelledError: the launch was cancelled.
    """
    try:
        pull(client, image)
    except LaunchCancelledError:
        raise
    except SchedulerError as error:
        return error
    return None


def push(client: docker.DockerClient, repository: str, tag: str) -> None:
    """Push a tag of an image to its registry, telling the current progress.

    Raises:
        LaunchCancelledError: the launch was cancelled; the engine has stopped to push.
        SchedulerError: it cannot be pushed; the message says why.
        docker.errors.DockerException, OSError: the engine cannot be reached.
    """
    import docker.errors
    from docker import auth

    image = f"{repository}:{tag}"
    try:
        registry, _ = auth.resolve_repository_name(repository)
        layers = Layers(f"pushing {image}")
        # Unlike a pull, a push without a login has to say so.
        headers = _login(client, registry) or {"X-Registry-Auth": "e30="}
        for event in _events(client, f"/images/{repository}/push", {"tag": tag}, headers):
            if "error" in event:
                raise SchedulerError(_refused(f"{image} cannot be pushed", event["error"]))
            layers.add(event)
    except docker.errors.APIError as error:
        raise SchedulerError(_refused(f"{image} cannot be pushed", error.explanation or str(error))) from error


def build(
    client: docker.DockerClient,
    context: Iterator[bytes],
    params: Mapping[str, Any],
    *,
    name: str,
    quiet: bool = False,
) -> str:
    """Build an image and return its id, telling the current progress.

    Args:
        client: a client that nobody else uses meanwhile.
        context: the files that it is built from, as a tar.
        params: the engine's own parameters of a build.
        name: what is built, in words.
        quiet: say only that it is built, not the steps.

    Raises:
        LaunchCancelledError: the launch was cancelled; the engine has stopped to build.
        SchedulerError: it cannot be built; the message has the last lines of the output.
        docker.errors.DockerException, OSError: the engine cannot be reached.
    """
    import docker.errors

    report = current_progress().report
    report(f"building {name}")
    lines: list[str] = []
    built = ""
    try:
        for event in _events(client, "/build", params, {"Content-Type": "application/x-tar"}, context):
            if "error" in event:
                output = "\n".join([*lines[-_LAST_LINES:], str(event["error"]).strip()])
                raise SchedulerError(f"{name} cannot be built:\n{output}")
            built = (event.get("aux") or {}).get("ID", built)
            fresh = _progress_lines(str(event.get("stream") or event.get("status") or ""))
            lines += fresh
            if fresh:
                report(f"building {name}" if quiet else f"building {name}: {lines[-1]}")
    except docker.errors.APIError as error:
        raise SchedulerError(f"{name} cannot be built: {error.explanation or error}") from error
    if not built:
        raise SchedulerError(f"{name} cannot be built: the engine did not say which image it made")
    return built


def _progress_lines(text: str) -> list[str]:
    """Return the lines of a build's output, without those about the engine's own housekeeping."""
    lines = [line.rstrip() for line in text.splitlines()]
    return [line for line in lines if line and not line.lstrip().startswith(_HOUSEKEEPING)]


class Layers:
    """Reports how many layers of an image are done.

    Args:
        what: what is done, such as ``pulling python:3.12``.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._done: dict[str, bool] = {}
        current_progress().report(what)

    def add(self, event: Mapping[str, Any]) -> None:
        """Add an event of a pull or a push.

        Raises:
            LaunchCancelledError: the launch was cancelled.
        """
        layer, status = event.get("id"), str(event.get("status", ""))
        if layer and not status.startswith(("Pulling from", "The push")):
            self._done[layer] = self._done.get(layer, False) or status.startswith(_DONE)
        count = f": {sum(self._done.values())} of {len(self._done)} layers" if self._done else ""
        current_progress().report(self._what + count)


def _events(
    client: docker.DockerClient,
    path: str,
    params: Mapping[str, Any],
    headers: Mapping[str, str],
    body: Iterator[bytes] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield an engine's events of progress; cancelling the launch ends them, and the engine's work, at once."""
    progress = current_progress()
    is_over = threading.Event()

    def send() -> StreamingResponse:
        parts = None if body is None else _until(is_over, body)
        answer = ask(client, "POST", path, params, headers=headers, body=parts, timeout=None)
        if is_over.is_set():
            answer.close()
        return answer

    # The answer of a registry may take long to begin.
    call = AwaitedCall(send, "docker-image")
    try:
        while not call.wait(_CHECK_INTERVAL_S):
            progress.check()
        answer = call.result()
        with progress.ended_by(answer.shut):
            yield from answer.objects()
            progress.check()
    finally:
        is_over.set()
        if call.wait(0):
            with suppress(Exception):
                call.result().close()


def _until(is_over: threading.Event, body: Iterator[bytes]) -> Iterator[bytes]:
    for part in body:
        if is_over.is_set():
            raise LaunchCancelledError
        yield part


def _login(client: docker.DockerClient, registry: str) -> dict[str, str]:
    """Return the header that logs in at a registry, as ``docker login`` keeps it; nothing without a login."""
    from docker import auth

    header = auth.get_config_header(client.api, registry)
    if not header:
        return {}
    return {"X-Registry-Auth": header.decode("ascii") if isinstance(header, bytes) else header}


def _refused(what: str, answer: str | bytes) -> str:
    text = " ".join((answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)).split())
    lowered = text.lower()
    for signs, reason in _REASONS:
        if any(sign in lowered for sign in signs):
            return f"{what}: {reason} ({text})"
    return f"{what}: {text}"
