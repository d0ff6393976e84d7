"""Several values of one field: lists, quotes, ranges by a step and by a factor, and what is refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.specs.run_options import quoted
from torchx_tui.tui.launch.sweep import MAX_VALUES, SweepError, values_of

# What people mistype in a range, so that arbitrary texts come near to real ones.
RANGE_LETTERS = st.text("0123456789.,*eE+-_x '\"", max_size=14)


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        ("float", "0.1, 0.01", ["0.1", "0.01"]),
        ("float", "0.1,0.1,0.10", ["0.1", "0.10"]),
        ("int", "1..4", ["1", "2", "3", "4"]),
        ("int", "4..1", ["4", "3", "2", "1"]),
        ("int", "3..3", ["3"]),
        ("int", "1..8..3", ["1", "4", "7"]),
        ("int", "8..1..-3", ["8", "5", "2"]),
        ("int", "1..64*2", ["1", "2", "4", "8", "16", "32", "64"]),
        ("int", "64..1*2", ["64", "32", "16", "8", "4", "2", "1"]),
        ("int", "1..100*3", ["1", "3", "9", "27", "81"]),
        ("int", "-2..2", ["-2", "-1", "0", "1", "2"]),
        ("int", "1, 8..10", ["1", "8", "9", "10"]),
        ("float", "0..1..0.25", ["0", "0.25", "0.5", "0.75", "1"]),
        ("float", "0.1..0.5..0.1", ["0.1", "0.2", "0.3", "0.4", "0.5"]),
        ("float", "1e-4..1e-1*10", ["0.0001", "0.001", "0.01", "0.1"]),
        ("float", "1..1e-3*0.1", ["1", "0.1", "0.01", "0.001"]),
        ("str", "a..b", ["a..b"]),
        ("str", "a, b ,c", ["a", "b", "c"]),
        ("str", "'a, b', c", ["a, b", "c"]),
        ("str", "'it''s'", ["'it''s'"]),
        ("str", r"'it\'s',x", ["it's", "x"]),
        ("str", "'',x", ["", "x"]),
    ],
)
def test_values(kind, text, values):
    assert values_of(kind, text) == values


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("float", "0.1..x", "`x` in `0.1..x` is not a number"),
        ("float", "..", "is not a number"),
        ("int", "1..", "is not a number"),
        ("int", "1..2..3..4", "is not a range"),
        ("int", "1..9..2*2", "is not a range"),
        ("int", "1..8*", "is not a number"),
        ("int", "1..0*1", "with a factor needs ends above 0 and a factor other than 1"),
        ("int", "0..8*2", "with a factor needs ends above 0"),
        ("int", "1..8*-2", "with a factor needs ends above 0"),
        ("int", "1..2..0", "the step of `1..2..0` is 0"),
        ("int", "1..2..0.5", "not whole numbers"),
        ("int", "1...5", "not whole numbers"),
        ("int", "1..8*1.5", "not whole numbers"),
        ("float", "nan..1", "is not finite"),
        ("float", "1..inf", "is not finite"),
        ("int", "1..10001", "has 10,001 values; the maximum is 10,000"),
        ("int", "1..1e300", "has too many values"),
        ("float", "1..2*1.0000000000000000000001", "has too many values"),
        ("float", "1..1e999999", "`1e999999` in `1..1e999999` is too large or too small"),
        ("float", "1e-999999..1*10", "too large or too small"),
        ("float", "1..2..1e-999999", "too large or too small"),
        ("int", "1..9000,1..2000", "more than 10,000 values"),
        ("float", " , ,", "no value given"),
    ],
)
def test_what_cannot_be_read_says_what_is_wanted(kind, text, words):
    with pytest.raises(SweepError) as caught:
        values_of(kind, text)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 250


@given(first=st.integers(-(10**9), 10**9), count=st.integers(1, 200), step=st.integers(-(10**6), 10**6))
def test_a_range_of_whole_numbers_is_pythons(first, count, step):
    last = first + (count - 1) * step
    text = f"{first}..{last}" + (f"..{abs(step)}" if step else "")
    sign = 1 if last >= first else -1
    assert values_of("int", text) == [str(value) for value in range(first, last + sign, abs(step) * sign or 1)]


@given(first=st.floats(1e-9, 1e9), factor=st.sampled_from([2.0, 10.0, 0.5, 0.1, 3.0]), count=st.integers(1, 30))
def test_a_range_by_a_factor_has_every_power_with_both_ends(first, factor, count):
    last = first * factor ** (count - 1)
    values = [float(value) for value in values_of("float", f"{first!r}..{last!r}*{factor!r}")]
    assert len(values) == count
    for number, value in enumerate(values):
        assert math.isclose(value, first * factor**number, rel_tol=1e-9)


@given(st.lists(st.text(min_size=0, max_size=12), min_size=1, max_size=8, unique=True))
def test_any_texts_come_back_from_quotes(texts):
    assert values_of("str", ", ".join(quoted(text) for text in texts)) == texts


@given(st.sampled_from(["int", "float", "str", "bool"]), st.one_of(RANGE_LETTERS, st.text(max_size=20)))
def test_any_text_gives_values_or_a_sentence(kind, text):
    try:
        values = values_of(kind, text)
    except SweepError as error:
        values = [str(error)]
    assert 0 < len(values) <= MAX_VALUES
    assert len(set(values)) == len(values)
