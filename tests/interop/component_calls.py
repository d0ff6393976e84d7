"""A component built from a command line, by TorchX and by us."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

from interop.oracle import theirs

import torchx_tui.specs as our_specs
from torchx_tui.components.build import build_app
from torchx_tui.components.command_line import parse_command_line


@functools.lru_cache
def _their_function(name: str) -> Any:
    return theirs("torchx.specs.finder").get_component(name).fn


def built_from(specs: Any, name: str, argv: Sequence[str]) -> Any:
    """Return the AppDef that the package of these specs makes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if specs is our_specs:
            return build_app(name, parse_command_line(name, argv))
        return theirs("torchx.specs.builders").materialize_appdef(_their_function(name), list(argv))
