"""The network that apps share, TorchX's, and networks that are one app's own."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from ...specs import SchedulerError
from ..docker_engine.client import Engine
from . import labels
from .request import NETWORK

logger = logging.getLogger(__name__)


def ensure_network(engine: Engine, name: str = NETWORK) -> None:
    """Make a network unless it is there; no lock is held.

    The engine lets several that try at once each make one. The first one stays; all who see others remove them.
    What fails otherwise is only noted: the start of the first container then says what is wrong.
    """
    import docker.errors

    with engine.translate_errors():
        api = engine.client().api
        if len(_named(api, name)) == 1:
            return
        try:
            if not _named(api, name):
                api.create_network(name, driver="bridge", check_duplicate=True)
        except docker.errors.APIError as error:
            if "already exists" not in str(error):
                logger.warning("the network %s: %s", name, error)
        for surplus in _named(api, name)[1:]:
            try:
                api.remove_network(surplus["Id"])
            except docker.errors.NotFound:
                continue  # another one was faster
            except docker.errors.APIError as error:
                logger.warning("the network %s is there more than once: %s", name, error)


def _named(api: Any, name: str) -> list[dict[str, Any]]:
    """Return the networks of a name, the first one first."""
    # The engine gives those that contain the name.
    networks = [network for network in api.networks(names=[name]) if network["Name"] == name]
    return sorted(networks, key=lambda network: (network["Created"], network["Id"]))


def is_network_trouble(error: Exception) -> bool:
    """Whether a start failed as the network was removed after it had been made sure of, or was there twice for once."""
    text = str(error)
    return "network" in text and ("not found" in text or "ambiguous" in text)


def remove_own_networks(engine: Engine, app_id: str) -> None:
    """Remove the networks that were made for one app alone: those with its label."""
    with engine.translate_errors():
        api = engine.client().api
        own = api.networks(filters={"label": f"{labels.APP_ID}={app_id}"})
    for network in own:
        try:
            with engine.translate_errors():
                api.remove_network(network["Id"])
        except SchedulerError as error:
            logger.warning("the network %s of %s stays: %s", network["Name"], app_id, error)


def names_of(networks: Iterable[str]) -> list[str]:
    """Return the networks that have to be there before a start: not the engine's own."""
    return [name for name in dict.fromkeys(networks) if name not in ("bridge", "host", "none", "default")]
