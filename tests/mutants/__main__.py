"""Changes a room's files, each change alone, and tells which changes no test of the room notices.

``make mutants ROOM=specs N=100 SEED=1``. See `rooms` for what a room is, `changes` for what is changed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import importlib
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import sandbox
from .changes import Change, Changes
from .recording import ROOT, Recording, recorded, run_pytest
from .rooms import ROOMS, SAME

_MOST_SURVIVORS = 0.05
# Seconds, as recorded, of the tests that one change is tried with, those first that are the soonest done: of the tests
# that run the line; and where these are less, with others that use the file. They may have what the line made, kept
# since another test ran it.
_LONGEST = (120.0, 15.0)
# Changes of one statement that are tried: a long table is no larger part of a room than its other statements.
_OF_STATEMENT = 3
# Characters of a statement that are printed before and behind what was changed.
_SHOWN = 60
_OUTCOMES: dict[int, str] = {
    0: "survived",
    -1: "not reached",
    pytest.ExitCode.NO_TESTS_COLLECTED: "not reached",
    sandbox.TIMED_OUT: "timed out",
    signal.SIGALRM: "timed out",
}


@dataclass(frozen=True)
class Mutant:
    """A change of a file, and the tests that may notice it, with the seconds that each took without it."""

    path: Path
    line: int
    change: Change
    tests: dict[str, float]

    @property
    def name(self) -> str:
        """Say what is changed, without its line."""
        before, after = self.change.before, self.change.after
        start = _alike(before, after)
        end = min(_alike(before[::-1], after[::-1]), len(before) - start, len(after) - start)
        first = max(0, start - _SHOWN)
        before, after = (text[first : len(text) - end + _SHOWN] for text in (before, after))
        return f"{self.path.relative_to(ROOT)}: {before}  ->  {after}"


def _alike(first: str, second: str) -> int:
    """Return how many characters at the start are the same."""
    return next(
        (at for at, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


class _Chosen:
    """Runs the chosen tests only, in their order; the first that takes far longer than it did ends the run.

    Args:
        limits: the tests, and how many seconds each may take.
    """

    def __init__(self, limits: dict[str, float]) -> None:
        self._limits = limits
        self._order = {test: place for place, test in enumerate(limits)}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        # Nobody handles this signal: it ends the process, also where no Python runs any more.
        signal.setitimer(signal.ITIMER_REAL, self._limits[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = sorted(
            (item for item in items if item.nodeid in self._order), key=lambda item: self._order[item.nodeid]
        )


def chosen(room: str, count: int, seed: int, only: str, own: Path) -> Iterator[Mutant]:
    """Give the changes to try."""
    files, tests = ([path for glob in globs for path in sorted(ROOT.glob(glob))] for globs in ROOMS[room])
    recording = recorded(files, tests, own)
    if recording.failed:
        print(f"Left out, since they fail without any change: {', '.join(recording.failed)}")
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    changes = {path: Changes(text) for path, text in texts.items()}
    every = [(path, number) for path in files for number in range(len(changes[path]))]
    print(f"{room}: {len(files)} files, {len(recording.seconds)} tests, {len(every)} possible changes", flush=True)
    _import_ahead(recording.modules)
    random.Random(seed).shuffle(every)
    same, tried = 0, Counter[tuple[Path, int]]()
    for path, number in every:
        line, statement = changes[path].line(number), (path, changes[path].statement(number))
        if only not in f"{path.relative_to(ROOT)}:{line}:" or tried[statement] == _OF_STATEMENT:
            continue
        if count == 0:
            break
        change = changes[path][number]
        mutant = Mutant(path, line, change, _ordered(recording, _tests(recording, path, change, texts)))
        if mutant.name in SAME:
            same += 1
            continue
        count -= 1
        tried[statement] += 1
        yield mutant
    print(f"{same} changes were left out: they change nothing (tests/mutants/rooms.py)")


def _tests(recording: Recording, path: Path, change: Change, texts: dict[Path, str]) -> list[set[str]]:
    """Return the tests that may notice, those before the others that do so more likely."""
    file = str(path.relative_to(ROOT))
    # A program of its own is run by path, or as a text: by tests of files that name it.
    named = {test for test in recording.seconds if path.stem in _text(test.partition("::")[0])}
    if change.names is None:
        return [recording.reaching(file, change.lines) or named, recording.reaching(file)]
    # It runs as the module is imported: whoever uses what it defines may notice.
    word = re.compile(rf"\b({'|'.join(map(re.escape, change.names))})\b") if change.names else None
    users: set[str] = set()
    for other, text in texts.items() if word else ():
        using = [number for number, line in enumerate(text.splitlines(), 1) if word and word.search(line)]
        users |= recording.reaching(str(other.relative_to(ROOT)), using)
    # No line runs where a dataclass takes its defaults: tests that name the class may notice as well.
    users |= {test for test in recording.seconds if word and word.search(_text(test.partition("::")[0]))}
    return [users or named, recording.reaching(file)]


@functools.cache
def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8")


def _ordered(recording: Recording, groups: list[set[str]]) -> dict[str, float]:
    found: dict[str, float] = {}
    spent = 0.0
    for group, longest in zip(groups, _LONGEST, strict=True):
        for test in sorted(group, key=lambda test: (recording.seconds[test], test)):
            if test not in found and (not found or spent + recording.seconds[test] <= longest):
                found[test] = recording.seconds[test]
                spent += found[test]
    return found


def _import_ahead(modules: list[str]) -> None:
    """Import what is not ours, once for all mutants."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "e2e")]
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    # What is imported here no mutant can change: every one of them would survive.
    if ours := sorted(name for name in sys.modules if name.partition(".")[0] == "torchx_tui"):
        sys.exit(f"imported before any change is made: {', '.join(ours)}")
    gc.collect()
    gc.freeze()


