"""Plugins that are installed for a test."""

import pytest
from support.torchx_plugins import as_if_installed, forget_plugins, has_torchx


@pytest.fixture
def torchx(require):
    """Skip where TorchX is not installed."""
    require("interop", has_torchx(), "torchx-nightly is not installed: pip install 'torchx-tui[interop]'")


@pytest.fixture
def fresh_registry():
    """Look for plugins anew, and forget those of this test afterwards."""
    forget_plugins()
    yield
    forget_plugins()


@pytest.fixture
def plugins(torchx, tmp_path, monkeypatch):
    """Give a folder whose packages are as if installed."""
    with as_if_installed(tmp_path / "site", monkeypatch) as made:
        yield made
