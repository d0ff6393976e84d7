"""The networks of apps."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from ...specs.errors import SchedulerError
from ..docker_engine.client import Engine
from . import labels

NETWORK = "torchx"
"""TorchX's network: its containers reach one another by name."""
_OF_ENGINE = ("bridge", "host", "none", "default")

logger = logging.getLogger(__name__)


def ensure_network(engine: Engine, name: str = NETWORK) -> None:
    """Create a network unless it exists, without a lock.

    If several processes create it at once, the first one stays and each process removes the others. Other failures are
    logged only: the start of the first container then says what is wrong.
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
                pass  # another process was faster
            except docker.errors.APIError as error:
                logger.warning("the network %s is there more than once: %s", name, error)


def _named(api: Any, name: str) -> list[dict[str, Any]]:
    """Return the networks of a name, oldest first."""
    # The engine's filter matches parts of names.
    networks = [network for network in api.networks(names=[name]) if network["Name"] == name]
    return sorted(networks, key=lambda network: (network["Created"], network["Id"]))


def is_network_error(error: Exception) -> bool:
    """Return whether a start failed because its network was removed, or exists twice for a moment."""
    text = str(error)
    return "network" in text and ("not found" in text or "ambiguous" in text)


def remove_own_networks(engine: Engine, app_id: str) -> None:
    """Remove the networks that have the label of an app."""
    with engine.translate_errors():
        api = engine.client().api
        own = api.networks(filters={"label": f"{labels.APP_ID}={app_id}"})
    for network in own:
        try:
            with engine.translate_errors():
                api.remove_network(network["Id"])
        except SchedulerError as error:
            logger.warning("the network %s of %s stays: %s", network["Name"], app_id, error)


def networks_to_create(networks: Iterable[str | None]) -> list[str]:
    """Return the networks that must exist before a start, without the engine's own."""
    return [name for name in dict.fromkeys(networks) if name and name not in _OF_ENGINE]