def _begin(mutant: Mutant, own: Path, report: Path | None) -> int:
    def work() -> int:
        files = list(dict.fromkeys(test.partition("::")[0] for test in mutant.tests))
        limits = {test: _at_most(seconds) for test, seconds in mutant.tests.items()}
        return run_pytest(own, ["-x", *files], _Chosen(limits), report)

    limit = _at_most(sum(mutant.tests.values()))
    return sandbox.start(work, own, limit=limit, replaced=(mutant.path, mutant.change.text), writable=[])


def _at_most(seconds: float) -> float:
    """Return after how many seconds tests hang that took so many without a change; this machine may be busy."""
    return 20 + 5 * seconds


def _tried(mutants: Iterator[Mutant], jobs: int, own: Path) -> Iterator[tuple[Mutant, int]]:
    """Give each mutant with the exit code of its tests: 0 where none noticed, -1 where none was there to notice."""
    running: dict[int, Mutant] = {}
    for mutant in mutants:
        if not mutant.tests:
            yield mutant, -1
            continue
        running[_begin(mutant, own, None)] = mutant
        while len(running) >= jobs:
            yield _next(running)
    while running:
        yield _next(running)


def _next(running: dict[int, Mutant]) -> tuple[Mutant, int]:
    ended, status = os.wait()
    return running.pop(ended), os.waitstatus_to_exitcode(status)


def main() -> int:
    """Return 1 where more than 5 % survived."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("-n", type=int, default=100, help="changes to try (100)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other changes (1)")
    parser.add_argument("--jobs", type=int, default=2, help="changes at a time (2)")
    parser.add_argument("--only", default="", metavar="FILE:LINE", help="only changes whose place contains this")
    parser.add_argument("--all", action="store_true", help="print what was noticed as well")
    options = parser.parse_args()
    began = time.monotonic()
    counts = {"noticed": 0, "timed out": 0, "survived": 0, "not reached": 0}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        own = Path(folder)
        for mutant, code in _tried(chosen(options.room, options.n, options.seed, options.only, own), options.jobs, own):
            if code == sandbox.NOT_CONTAINED:
                return 2
            outcome = _OUTCOMES.get(code, "noticed")
            counts[outcome] += 1
            if options.all or outcome != "noticed":
                place, _, what = mutant.name.partition(": ")
                print(f"{outcome:11} {place}:{mutant.line}: {what}   [{len(mutant.tests)} tests]", flush=True)
    tried, left = sum(counts.values()), counts["survived"] + counts["not reached"]
    print(", ".join(f"{number} {outcome}" for outcome, number in counts.items()))
    print(f"{left} of {tried} changes survived ({100 * left / max(1, tried):.0f} %)", end="; ")
    print(f"{time.monotonic() - began:.0f} s, {sum(os.times()[:4]):.0f} s of CPU")
    return int(left > _MOST_SURVIVORS * tried)


if __name__ == "__main__":
    sys.exit(main())
