"""Formats of trainers that the rules were not made for.

Ten were written after the trainers' sources and documentation. The others are what short runs of real trainers
printed into a pipe; their truths are no patterns but the values of the run itself, formatted as the trainer does.
Before any rule was changed for them, 83.3 % of their values were found, and 84.1 % of what was found was right.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from torchx_tui.diagnosis.progress.tracker import ProgressTracker

LOGS = Path(__file__).parent.parent / "data" / "logs_further"
N = r"([\d.]+(?:e[-+]\d+)?)"

TRUTHS: dict[str, dict[str, str]] = {
    "maxtext": {name: rf"{name}: {N}" for name in ("seconds", "TFLOP/s/device", "Tokens/s/device", "loss")},
    "open_clip": {
        **{name: rf"{re.escape(name)}: +{N}" for name in ("Data (t)", "Batch (t)", "LR", "Logit Scale")},
        "Contrastive_loss": rf"Contrastive_loss: {N}",
        "Loss": rf" Loss: {N}",
    },
    "opennmt": {name: rf"; {name}: +{N}" for name in ("acc", "ppl", "xent", "lr")},
    "espnet2": {
        name: rf" {name}={N}"
        for name in ("iter_time", "forward_time", "loss_att", "acc", "loss", "grad_norm", "optim0_lr0", "train_time")
    },
    "litgpt": {"loss train": rf"loss train: {N}", "iter time_ms": rf"iter time: {N}"},
    "fastai": {
        name: rf"(?m)^\d+\s+{skip}{N}\s"
        for name, skip in (("train_loss", ""), ("valid_loss", r"[\d.]+\s+"), ("error_rate", r"[\d.]+\s+[\d.]+\s+"))
    },
    "spacy": {
        name: rf"(?m)^ *\d+ +\d+ +(?:[\d.]+ +){{{skip}}}{N}"
        for skip, name in enumerate(("LOSS TOK2VEC", "LOSS NER", "ENTS_F", "ENTS_P", "ENTS_R", "SCORE"))
    },
    "flair": {
        "loss": rf"- loss {N}",
        "samples/sec": rf"samples/sec: {N}",
        "lr": rf"lr: {N}",
        "momentum": rf"momentum: {N}",
    },
    "tf_estimator": {"loss": rf"loss = {N}", "global_step/sec": rf"global_step/sec: {N}"},
    "composer": {
        f"Train {name}": rf"{name}: {N}"
        for name in (
            "loss/train/total",
            "metrics/train/LanguagePerplexity",
            "throughput/tokens_per_sec",
            "lr-DecoupledAdamW/group0",
        )
    },
}
# Counters and times that a series of is no fault, though nobody asked for it.
NEUTRAL = re.compile(r"(?i)time|sec|total_weights|clip|loss_scale|sents|bsz|tok/s|(?:^|/)s$|memory|batch")


REAL = json.loads((LOGS / "real_truths.json").read_text())
"""By trainer: its version, where the values are from, and the values of each series.

``running`` has those of bars that are drawn at times only: each that is found is right, none has to be found.
"""
_TIMES = re.compile("^time_")


def _found(log: str) -> dict[str, Counter[float]]:
    tracker = ProgressTracker()
    tracker.feed((LOGS / log).read_bytes())
    return {
        key: Counter(bucket.last for bucket in series.buckets() if bucket.count)
        for key, series in tracker.series().items()
    }


def measure(name: str) -> tuple[int, int, int]:
    """Return the points that are wanted, those of them that were found, and the found ones that are false."""
    text = (LOGS / f"{name}.log").read_text()
    tracker = ProgressTracker()
    tracker.feed(text.encode())
    found = {key: Counter(series.means()) for key, series in tracker.series().items()}
    wanted = {key: Counter(float(v) for v in re.findall(pattern, text)) for key, pattern in TRUTHS[name].items()}
    right = {key: sum((found.get(key, Counter()) & values).values()) for key, values in wanted.items()}
    false = sum(
        sum(values.values()) - right.get(key, 0)
        for key, values in found.items()
        if key in wanted or not NEUTRAL.search(key)
    )
    return sum(sum(values.values()) for values in wanted.values()), sum(right.values()), false


def measure_real(name: str) -> tuple[int, int, int]:
    """Return the same of a real run."""
    found = _found(f"{name}.real.log")
    wanted = {key: Counter(value for value in values if value == value) for key, values in REAL[name]["series"].items()}
    running = {key: Counter(values) for key, values in REAL[name].get("running", {}).items()}
    right = sum((found.get(key, Counter()) & values).total() for key, values in wanted.items())
    false = sum(
        (values - (wanted.get(key, Counter()) | running.get(key, Counter()))).total()
        for key, values in found.items()
        if not _TIMES.search(key)
    )
    return sum(values.total() for values in wanted.values()), right, false


@pytest.mark.parametrize("name", TRUTHS)
def test_recall_and_precision(name):
    wanted, right, false = measure(name)
    assert right >= 0.98 * wanted
    assert false <= 0.005 * wanted


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("catalyst", "epoch 12 of 12"),
        ("ignite", "epoch 8 of 8"),
        ("poutyne", "step 100 of 100"),
        ("pykeen", "step 20 of 20"),
        ("ultralytics", "step 16 of 16"),
    ],
)
def test_progress_of_real_runs(name, words):
    """Bars of evaluations and of reading data are no progress."""
    tracker = ProgressTracker()
    tracker.feed((LOGS / f"{name}.real.log").read_bytes())
    assert words in tracker.progress().words


@pytest.mark.parametrize("name", REAL)
def test_recall_and_precision_of_real_runs(name):
    wanted, right, false = measure_real(name)
    assert wanted
    assert right >= 0.98 * wanted
    assert false <= 0.005 * wanted


_TRAIN = """
import json
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
digits = load_digits()
model = MLPClassifier((16,), max_iter=20, verbose=True, random_state=1).fit(digits.data, digits.target)
print(json.dumps(model.loss_curve_))
"""


@pytest.mark.torch
def test_scikit_learn_that_is_installed(require):
    require("trainers", find_spec("sklearn") is not None, "pip install 'torchx-tui[examples]'")
    command = [sys.executable, "-W", "ignore", "-c", _TRAIN]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    *_, truth = printed.splitlines()
    tracker = ProgressTracker()
    tracker.feed(printed.removesuffix(f"{truth}\n").encode())
    assert tracker.series()["loss"].means() == [float(f"{loss:.8f}") for loss in json.loads(truth)]
