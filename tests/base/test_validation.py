"""Values that somebody else wrote: what is taken, what is refused, and how it is written again."""

from __future__ import annotations

import json
import math

import pytest

from torchx_tui.base.validation import (
    MAX_EPOCH_S,
    MAX_NESTING,
    decode_json,
    encode_json,
    epoch_seconds,
    find_invalid_field,
    is_count,
    is_dict_of,
    is_integer,
    is_list_of,
    is_name,
    is_object,
    is_path,
    is_text,
    is_time,
)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0.0), (1.5, 1.5), ("2.5", 2.5), (MAX_EPOCH_S - 1, MAX_EPOCH_S - 1), (-0.1, None), (MAX_EPOCH_S, None),
        (math.nan, None), ("nan", None), ("x", None), (True, None), (None, None), ([], None),
    ],
)  # fmt: skip
def test_times(value, seconds):
    assert epoch_seconds(value) == seconds
    assert is_time(value) == (seconds is not None and not isinstance(value, str))


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (is_name, ["a", "a b", "x"], ["", "a\nb", 1]),
        (is_text, ["", "a\n"], [1, None, b"a"]),
        (is_path, ["", "/a b"], ["a\0b", 1]),
        (is_object, [{}], [[], None]),
        (is_integer, [0, -(2**31), 2**31 - 1], [-(2**31) - 1, 2**31, 1.0, True, "1"]),
        (is_count, [0, 1, 2**31 - 1], [-1, 2**31, True]),
        (is_list_of(is_count), [[], [1, 2]], [[1, -1], (1,), None]),
        (is_dict_of(is_count), [{}, {"a": 1}], [{"a": 1, "b": -1}, [], None]),
    ],
)
def test_checks(check, right, wrong):
    assert [check(value) for value in right] == [True] * len(right)
    assert [check(value) for value in wrong] == [False] * len(wrong)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"a": "x"}, ""),
        ({"a": "x", "b": 1}, ""),
        ({"b": 1}, "a is missing"),
        ({"a": 1}, "a cannot be 1"),
        ({"a": "x", "b": "y" * 50}, f"b cannot be '{'y' * 39}"),
    ],
)
def test_the_first_fault_of_fields_is_named(value, fault):
    assert find_invalid_field(value, {"a": is_text}, {"b": is_count}) == fault


def test_json_is_read_within_limits():
    deepest = "[" * MAX_NESTING + "]" * MAX_NESTING
    assert decode_json(deepest)
    assert decode_json(b'{"a": [1.5, {"b": null}]}') == {"a": [1.5, {"b": None}]}
    assert decode_json("1" * 40) == int("1" * 40)
    # Many brackets are not many levels.
    assert decode_json(f"[{'[],' * MAX_NESTING}{{}}]")
    for text in (f"[{deepest}]", '{"a":' * 101 + "1" + "}" * 101, "[" * 100_000):
        with pytest.raises(ValueError, match="deeper than 100 levels"):
            decode_json(text)
    for text, words in (
        ("1" * 41, "41 digits"),
        ("1e999", "too large"),
        ("NaN", "NaN is not JSON"),
        ("{", "Expecting"),
        (b"\xff", "decode"),
    ):
        with pytest.raises(ValueError, match=words):
            decode_json(text)


def test_every_value_can_be_written():
    assert encode_json({"a": 1}) == '{"a": 1}'
    assert encode_json([1], indent=1) == "[\n 1\n]"
    odd = {"a": [math.inf, {1: -math.inf}], "b": (math.nan, 1.5), "c": {2}}
    wanted = {"a": ["inf", {"1": "-inf"}], "b": ["nan", 1.5], "c": "{2}"}
    assert json.loads(encode_json(odd)) == wanted
    assert encode_json({"a": math.inf}, indent=1) == '{\n "a": "inf"\n}'
