"""Arguments of scheduler factories."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any


def accepted_arguments(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given keyword arguments that a function accepts.

    TorchX's Runner passes the arguments of all schedulers to each factory.
    """
    names = inspect.signature(function).parameters
    return {name: value for name, value in given.items() if name in names}
