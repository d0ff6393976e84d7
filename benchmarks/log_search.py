"""Searching a large log that is open, all of it counted, against GNU ``grep -c`` writing to a pipe.

Budgets, for 1 GB: texts at most 1.5 times grep, regular expressions 1.3, without regard to case 2.0. Each figure is a
median, grep and ours in turn.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks._big_log import big_log
from benchmarks._budget import judged
from benchmarks._sizes import scaled
from torchx_tui.logs.lines.matches import Matches, Rule
from torchx_tui.logs.lines.merge import MergedLog
from torchx_tui.logs.pattern.pattern import parse_pattern
from torchx_tui.logs.source.replica_log import ReplicaLog

ROUNDS = scaled(5, 1)
# A grep that takes so long (s) is run once.
_LONG = 8.0


class Case(NamedTuple):
    """What is searched for, and how many times as long as grep it may take (None: it is only reported)."""

    kind: str
    text: str
    regex: bool
    budget: float | None


CASES = (
    Case("text, present", "ERROR", False, 1.5),
    Case("text, present", "NCCL", False, 1.5),
    Case("text, present", "Traceback (most recent call last)", False, 1.5),
    Case("text, absent", "SIGSEGV", False, 1.5),
    Case("text, absent", "zebra", False, 1.5),
    Case("text, common letters", "trainer stops", False, 1.5),
    Case("regex with a text", "rank=[0-9]+ NCCL", True, 1.3),
    Case("regex with a text", "OutOfMemoryError: .*allocate", True, 1.3),
    Case("alternation", "ERROR|WARNING|FATAL", True, 2.0),
    Case("regex without a text", "[0-9]{4}[a-f]{3}", True, None),
    Case("text on each line", "loss", False, None),
)


def our_search(log: MergedLog, case: Case, ignore_case: bool) -> tuple[int, float]:
    """Return how many lines match, and the seconds from the typed pattern to that."""
    began = time.perf_counter()
    pattern = parse_pattern(case.text, regex=case.regex, ignore_case=ignore_case)
    matches = Matches(log, [Rule(pattern)])
    while matches.step(0.005):
        time.sleep(0)
    return matches.count, time.perf_counter() - began


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
        if grep_seconds > _LONG:
            break
    our, other = statistics.median(ours), statistics.median(greps)
    budget = case.budget and (2.0 if ignore_case else case.budget)
    ratio = f"{our / other:.2f}x" if budget is None else judged(our / other, budget, "x", digits=2)
    label = f"{case.kind}{', any case' if ignore_case else ''}: {case.text[:24]}"
    return label, f"{our * 1000:5.0f} ms, grep {other * 1000:5.0f} ms: {ratio}"


def run() -> list[tuple[str, str]]:
    """Return the rows of the report."""
    big = big_log()
    log = MergedLog([ReplicaLog("bench", 0, combined=big.path)])
    log.open()
    while log.read_older(1):
        pass
    rows = [("the log", big.label)]
    rows += [compare(log, big.path, case, ignore_case) for ignore_case in (False, True) for case in CASES]
    log.close()
    return rows
