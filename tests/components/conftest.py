import pytest
from support.component_files import ComponentFile


@pytest.fixture
def component_file(tmp_path):
    return ComponentFile(tmp_path / "jobs.py")
