"""What is a metric, what is an evaluation, whose line it is, and what is no training."""

from __future__ import annotations

import pytest

from torchx_tui.diagnosis.progress.tracker import Progress, ProgressTracker


def read(*lines: str) -> ProgressTracker:
    tracker = ProgressTracker()
    tracker.feed("".join(f"{line}\n" for line in lines).encode())
    return tracker


def values(*lines: str) -> dict[str, list[float]]:
    return {name: series.means() for name, series in read(*lines).series().items()}


def block(*lines: str) -> list[str]:
    """Return lines that are printed in each of three epochs, with its number for `{n}`."""
    return [line.format(n=n) for n in (1, 2, 3) for line in lines]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["Epoch {n}", "Mean episode length: 2{n}.5"], {"Mean episode length": [21.5, 22.5, 23.5]}),
        (["Epoch {n}", "PSNR: 3{n}", "device count: 8"], {"PSNR": [31, 32, 33]}),
        (
            ["loss: 0.{n}", "top1: 5{n}", "zeal: {n}"],
            {"loss": [0.1, 0.2, 0.3], "top1": [51, 52, 53], "zeal": [1, 2, 3]},
        ),
        (["queue length: {n}", "took: 0.{n} s"], {}),
        (["Epoch: {n}, Train: 0.{n}, Val: 0.{n}5"], {"Train": [0.1, 0.2, 0.3], "Val": [0.15, 0.25, 0.35]}),
        (["INFO [train.py:757] Epoch {n}, loss=0.5{n}"], {"loss": [0.51, 0.52, 0.53]}),
        (["Epoch 1, batch {n}, loss[loss=0.{n}, over 1{n}2.00 frames. ], "], {"loss": [0.1, 0.2, 0.3]}),
        (["Epoch {n} => loss: 1,8{n}"], {"loss": [1.81, 1.82, 1.83]}),
        (["Epoch 1, batch {n}, avg. loss [951-100{n}]: 3.{n}"], {"avg. loss": [3.1, 3.2, 3.3]}),
        (["Trial {n} finished with value: 0.3{n} and parameters: {{}}."], {"value": [0.31, 0.32, 0.33]}),
        (
            ["steps: {n} loss: 7.{n} iter time (s): 0.50{n} samples/sec: 15.{n}"],
            {"loss": [7.1, 7.2, 7.3], "iter time (s)": [0.501, 0.502, 0.503], "samples/sec": [15.1, 15.2, 15.3]},
        ),
        (["Epoch {n}", "Test set: Accuracy: 980{n}/10000 (98%)"], {"eval/Accuracy": [9801, 9802, 9803]}),
    ],
)
def test_values_by_the_general_rule(lines, found):
    assert values(*block(*lines)) == found


@pytest.mark.parametrize(
    "lines",
    [
        ["TrainingArguments(", "adam_beta1=0.9,", "learning_rate=5e-05,", "max_grad_norm=1.0,"],
        ["{{'learning_rate': 0.001, 'beta1': 0.9, 'loss_weight': 1.0}}"],
        ["frame= {n}40 fps= 3{n} q=28.0 size= 1024kB time=00:00:1{n}.00 bitrate= 83{n}.9kbits/s speed=1.{n}x"],
        ["Step {n}/14 : RUN pip install torch==2.{n}"],
        ['10.0.0.{n} "GET /log?step={n}&loss=0.{n} HTTP/1.1" 200 51{n}'],
    ],
)
def test_what_is_no_training(lines):
    tracker = read(*block(*lines))
    assert (tracker.series(), tracker.progress()) == ({}, Progress())


@pytest.mark.parametrize(
    "lines",
    [
        ["Epoch {n}/3", "step 10/10 - loss: 1.{n}", "Eval begin...", "step 2/2 - loss: 2.{n}", "Eval samples: 297"],
        ["Epoch {n} [train] loss=1.{n} [valid] loss=2.{n}"],
        ["Epoch {n} | Train: loss=1.{n} | Val: loss=2.{n}"],
        ['{{"epoch": {n}, "train": {{"loss": 1.{n}}}, "val": {{"loss": 2.{n}}}}}'],
        ['{{"mode": "train", "epoch": {n}, "loss": 1.{n}}}', '{{"mode": "val", "epoch": {n}, "loss": 2.{n}}}'],
        ["Epoch {n} TRAIN Batch 5/100 loss 1.{n}", "CV Batch 5/100 loss 2.{n}"],
        ["[epoch={n}][batch=5/100]: loss: 1.{n}", "[Eval batch=10/10] loss: 2.{n}"],
        ["epoch: [{n}/3], loss: 1.{n}", "best metric, loss: 2.{n}, best_epoch: 1"],
    ],
)
def test_evaluations_are_kept_apart(lines):
    assert values(*block(*lines)) == {"loss": [1.1, 1.2, 1.3], "eval/loss": [2.1, 2.2, 2.3]}


