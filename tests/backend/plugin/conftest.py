"""Plugins that are installed for a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.torchx_plugins import Plugins, as_if_installed, forget_plugins, has_torchx


@pytest.fixture
def torchx(require: Callable[[str, bool, str], None]) -> None:
    """Skip where TorchX is not installed."""
    require("interop", has_torchx(), "torchx-nightly is not installed: pip install 'torchx-tui[interop]'")


@pytest.fixture
def fresh_registry() -> Iterator[None]:
    """Look for plugins anew, and forget those of this test afterwards."""
    forget_plugins()
    yield
    forget_plugins()


@pytest.fixture
def plugins(torchx: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    """Give a folder whose packages are as if installed."""
    with as_if_installed(tmp_path / "site", monkeypatch) as made:
        yield made
