from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest


@pytest.fixture
def torchx(require: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> str:
    """Want TorchX itself, and keep it from reading the settings of the person who runs the tests."""
    present = importlib.util.find_spec("torchx") is not None
    require("interop", present, "install torchx-nightly, `pip install -e .[interop]`")
    monkeypatch.setenv("TORCHXCONFIG", "")
    return "torchx"
