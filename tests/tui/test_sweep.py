"""Several values of one field: lists, quotes, ranges by a step and by a factor, and what is refused."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import toml_table

from torchx_tui.specs.run_options import quoted
from torchx_tui.tui.launch.sweep import MAX_VALUES, SweepError, values_of

ROWS = toml_table(Path(__file__).with_name("sweep.toml"))

# What people mistype in a range, so that arbitrary texts come near to real ones.
RANGE_LETTERS = st.text("0123456789.,*eE+-_x '\"", max_size=14)


@pytest.mark.parametrize(("kind", "text", "values"), ROWS["values"])
def test_values(kind, text, values):
    assert values_of(kind, text) == values


@pytest.mark.parametrize(("kind", "text", "words"), ROWS["refused"])
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
