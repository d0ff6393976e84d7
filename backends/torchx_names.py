"""Functions of `torchx.runner` that have other names in torchx-tui."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .registry import get_scheduler_factories
from .runner import Runner


def get_runner(
    name: str | None = None, component_defaults: Mapping[str, Mapping[str, str]] | None = None, **scheduler_params: Any
) -> Runner:
    """Make a Runner, as TorchX's function of this name does.

    Args:
        name: The session's name.
        component_defaults: Not used, since this Runner takes an AppDef and no component.
        scheduler_params: Keyword arguments of every scheduler's factory.
    """
    del component_defaults
    names = get_scheduler_factories() if scheduler_params else ()
    return Runner(name or "torchx", scheduler_params=dict.fromkeys(names, scheduler_params))
