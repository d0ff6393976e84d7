"""Resources by name: generic ones, AWS's, and those that a site or an installed package registers.

Later sources win: generic, AWS, the module named by `TORCHX_CUSTOM_NAMED_RESOURCES` (its `NAMED_RESOURCES`), the
modules of `torchx_plugins.named_resources`, the entry points of the group `torchx.named_resources`. They are loaded at
the first look-up, because reading entry points is slow. `load` can load them from a guest process before that.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..base.errors import describe_error
from ..base.modules import NAMESPACE, namespace_modules, plugin_sources
from ..base.timeouts import AwaitedCall
from .errors import UnknownResourceError
from .from_torchx import from_torchx
from .resources import RESOURCE_NAME_TAG, Resource, null_resource

ENTRY_POINT_GROUP = "torchx.named_resources"
NAMESPACE_PART = "named_resources"
CUSTOM_MODULE_VARIABLE = "TORCHX_CUSTOM_NAMED_RESOURCES"
IMPORT_TIMEOUT_S = 5.0
"""How long a module may take to be imported (s)."""
_log = logging.getLogger(__name__)
ResourceFactory = Callable[[], Resource]


class NamedResources(Mapping[str, Resource]):
    """All named resources by name, ignoring case.

    Iterating gives the names. A resource is made at each look-up and carries its name as a tag.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.reset()

    def reset(self) -> None:
        """Clear the cache, so that the next look-up sees a changed environment."""
        with self._lock:
            self._factories: dict[str, ResourceFactory] | None = None
            self._problems: list[str] = []
            self.is_loaded = False
            """Whether the resources of other packages are loaded: look-ups run no code of theirs."""

    def load(self, source: ResourceSource | None = None) -> None:
        """Load the resources of other packages, unless they are loaded. A look-up does so, too.

        Args:
            source: Lists them; `registered_resources`, which runs their code in this process, if None.
        """
        if self.is_loaded:
            return
        with self._lock:
            if self._factories is not None:
                return
            from . import named_resources_aws, named_resources_generic

            # Set before the code of packages runs, which may look up a resource itself.
            self._factories = {**named_resources_generic.NAMED_RESOURCES, **named_resources_aws.NAMED_RESOURCES}
            try:
                registered = (source or registered_resources)(self._add_problem)
            except BaseException:
                # The launch was cancelled: the next look-up loads them.
                self._factories = None
                raise
            self._factories.update({resource.name: resource.make for resource in registered})
            self._factories.update(NULL=null_resource, MISSING=null_resource)
            self.is_loaded = True

    def __getitem__(self, name: str) -> Resource:
        spellings = self._spellings(name)
        if len(spellings) > 1:
            raise UnknownResourceError(f"The named resource {name} is spelled in several ways: {', '.join(spellings)}")
        if not spellings:
            raise UnknownResourceError(self._describe_unknown(name))
        resource = self._all()[spellings[0]]()
        if spellings[0] in ("NULL", "MISSING") or RESOURCE_NAME_TAG in resource.tags:
            return resource
        return replace(resource, tags={**resource.tags, RESOURCE_NAME_TAG: spellings[0]})

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self._spellings(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, ResourceFactory]:
        self.load()
        return self._factories or {}

    def _spellings(self, name: str) -> list[str]:
        known = self._all()
        return [name] if name in known else sorted(other for other in known if other.lower() == name.lower())

    def _describe_unknown(self, name: str) -> str:
        import difflib

        known = self._all()
        close = difflib.get_close_matches(name.lower(), known, n=1)
        advice = f"Did you mean `{close[0]}`?" if close else f"Valid names: {', '.join(sorted(known))}"
        return " ".join([f"No named resource found for `{name}`. {advice}", *self._problems])

    def _add_problem(self, module: str, reason: str) -> None:
        self._problems.append(f"({module} could not be read: {reason})")


def named_resource_names() -> list[str]:
    """List the names that users can choose, sorted: all but NULL and MISSING."""
    return sorted(name for name in named_resources if name not in ("NULL", "MISSING"))


def get_named_resources(res: str) -> Resource:
    """Return the resource of a name.

    Raises:
        UnknownResourceError: Nothing registers the name; the message has the closest one or all of them.
    """
    return named_resources[res]


