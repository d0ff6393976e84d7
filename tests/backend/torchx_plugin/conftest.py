"""Plugins that are installed for a test."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.torchx_plugins import Plugins

from torchx_tui.backends import registry
from torchx_tui.backends.torchx_plugin.found import has_torchx
from torchx_tui.backends.torchx_plugin.loading import loader_of


@pytest.fixture
def torchx(require: Callable[[str, bool, str], None]) -> None:
    """Skip where TorchX is not installed."""
    require("interop", has_torchx(), "torchx-nightly is not installed: pip install 'torchx-tui[interop]'")


@pytest.fixture
def fresh_registry() -> Iterator[None]:
    """Look for plugins anew, and forget those of this test afterwards."""
    registry._plugins.cache_clear()
    loader_of.cache_clear()
    yield
    registry._plugins.cache_clear()
    loader_of.cache_clear()


@pytest.fixture
def plugins(
    torchx: None, fresh_registry: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Plugins]:
    """Give a folder that is as if installed, in this process and in those that it starts."""
    before = set(sys.modules)
    made = Plugins(tmp_path / "site")
    monkeypatch.syspath_prepend(str(made.folder))
    monkeypatch.setenv("PYTHONPATH", str(made.folder))
    monkeypatch.setenv("TORCHX_PLUGINS_SOURCE", "3")
    yield made
    for name in set(sys.modules) - before:
        if _is_below(sys.modules[name], made.folder):
            del sys.modules[name]
    importlib.invalidate_caches()


def _is_below(module: Any, folder: Path) -> bool:
    places = [getattr(module, "__file__", None) or "", *map(str, getattr(module, "__path__", []))]
    return any(place.startswith(str(folder)) for place in places)
