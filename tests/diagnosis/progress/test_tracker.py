"""How far a job is: steps, totals, epochs, rates, restarts, side bars, several ranks."""

from __future__ import annotations

import itertools
import math

import pytest

from torchx_tui.diagnosis.progress.tracker import Progress, ProgressTracker


def track(*lines: str, seconds: float | None = None, start: float = 1_000.0) -> ProgressTracker:
    """Feed lines, a number of seconds apart."""
    tracker = ProgressTracker()
    for number, line in enumerate(lines):
        tracker.feed(f"{line}\n".encode(), math.nan if seconds is None else start + number * seconds, "trainer/0")
    return tracker


def test_rate_and_time_left_by_arrival():
    """The rate is that of the arrival of lines, whatever they tell."""
    progress = track(*(f"step {n}/100 loss 1.0" for n in range(0, 50, 10)), seconds=20).progress()
    assert progress.rate == pytest.approx(0.5)
    assert progress.seconds_left == pytest.approx(120)
    assert progress.fraction == pytest.approx(0.4)
    assert progress.moved_at == 1_080


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(20.0, "<1m"), (61.0, "2m"), (119.9, "2m"), (120.0, "2m"), (3_599.0, "1h 00m"), (11_000.0, "3h 04m")],
)
def test_the_end_is_told_in_minutes(seconds, told):
    assert Progress(1, 2, seconds_left=seconds).words[-1] == f"ends in {told}"


@pytest.mark.parametrize("checkpoint", [400, 100])
def test_a_restart_goes_back(checkpoint):
    """A job that resumed at its checkpoint is where its lines say, and its rate is that since then."""
    steps = [500, 510, 520, *range(checkpoint, checkpoint + 40, 10)]
    progress = track(*(f"step {n}/1000 loss 1.0" for n in steps), seconds=10).progress()
    assert (progress.step, progress.rate) == (checkpoint + 30, pytest.approx(1.0))


def test_the_rank_that_prints_most_counts():
    """Megatron's last rank alone prints; of equal ranks one is taken, not all of them together."""
    lines = ["[default0]:[rank 0] step 1/9 lr 0.1"]
    lines += [f"[default7]:[rank 7] step {n}/9 loss {n}.5 lr 0.1" for n in range(1, 6)]
    tracker = track(*lines)
    assert tracker.main is not None
    assert tracker.main.label == "trainer/0 rank 7"
    assert [bucket.last for bucket in tracker.series()["loss"].buckets()] == [1.5, 2.5, 3.5, 4.5, 5.5]


@pytest.mark.parametrize("printed", ["1.94e-05", "7,040", "10.9B", "nan", "inf", "-0.0012", "41.25%", "124.45ms"])
def test_values_are_kept_as_they_are_printed(printed):
    """To the last digit, with separators and units."""
    series = track(f"step 1 loss: {printed}", f"step 2 loss: {printed}").series()
    assert [one.printed for one in series.values()] == [printed]


def test_own_names_and_denials():
    """What config adds: a name without any word of ours, and one that is never a metric."""
    tracker = ProgressTracker(denied=["loss"], known=["zeal"])
    tracker.feed(b"step 1 loss: 1.0 acc: 0.1\nzeal: 0.25 iter\nstep 2 loss: 1.0 acc: 0.2\nzeal: 0.5 iter\n")
    assert set(tracker.series()) == {"acc", "zeal"}


def test_hostile_lines_cost_little():
    """Lines of megabytes, of numbers alone, of one character, of broken UTF-8 are passed over."""
    tracker = ProgressTracker()
    for line in (
        b"loss " + b"9" * 2_000_000,
        b"loss " * 1_600,
        b"loss=" * 1_600 + b"1",
        b"step " + b" 1" * 4_000,
        b"loss \xff\xfe: 1.0",
        b"step " + b" " * 8_000 + b"1",
        b"step (" * 1_000,
        b"%|" * 4_000 + b"loss",
    ):
        tracker.feed(line + b"\n")
    assert not tracker.series()


