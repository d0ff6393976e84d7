"""A journal, and a Runner whose one scheduler is the test module's."""

import pytest

from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "journal")


@pytest.fixture
def runner(journal, scheduler):
    return Runner(journal=journal, schedulers={"local_cwd": scheduler})
