"""Named resources of other packages: the modules of `torchx_plugins.named_resources`, and entry points.

A module is imported to learn what it names, for the names of fractions are made by calls; one that raises or hangs is
left out. What an entry point names is imported when it is looked up.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import UnknownResourceError, described
from .limited_call import AwaitedCall
from .plugin_modules import NAMESPACE, namespace_modules, plugin_sources
from .printed_aside import printed_aside

logger = logging.getLogger(__name__)

ENTRY_POINT_GROUP = "torchx.named_resources"
NAMESPACE_PART = "named_resources"
# How long a module may take to be imported (s).
_IMPORT_SECONDS = 5.0


@dataclass(frozen=True)
class RegisteredResource:
    """A named resource of another package.

    Args:
        name: what it is looked up by.
        group: where it is registered.
        origin: the module, or module and function, that makes it.
        make: makes it; the result is TorchX's own `Resource`, or ours.
    """

    name: str
    group: str
    origin: str
    make: Callable[[], Any]


def registered_resources(failed: Callable[[str, str], object]) -> list[RegisteredResource]:
    """Return the named resources of other packages; of several with one name, the last wins.

    Args:
        failed: called with a module that cannot be read, and why.
    """
    by_namespace, by_entry_point = plugin_sources()
    found: list[RegisteredResource] = []
    for module, _ in namespace_modules(NAMESPACE_PART) if by_namespace else ():
        try:
            found += _of_module(module)
        except Exception as error:
            logger.warning("%s cannot be imported", module, exc_info=True)
            failed(module, described(error))
    return found + (_of_entry_points() if by_entry_point else [])


def _of_module(module: str) -> list[RegisteredResource]:
    """Return what a module registers with TorchX's decorator.

    Raises:
        Exception: whatever it raises; TimeoutError where its import does not end.
    """
    call = AwaitedCall(lambda: _imported(module), f"import-{module}")
    if not call.wait(_IMPORT_SECONDS):
        raise TimeoutError(f"its import did not end within {_IMPORT_SECONDS:g} s")
    # The decorator leaves the functions that make them in the module, those of fractions and other names as well.
    made = [one for one in vars(call.result()).values() if getattr(one, "_plugin_type", None) == ENTRY_POINT_GROUP]
    group = f"{NAMESPACE}.{NAMESPACE_PART}"
    return [
        RegisteredResource(one._plugin_name, group, module, _telling(one._plugin_name, module, one))
        for one in made
        if one.__module__ == module
    ]


def _imported(module: str) -> Any:
    with printed_aside():
        return importlib.import_module(module)


def _of_entry_points() -> list[RegisteredResource]:
    from importlib.metadata import entry_points

    return [
        RegisteredResource(
            entry.name,
            ENTRY_POINT_GROUP,
            entry.value,
            _telling(entry.name, entry.value, lambda entry=entry: entry.load()()),
        )
        for entry in entry_points(group=ENTRY_POINT_GROUP)
    ]


def _telling(name: str, origin: str, make: Callable[[], Any]) -> Callable[[], Any]:
    """Return what makes a resource, or tells which one could not be made."""

    def telling() -> Any:
        try:
            with printed_aside():
                return make()
        except Exception as error:
            raise UnknownResourceError(
                f"The named resource {name} of {origin} could not be made: {described(error)}"
            ) from error

    return telling
