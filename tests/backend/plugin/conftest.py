"""Plugins that are installed for a test."""

import pytest
from support.torchx_plugins import as_if_installed, forget_plugins, has_torchx
from support.waiting import NEVER

from torchx_tui.backends.plugin import remote
from torchx_tui.guest import worker


@pytest.fixture(autouse=True)
def patient_loading(monkeypatch):
    """Do not take what is slow on a busy machine for something that hangs; tests of that set limits of their own."""
    monkeypatch.setattr(remote, "LOAD_SECONDS", NEVER)
    monkeypatch.setattr(worker, "START_TIMEOUT_S", NEVER)


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
