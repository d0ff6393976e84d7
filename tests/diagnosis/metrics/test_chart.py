"""Charts as rows of text."""

from __future__ import annotations

import math

import pytest

from torchx_tui.diagnosis.metrics.chart import Options, Role, draw_chart, sparkline, wants_log
from torchx_tui.diagnosis.metrics.scale import fit_scale, format_label, x_axis
from torchx_tui.diagnosis.metrics.series import Series, Smoothing


def make_series(values: list[float]) -> Series:
    series = Series("loss")
    for step, value in enumerate(values):
        series.add(step, value, 1_000.0 + 60 * step)
    return series


def rows_of(values: list[float], width: int = 40, height: int = 8, **options: object) -> list[str]:
    rows = draw_chart([make_series(values)], width, height, Options(**options))  # type: ignore[arg-type]
    return ["".join(span.text for span in row) for row in rows]


@pytest.mark.parametrize("values", [[], [1.0], [math.nan] * 5, [2.0] * 50, [math.inf, 1.0], [1e300, -1e300], [0.0] * 3])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("width", "height"), [(12, 3), (40, 8), (200, 50), (5, 1)])
def test_every_series_has_a_chart_of_the_size(values, log, width, height):
    """Without a value, of one value, nan, inf, far apart, in the smallest size: nothing raises."""
    rows = rows_of(values, width, height, log=log)
    assert len(rows) == max(2, height)
    if width >= 12:
        assert {len(row) for row in rows} == {width}


def test_a_spike_is_drawn_at_the_edge_and_squeezes_nothing():
    """Limits are those of 98 % of the values; smoothed ones that are far beyond are at the edge too."""
    values = [1.0 + n / 500 for n in range(500)]
    for smoothing in Smoothing:
        plain = rows_of(values, smoothing=smoothing)
        spiked = rows_of([*values[:250], 1e6, *values[251:]], smoothing=smoothing)
        assert [row[:6] for row in plain] == [row[:6] for row in spiked]
        assert plain[0] != spiked[0]


def test_nan_breaks_the_line_and_is_marked():
    """A mark over the lowest row, with how many there are."""
    rows = rows_of([*[2.0] * 50, *[math.nan] * 37, *[1.0] * 50], 60)
    assert "━ NaN, 37 points" in rows[-2]
    assert "x NaN, 37 points" in rows_of([*[2.0] * 50, *[math.nan] * 37, *[1.0] * 50], 60, ascii=True)[-2]


def test_ascii_alone():
    """Of a chart in ASCII, smoothed and raw are different signs."""
    text = "".join(rows_of([3.0 - n / 50 + n % 2 for n in range(100)], ascii=True))
    assert text.isascii()
    assert {"*", ".", "|", "+"} <= set(text)


def test_raw_is_behind_the_smoothed_values():
    """Roles instead of colours; without smoothing the values themselves are what stands out."""
    series = [make_series([float(n % 7) for n in range(300)])]
    roles = {span.role for row in draw_chart(series, 60, 10) for span in row}
    assert {Role.RAW, Role.SMOOTH, Role.AXIS} <= roles
    roles = {span.role for row in draw_chart(series, 60, 10, Options(Smoothing.NONE)) for span in row}
    assert Role.RAW not in roles


def test_curves_of_several_jobs_have_letters():
    """So that they are told apart without colours."""
    series = [make_series([1.0 + number + 1 / (step + 1) for step in range(50)]) for number in range(3)]
    rows = draw_chart(series, 80, 12)
    text = "".join(span.text for row in rows for span in row)
    assert {letter: text.count(letter) for letter in "ABC"} == {"A": 3, "B": 3, "C": 3}
    assert {span.curve for row in rows for span in row if span.role is Role.CURVE} == {0, 1, 2}


def test_axes_have_round_figures():
    """Labels of the steps and the limits that they bring."""
    scale = fit_scale([1.71, 2.19], [], 13, log=False)
    assert list(scale.labels.values()) == ["1.7", "1.8", "1.9", "2.0", "2.1", "2.2"]
    assert list(fit_scale([0.02, 70.0], [], 13, log=True).labels.values()) == ["0.01", "0.1", "1", "10", "100"]
    # Within a decade, a logarithmic axis is no longer than the values need.
    scale = fit_scale([1.71, 2.19], [], 13, log=True)
    assert sorted(scale.labels.values()) == ["1.7", "1.8", "1.9", "2.0", "2.1", "2.2"]
    assert (scale.place(1.7), scale.place(2.2)) == pytest.approx((0, 1))
    assert fit_scale([0.11, 0.9], [], 13, log=True).place(0.11) == 0
    assert x_axis(0, 10_000, 40, is_time=False, corner="└", rule="─") == "└0 ─────────────── 5,000 ───────── 10,000"
    assert x_axis(0, 7_384, 20, is_time=True, corner="└", rule="─").endswith(" 2h 03m")


@pytest.mark.parametrize(
    ("value", "step", "label"),
    [
        (0.0, 1e-5, "0"),
        (1.5e-5, 1e-5, "1.5e-05"),
        (2.25, 0.25, "2.25"),
        (500_000, 1e5, "500k"),
        (447_200, 200, "447.2k"),
        (1.2e9, 1e8, "1.2B"),
    ],
)
def test_labels(value, step, label):
    """As short as they can be told apart."""
    assert format_label(value, step) == label


def test_courses_and_when_a_logarithm_suits():
    """A row of the list, and the axis that is taken at first."""
    assert sparkline(make_series([1.0, 2.0, 3.0, math.nan]), 8) == "▁▄▇"
    assert sparkline(make_series([math.nan]), 8) == ""


@pytest.mark.parametrize("value", [1.0, -3e-5, 4e12])
def test_sparkline_of_rounding_noise_is_flat(value):
    noisy = [value * (1 + 2e-16 * (n % 3)) for n in range(8)]
    assert sparkline(make_series(noisy), 8) == "▄" * 8
    assert len(set(sparkline(make_series([value * (1 + 1e-6 * n) for n in range(8)]), 8))) > 3
    assert wants_log(make_series([0.001, 5.0]))
    assert not wants_log(make_series([-1.0, 5.0]))