def test_steps_of_an_evaluation_block_do_not_count():
    progress = read(
        *block("Epoch {n}/5", "step 10/10 - loss: 1.{n}", "Eval begin...", "step 2/2 - loss: 2.{n}")
    ).progress()
    assert (progress.step, progress.total) == (30, 50)


@pytest.mark.parametrize("prefix", ["{}: ", "[1,{}]<stdout>:", "(task pid=10{}) "])
def test_ranks_of_srun_mpirun_and_ray(prefix):
    lines = [f"{prefix.format(rank)}step {n}/9 loss {n}.{rank}" for n in (1, 2, 3) for rank in (0, 1)]
    tracker = read(*lines)
    assert tracker.series()["loss"].means() == [1.0, 2.0, 3.0]
    assert len(tracker.ranks()) == 2


def test_equal_lines_of_ranks_are_one_point():
    assert values(*(f"step {n}/9 loss: 2.{n}" for n in (1, 2, 3) for _ in range(16))) == {"loss": [2.1, 2.2, 2.3]}


def test_equal_values_at_other_steps_are_points():
    assert values(*(f"step {n}/9 loss: 2.5" for n in (1, 2, 3))) == {"loss": [2.5, 2.5, 2.5]}


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        ("step {n} eta: 171.3m", 10_278),
        ("step {n} loss: 0.5 ETA: 2h 30m", 9_000),
        ("{n}/20epoch started. Estimated time to finish: 19 hours, 31 minutes", 70_260),
        ("{n}:\ttest: 0.9\tremaining: 4.8s", 4.8),
    ],
)
def test_printed_time_left(lines, seconds):
    assert read(*block(lines)).progress().seconds_left == pytest.approx(seconds)


def bar(name: str, step: int, total: int, rest: str = "") -> str:
    return f"{name}: {step * 100 // total:3}%|##### | {step}/{total} [00:10<00:09,  2.00it/s{rest}]"


def test_nested_bars_count_the_run():
    lines = [line for n in range(3) for line in (bar("Epochs", n, 10), bar("Train", 50, 100), bar("Train", 100, 100))]
    progress = read(*lines).progress()
    assert (progress.step, progress.total, progress.seconds_left) == (300, 1000, 350)


def test_successive_bars_are_phases():
    progress = read(bar("Warmup", 300, 300), bar("Train", 10, 1000), bar("Train", 60, 1000, ", loss=0.5")).progress()
    assert (progress.step, progress.total) == (60, 1000)


@pytest.mark.parametrize(("name", "counts"), [("latest run", True), ("testing", False), ("Evaluating", False)])
def test_bars_beside_the_training(name, counts):
    assert (read(bar(name, 5, 10)).progress().step == 5) is counts


def test_steps_of_an_epoch_without_number_of_epochs():
    progress = read(*(f"Train Epoch: 2 [{n}/60000 (1%)]\tLoss: 2.3" for n in (640, 1280))).progress()
    assert progress.words == ["step 1,280 of 60,000", "epoch 2"]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("gen\tnevals\tavg\tmax", "{n}\t300\t5{n}.5\t6{n}"),
        ("epoch,loss,avg,max", "{n},2.{n},5{n}.5,6{n}"),
        ("Step (% Done)     avg        max", "{n} (1.00%)        5{n}.5     6{n}"),
        (
            "  Epoch  GPU_mem   avg   max",
            " {n}/1000    6.73G  5{n}.5    6{n}: 100%|█████| 16/16 [00:10<00:00,  1.60it/s]",
        ),
    ],
)
def test_numbers_below_a_header(header, row):
    found = values(header, *block(row))
    assert (found["avg"], found["max"]) == ([51.5, 52.5, 53.5], [61, 62, 63])


def test_header_of_the_block_before():
    tracker = ProgressTracker()
    tracker.feed(b"gen\tavg\tmax\n")
    tracker.feed(b"1\t5.5\t6\n2\t6.5\t7\n")
    assert tracker.series()["avg"].means() == [5.5, 6.5]
