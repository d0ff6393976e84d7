"""What the tests of guests share."""

from contextlib import ExitStack
from typing import Any

import pytest
from support.component_files import ComponentFile
from support.waiting import NEVER

from torchx_tui.guest import worker
from torchx_tui.guest.settings import use_guest_settings


@pytest.fixture(autouse=True)
def use_settings(monkeypatch):
    """Use settings with which a slow machine is no fault; return what changes them for the rest of the test."""
    monkeypatch.setattr(worker, "START_TIMEOUT_S", NEVER)
    with ExitStack() as stack:

        def use(**settings: Any) -> None:
            stack.enter_context(use_guest_settings(**settings))

        use(timeout_s=NEVER)
        yield use


@pytest.fixture
def component_file(tmp_path):
    return ComponentFile(tmp_path / "jobs.py")
