"""The large log that benchmarks open, search and follow: training steps with warnings, errors and tracebacks.

It has 1000 MB, about 104 bytes a line, and is written once a run.
"""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from benchmarks._sizes import scaled

_PART = 1 << 20
MEGABYTES = scaled(1000, 6)

_TRACEBACK = b"""\
[rank3]: Traceback (most recent call last):
[rank3]:   File "/opt/train/loop.py", line 214, in step
[rank3]:     loss = model(batch).mean()
[rank3]:   File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1518, in _call_impl
[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
"""


class BigLog(NamedTuple):
    """A log file.

    Attributes:
        path: where it is.
        lines: how many it has.
        label: its size, as a row of a report names it.
    """

    path: Path
    lines: int
    label: str


@cache
def block() -> bytes:
    """Return some 6 MB of a log."""
    chance = random.Random(5)
    lines: list[bytes] = []
    for number in range(60_000):
        lines.append(
            b"2026-01-01 10:%02d:%02d,%03d INFO trainer.loop rank=%d step %6d loss %.4f lr %.1e %.2f it/s norm %.2f\n"
            % (number // 60 % 60, number % 60, chance.randrange(1000), chance.randrange(8), number,
               chance.random() * 3, chance.random() / 1e4, 3 + chance.random(), chance.random())
        )  # fmt: skip
        if number % 301 == 0:
            lines.append(b"2026-01-01 10:00:00,000 WARNING trainer.data worker 3 is slow: queue is empty\n")
        if number % 997 == 0:
            lines.append(b"2026-01-01 10:00:00,000 ERROR trainer.loop rank=3 NCCL watchdog timeout after 1800 s\n")
        if number % 1999 == 0:
            lines.append(b"2026-01-01 10:00:00,000 INFO trainer stops for a checkpoint\n")
        if number % 5003 == 0:
            lines.append(_TRACEBACK)
    return b"".join(lines)


def write_log(path: Path, lines: int) -> int:
    """Append a log of about so many lines, as fast as the disk takes it; return how many they are."""
    data, each = block(), block().count(b"\n")
    count = max(1, round(lines / each))
    with path.open("ab", buffering=0) as file:
        for _ in range(count):
            # As a program writes it, part by part; a line may be in two of them.
            for start in range(0, len(data), _PART):
                file.write(data[start : start + _PART])
    return count * each


@cache
def big_log() -> BigLog:
    """Return the log, written when it is first asked for and removed at the program's end."""
    folder = Path(tempfile.mkdtemp(prefix="torchx-tui-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "combined.log"
    lines = write_log(path, round(MEGABYTES * 1_000_000 / len(block()) * block().count(b"\n")))
    return BigLog(path, lines, f"{path.stat().st_size / 1e6:,.0f} MB, {lines:,} lines")
