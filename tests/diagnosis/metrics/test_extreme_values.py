"""Charts of every finite value: the largest, the least, and those that floats hardly tell apart."""

from __future__ import annotations

import csv
import io
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torchx_tui.base.durations import duration
from torchx_tui.diagnosis.metrics.chart import Options, draw_chart, sparkline, wants_log
from torchx_tui.diagnosis.metrics.export import write_csv
from torchx_tui.diagnosis.metrics.scale import fit_scale, format_label, x_axis, x_label
from torchx_tui.diagnosis.metrics.series import MOST_BUCKETS, Series, Smoothing
from torchx_tui.diagnosis.progress.tracker import Progress

LARGEST = 1.7976931348623157e308
EDGES = [
    *(1e308, -1e308, LARGEST, -LARGEST, 5e-324, -5e-324, 2.2250738585072014e-308, 1e300, 1e-300, 1e16, 0.0, -0.0),
    *(1.0, math.nextafter(1.0, 2) if hasattr(math, "nextafter") else 1 + 2**-52, 2.0**53, 2.0**53 + 2),
]
FINITE = st.sampled_from(EDGES) | st.floats(allow_nan=False, allow_infinity=False)
ANY = FINITE | st.floats()
SMOOTHING = st.sampled_from(Smoothing)


def series_of(points: list[tuple[float, float, float]]) -> Series:
    series = Series("loss")
    for step, value, time in points:
        series.add(step, value, time)
    return series


def drawn(series: list[Series], options: Options) -> list[str]:
    return ["".join(span.text for span in row) for row in draw_chart(series, 60, 12, options)]


@given(st.lists(st.tuples(ANY, ANY, ANY), max_size=20), st.booleans(), st.booleans(), SMOOTHING, st.integers(1, 3))
def test_any_points_have_a_chart_of_its_size(points, log, by_time, smoothing, curves):
    """Of steps, values and times that are any floats, one curve or several."""
    series = [series_of(points[number:]) for number in range(curves)]
    rows = drawn(series, Options(smoothing, log, by_time))
    assert (len(rows), {len(row) for row in rows}) == (12, {60})


@given(st.lists(st.tuples(FINITE, FINITE, FINITE), max_size=10), FINITE, FINITE, FINITE)
def test_any_window_and_cursor_can_be_drawn(points, first, second, cursor):
    window = (min(first, second), max(first, second))
    rows = drawn([series_of(points)], Options(window=window, cursor=cursor))
    assert {len(row) for row in rows} == {60}


@given(st.lists(FINITE, max_size=20), st.lists(FINITE, max_size=20), st.integers(1, 40), st.booleans())
def test_any_values_have_an_axis(raw, smooth, rows, log):
    scale = fit_scale(raw, smooth, rows, log=log)
    assert all(0 <= row < rows for row in scale.labels)
    assert all(0 <= scale.place(value) <= 1 for value in (*raw, *smooth, LARGEST, -LARGEST))


@given(FINITE, FINITE, st.integers(1, 200), st.booleans())
def test_any_steps_have_an_axis(first, second, width, is_time):
    axis = x_axis(min(first, second), max(first, second), width, is_time=is_time, corner="+", rule="-")
    assert len(axis) == width + 1


@given(ANY, FINITE.filter(bool), st.booleans())
@example(10_000.0, 5e-324, False)
def test_any_figure_has_a_short_label(value, step, is_time):
    texts = [x_label(value, is_time), duration(value), format_label(value if math.isfinite(value) else 0.0, abs(step))]
    assert max(map(len, texts)) <= 20


@given(st.lists(ANY, max_size=20))
def test_any_values_have_a_sparkline(values):
    series = series_of([(step, value, 0.0) for step, value in enumerate(values)])
    assert len(sparkline(series, 10)) <= 10
    assert wants_log(series) in (False, True)


@given(ANY, ANY, ANY, ANY)
@example(1.0, 2.0, 1.0, math.nan)
@example(1.0, 2.0, 1.0, -math.inf)
def test_any_progress_has_words(step, total, rate, left):
    progress = Progress(step, total, rate=rate, seconds_left=left)
    assert all(progress.words)


@pytest.mark.parametrize(
    "values", [[1e308, -1e308], [5e-324], [5e-324, 1e308], [1e308] * 5, [-LARGEST, LARGEST]], ids=repr
)
@pytest.mark.parametrize("log", [False, True])
def test_extreme_values_are_not_gaps(values, log):
    """They are values: a curve is drawn, and nothing is marked as NaN."""
    series = series_of([(step, value, 0.0) for step, value in enumerate(values)])
    rows = drawn([series], Options(log=log))
    assert series.gaps == 0
    assert "NaN" not in "".join(rows)
    assert any("\u2800" < char <= "\u28ff" for char in "".join(rows))


def test_last_value_keeps_all_its_digits():
    """Only what is drawn is bounded."""
    series = series_of([(1e308, -LARGEST, 0.0)])
    assert series.last == series.best_low == -LARGEST


def test_exported_values_are_as_printed():
    values = [1e308, -LARGEST, math.inf, -math.inf, math.nan, 5e-324]
    file = io.StringIO()
    write_csv(file, [series_of([(step, value, 0.0) for step, value in enumerate(values)])])
    written = [row["value"] for row in csv.DictReader(io.StringIO(file.getvalue()))]
    assert written == [str(value) for value in values]


def test_bucket_of_infinite_values_keeps_the_latest():
    series = series_of([(step, math.inf, 0.0) for step in range(MOST_BUCKETS + 1)])
    assert series.width == 2
    assert {bucket.last for bucket in series.buckets()} == {math.inf}
