"""Requests as text for people."""

import yaml

from torchx_tui.backends.shared.readable_yaml import readable_yaml


def test_texts_of_several_lines_are_blocks_and_others_are_plain():
    data = {"z": "one", "a": "two\nlines\n", "é": ["x", "x"], "n": None, "number": "7"}
    text = readable_yaml(data)
    assert text == "z: one\na: |\n  two\n  lines\né:\n- x\n- x\nn: null\nnumber: '7'\n"
    assert yaml.safe_load(text) == data


def test_equal_values_stand_there_each_time_and_long_ones_in_one_line():
    same = {"k": "v"}
    assert readable_yaml([same, same]) == "- k: v\n- k: v\n"
    assert readable_yaml("word " * 500).count("\n") == 1


def test_a_text_alone_has_no_mark_at_its_end():
    assert readable_yaml("a") == "a\n"
    assert readable_yaml("a\n\n").endswith("\n")
    assert "..." not in readable_yaml("a\n\n")


def test_bytes_that_are_no_characters_are_shown():
    assert "\\udcff" in readable_yaml("a\udcff")