def test_lines_of_ever_new_shapes_are_passed_over_in_time():
    """A log with a word of ours in lines that are all different is not learnt for ever."""
    tracker = ProgressTracker(is_bounded=True)
    words = ("".join(chr(97 + (n >> shift) % 26) for shift in (0, 5, 10, 15)) for n in range(40_000))
    tracker.feed("\n".join(f"loss of {word} 1 at {word} 2" for word in words).encode())
    assert tracker.lines.skipped > 0


def test_patterns_of_ones_own():
    """They find lines that nothing else does, count once, and tell where their values stand."""
    tracker = ProgressTracker(patterns=[r"^T(?P<step>\d+)/(?P<total>\d+) L=(?P<cost>\S+)", r"^acc (?P<acc>[\d.]+)"])
    tracker.feed(b"T1/9 L=1.94e-05\nloss: 1\nT2/9 L=7,040\nacc 0.5\nacc x\nstep 3 loss: 2\nstep 4 loss: 1\nacc .25\n")
    series = tracker.series()
    assert {name: (item.points, item.printed) for name, item in series.items() if name != "loss"} == {
        "cost": (2, "7,040"),
        "acc": (2, ".25"),
    }
    assert list(series["cost"].steps()) == [1.0, 2.0]
    assert tracker.progress().total == 9


@pytest.mark.parametrize(("pattern", "words"), [("(", "not a regular expression"), ("x (?P<step>.)", "names no value")])
def test_a_pattern_that_can_find_nothing(pattern, words):
    with pytest.raises(ValueError, match=words):
        ProgressTracker(patterns=[pattern])


@pytest.mark.parametrize(
    "line",
    [
        "[{rank}]:epoch {n}/3 loss {n}.{rank}",
        "[default{rank}]:epoch {n}/3 loss {n}.{rank}",
        "[rank {rank}] epoch {n}/3 loss {n}.{rank}",
        # As examples/ddp_digits.py prints.
        "epoch {n}/3 rank {rank} loss {n}.{rank}",
    ],
)
def test_ranks_are_not_mixed(line):
    """What torchrun's `--tee` writes before a line is a rank and no step, also of lines that look alike."""
    tracker = track(*(line.format(rank=rank, n=n) for n in (1, 2, 3) for rank in (2, 0, 1)))
    assert (tracker.progress().step, tracker.progress().total) == (3, 3)
    points = [(bucket.step, bucket.last) for bucket in tracker.series()["loss"].buckets()]
    assert points in [[(float(n), n + rank / 10) for n in (1, 2, 3)] for rank in range(3)]
    assert len(tracker.ranks()) == 3


def test_curves_are_of_a_printer_whose_values_are_kept():
    """Also where a later one prints more; ranks without end share a printer."""
    tracker = ProgressTracker()
    for rank in range(5_000):
        for step in (1, 2, *range(3, 40 if rank == 9 else 3)):
            tracker.feed(f"[rank{rank}]: step {step} loss 1.5\n".encode(), 1_000.0, "trainer/0")
    assert tracker.series()["loss"].points == 2
    assert len(tracker.ranks()) == 4_097


def time_left(pauses: list[float]) -> dict[int, float]:
    """Return at each step the time left that is told, as a part of the true one."""
    tracker, at, told = ProgressTracker(), 1_000.0, {}
    ends = list(itertools.accumulate(pauses, initial=at))
    for step, at in enumerate(ends):
        tracker.feed(f"step {step}/{len(pauses)} loss 1.0\n".encode(), at, "trainer/0")
        left = tracker.progress().seconds_left
        if left is not None and step < len(pauses):
            told[step] = left / (ends[-1] - at)
    return told


def test_time_left_follows_a_change_of_rate():
    told = time_left([1.0] * 500 + [0.4] * 1500)
    assert all(0.9 < part < 1.1 for step, part in told.items() if step > 540)


def test_time_left_counts_long_pauses_by_their_share():
    told = time_left(([1.0] * 99 + [60.0]) * 10)
    assert all(0.7 < part < 1.3 for step, part in told.items() if 220 < step < 900)


def test_time_left_after_one_long_pause():
    told = time_left([0.1] * 600 + [240.0] + [0.1] * 5000)
    assert all(part < 3 for step, part in told.items() if step > 610)
    assert told[3000] < 1.5
