"""Which schedulers there are, and how one is made."""

from __future__ import annotations

import functools
import importlib
import logging
from typing import TYPE_CHECKING, Any, Protocol

from ..specs.errors import BackendUnavailableError, UnknownSchedulerException
from .api import Scheduler

if TYPE_CHECKING:
    from .plugin.found import FoundScheduler, Unreadable

logger = logging.getLogger(__name__)

GROUP = "torchx_tui.schedulers"
"""The entry-point group in which other packages register schedulers of our contract: name = module:factory.

`plugin.found` has the group of those that ask for a process of their own. Those that are written against TorchX's
classes are found where TorchX finds them.
"""

# The first is the default.
_MODULES = {
    "local_docker": ".docker.scheduler",
    "local_cwd": ".local.scheduler",
    "kubernetes": ".kubernetes.scheduler",
    "slurm": ".slurm.scheduler",
}

# Modules whose ``is_set_up`` tells whether anybody uses the scheduler here; the others are always there to be tried.
_USED = {"kubernetes": ".kube.kubeconfig", "slurm": ".slurm.commands"}


class SchedulerFactory(Protocol):
    """Makes a scheduler; keyword arguments are the scheduler's own."""

    def __call__(self, session_name: str, **kwargs: Any) -> Scheduler[Any]:
        """Return a new scheduler whose handles have ``session_name``."""
        ...


def get_scheduler_factories() -> dict[str, SchedulerFactory]:
    """Return how to make each scheduler, by name, the default first. A module is imported when its factory is called.

    Schedulers of other packages follow ours and never replace them: first those of our contract, then TorchX's.
    """
    ours: dict[str, SchedulerFactory] = {name: functools.partial(_create, module) for name, module in _MODULES.items()}
    return ours | {name: factory for name, factory in _plugins().items() if name not in ours}


def get_default_scheduler_name() -> str:
    """Return the name of the first scheduler."""
    return next(iter(get_scheduler_factories()))


def is_set_up(name: str) -> bool:
    """Tell whether a scheduler is set up here, so that its absence is worth a word; it is asked nothing."""
    return name not in _USED or bool(importlib.import_module(_USED[name], __package__).is_set_up())


def create_scheduler(name: str, session_name: str, **kwargs: Any) -> Scheduler[Any]:
    """Make the scheduler ``name``.

    Raises:
        UnknownSchedulerException: there is none of that name; the message lists the valid ones.
        BackendUnavailableError: its package cannot be imported.
    """
    if name in _MODULES:
        # Those of other packages are read from disk, in 10 ms and more.
        return _create(_MODULES[name], session_name, **kwargs)
    factories = get_scheduler_factories()
    if name not in factories:
        raise UnknownSchedulerException(name, list(factories))
    return factories[name](session_name, **kwargs)


def _create(module: str, session_name: str, **kwargs: Any) -> Scheduler[Any]:
    try:
        factory = importlib.import_module(module, __package__).create_scheduler
    except ImportError as error:
        raise BackendUnavailableError(f"this scheduler cannot be loaded: {error}: install that package") from error
    return factory(session_name, **kwargs)


def scheduler_plugins() -> tuple[list[FoundScheduler], list[Unreadable]]:
    """Return the schedulers of other packages that can be used here, and what should register some and cannot be read.

    Those of ours that have the name of another, and TorchX's of which we have our own, are left out.
    """
    from .plugin.found import GUEST_GROUP, found_schedulers, schedulers_in_group

    unreadable: list[Unreadable] = []
    mine = [found for group in (GROUP, GUEST_GROUP) for found in schedulers_in_group(group, unreadable)]
    theirs, unreadable_theirs = found_schedulers()
    chosen: dict[str, FoundScheduler] = {}
    for scheduler in (*mine, *theirs):
        if scheduler.name not in _MODULES:
            chosen.setdefault(scheduler.name, scheduler)
    # What damages one group damages all.
    return [*chosen.values()], [*dict.fromkeys([*unreadable, *unreadable_theirs])]


@functools.cache
def _plugins() -> dict[str, SchedulerFactory]:
    return {
        found.name: functools.partial(_create_here if found.group == GROUP else _create_in_guest, found)
        for found in scheduler_plugins()[0]
    }


def _create_here(found: FoundScheduler, session_name: str, **kwargs: Any) -> Scheduler[Any]:
    name = found.name
    try:
        factory = found.load()
    except Exception as error:  # whatever a foreign module raises while it is imported
        logger.warning("the scheduler %s cannot be loaded", name, exc_info=True)
        raise BackendUnavailableError(f"the scheduler {name} cannot be loaded: {error}") from error
    return factory(session_name, **kwargs)


def _create_in_guest(found: FoundScheduler, session_name: str, **kwargs: Any) -> Scheduler[Any]:
    from .plugin.remote import create_remote

    return create_remote(found, session_name, **kwargs)
