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


@pytest.mark.parametrize(
    ("lines", "step", "total"),
    [
        (["step 10/200 loss 2.5", "step 20/200 loss 2.4"], 20, 200),
        (["Epoch [2/3] Step [0/100] Loss: 1.5", "Epoch [2/3] Step [50/100] Loss: 1.4"], 150, 300),
        (["Epoch: [0][ 11/300]\tLoss 1.5 (1.6)", "Epoch: [1][ 11/300]\tLoss 1.5 (1.6)"], 11, 300),
        ([" 49%|####9     | 49/100 [00:10<00:09,  4.10it/s]", " 50%|##### | 50/100 [00:10<00:09,  4.1it/s]"], 50, 100),
        # A bar of each epoch, that tells no number of epochs.
        (["100%|##### | 10/10 [00:10<00:00,  4.1it/s]", " 10%|##### | 1/10 [00:10<00:09,  4.1it/s]"], 11, None),
        (["{'loss': 0.5, 'epoch': 0.1}", " 50%|##### | 5/10 [00:10<00:09,  1.50s/it]"], 5, 10),
        (["[1]\ttrain-auc:0.5", "[2]\ttrain-auc:0.6"], 2, None),
        (["[step=1/4000,epoch=1,eta=2h59m]", "    train/CE loss=9.1", "[step=10/4000,epoch=1,eta=2h59m]"], 10, 4000),
        (["UserWarning: step 3/10 of deprecation: use lr=1e-3 instead"], None, None),
        # Lines count, and a bar beside them has the total.
        ([" 50%|##### | 5/10 [00:10<00:09,  4.1it/s]", "step 5: loss 1.5", "step 6: loss 1.5"], 6, 10),
        # PyTorch's tutorials count from 0 to the number in the line.
        (["Epoch 0/2", "Epoch 1/2", "Epoch 2/2"], 3, 3),
        (["training on 8 gpus", "loaded 1/4 shards in 3.2s"], None, None),
    ],
)
def test_step_and_total(lines, step, total):
    """The step and the end of the run, in the words of several trainers."""
    progress = track(*lines).progress()
    assert (progress.step, progress.total) == (step, total)


def test_rate_and_time_left_by_arrival():
    """The rate is that of the arrival of lines, whatever they tell."""
    progress = track(*(f"step {n}/100 loss 1.0" for n in range(0, 50, 10)), seconds=20).progress()
    assert progress.rate == pytest.approx(0.5)
    assert progress.seconds_left == pytest.approx(120)
    assert progress.fraction == pytest.approx(0.4)
    assert progress.moved_at == 1_080


def test_printed_rate_and_eta_where_arrival_tells_nothing():
    """A bar's own rate, seconds a step among them, and detectron2's time left."""
    assert track(" 50%|##### | 5/10 [00:10<00:09,  2.00s/it]").progress().rate == pytest.approx(0.5)
    assert track(" eta: 1:00:05  iter: 19  total_loss: 3.7").progress().seconds_left == 3605


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(20.0, "<1m"), (61.0, "2m"), (119.9, "2m"), (120.0, "2m"), (3_599.0, "1h 00m"), (11_000.0, "3h 04m")],
)
def test_the_end_is_told_in_minutes(seconds, told):
    assert Progress(1, 2, seconds_left=seconds).words[-1] == f"ends in {told}"


def test_bars_of_evaluations_and_files_are_no_progress():
    """HF prints a bar for each evaluation and each shard that it writes, within that of the training."""
    tracker = track(
        " 50%|#####     | 40/80 [00:10<00:09,  4.1it/s]",
        " 38%|###8      | 3/8 [00:00<00:00, 28.39it/s]",
        "Writing model shards: 100%|##########| 1/1 [00:00<00:00, 26.16it/s]",
        "model.safetensors:  40%|####      | 800M/2.00G [00:00<00:00, 1.92GB/s]",
        " 51%|#####     | 41/80 [00:10<00:09,  4.1it/s]",
    )
    assert tracker.progress() == Progress(41, 80, rate=4.1, seconds_left=39 / 4.1)
    tracker.feed(b" 38%|###8      | 3/8 [00:00<00:00, 28.39it/s]\n", replica="trainer/0")
    assert tracker.progress().step == 41


