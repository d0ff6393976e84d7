"""Texts of fields and command lines."""

from __future__ import annotations

import ast
from enum import Enum
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables import toml_table

from torchx_tui.components.command_line import flags_of, parse_command_line, to_command_line
from torchx_tui.components.finder import describe
from torchx_tui.components.model import Computed, Parameter, ValueType, read_annotation
from torchx_tui.components.values import check_argument, parse_value, split_list, to_text
from torchx_tui.specs.errors import ArgumentError
from torchx_tui.specs.resource_names import named_resource_names

ROWS = toml_table(Path(__file__).with_name("values.toml"))


def annotated(annotation: str) -> Parameter:
    """Return a parameter with a type."""
    return Parameter("p", "keyword_only", read_annotation(ast.parse(annotation, mode="eval").body, {}))


@pytest.mark.parametrize(("annotation", "text", "value"), ROWS["values"])
def test_values(annotation, text, value):
    wanted = annotated(annotation)
    assert check_argument(wanted, text) is None
    parsed = parse_value(wanted, text)
    assert repr(parsed) == value
    assert parse_value(wanted, to_text(parsed)) == parsed


@pytest.mark.parametrize(("annotation", "text", "words"), ROWS["refused_texts"])
def test_refused_texts(annotation, text, words):
    assert words in str(check_argument(annotated(annotation), text))
    with pytest.raises(ArgumentError) as caught:
        parse_value(annotated(annotation), text)
    assert caught.value.parameter == "p"


@pytest.mark.parametrize(("component", "name", "text", "words"), ROWS["builtin_arguments"])
def test_arguments_of_builtins(component, name, text, words):
    # A named resource is checked once all are loaded.
    assert named_resource_names()
    found = describe(component).parameter(name)
    assert found is not None
    error = check_argument(found, text)
    assert words in str(error) if words else error is None


ITEMS = st.text(st.characters(exclude_categories=["C"], exclude_characters="'\"\\"))


@given(st.dictionaries(st.from_regex(r"[A-Z_]+", fullmatch=True), ITEMS, min_size=1))
def test_dicts_are_written_as_they_are_read(value):
    assert parse_value(annotated("dict[str, str]"), to_text(value)) == value


@given(st.lists(st.one_of(st.text(), st.text("ab,'\"\\ ", max_size=6))))
def test_lists_are_written_as_they_are_read(value):
    assert parse_value(annotated("list[str]"), to_text(value)) == value
    assert parse_value(annotated("list[str]"), value) == value


@pytest.mark.parametrize(("text", "items"), ROWS["quoted_items"])
def test_quotes_in_a_list(text, items):
    assert split_list(text) == items


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (Computed("torchx.IMAGE"), "torchx.IMAGE"), (Enum("Colour", {"RED": "#f00"})["RED"], "RED")],
)
def test_text_of_a_value(value, text):
    assert to_text(value) == text


@pytest.mark.parametrize(
    ("component", "argv", "arguments"),
    ROWS["command_lines"],
)
def test_command_lines(component, argv, arguments):
    assert parse_command_line(component, argv) == arguments
    assert parse_command_line(component, to_command_line(component, arguments)) == arguments


def test_empty_values_of_a_command_line(component_file):
    name = component_file.write("def f(x: str, args: str) -> AppDef: ...").name("f")
    assert parse_command_line(name, ["--x=", "--args", ""]) == {"x": "", "args": ""}


def test_one_flag_of_two_parameters(component_file):
    name = component_file.write("def f(x: str, a: Annotated[str, '-x']) -> AppDef: ...").name("f")
    with pytest.raises(ArgumentError, match="a: conflicting option string: -x: another parameter"):
        parse_command_line(name, [])


def test_items_are_one_word():
    assert to_command_line("utils.sh", {"mounts": ["type=bind", "src=/a"]}) == ["--mounts", "type=bind,src=/a"]


@pytest.mark.parametrize(
    ("argv", "words"),
    ROWS["refused_command_lines"],
)
def test_refused_command_lines(argv, words):
    with pytest.raises(ArgumentError, match=words):
        parse_command_line("utils.echo", argv)


@given(st.text(), st.lists(st.text(), max_size=4))
def test_any_words_of_a_command_line(entrypoint, words):
    arguments: dict[str, str | list[str]] = {"entrypoint": entrypoint}
    if words:
        arguments["args"] = words
    assert parse_command_line("utils.sh", to_command_line("utils.sh", arguments)) == arguments


def test_command_line_of_arguments():
    rest = Parameter("args", "var_positional", ValueType("str", "str"))
    number = Parameter("n", "keyword_only", ValueType("int", "int"))
    name = Parameter("name", "keyword_only", ValueType("str", "str", flags=("-nm", "--call")))
    known = [number, name, rest]
    assert flags_of(number) == ["-n", "--n"]
    assert flags_of(name) == ["-nm", "--call", "--name"]
    for arguments, words in ROWS["written_command_lines"]:
        assert to_command_line("x", arguments, known) == words
