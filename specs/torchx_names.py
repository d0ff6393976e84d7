"""Names of TorchX's specs that components and plugins written for it use, and nothing here needs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from .resources import Resource
from .run_options import snake_case

V = TypeVar("V")

TORCHX_CONTEXT_NAME = "TORCHX_CONTEXT_NAME"
"""The variable that says who launches: ``cli_run`` for the command run. Jobs on this machine inherit it."""


def TORCHX_HOME(*subdir_paths: str) -> Path:
    """Return a folder below TorchX's own, which is made if it is not there.

    Args:
        subdir_paths: The parts of the path below ``TORCHX_HOME`` of the environment, or ``~/.torchx``.

    Raises:
        OSError: It cannot be made.
    """
    folder = Path(os.environ.get("TORCHX_HOME") or Path.home() / ".torchx").joinpath(*subdir_paths)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class cases:  # noqa: N801 - TorchX's name
    """Turns names from one way of writing to another."""

    @staticmethod
    def snake_to_camel(name: str) -> str:
        """Return ``jobQueue`` for ``job_queue``."""
        first, *rest = name.split("_")
        return first + "".join(word.title() for word in rest)

    @staticmethod
    def camel_to_snake(name: str) -> str:
        """Return ``job_queue`` for ``jobQueue``."""
        return snake_case(name)


class app_metadata:  # noqa: N801 - TorchX's name
    """Keys of an app's metadata that TorchX's schedulers write."""

    CONTEXT = "torchx/context"
    VERSION = "torchx/version"
    SCHEDULER = "torchx/scheduler"
    ROLES_PREFIX = "torchx/roles."


@dataclass(frozen=True)
class CapabilityKey(Generic[V]):
    """A key of `Resource.capabilities`, with the type of its value.

    Args:
        namespace: Whose it is, such as a cloud's.
        name: Its name there.
        type: The type of its value.
    """

    namespace: str
    name: str
    type: type[V]

    @property
    def key(self) -> str:
        """The key as it stands in the capabilities."""
        return f"{self.namespace}.{self.name}"

    def set(self, resource: Resource, value: V) -> None:
        """Note a value."""
        resource.capabilities[self.key] = value

    def get(self, resource: Resource, default: V | None = None) -> V | None:
        """Return the value, ``default`` where there is none.

        Raises:
            TypeError: The value is of another type; a truth value is no whole number.
        """
        if self.key not in resource.capabilities:
            return default
        value: Any = resource.capabilities[self.key]
        if not isinstance(value, self.type) or (self.type is int and isinstance(value, bool)):
            raise TypeError(
                f"capability `{self.key}` expected `{self.type.__name__}`, got `{type(value).__name__}`: {value!r}"
            )
        return value
