"""Which reader a metric file has: by its name, and by its first bytes."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from ...base.files import open_file
from .points import MetricFile
from .tables import (
    MLFLOW,
    JsonDocument,
    JsonLinesFile,
    MlflowFile,
    TableFile,
    has_step,
    read_cells,
    read_header,
    rising_column,
)
from .tfevents import EventFile
from .wandb_log import WandbFile

STATE = "trainer_state.json"
_NAMES = re.compile(
    r".*tfevents.*|.*\.wandb|.*\.tsv|trainer_state\.json|(?:metrics|.*scalars)\.json|training\.log|lcurve\.out"
    r"|(?:metrics|progress|results|history|.*[-_]?log|training.*)\.csv"
    r"|.*(?:metric|log|scalar|history|train).*\.jsonl"
)
_DOCUMENT = re.compile(rb'"log_history"\s*:|\{\s*"steps"\s*:\s*\[')
_HEAD_BYTES = 16_384
# Rows that must rise in a column before a table without a usual name counts as metrics.
_FEWEST_ROWS = 3


def is_metric_name(path: Path) -> bool:
    """Return whether a trainer names its metric file so."""
    return _NAMES.fullmatch(path.name) is not None or MLFLOW.fullmatch(path.as_posix()) is not None


def open_metric_file(path: Path) -> MetricFile | None:
    """Return the reader of a file by its content; None if it has no metrics, or not yet."""
    if MLFLOW.fullmatch(path.as_posix()):
        return MlflowFile(path)
    try:
        descriptor = open_file(path)
    except OSError:
        return None
    try:
        head = os.pread(descriptor, _HEAD_BYTES, 0)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if "tfevents" in path.name or b"brain.Event:" in head[:64]:
        return EventFile(path)
    if path.suffix == ".wandb" or head.startswith(b":W&B"):
        return WandbFile(path)
    if path.name == STATE or _DOCUMENT.search(head):
        return JsonDocument(path)
    lines = head[: head.rfind(b"\n") + 1].splitlines()
    if not lines:
        return None
    return _open_json_lines(path, lines[0]) if head.lstrip().startswith(b"{") else _open_table(path, lines)


def _open_json_lines(path: Path, line: bytes) -> JsonLinesFile | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return JsonLinesFile(path) if is_metric_name(path) or has_step("/".join(row).split("/")) else None


def _open_table(path: Path, lines: list[bytes]) -> TableFile | None:
    names = read_header(lines[0])
    rows = [cells for line in lines[1:] if len(cells := read_cells(line, lines[0])) == len(names)]
    if has_step(names) and (rows or is_metric_name(path)):
        return TableFile(path)
    x = rising_column(names, rows) if len(rows) >= _FEWEST_ROWS else ""
    return TableFile(path, x) if names and (x or is_metric_name(path)) else None
