"""The text of selected lines, to be copied."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from ...logs.text.sanitize import format_size
from ..format import count
from .export import ExportError
from .reading import AnyLog
from .text import BATCH, LineForm, whole_lines

# Bytes that are copied at most.
MOST = 16_000_000


@dataclass(frozen=True)
class Copied:
    """Lines as one text."""

    text: str
    lines: int


def copy(log: AnyLog, numbers: range) -> Generator[float | None, None, Copied]:
    """Gather the safe text of lines, nothing before each; work for a `LogExport`.

    Args:
        log: the log, which stays open.
        numbers: the lines' numbers, without gaps.

    Raises:
        ExportError: it is more than can be copied.
    """
    form = LineForm()
    texts: list[str] = []
    size = 0
    for number, line in enumerate(whole_lines(log, numbers.start, numbers.stop), 1):
        texts.append(form.text(line))
        size += len(texts[-1]) + 1
        if size > MOST:
            lines = count(len(numbers), "line")
            raise ExportError(f"{lines} are more than {format_size(MOST)}: S saves them to a file")
        if number % BATCH == 0:
            yield number / len(numbers)
    return Copied("\n".join(texts), len(texts))
