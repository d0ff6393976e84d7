"""Series in bounded memory, and kept on disk."""

from __future__ import annotations

import math
import random
import stat

import pytest

from torchx_tui.diagnosis.metrics.series import MOST_BUCKETS, SMOOTHED_FROM, Series, Smoothing
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


def test_few_points_are_not_smoothed():
    noisy = [float(n % 2) for n in range(SMOOTHED_FROM - 1)]
    assert make_series(noisy).smoothed(Smoothing.STRONG) == noisy
    assert make_series([*noisy, math.nan]).smoothed(Smoothing.STRONG)[:-1] == noisy
    assert make_series([*noisy, 1.0]).smoothed(Smoothing.STRONG) != [*noisy, 1.0]


@pytest.mark.parametrize("smoothing", [Smoothing.LIGHT, Smoothing.STRONG])
def test_smoothing_does_not_lag(smoothing):
    """A straight line stays as it is, to its ends, and a step stays in its place."""
    line = [2.0 * n for n in range(400)]
    assert make_series(line).smoothed(smoothing) == pytest.approx(line)
    step = make_series([0.0] * 200 + [1.0] * 200).smoothed(smoothing)
    assert step[199] < 0.5 < step[200]
    assert step[199] + step[200] == pytest.approx(1)


@pytest.mark.parametrize("count", [200, 400, 2_000])
@pytest.mark.parametrize("smoothing", [Smoothing.LIGHT, Smoothing.STRONG])
def test_smoothing_width_grows_with_the_points(smoothing, count):
    """One point becomes a Gaussian: its standard deviation is the same share of the curve, its sum is the point's."""
    curve = make_series([float(n == count // 2) for n in range(count)]).smoothed(smoothing)
    deviation = math.sqrt(sum(value * (n - count // 2) ** 2 for n, value in enumerate(curve)))
    assert sum(curve) == pytest.approx(1)
    assert deviation / count == pytest.approx(smoothing.value, abs=0.005)
    assert max(curve) == curve[count // 2]


def test_smoothed_ends_are_not_the_noise_of_one_point():
    noisy = [1.0 + (-1) ** n for n in range(400)]
    smooth = make_series(noisy).smoothed(Smoothing.STRONG)
    assert (smooth[0], smooth[-1]) == pytest.approx((1, 1), abs=0.1)


def test_smoothing_leaves_out_what_is_not_finite():
    values = [1.0] * 50 + [math.nan, math.inf] + [1.0] * 50
    smooth = make_series(values).smoothed(Smoothing.STRONG)
    assert smooth[:50] + smooth[52:] == pytest.approx([1.0] * 100)
    assert all(map(math.isnan, smooth[50:52]))


def test_spike_does_not_spoil_the_smoothed_values_after_it():
    values = [1.0 + n % 2 for n in range(400)]
    values[100] = 1e30
    smooth = make_series(values).smoothed(Smoothing.LIGHT)
    assert smooth[100] > 1e6
    assert smooth[150:390] == pytest.approx([1.5] * 240, rel=0.05)


def test_series_come_back_from_disk():
    """As they were, readable by their user only, and they go on growing as they would have."""
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
def test_a_broken_file_is_none(damage):
    """What cannot be read is as if it were not there."""
    save_series("local_cwd://torchx/a", {"loss": make_series([1.0, 2.0])})
    metrics_path("local_cwd://torchx/a").write_bytes(damage)
    assert load_series("local_cwd://torchx/a") == ({}, {})
