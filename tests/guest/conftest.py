"""What the tests of guests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.component_files import ComponentFile


@pytest.fixture
def component_file(tmp_path: Path) -> ComponentFile:
    return ComponentFile(tmp_path / "jobs.py")
