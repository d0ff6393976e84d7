"""Each format reads its own samples."""

from __future__ import annotations

import pytest

from torchx_tui.diagnosis.progress.formats import FORMATS
from torchx_tui.diagnosis.progress.lines import LineReader


def describe_position(line: str) -> str:
    reading = LineReader().read(line.encode())
    position = reading.position if reading else {}
    words = []
    for name, end in (("step", "total"), ("epoch", "epochs"), ("rate", "")):
        if name in position:
            words.append(f"{name} {position[name]:g}" + (f"/{position[end]:g}" if end in position else ""))
    return " ".join(words)


SAMPLES = [(row.name, line, position) for row in FORMATS for line, position in row.samples.items()]


@pytest.mark.parametrize(("name", "line", "position"), SAMPLES)
def test_format_reads_its_samples(name, line, position):
    assert describe_position(line) == position, name


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_format_has_samples(row):
    assert row.samples


@pytest.mark.parametrize(
    "line",
    [
        "Namespace(lr=0.1, epoch=3, steps=20, batch=32)",
        "INFO args: Namespace(steps=20, loss=0.5)",
        "config = TrainConfig(step=5, lr=0.1)",
        "<TrainingArguments(step=5, lr=0.1)",
    ],
)
def test_printed_arguments_are_no_position(line):
    assert LineReader().read(line.encode()) is None