def test_steps_that_begin_anew_go_on():
    """A loop that counts the batches of each epoch from 0 without saying so."""
    tracker = track(*(f"step {n}/10 loss 1.0" for _ in range(2) for n in range(10)))
    assert tracker.progress().step == 19
    assert list(tracker.series()["loss"].steps()) == [*range(10), *range(10, 20)]


@pytest.mark.parametrize("checkpoint", [400, 100])
def test_a_restart_goes_back(checkpoint):
    """A job that resumed at its checkpoint is where its lines say, and its rate is that since then."""
    steps = [500, 510, 520, *range(checkpoint, checkpoint + 40, 10)]
    progress = track(*(f"step {n}/1000 loss 1.0" for n in steps), seconds=10).progress()
    assert (progress.step, progress.rate) == (checkpoint + 30, pytest.approx(1.0))


def test_steps_that_go_on_below_epochs_are_those_of_the_run():
    lines = [line for n in (2, 3, 4) for line in (f"Epoch {n}/5", f"step {n * 200 - 100}/1000", f"step {n * 200}/1000")]
    progress = track(*lines).progress()
    assert (progress.step, progress.total) == (800, 1000)


def test_evaluations_are_series_of_their_own():
    """Lines of evaluations move no step, and their values do not mix with those of the training."""
    tracker = track(
        "step: 10 loss: 2.0", "validate step: 10 loss: 3.0", "step: 20 loss: 1.5", "validate step: 20 loss: 2.5"
    )
    assert [bucket.last for bucket in tracker.series()["loss"].buckets()] == [2.0, 1.5]
    assert list(tracker.series()["eval/loss"].steps()) == [10, 20]


def test_a_bar_that_is_drawn_again_adds_no_point():
    """The values of a step are drawn before and after it is counted; equal values of the next epoch are points."""
    bar = "{}%|##### | {}/2 [00:10<00:09,  4.10it/s, loss={}]"
    states = [(0, 0, 0.7), (50, 1, 0.7), (50, 1, 0.6), (100, 2, 0.6), (100, 2, 0.6), (0, 0, 0.6), (50, 1, 0.6)]
    series = track(*(bar.format(*state) for state in states)).series()
    assert series["loss"].means() == [0.7, 0.6, 0.6]


def test_a_dev_set_is_an_evaluation():
    """Its loss, as flair prints it, is no loss of the training."""
    lines = [
        line for n in (1, 2) for line in (f"epoch {n} - iter 5/5 - loss 0.5", "2026-11-25 03:00:15 DEV : loss 0.25")
    ]
    series = track(*lines).series()
    assert (series["loss"].means(), series["eval/loss"].means()) == ([0.5, 0.5], [0.25, 0.25])


def test_the_summary_of_all_classes_has_the_names_of_its_header():
    """An evaluation of Ultralytics: masks have names of their own."""
    header = (
        "  Class     Images  Instances      Box(P          R  mAP50)     Mask(P          R  mAP50): 100% 1/1 18.8it/s"
    )
    row = "    all          4          4      0.1      0.2      0.3      0.4      0.5      0.6"
    series = track(header, row, header, row).series()
    assert {name: values.last for name, values in series.items()} == {
        "eval/P": 0.1,
        "eval/R": 0.2,
        "eval/mAP50": 0.3,
        "eval/Mask P": 0.4,
        "eval/Mask R": 0.5,
        "eval/Mask mAP50": 0.6,
    }


def test_values_of_a_table_belong_to_its_step():
    """Stable-Baselines3 prints the step below the values that belong to it."""
    rows = [
        f"|    ep_rew_mean     | {reward} |\n|    total_timesteps | {step} |\n|    loss  | {reward} |\n"
        for reward, step in ((20.7, 128), (22.5, 256))
    ]
    series = track(*rows).series()
    assert list(series["ep_rew_mean"].steps()) == [128, 256]
    assert list(series["loss"].steps()) == [128, 256]


