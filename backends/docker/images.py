"""Has the images of an app on the engine before its containers are made."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ...specs import SchedulerError
from ..progress import current_progress
from ..workspace.docker_images import try_to_pull
from .engine import Engine

if TYPE_CHECKING:
    import docker

_log = logging.getLogger(__name__)

# An image that was built here and has no name cannot be pulled.
_LOCAL = "sha256:"
# The variables of images, by id: an id means the same on every engine, for ever.
_variables: dict[str, frozenset[str]] = {}
# Seconds: nobody waits for what is only noted.
_PATIENCE = 0.5


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
        with engine.in_words():
            client = engine.new_client(None)
            try:
                _ensure(client, image, pull)
            finally:
                client.close()


def image_ids(engine: Engine, images: Iterable[str]) -> dict[str, str]:
    """Return the ids of those images that the engine has, by their names.

    Raises:
        BackendUnavailableError: the engine cannot be reached, or does not answer soon.
    """
    import docker.errors

    found: dict[str, str] = {}
    with engine.in_words():
        client = engine.new_client(_PATIENCE)
        try:
            for image in images:
                try:
                    found[image] = client.api.inspect_image(image)["Id"]
                except docker.errors.APIError as error:
                    # It is not here, or its name is none.
                    if not error.is_client_error():
                        raise
        finally:
            client.close()
    return found


def variables_of(engine: Engine, image_id: str) -> frozenset[str]:
    """Return the variables, ``name=value``, that an image gives to its containers; none where it is gone.

    Raises:
        SchedulerError: the engine did not answer.
    """
    if image_id not in _variables:
        import docker.errors

        with engine.in_words():
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


def _is_here(client: docker.DockerClient, image: str) -> bool:
    import docker.errors

    try:
        client.api.inspect_image(image)
    except docker.errors.ImageNotFound:
        return False
    return True
