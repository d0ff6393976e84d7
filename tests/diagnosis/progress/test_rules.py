"""What is a metric, what is an evaluation, whose line it is, and what is no training."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.tables import toml_table

from torchx_tui.diagnosis.progress.tracker import Progress, ProgressTracker

CASES = toml_table(Path(__file__).with_name("lines.toml"))


def cases(table: str) -> pytest.MarkDecorator:
    """Return the decorator of a test that runs once for each case of a table."""
    return pytest.mark.parametrize("case", CASES[table].values(), ids=CASES[table])


def read(*lines: str) -> ProgressTracker:
    tracker = ProgressTracker()
    tracker.feed("".join(f"{line}\n" for line in lines).encode())
    return tracker


def read_case(case: dict[str, Any]) -> ProgressTracker:
    """Read lines, and others that are printed in each of three epochs, with its number for {n}."""
    block = (line.replace("{n}", str(n)) for n in (1, 2, 3) for line in case.get("block", []))
    return read(*case.get("lines", []), *block)


def means(tracker: ProgressTracker) -> dict[str, list[float]]:
    return {name: series.means() for name, series in tracker.series().items()}


def check(found: dict[str, Any], case: dict[str, Any]) -> None:
    """Compare what was found with all of a case's values, or with those that it has at least."""
    wanted = case.get("is", case.get("has"))
    assert {name: value for name, value in found.items() if "is" in case or name in wanted} == wanted


@cases("values")
def test_values_of_lines(case):
    check(means(read_case(case)), case)


@cases("steps")
def test_steps_of_values(case):
    check({name: [*series.steps()] for name, series in read_case(case).series().items()}, case)


@cases("evaluations")
def test_evaluations_are_kept_apart(case):
    assert means(read_case({"block": case})) == {"loss": [1.1, 1.2, 1.3], "eval/loss": [2.1, 2.2, 2.3]}


@cases("progress")
def test_progress_of_lines(case):
    check({name: value for name, value in asdict(read_case(case).progress()).items() if value}, case)


@cases("nothing")
def test_what_is_no_training(case):
    tracker = read_case({"block": case})
    assert (tracker.series(), tracker.progress()) == ({}, Progress())


@pytest.mark.parametrize("prefix", ["{}: ", "[1,{}]<stdout>:", "(task pid=10{}) "])
def test_ranks_of_srun_mpirun_and_ray(prefix):
    tracker = read(*(f"{prefix.format(rank)}step {n}/9 loss {n}.{rank}" for n in (1, 2, 3) for rank in (0, 1)))
    assert (means(tracker), len(tracker.ranks())) == ({"loss": [1.0, 2.0, 3.0]}, 2)


def test_equal_lines_of_ranks_are_one_point():
    tracker = read(*(f"step {n}/9 loss: 2.{n}" for n in (1, 2, 3) for _ in range(16)))
    assert means(tracker) == {"loss": [2.1, 2.2, 2.3]}


def test_header_of_the_block_before():
    tracker = read("gen\tavg\tmax")
    tracker.feed(b"1\t5.5\t6\n2\t6.5\t7\n")
    assert tracker.series()["avg"].means() == [5.5, 6.5]
