"""Recall and precision over the outputs of real trainers, against patterns that were written by hand for each."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from torchx_tui.diagnosis.progress.tracker import ProgressTracker

LOGS = Path(__file__).parent.parent / "data" / "logs"
N = r"(-?[\d,.]+(?:[eE][-+]?\d+)?|nan)"
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def _named(*names: str, sep: str = "[=:] ?", before: str = r"(?<![\w/ ])") -> dict[str, str]:
    return {name: before + re.escape(name) + sep + N for name in names}


TRUTHS: dict[str, dict[str, str]] = {
    "torchtitan.src": {
        "loss": r"- step: .*?loss: +" + N,
        "grad_norm": "grad_norm: +" + N,
        "tps": r"- step:.*tps: " + N,
        "tflops": "tflops: " + N,
        "mfu": "mfu: " + N + "%",
        "eval/loss": "validate.*loss: +" + N,
        "eval/tps": "validate.*tps: " + N,
    },
    "megatron.src": {
        name: re.escape(name) + ": +" + N + r" \|"
        for name in (
            "consumed samples",
            "elapsed time per iteration (ms)",
            "throughput per GPU (TFLOP/s/GPU)",
            "learning rate",
            "lm loss",
            "loss scale",
            "grad norm",
            "number of skipped iterations",
            "number of nan iterations",
        )
    },
    "deepspeed.src": {
        "lr": r"lr=\[" + N,
        **_named("RunningAvgSamplesPerSec", "CurrSamplesPerSec", "skipped", sep="=", before=""),
        "MemAllocated": " MemAllocated=" + N,
        "MaxMemAllocated": " MaxMemAllocated=" + N,
    },
    "fairseq.src": {
        **{name: rf"(?:train_inner|train) .*[ ,|] ?(?<!_){name}[= ]{N}(?=,|$| )" for name in ("ppl", "wps", "lr")},
        "gnorm": f"gnorm[= ]{N}(?=,|$| )",
        "nll_loss": r"(?:train_inner|train) .*nll_loss[= ]" + N,
        "loss": r"(?:train_inner|train) .*(?:\d |\| )loss[= ]" + N,
        "eval/loss": r"\| valid .*\| loss " + N,
        "eval/ppl": r"\| valid .*ppl " + N,
    },
    "olmo_core.src": {
        name: "^    " + re.escape(name) + "=" + N
        for name in (
            "optim/LR (group 0)",
            "optim/total grad norm",
            "throughput/total tokens",
            "throughput/device/TPS",
            "throughput/device/MFU",
            "train/CE loss",
            "train/PPL",
        )
    },
    "verl.src": {
        name: "- " + name + ":" + N
        for name in (
            "global_seqlen/min",
            "actor/entropy",
            "actor/kl_loss",
            "actor/pg_loss",
            "actor/grad_norm",
            "actor/lr",
            "perf/mfu/actor",
            "critic/score/mean",
            "critic/rewards/mean",
            "response_length/mean",
            "timing_s/step",
            "perf/throughput",
        )
    },
    "torchtune.src": {
        "loss": r"\| loss:" + N,
        "lr": " lr:" + N,
        "tokens_per_second_per_gpu": "gpu:" + N,
        "grad_norm": "norm:" + N,
        "peak_memory_active": "active:" + N,
        "Loss": "Loss: " + N,
    },
    "nemo.src": {
        "lr": r"\| lr: " + N,
        "reduced_train_loss": r"\| reduced_train_loss: " + N,
        "train_step_timing in s": "in s: " + N,
        "consumed_samples": r"\| consumed_samples: " + N,
    },
    "mmengine.src": {
        "lr": " lr: " + N,
        "time": "train.* time: " + N,
        "data_time": "train.*data_time: " + N,
        "loss": " loss: " + N,
        "loss_cls": "_cls: " + N,
        "loss_bbox": "loss_bbox: " + N,
        "acc": "acc: " + N,
        "eval/coco/bbox_mAP": "mAP: " + N,
        "eval/coco/bbox_mAP_50": "mAP_50: " + N,
        "eval/time": "val.* time: " + N,
        "eval/data_time": "val.*data_time: " + N,
    },
    "detectron2.src": {
        name: f" {name}: {N}"
        for name in ("total_loss", "loss_cls", "loss_box_reg", "time", "data_time", "lr", "max_mem")
    },
    "timm.src": {
        "Loss": "Train.*Loss: +" + N,
        "LR": "LR: " + N,
        "Time": "Train.* Time: " + N,
        "Data": "Data: " + N,
        "eval/Loss": "Test.*Loss: +" + N,
        "eval/Acc@1": "Test.*Acc@1: +" + N,
        "eval/Acc@5": "Test.*Acc@5: +" + N,
    },
    "torchvision.src": {
        **{name: rf" {name}: {N}(?!\S)" for name in ("lr", "img/s", "loss", "acc1", "acc5", "time", "data", "max mem")},
        "eval/Acc@1": "Test: +Acc@1 " + N,
        "eval/Acc@5": "Acc@5 " + N,
    },
    "imagenet_example.src": {
        "Loss": r"\tLoss +" + N,
        "Acc@1": r"\tAcc@1 +" + N,
        "Acc@5": r"\tAcc@5 +" + N,
        "Time": r"\tTime +" + N,
        "Data": r"\tData +" + N,
        "eval/Acc@1": r"\* +Acc@1 " + N,
        "eval/Acc@5": r"\*.*Acc@5 " + N,
    },
    "nanogpt.src": {
        "loss": r"iter \d+: loss " + N,
        "mfu": "mfu " + N,
        "time_ms": "time " + N + "ms",
        "train loss": "train loss " + N,
        "val loss": "val loss " + N,
    },
    "axolotl.src": {
        "loss": r"^\{'loss': " + N,
        "grad_norm": "norm': " + N,
        "learning_rate": "rate': " + N,
    },
    "traps.src": {},
    "ranks_same.src": {"loss": "loss " + N, "lr": "lr " + N, "tok/s": "tok/s " + N},
    "xgboost.real": _named("train-logloss", "train-auc", "eval-logloss", "eval-auc", sep=":", before=""),
    "lightgbm.real": _named(
        "train's binary_logloss", "train's auc", "valid's binary_logloss", "valid's auc", sep=": ", before=""
    ),
    "catboost.real": {"test": r"\ttest: " + N, "best": r"^\d+:.*best: " + N},
    "sklearn.real": {
        "Avg. loss": r"Avg\. loss: " + N,
        "Objective": "Objective: " + N,
        "loss": r"Iteration \d+, loss = " + N,
        # A table, whose header alone names its columns.
        "Train Loss": r"^ +\d+ +(\d\.\d+) ",
    },
    "python.real": {
        "Loss": "Loss: " + N,
        "loss": r"(?:step=.* loss=|\"loss\": |iter \d+: loss )" + N,
        "LR": "LR: " + N,
        "lr": r"\"lr\": " + N,
        "mfu": "mfu " + N,
        "time_ms": "time " + N + "ms",
        "throughput": "throughput=" + N,
    },
    "tqdm.real": {"loss": "loss=" + N, "lr": "lr=" + N, "acc": "acc=" + N},
    "rich.real": {"loss": "loss=" + N},
    "sb3.real": {
        name: rf"\| +{name} +\| +{N}"
        for name in (
            "ep_len_mean",
            "ep_rew_mean",
            "fps",
            "approx_kl",
            "clip_fraction",
            "entropy_loss",
            "explained_variance",
            "learning_rate",
            "loss",
            "policy_gradient_loss",
            "value_loss",
        )
    },
    "keras2.real": _named("accuracy", "loss", "val_accuracy", "val_loss", sep=": ", before=" "),
    "keras1.real": {},
    "hf.real": {
        "loss": r"^\{'loss': '?" + N,
        "grad_norm": "grad_norm': '?" + N,
        "learning_rate": "learning_rate': '?" + N,
        "eval_loss": "eval_loss': '?" + N,
        "eval_accuracy": "eval_accuracy': '?" + N,
    },
    "hf_notqdm.real": {
        "loss": r"^\{'loss': '?" + N,
        "grad_norm": "grad_norm': '?" + N,
        "learning_rate": "learning_rate': '?" + N,
        "eval_loss": "eval_loss': '?" + N,
        "eval_accuracy": "eval_accuracy': '?" + N,
    },
    "lightning.real": {"train_loss": "train_loss=" + N, "val_loss": "val_loss=" + N, "lr": r"\blr=" + N},
    "lightning_rich_notty.real": {},
}
# Right, but not asked for above.
NEUTRAL = re.compile(
    r"(?i)time|mem|batch|size|scale|best|wall|ups|wpb|bsz|gb_free|remaining|runtime|per_second|iterations|updates|flos"
    r"|consumed|clip_range|seen|eval/|n_updates|std"
)


def _float(text: str) -> float:
    return float(text.replace(",", ""))


def _expected(name: str) -> dict[str, list[float]]:
    """Return the values of each series of a log, by the patterns above; one value alone is no series."""
    text = _ANSI.sub("", (LOGS / f"{name}.log").read_bytes().decode())
    segments = [segment for segment in re.split(r"[\r\n]", text) if segment.strip()]
    found = {
        series: [_float(match[1]) for segment in segments if (match := re.search(pattern, segment))]
        for series, pattern in TRUTHS[name].items()
    }
    return {series: values for series, values in found.items() if len(values) >= 2}


def _recognised(name: str) -> dict[str, Counter[float]]:
    tracker = ProgressTracker()
    tracker.feed((LOGS / f"{name}.log").read_bytes())
    values: dict[str, Counter[float]] = {}
    for rank in tracker.ranks():
        for series in rank.shown().values():
            column = [bucket.last for bucket in series.buckets() if bucket.count]
            values.setdefault(series.name, Counter()).update(column)
    return values


def score(name: str) -> tuple[int, int, int, list[str]]:
    """Return how many points of a log were found, missed and made up, and what is wrong with which series."""
    got = _recognised(name)
    found = missed = false = 0
    wrong = []
    for series, values in _expected(name).items():
        wanted = Counter(value for value in values if value == value)
        seen = got.pop(series, Counter())
        right = sum((wanted & seen).values())
        found += right
        missed += wanted.total() - right
        false += seen.total() - right
        if right != wanted.total() or right != seen.total():
            wrong.append(f"{name}: {series} {right} of {wanted.total()}, {seen.total() - right} false")
    for series, counter in got.items():
        if not NEUTRAL.search(series):
            false += counter.total()
            wrong.append(f"{name}: {series} is not a metric, {counter.total()}")
    return found, missed, false, wrong


def test_values_of_all_logs():
    """Of all points of all logs 98 % are found, and 99.5 % of what is found is right."""
    scores = [score(name) for name in TRUTHS]
    found = sum(figures[0] for figures in scores)
    missed = sum(figures[1] for figures in scores)
    false = sum(figures[2] for figures in scores)
    wrong = "\n".join(text for figures in scores for text in figures[3])
    assert found > 5_000
    assert found / (found + missed) >= 0.98, wrong
    assert found / (found + false) >= 0.995, wrong


# Bars that are drawn again at one step, with the same values: each is a point once.
REDRAWN = {"tqdm.real", "rich.real", "lightning.real"}


@pytest.mark.parametrize("name", TRUTHS)
def test_values_of_each_series(name):
    """Of each series 98 % of the points are found, and 99.5 % of what is found is right."""
    got = _recognised(name)
    for series, values in _expected(name).items():
        wanted, seen = Counter(value for value in values if value == value), got.get(series, Counter())
        if name in REDRAWN:
            assert {*wanted} == {*seen}, series
            assert all(seen[value] <= times for value, times in wanted.items()), series
            continue
        right = (wanted & seen).total()
        assert right >= 0.98 * wanted.total(), series
        assert right >= 0.995 * seen.total(), series


@pytest.mark.parametrize("name", ["traps.src"])
def test_traps_give_nothing(name):
    """Addresses, hashes, versions, warnings and tables of results are no metrics."""
    assert not _recognised(name)
