"""Series in bounded memory, and kept on disk."""

from __future__ import annotations

import math
import random
import stat

import pytest

from torchx_tui.diagnosis.metrics.series import MOST_BUCKETS, Series, smoothed
from torchx_tui.diagnosis.metrics.store import load_series, metrics_path, save_series


def make_series(values: list[float]) -> Series:
    series = Series("loss", "log of trainer/0")
    for step, value in enumerate(values):
        series.add(step, value, 1_000.0 + step)
    return series


def test_every_point_is_kept_up_to_a_number():
    """Exact up to 2,000 points, nan among them."""
    values = [random.Random(1).random() for _ in range(MOST_BUCKETS - 1)] + [math.nan]
    series = make_series(values)
    buckets = list(series.buckets())
    assert [bucket.last for bucket in buckets[:-1]] == values[:-1]
    assert math.isnan(buckets[-1].last)
    assert (buckets[-1].gaps, series.gaps, series.width) == (1, 1, 1)


def test_many_points_keep_extremes_means_and_order():
    """A spike is never lost, however many points come; memory is bounded."""
    values = [float(n % 10) for n in range(100_000)]
    values[54_321], values[70_000] = 1e6, math.inf
    series = make_series(values)
    buckets = list(series.buckets())
    assert MOST_BUCKETS / 2 <= len(buckets) <= MOST_BUCKETS
    assert max(bucket.high for bucket in buckets) == series.best_high == 1e6
    assert sum(bucket.count for bucket in buckets) == 99_999
    assert sum(bucket.gaps for bucket in buckets) == 1
    assert sum(bucket.sum for bucket in buckets) == sum(value for value in values if math.isfinite(value))
    assert list(series.steps()) == sorted(series.steps())
    assert series.last == values[-1]


def test_smoothing_is_tensorboards():
    """Without the bias of the start; what is not finite is passed by."""
    assert smoothed([1.0, 1.0, math.nan, 1.0], 0.9)[:2] == pytest.approx([1.0, 1.0])
    assert smoothed([0.0, 10.0], 0.5) == pytest.approx([0.0, 20 / 3])
    assert smoothed([3.0, 4.0], 0.0) == [3.0, 4.0]
    assert math.isnan(smoothed([1.0, math.inf], 0.5)[1])


def test_series_come_back_from_disk(tmp_path, monkeypatch):
    """As they were, readable by their user only, and they go on growing as they would have."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    whole = make_series([float(n) for n in range(7_777)])
    half = make_series([float(n) for n in range(5_001)])
    save_series("local_cwd://torchx/a b/../x", {"loss": half}, {"step": 5.0})
    loaded, facts = load_series("local_cwd://torchx/a b/../x")
    for step in range(5_001, 7_777):
        loaded["loss"].add(step, float(step), 1_000.0 + step)
    assert list(loaded["loss"].buckets()) == list(whole.buckets())
    assert facts == {"step": 5.0}
    assert stat.S_IMODE(metrics_path("local_cwd://torchx/a b/../x").stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", [b"", b"\x81", b"\x80", b"\x83\xa7version\x01\xa5facts\x80\xa6series\x91\x80"])
def test_a_broken_file_is_none(damage, tmp_path, monkeypatch):
    """What cannot be read is as if it were not there."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    save_series("local_cwd://torchx/a", {"loss": make_series([1.0, 2.0])})
    metrics_path("local_cwd://torchx/a").write_bytes(damage)
    assert load_series("local_cwd://torchx/a") == ({}, {})
