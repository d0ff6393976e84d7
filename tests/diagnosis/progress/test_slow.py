"""Which replica is slow by the times that it prints, and that healthy runs name none."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from torchx_tui.diagnosis.progress.lines import is_own_time
from torchx_tui.diagnosis.progress.slow import find_slow_replica
from torchx_tui.diagnosis.progress.stalls import Kind, Observation
from torchx_tui.diagnosis.progress.tracker import ProgressTracker

REPLICAS = 8
Line = Callable[[int, int, random.Random], str]


def run(
    line: Line,
    pause: Callable[[int, int, random.Random], float],
    *,
    seed: int = 0,
    steps: int = 120,
    looks: bool = False,
) -> list[Observation]:
    """Let replicas print their steps, and return what is said at the end, or after every tenth step.

    Args:
        line: what a replica prints after a step.
        pause: the seconds that a replica takes for a step.
        seed: of all that varies.
        steps: how many.
        looks: look after every tenth step.
    """
    chance, tracker, at, found = random.Random(seed), ProgressTracker(), [1_000.0] * REPLICAS, []
    events = []
    for step in range(steps):
        at = [time + pause(k, step, chance) for k, time in enumerate(at)]
        at = [max(at)] * REPLICAS
        events += [(time, k, step) for k, time in enumerate(at)]
    for number, (time, k, step) in enumerate(sorted(events)):
        tracker.feed(f"{line(k, step, chance)}\n".encode(), time, f"trainer/{k}")
        if number == len(events) - 1 or (looks and number % (10 * REPLICAS) == 0):
            found.append(find_slow_replica(tracker.ranks(), time))
    return [observation for observation in found if observation is not None]


def plain(_k: int, step: int, _chance: random.Random) -> str:
    return f"step {step} loss 1.5"


def test_rank_that_loads_data_slowly_is_named():
    """All ranks make their steps together; its own time tells which holds them up."""

    def line(k: int, step: int, chance: random.Random) -> str:
        return f"step {step} loss 1.5 data_time={chance.gauss(0.36 if k == 5 else 0.2, 0.02):.3f}"

    [found] = run(line, lambda k, step, chance: chance.gauss(1.0, 0.1))
    assert (found.kind, found.replica) == (Kind.SLOW, "trainer/5")
    assert found.sentence.startswith("slow 1.8x: trainer/5, its data_time is 0.3")
    assert ", elsewhere 0.2" in found.sentence


def test_ranks_in_one_log_are_told_apart():
    """As torchrun prints them: the replica is the agent's."""
    tracker = ProgressTracker()
    for step in range(40):
        for rank in range(4):
            text = f"[rank{rank}]: step {step} loss 1.5 step_time={300 if rank == 2 else 100} ms\n"
            tracker.feed(text.encode(), 1_000 + step, "trainer/0")
    found = find_slow_replica(tracker.ranks(), 1_040)
    assert found is not None
    assert (found.replica, found.sentence) == (
        "trainer/0",
        "slow 3.0x: trainer/0 rank 2, its step_time_ms is 300, elsewhere 100",
    )


HEALTHY = ["plain", "heavy", "evaluations", "checkpoints", "loaders"]


@pytest.mark.parametrize("kind", HEALTHY)
@pytest.mark.parametrize("seed", range(20))
def test_no_replica_of_a_healthy_run_is_named(kind, seed):
    """Steps vary, the first rank evaluates and saves, loaders stutter on all ranks."""

    def pause(k: int, step: int, chance: random.Random) -> float:
        if kind == "heavy":
            return chance.lognormvariate(0, 0.8)
        seconds = max(0.2, chance.gauss(1.0, 0.1))
        seconds += 36 if kind == "evaluations" and step % 50 == 49 and k == 0 else 0
        return seconds + (15 if kind == "checkpoints" and step % 25 == 24 and k == 0 else 0)

    def line(k: int, step: int, chance: random.Random) -> str:
        seconds = chance.lognormvariate(-1.5, 1.0) if kind == "loaders" else max(0.0, chance.gauss(0.2, 0.02))
        return f"step {step} loss 1.5 data_time={seconds:.4f} step_time={pause(k, step, chance):.4f}"

    assert not run(line, pause, seed=seed, looks=True)


@pytest.mark.parametrize(
    ("times", "unit", "why"),
    [
        ([0.002, 0.001], "", "it is nothing beside the step"),
        ([9, 4], " ms", "it is nothing beside the step"),
        ([0.5, 0.36], "", "it is not much longer"),
        ([0.0, 0.0], "", "nobody takes any"),
    ],
)
def test_times_that_tell_nothing(times, unit, why):
    def line(k: int, step: int, chance: random.Random) -> str:
        return f"step {step} data_time={times[min(k, 1)]:g}{unit}"

    assert not run(line, lambda k, step, chance: 1.0), why


def test_replica_that_makes_no_steps_any_more_is_not_slow():
    """It has ended or hangs, which is said elsewhere; too few steps tell nothing."""
    line = {0: 1.0, 1: 3.0}
    tracker = ProgressTracker()
    for k, pause in line.items():
        for step in range(40):
            tracker.feed(f"step {step} data_time: {pause}\n".encode(), 1_000 + step, f"trainer/{k}")
    ranks = tracker.ranks()
    assert not find_slow_replica(ranks, 1_071)
    assert find_slow_replica(ranks, 1_060)
    assert not find_slow_replica(ranks[:1], 1_060)


def test_other_counters_are_not_compared():
    """What a launcher prints in a replica's log is no rank, and another role does other work."""
    tracker = ProgressTracker()
    for step in range(40):
        tracker.feed(f"[rank0]: step {step} data_time: 0.1\n".encode(), 1_000 + step, "trainer/0")
        tracker.feed(f"step {step * 10} data_time: 1.5\n".encode(), 1_000 + step, "trainer/0")
        tracker.feed(f"[rank0]: step {step * 10} data_time: 1.5\n".encode(), 1_000 + step, "reader/0")
    assert not find_slow_replica(tracker.ranks(), 1_040)


def test_times_of_own_work():
    """Waiting for others is none: who waits is not slow."""
    own = ["data_time", "Data", "time", "step_time_ms", "timing/step_time", "batch_time", "data_loading_time",
           "train_step_timing in s", "elapsed time per iteration (ms)"]  # fmt: skip
    others = ["backward_time", "allreduce_time", "wait time", "optimizer-step-time-left", "eta", "loss", "timeout"]
    assert [is_own_time(name) for name in own] == [True] * len(own)
    assert [is_own_time(name) for name in others] == [False] * len(others)
