"""Pauses in two grades with their excuses, buffered output, losses that are not well."""

from __future__ import annotations

import math
import random

import pytest

from torchx_tui.diagnosis.metrics.series import Series
from torchx_tui.diagnosis.progress.stalls import Kind, check_loss, find_buffered_output, find_pause, pause_limit
from torchx_tui.diagnosis.progress.tracker import ProgressTracker

HEALTHY = ["plain", "first", "warm", "recompiles", "heavy", "evaluations", "checkpoints", "both"]


def steps_of(kind: str, chance: random.Random) -> list[tuple[float, str]]:
    """Return the pauses of a healthy run of 400 steps, and what is printed before each that is long."""
    pauses: list[tuple[float, str]] = [(90.0 if kind == "first" else 1.0, "")]
    for step in range(1, 400):
        pause, words = max(0.2, chance.gauss(1.0, 0.1)), ""
        if kind == "heavy":
            pause = chance.lognormvariate(0, 0.8)
        if kind == "warm" and step < 10:
            pause += 8
        if kind == "recompiles" and step in (1, 2, 30):
            pause, words = pause + 40, "torch.compile: recompiling"
        if kind in ("evaluations", "both") and step % 100 == 0:
            pause, words = pause + 36, "Evaluating on the validation set"
        if kind in ("checkpoints", "both") and step % 50 == 0:
            pause, words = pause + 15, "saving checkpoint"
        pauses.append((pause, words))
    return pauses


@pytest.mark.parametrize("kind", HEALTHY)
@pytest.mark.parametrize("seed", range(20))
def test_healthy_runs_raise_no_alarm(kind, seed):
    """At no moment of 400 steps is anything said of a run that evaluates, saves, compiles or varies."""
    tracker, at = ProgressTracker(), 1_000.0
    for step, (pause, words) in enumerate(steps_of(kind, random.Random(seed))):
        if words:
            tracker.feed(f"{words}\n".encode(), at + 0.5, "trainer/0")
        if tracker.main is not None:
            moments = tracker.main.moments
            just_before = at + pause - 0.01
            assert not find_pause(
                moments.pauses(), moments.last, tracker.printed_at, just_before, is_excused=tracker.is_excused
            )
        at += pause
        tracker.feed(f"step {step} loss 1.0\n".encode(), at, "trainer/0")


@pytest.mark.parametrize(
    ("passed", "silent", "cores", "excused", "kind"),
    [
        (20, True, (), False, None),
        (31, False, (), False, Kind.QUIET),
        (31, False, (0.01, 0.0), False, Kind.STALLED),
        (31, False, (0.01, 1.0), False, Kind.QUIET),
        (31, True, (), False, Kind.STALLED),
        # Work that prints nothing; ranks that spin in a collective use whole cores.
        (31, True, (0.5,), False, Kind.QUIET),
        (31, True, (0.01, 0.4), False, Kind.QUIET),
        (31, True, (1.0,), False, Kind.QUIET),
        (601, True, (0.5,), False, Kind.STALLED),
        (31, True, (1.0, 0.98, 1.03), False, Kind.STALLED),
        (31, True, (8.02,), False, Kind.STALLED),
        (300, True, (), True, None),
        (601, True, (), True, Kind.STALLED),
    ],
)
def test_two_grades(passed, silent, cores, excused, kind):
    """Stalled is said only where nothing else moves either; a line that explains the pause gives it ten minutes."""
    now = 10_000.0
    printed_at = now - passed if silent else now - 1
    found = find_pause([1.0] * 20, now - passed, printed_at, now, is_excused=excused, cores=cores)
    assert (found.kind if found else None) == kind
    if found:
        assert found.sentence.startswith(f"no step for {'31s' if passed == 31 else '10m 01s'}, usually 1.0s")


@pytest.mark.parametrize(
    "line",
    [
        "running inference", "Predicting: 1200 rows", "generating samples", "testing", "Test set", "sampling 64 images",
        "writing shards", "uploading to s3://bucket", "dumping state", "sync to remote", "saving model", "eval started",
    ],
)  # fmt: skip
def test_lines_that_excuse_a_pause(line):
    tracker = ProgressTracker()
    tracker.feed(b"step 1 loss 1.0\n", 1_000.0, "trainer/0")
    assert not tracker.is_excused
    tracker.feed(f"{line}\n".encode(), 1_001.0, "trainer/0")
    assert tracker.is_excused


@pytest.mark.parametrize(
    "line", ["latest values", "async worker died", "protest", "resampled_lr", "overwriten", "hello"]
)
def test_other_lines_excuse_nothing(line):
    tracker = ProgressTracker()
    tracker.feed(f"step 1 loss 1.0\n{line}\n".encode(), 1_000.0, "trainer/0")
    assert not tracker.is_excused


def test_too_few_steps_tell_nothing():
    """The first two pauses are warm-up, and five more are needed."""
    assert pause_limit([500, 500, 1, 1, 1, 1]) is None
    assert pause_limit([500, 500, 1, 1, 1, 1, 1]) == 30


def test_buffered_output_is_recognised():
    """A job that works and prints nothing, or whole blocks of a buffer alone."""
    assert find_buffered_output(8192, 1_000, 1_100, [0.9])
    assert find_buffered_output(0, 1_000, 1_100, [0.9, 0.0])
    assert not find_buffered_output(8191, 1_000, 1_100, [0.9])
    assert not find_buffered_output(8192, 1_000, 1_050, [0.9])
    assert not find_buffered_output(8192, 1_000, 1_100, [0.1])
    assert not find_buffered_output(8192, 1_000, 1_100, [])


def make_series(name: str, values: list[float]) -> dict[str, Series]:
    series = Series(name)
    for step, value in enumerate(values):
        series.add(step, value)
    return {name: series}


def test_losses_that_are_not_well():
    """Nan and inf, Megatron's counter, a jump far above the last hundred; nothing of what is usual."""
    usual = [2.0 + 0.01 * (n % 7) for n in range(100)]
    assert [one.kind for one in check_loss(make_series("train/loss", [*usual, math.nan]))] == [Kind.NAN]
    assert [one.kind for one in check_loss(make_series("loss", [*usual, 9.0]))] == [Kind.SPIKE]
    assert [one.kind for one in check_loss(make_series("number of nan iterations", [0, 3]))] == [Kind.NAN]
    assert not check_loss(make_series("loss", [*usual, 2.1]))
    assert not check_loss(make_series("grad_norm", [*usual, math.nan]))
    assert not check_loss(make_series("loss_scale", [*usual, 90.0]))