def resource(
    cpu: int | None = None, gpu: int | None = None, memMB: int | None = None, h: str | None = None
) -> Resource:
    """Make a resource from numbers, or from a name, which wins.

    Args:
        cpu: CPU cores, 2 where None.
        gpu: GPUs, 0 where None.
        memMB: Memory in MB, 1024 where None.
        h: A named resource, such as `gpu.small`.

    Raises:
        UnknownResourceError: Nothing registers the name.
    """
    if h:
        return get_named_resources(h)
    return Resource(
        cpu=2 if cpu is None else cpu,
        gpu=0 if gpu is None else gpu,
        memMB=1024 if memMB is None else memMB,
    )


@dataclass(frozen=True)
class RegisteredResource:
    """A named resource of another package.

    Args:
        name: the name to look it up by.
        group: where it is registered.
        origin: the module, or module and function, that makes it.
        factory: makes it; its result is a `Resource` of TorchX or of this package.
    """

    name: str
    group: str
    origin: str
    factory: Callable[[], Any]

    def make(self) -> Resource:
        """Make it. Raises UnknownResourceError, which names it."""
        try:
            made = from_torchx(self.factory())
            if not isinstance(made, Resource):
                raise TypeError(f"it made a {type(made).__name__}, not a Resource")
            return made
        except UnknownResourceError:
            raise
        except Exception as error:
            raise UnknownResourceError(
                f"The named resource {self.name} of {self.origin} could not be made: {_reason(error)}"
            ) from error


ResourceSource = Callable[[Callable[[str, str], object]], list[RegisteredResource]]
"""Lists the named resources of other packages; calls its argument with a module that cannot be read, and the reason."""


def has_registered_resources() -> bool:
    """Return whether anything may register named resources, without running it."""
    by_namespace, by_entry_point = plugin_sources()
    if os.environ.get(CUSTOM_MODULE_VARIABLE) or (by_namespace and any(namespace_modules(NAMESPACE_PART))):
        return True
    from importlib.metadata import entry_points

    return bool(by_entry_point and entry_points(group=ENTRY_POINT_GROUP))


def registered_resources(failed: Callable[[str, str], object]) -> list[RegisteredResource]:
    """List the named resources of a site and of other packages; of several with one name, the last wins.

    Args:
        failed: called with a module that cannot be read, and why. A broken one takes no other away.
    """
    by_namespace, by_entry_point = plugin_sources()
    resources: list[RegisteredResource] = []
    site = os.environ.get(CUSTOM_MODULE_VARIABLE)
    if site:
        try:
            made: Mapping[str, ResourceFactory] = importlib.import_module(site).NAMED_RESOURCES
            resources += [RegisteredResource(name, CUSTOM_MODULE_VARIABLE, site, make) for name, make in made.items()]
        except Exception as error:
            failed(f"{CUSTOM_MODULE_VARIABLE}={site}", _reason(error))
    for module, _ in namespace_modules(NAMESPACE_PART) if by_namespace else ():
        try:
            resources += _registered_by_module(module)
        except Exception as error:
            _log.warning("%s cannot be imported", module, exc_info=True)
            failed(module, _reason(error))
    return resources + (_registered_by_entry_points() if by_entry_point else [])


def _reason(error: Exception) -> str:
    reason = describe_error(error)
    if isinstance(error, ModuleNotFoundError) and error.name == "torchx":
        return f"{reason}: install TorchX, or call torchx_tui.guest.resources.load_named_resources first"
    return reason


def _registered_by_module(module: str) -> list[RegisteredResource]:
    """List the resources that a module registers with TorchX's decorator.

    Raises:
        Exception: anything that its import raises; TimeoutError if that does not end.
    """
    call = AwaitedCall(lambda: importlib.import_module(module), f"import-{module}")
    if not call.wait(IMPORT_TIMEOUT_S):
        raise TimeoutError(f"its import did not end within {IMPORT_TIMEOUT_S:g} s")
    # The decorator leaves the factories in the module, also those of fractions and of other names.
    factories = [
        item for item in vars(call.result()).values() if getattr(item, "_plugin_type", None) == ENTRY_POINT_GROUP
    ]
    group = f"{NAMESPACE}.{NAMESPACE_PART}"
    return [
        RegisteredResource(factory._plugin_name, group, module, factory)
        for factory in factories
        if factory.__module__ == module
    ]


def _registered_by_entry_points() -> list[RegisteredResource]:
    from importlib.metadata import entry_points

    return [
        RegisteredResource(entry.name, ENTRY_POINT_GROUP, entry.value, lambda entry=entry: entry.load()())
        for entry in entry_points(group=ENTRY_POINT_GROUP)
    ]


named_resources = NamedResources()
