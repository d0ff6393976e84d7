"""Every test has a home of its own; nothing of the person's who runs it is read or written."""

import os

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory, monkeypatch):
    """Point the XDG folders and HOME at an empty folder, and take away what would change the screens."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for variable, folder in (("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache"), ("XDG_CONFIG_HOME", "config")):
        monkeypatch.setenv(variable, str(home / folder))
    for variable in ("NO_COLOR", "TORCHX_TUI_CONFIG", "TORCHXCONFIG", "SSH_CONNECTION", "TMUX", "COLUMNS", "LINES"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    return home


@pytest.fixture
def require():
    """Skip where something is missing, or fail where REQUIRE_SERVICES says that it must be there."""

    def require_service(name: str, present: bool, how: str) -> None:
        if present:
            return
        if name in os.environ.get("REQUIRE_SERVICES", "").split(","):
            pytest.fail(f"{name} is required here and missing: {how}")
        pytest.skip(f"{name} is missing: {how}")

    return require_service
