"""A component built from a command line, by TorchX and by us."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

from interop.oracle import theirs

from torchx_tui.components import build_app, parse_command_line


@functools.lru_cache
def _their_function(name: str) -> Any:
    return theirs("torchx.specs.finder").get_component(name).fn


def built_by_them(name: str, argv: Sequence[str]) -> Any:
    """Return TorchX's AppDef of a component."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return theirs("torchx.specs.builders").materialize_appdef(_their_function(name), list(argv))


def built_by_us(name: str, argv: Sequence[str]) -> Any:
    """Return our AppDef of a component."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return build_app(name, parse_command_line(name, argv))
