"""Items of a field, one a line, and its text: there and back, and what is no item."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchx_tui.components.model import Parameter, ValueType
from torchx_tui.components.values import parse_value
from torchx_tui.specs.run_options import runopt
from torchx_tui.tui.launch.field_items import HINTS, items_of, text_of
from torchx_tui.tui.launch.form_field import Field, argument_field, option_field, role_field

# A line of a dialog holds no line breaks.
LINES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=12)
ODD_LINES = st.one_of(LINES, st.text("ab=,;:'\"\\ #~", max_size=10))
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,10}", fullmatch=True)


def argument(kind: str, *items: str, name: str = "x", form: str = "") -> Field:
    return argument_field(Parameter(name, "keyword_only", ValueType(kind, kind, items), None, form=form))


def words_field() -> Field:
    return argument_field(Parameter("args", "var_positional", ValueType("str", "str"), ()))


def filled(one: Field, text: str) -> Field:
    one.text = text
    return one


# There and back


@given(st.lists(ODD_LINES.filter(lambda word: word.strip() != "''"), max_size=6))
def test_words_come_back_the_empty_ones_too(words):
    one = filled(words_field(), shlex.join(words))
    again = text_of(one, items_of(one))
    assert shlex.split(again) == words


@given(st.lists(ODD_LINES.map(str.strip).filter(lambda item: item and "," not in item), max_size=6))
def test_items_of_an_argument_come_back(items):
    one = argument("list", "str")
    text = text_of(one, items)
    assert items_of(filled(one, text)) == items
    assert one.parameter is not None
    assert parse_value(one.parameter, text) == items


@given(st.lists(ODD_LINES.map(str.strip).filter(bool), max_size=6))
def test_items_of_an_option_come_back(items):
    option = runopt(None, list[str], False, "")
    one = option_field("tags", option)
    text = text_of(one, items)
    assert items_of(filled(one, text)) == items
    assert option.cast_to_type(text) == items


def test_item_of_an_argument_may_have_a_comma():
    one = argument("list", "str")
    assert items_of(filled(one, text_of(one, ["a", "b,c"]))) == ["a", "b,c"]


@given(st.dictionaries(NAMES, ODD_LINES, max_size=5))
def test_pairs_of_an_argument_come_back(pairs):
    one = argument("dict", "str", "str", name="env")
    lines = [f"{name}={value}" for name, value in pairs.items()]
    text = text_of(one, lines)
    assert items_of(filled(one, text)) == lines
    assert one.parameter is not None
    assert parse_value(one.parameter, text) == pairs


@given(st.dictionaries(ODD_LINES.map(str.strip).filter(lambda name: name and "=" not in name), ODD_LINES, max_size=5))
def test_pairs_of_an_option_come_back(pairs):
    option = runopt(None, dict[str, str], False, "")
    one = option_field("labels", option)
    lines = [f"{name}={value}" for name, value in pairs.items()]
    text = text_of(one, lines)
    assert items_of(filled(one, text)) == lines
    assert option.cast_to_type(text) == pairs


@pytest.mark.parametrize(
    "one", [argument("list", "str", name="mounts", form="mounts"), role_field("r", "mounts", "")], ids=["own", "role"]
)
def test_mounts_are_one_a_line(one):
    lines = ["type=bind,src=/a,dst=/b,readonly", "type=volume,src=v,dst=/c", "type=device,src=/dev/fuse"]
    text = text_of(one, [lines[0], "", f" {lines[1]}, ", lines[2]])
    assert text == ",".join(lines)
    assert one.check(text) == ""
    assert items_of(filled(one, text)) == lines


@pytest.mark.parametrize(
    "one",
    [words_field(), argument("list", "str"), argument("tuple", "str", "str"), argument("dict", "str", "str")],
    ids=lambda one: one.editor,
)
def test_nothing_is_nothing(one):
    assert items_of(one) == []
    assert text_of(one, ["", "  "] if one.editor != "words" else [""]) == ""
    assert HINTS[one.editor]


# What is no item


@pytest.mark.parametrize(
    ("one", "lines", "words"),
    [
        (argument("dict", "str", "str"), ["A=1", "B"], "B: use NAME=value"),
        (argument("dict", "str", "str"), ["=1"], "=1: use NAME=value"),
        (argument("dict", "str", "str"), ["A=1", "B=2", "A=3"], "A is given twice"),
        (argument("dict", "str", "str"), ["X=1", "A,B=2"], "A,B: a name cannot contain a comma, semicolon or quote"),
        (argument("dict", "str", "str"), ["it's=1"], "it's: a name cannot contain a comma, semicolon or quote"),
        (option_field("labels", runopt(None, dict[str, str], False, "")), ["A"], "A: use NAME=value"),
        (role_field("r", "env", ""), ["A;B=2"], "A;B: a name cannot contain a comma"),
    ],
)
def test_a_line_that_is_no_item_says_so(one, lines, words):
    with pytest.raises(ValueError) as caught:
        text_of(one, lines)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (words_field(), "one 'two"),
        (argument("dict", "str", "str"), "A"),
        (option_field("labels", runopt(None, dict[str, str], False, "")), "A"),
    ],
)
def test_a_text_that_has_no_items_is_refused(one, text):
    with pytest.raises(ValueError):
        items_of(filled(one, text))
