"""Any typed values of run options, written as text, are read back as they were."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import toml_table

from torchx_tui.specs.run_options import (
    format_cfg,
    format_value,
    quoted,
    runopt,
    runopts,
    split_cfg,
    split_items,
    unquoted,
)

ROWS = toml_table(Path(__file__).with_name("cfg_text.toml"))

# Letters that mean something to the text form come up as often as all others together.
TEXTS = st.one_of(st.text(max_size=10), st.text("ab=,;:'\"\\ \n\t{}[]#~", max_size=10))
VALUES = {
    str: TEXTS,
    int: st.integers(),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    list[str]: st.lists(TEXTS, max_size=4),
    dict[str, str]: st.dictionaries(TEXTS, TEXTS, max_size=4),
}


@st.composite
def typed_mappings(draw: st.DrawFn) -> tuple[runopts, dict[str, Any]]:
    """Give options of random types, and a value for each of some of them."""
    opts, cfg = runopts(), {}
    for number, kind in enumerate(draw(st.lists(st.sampled_from(list(VALUES)), max_size=5))):
        opts.add(f"option_{number}", kind, "An option.")
        if draw(st.booleans()):
            cfg[f"option_{number}"] = draw(VALUES[kind])
    return opts, cfg


@given(typed_mappings())
def test_any_mapping_of_typed_values_comes_back(given_):
    opts, cfg = given_
    again = opts.cfg_from_str(format_cfg(cfg))
    assert again == cfg
    assert {name: type(value) for name, value in again.items()} == {name: type(value) for name, value in cfg.items()}


@given(typed_mappings())
def test_any_value_comes_back_by_itself_as_in_a_form(given_):
    opts, cfg = given_
    for name, value in cfg.items():
        option = opts.get(name)
        assert option is not None
        assert option.cast_to_type(format_value(value)) == value


@given(st.dictionaries(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,8}", fullmatch=True), TEXTS, max_size=5))
def test_quoted_pairs_come_back(pairs):
    assert split_cfg(",".join(f"{key}={quoted(value)}" for key, value in pairs.items())) == pairs


@given(TEXTS)
def test_quotes_come_off_as_they_were_put_on(text):
    assert unquoted(quoted(text)) == text


@given(st.lists(TEXTS, max_size=5))
def test_quoted_items_come_back(items):
    assert split_items(";".join(quoted(item) for item in items)) == items


@given(st.one_of(st.text(max_size=20), st.text("ab=,;'\"\\ ", max_size=20)))
def test_any_text_is_pairs_or_a_sentence(text):
    try:
        pairs = split_cfg(text)
    except ValueError as error:
        pairs, words = {}, str(error)
    else:
        words = "`"
    assert all(pairs)
    assert "`" in words


@pytest.mark.parametrize(("value", "text"), [*ROWS["values"], (None, "")])
def test_how_a_value_is_written(value, text):
    assert format_value(value) == text


@pytest.mark.parametrize(("cfg", "text"), [*ROWS["options"], ({"a": None, "b": 1}, "b=1")])
def test_how_options_are_written(cfg, text):
    assert format_cfg(cfg) == text


def test_what_stands_between_two_keys_is_named():
    with pytest.raises(ValueError, match=re.escape("`1` is not a value, `,` or `;`, and the next key")):
        split_cfg("a=1=2")


def test_key_that_is_given_twice_is_refused():
    with pytest.raises(ValueError, match="`a` is given twice"):
        split_cfg("a=1,b=2,a=1")
    with pytest.raises(ValueError, match="`a` is given twice"):
        runopt(None, dict[str, str], False, "").cast_to_type("a:1,b:2;a:1")
