"""Each format reads its own samples."""

from __future__ import annotations

import pytest

from torchx_tui.diagnosis.progress.formats import FORMATS
from torchx_tui.diagnosis.progress.lines import describe_position

SAMPLES = [(row.name, line, position) for row in FORMATS for line, position in row.samples.items()]


@pytest.mark.parametrize(("name", "line", "position"), SAMPLES)
def test_format_reads_its_samples(name, line, position):
    assert describe_position(line) == position, name


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_format_has_samples(row):
    assert row.samples
