"""Recall and precision over the outputs of trainers.

`log_truths.toml` has a pattern for each series, written by hand. Its logs in `data/logs_further` were written after the
trainers' sources and documentation, for which the rules were not made. `real_truths.json` has the values of short runs
of further trainers: before any rule was changed for them, 83.3 % of their values were found, and 84.1 % of what was
found was right.
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
from support.tables import toml_table

from torchx_tui.diagnosis.progress.tracker import ProgressTracker

DATA = Path(__file__).parent.parent / "data"
TRUTHS = toml_table(Path(__file__).with_name("log_truths.toml"))
NUMBER = r"(-?[\d,.]+(?:[eE][-+]?\d+)?|nan)"
LINE = re.compile(r"[\r\n]")
ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
# Series that are right, but not in the table: counters, times and sizes.
NEUTRAL = {
    "logs": re.compile(
        r"(?i)time|mem|batch|size|scale|best|wall|ups|wpb|bsz|gb_free|remaining|runtime|per_second|iterations|updates"
        r"|flos|consumed|clip_range|seen|eval/|n_updates|std"
    ),
    "logs_further": re.compile(r"(?i)time|sec|total_weights|clip|loss_scale|sents|bsz|tok/s|(?:^|/)s$|memory|batch"),
}
# Bars that are drawn again at one step, with the same values: each is a point once.
REDRAWN = {"tqdm.real", "rich.real", "lightning.real"}
REAL = json.loads((DATA / "logs_further" / "real_truths.json").read_text())
"""By trainer: its version, where the values are from, and the values of each series.

``running`` has those of bars that are drawn at times only: each that is found is right, none has to be found.
"""


def log_path(name: str) -> Path:
    (path,) = DATA.glob(f"logs*/{name}.log")
    return path


def expected(name: str) -> dict[str, Counter[float]]:
    """Return the values of each series of a log, by the patterns; one value alone is no series."""
    lines = LINE.split(ANSI.sub("", log_path(name).read_bytes().decode()))
    found = {}
    for series, pattern in TRUTHS[name].items():
        search = re.compile(pattern.replace("N", NUMBER)).search
        values = [float(match[1].replace(",", "")) for match in map(search, lines) if match]
        if len(values) >= 2:
            found[series] = Counter(value for value in values if value == value)
    return found


def recognised(name: str) -> dict[str, Counter[float]]:
    tracker = ProgressTracker()
    tracker.feed(log_path(name).read_bytes())
    values: dict[str, Counter[float]] = {}
    for rank in tracker.ranks():
        for series in rank.shown().values():
            values.setdefault(series.name, Counter()).update(bucket.last for bucket in series.buckets() if bucket.count)
    return values


@pytest.mark.parametrize("name", TRUTHS)
def test_values_of_each_series(name):
    """Of each series 98 % of the points are found, 99.5 % of what is found is right, and nothing else is a metric."""
    got, wanted = recognised(name), expected(name)
    assert [
        other for other in got if other not in wanted and not NEUTRAL[log_path(name).parent.name].search(other)
    ] == []
    for series, values in wanted.items():
        seen = got.get(series, Counter())
        if name in REDRAWN:
            assert {*values} == {*seen}, series
            assert all(seen[value] <= times for value, times in values.items()), series
            continue
        right = (values & seen).total()
        assert right >= 0.98 * values.total(), series
        assert right >= 0.995 * seen.total(), series


def test_traps_give_nothing():
    """Addresses, hashes, versions, warnings and tables of results are no metrics."""
    assert not recognised("traps.src")


@pytest.mark.parametrize("name", REAL)
def test_values_of_real_runs(name):
    found = recognised(f"{name}.real")
    wanted = {key: Counter(value for value in values if value == value) for key, values in REAL[name]["series"].items()}
    running = {key: Counter(values) for key, values in REAL[name].get("running", {}).items()}
    count = sum(values.total() for values in wanted.values())
    right = sum((found.get(key, Counter()) & values).total() for key, values in wanted.items())
    false = sum(
        (values - (wanted.get(key, Counter()) | running.get(key, Counter()))).total()
        for key, values in found.items()
        if not key.startswith("time_")
    )
    assert right >= 0.98 * count > 0
    assert false <= 0.005 * count


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
    tracker.feed(log_path(f"{name}.real").read_bytes())
    assert words in tracker.progress().words


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
