"""Requests as text for people."""

import yaml

from torchx_tui.backends.shared.readable_yaml import readable_yaml


def test_texts_of_several_lines_are_blocks():
    data = {"z": "one", "a": "two\nlines\n", "é": ["x", "x"], "n": None, "number": "7"}
    text = readable_yaml(data)
    assert text == "z: one\na: |\n  two\n  lines\né:\n- x\n- x\nn: null\nnumber: '7'\n"
    assert yaml.safe_load(text) == data


def test_equal_values_repeat_and_long_ones_are_not_wrapped():
    same = {"k": "v"}
    assert readable_yaml([same, same]) == "- k: v\n- k: v\n"
    assert readable_yaml("word " * 500).count("\n") == 1


def test_a_lone_text_has_no_end_mark():
    assert readable_yaml("a") == "a\n"
    assert readable_yaml("a\n\n").endswith("\n")
    assert "..." not in readable_yaml("a\n\n")


def test_odd_bytes_are_shown():
    assert "\\udcff" in readable_yaml("a\udcff")