def test_the_rank_that_prints_most_counts():
    """Megatron's last rank alone prints; of equal ranks one is taken, not all of them together."""
    lines = ["[default0]:[rank 0] step 1/9 lr 0.1"]
    lines += [f"[default7]:[rank 7] step {n}/9 loss {n}.5 lr 0.1" for n in range(1, 6)]
    tracker = track(*lines)
    assert tracker.main is not None
    assert tracker.main.label == "trainer/0 rank 7"
    assert [bucket.last for bucket in tracker.series()["loss"].buckets()] == [1.5, 2.5, 3.5, 4.5, 5.5]


def test_ranks_that_the_message_names_are_not_mixed():
    """As examples/ddp_digits.py prints: each rank its loss once an epoch, in any order."""
    lines = [f"epoch {epoch}/3 rank {rank} loss {epoch}.{rank}" for epoch in (1, 2, 3) for rank in (2, 0, 1)]
    tracker = track(*lines)
    buckets = list(tracker.series()["loss"].buckets())
    assert [bucket.step for bucket in buckets] == [1, 2, 3]
    assert len({round(bucket.last % 1, 1) for bucket in buckets}) == 1


@pytest.mark.parametrize("printed", ["1.94e-05", "7,040", "10.9B", "nan", "inf", "-0.0012", "41.25%", "124.45ms"])
def test_values_are_kept_as_they_are_printed(printed):
    """To the last digit, with separators and units."""
    series = track(f"step 1 loss: {printed}", f"step 2 loss: {printed}").series()
    assert [one.printed for one in series.values()] == [printed]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("Iteration {n}, inertia 1361.5.", {"inertia": 1361.5}),
        ("step {n}/18865 | loss 11.0 (+nanz)| lr 8.5e-07 | 42.5% bf16 MFU | 171545 tok/s", {"tok/s": 171545}),
        ("Train Epoch: 0 [ {n}/128 (5%)] 27.8/s, 27.8/s/gpu LR: 0.25 Loss: 4.5 (4.25)", {"LR": 0.25, "Loss": 4.5}),
        (
            "| epoch   {n} |   200/ 2983 batches | ms/batch  5.5 | loss  7.5 | ppl  2064.5",
            {"ms/batch": 5.5, "ppl": 2064.5},
        ),
        ("Ep. 1 : Up. {n} : Sen. 32,000 : Cost 7.5 : Time 30.20s : gNorm 0.5 : L.r. 3e-4", {"Cost": 7.5, "gNorm": 0.5}),
        ("tick {n}     kimg 20.0     time 1m 02s       sec/tick 60.1    augment 0.125", {"sec/tick": 60.1}),
        ("     | > grad_norm_0: {n}.5  (0.5)  step {n}", {"grad_norm_0": 2.5}),
        ("Epoch 1 | iter {n} step 2 | loss train: 2.5, val: n/a | iter time: 331.5 ms", {"loss train": 2.5}),
    ],
)
def test_values_of_formats_that_came_later(line, values):
    """Those of k-means, llm.c, open_clip, PyTorch's word_language_model, litgpt."""
    series = track(line.format(n=1), line.format(n=2)).series()
    assert {name: series[name].last for name in values} == values


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


@pytest.mark.parametrize("prefix", ["[{}]:", "[default{}]:", "[rank {}] "])
def test_ranks_before_the_message(prefix):
    """What torchrun's `--tee` writes before a line is a rank and no step, also of lines that look alike."""
    lines = [f"{prefix.format(rank)}epoch {epoch}/6 loss {epoch}.{rank}" for epoch in (1, 2, 3) for rank in (0, 1)]
    tracker = track(*lines)
    assert (tracker.progress().step, tracker.progress().total) == (3, 6)
    points = [(bucket.step, bucket.last) for bucket in tracker.series()["loss"].buckets()]
    assert points in [[(float(n), n + rank / 10) for n in (1, 2, 3)] for rank in (0, 1)]
    assert len(tracker.ranks()) == 2


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
