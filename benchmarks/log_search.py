"""Searching a large log that is open, all of it counted, against GNU ``grep -c`` writing to a pipe.

Budgets, for 1 GB: texts at most 1.0 times grep, regular expressions 1.3, without regard to case 2.0; alternations are
reported. ``LOG_SEARCH_MB`` sets the size. Each figure is a median, grep and ours in turn.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from torchx_tui.backends.logs.filtering import Rule, RulesScanner
from torchx_tui.backends.logs.merge import MergedLog
from torchx_tui.backends.logs.pattern import parse_pattern
from torchx_tui.backends.logs.replica_log import ReplicaLog
from torchx_tui.backends.logs.tally import Tally, take_sample

MEGABYTES = int(os.environ.get("LOG_SEARCH_MB", "256"))
ROUNDS = 5

_TRACEBACK = b"""\
[rank3]: Traceback (most recent call last):
[rank3]:   File "/opt/train/loop.py", line 214, in step
[rank3]:     loss = model(batch).mean()
[rank3]:   File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1518, in _call_impl
[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
"""


class Case(NamedTuple):
    """What is searched for, and how many times as long as grep it may take (None: it is only reported)."""

    kind: str
    text: str
    regex: bool
    budget: float | None


CASES = (
    Case("text, present", "ERROR", False, 1.0),
    Case("text, present", "NCCL", False, 1.0),
    Case("text, present", "Traceback (most recent call last)", False, 1.0),
    Case("text, absent", "SIGSEGV", False, 1.0),
    Case("text, absent", "zebra", False, 1.0),
    Case("text, common letters", "trainer stops", False, 1.0),
    Case("regex with a text", "rank=[0-9]+ NCCL", True, 1.3),
    Case("regex with a text", "OutOfMemoryError: .*allocate", True, 1.3),
    Case("alternation", "ERROR|WARNING|FATAL", True, None),
    Case("regex without a text", "[0-9]{4}[a-f]{3}", True, None),
    Case("text on each line", "loss", False, None),
)


def write_log(path: Path, megabytes: int) -> None:
    """Write a log of training steps, about 110 bytes a line, with warnings, errors and tracebacks in it."""
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
    block = b"".join(lines)
    with path.open("wb") as file:
        for _ in range(max(1, megabytes * 1_000_000 // len(block))):
            file.write(block)


def our_search(log: MergedLog, case: Case, ignore_case: bool) -> tuple[int, float]:
    """Return how many lines match, and the seconds from the typed pattern to that."""
    began = time.perf_counter()
    pattern = parse_pattern(case.text, regex=case.regex, ignore_case=ignore_case)
    tally = Tally(log, RulesScanner([Rule(pattern)], take_sample(log)))
    while tally.step(0.005):
        time.sleep(0)
    return tally.count, time.perf_counter() - began


def grep(path: Path, case: Case, ignore_case: bool) -> tuple[int, float]:
    """Return the same of grep; where case does not count, in UTF-8, as ours does."""
    command = ["grep", "-c", "-E" if case.regex else "-F", *(["-i"] if ignore_case else []), "-e", case.text, str(path)]
    environment = {**os.environ, "LC_ALL": "C.UTF-8" if ignore_case else "C"}
    began = time.perf_counter()
    counted = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=False).stdout
    return int(counted), time.perf_counter() - began


def compare(log: MergedLog, path: Path, case: Case, ignore_case: bool) -> tuple[str, str]:
    """Return a row of the report."""
    ours, greps = [], []
    for _ in range(ROUNDS):
        found, seconds = our_search(log, case, ignore_case)
        wanted, grep_seconds = grep(path, case, ignore_case)
        if found != wanted:
            raise AssertionError(f"{case.text}: found {found}, grep {wanted}")
        ours.append(seconds)
        greps.append(grep_seconds)
    our, other = statistics.median(ours), statistics.median(greps)
    budget = case.budget and (2.0 if ignore_case else case.budget)
    judged = "" if budget is None else f" of {budget:.1f}x" + (", NOT MET" if our / other > budget else "")
    label = f"{case.kind}{', any case' if ignore_case else ''}: {case.text[:24]}"
    return label, f"{our * 1000:5.0f} ms, grep {other * 1000:5.0f} ms: {our / other:.2f}x{judged}"


def run() -> list[tuple[str, str]]:
    """Return the rows of the report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "combined.log"
        write_log(path, MEGABYTES)
        log = MergedLog([ReplicaLog("bench", 0, combined=path)])
        log.open()
        while log.read_older(1):
            pass
        first, end, *_ = log.bounds()
        rows = [(f"{MEGABYTES} MB", f"{end - first:,} lines")]
        rows += [compare(log, path, case, ignore_case) for ignore_case in (False, True) for case in CASES]
        log.close()
    return rows
