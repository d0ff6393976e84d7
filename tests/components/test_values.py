"""Texts of fields and command lines."""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.component_files import ComponentFile

from torchx_tui.components import (
    Computed,
    Parameter,
    ValueType,
    check_argument,
    describe,
    parse_command_line,
    parse_value,
    to_command_line,
    to_text,
)
from torchx_tui.components.command_line import flags_of
from torchx_tui.specs import ArgumentError, named_resource_names


def parameter(kind: str, *items: str, optional: bool = False, choices: tuple[str, ...] = ()) -> Parameter:
    return Parameter("p", "keyword_only", ValueType(kind, kind, items, optional, choices))


LIST = parameter("list", "str")
DICT = parameter("dict", "str", "str")


@pytest.mark.parametrize(
    ("wanted", "text", "value"),
    [
        (parameter("str"), "", ""),
        (parameter("str", optional=True), "", ""),
        (parameter("int"), " 3 ", 3),
        (parameter("int", optional=True), "", None),
        (parameter("float"), "1e-3", 0.001),
        (parameter("bool"), "YES", True),
        (parameter("bool"), "off", False),
        (LIST, "", []),
        (LIST, "a, b", ["a", "b"]),
        (parameter("list", "int", optional=True), "", None),
        (parameter("list", "int"), "1,2", [1, 2]),
        (parameter("tuple", "int", "str"), "1,a", (1, "a")),
        (parameter("tuple", "int", "..."), "1,2,3", (1, 2, 3)),
        (parameter("tuple"), "1,a", ("1", "a")),
        (DICT, "", {}),
        (DICT, "A=1,B=a b", {"A": "1", "B": "a b"}),
        (DICT, "A='x,y=z',B=''", {"A": "x,y=z", "B": ""}),
        (parameter("dict", "str", "int"), "A=1", {"A": 1}),
        (parameter("str", choices=("a", "b")), "b", "b"),
    ],
)
def test_values(wanted: Parameter, text: str, value: Any) -> None:
    assert check_argument(wanted, text) is None
    assert parse_value(wanted, text) == value


@pytest.mark.parametrize(
    ("wanted", "text", "words"),
    [
        (parameter("int"), "", "not a whole number"),
        (parameter("int"), "1.5", "not a whole number"),
        (parameter("float"), "x", "not a number"),
        (parameter("bool"), "ture", "Use one of true/1/yes/on or false/0/no/off"),
        (parameter("list", "int"), "1,x", "`x` is not a whole number"),
        (parameter("tuple", "int", "str"), "1", "Use 2: int, str"),
        (DICT, "A", "Use KEY=value"),
        (DICT, "A=b=c", "quotes around a value"),
        (parameter("str", choices=("a", "b")), "c", "Use one of a, b"),
    ],
)
def test_texts_that_are_refused(wanted: Parameter, text: str, words: str) -> None:
    assert words in str(check_argument(wanted, text))
    with pytest.raises(ArgumentError) as caught:
        parse_value(wanted, text)
    assert caught.value.parameter == "p"


@pytest.mark.parametrize(
    ("component", "name", "text", "words"),
    [
        ("dist.torchrun", "j", "2x8", None),
        ("dist.torchrun", "j", "1:4x8", None),
        ("dist.torchrun", "j", "8", None),
        ("dist.torchrun", "j", "2xx8", "use NODESxWORKERS, such as 2x8"),
        ("dist.torchrun", "j", "0x8", "at least 1"),
        ("dist.torchrun", "j", "4:2x8", "the fewest nodes, 4, are more than the most, 2"),
        ("dist.torchrun", "h", "gpu.large", None),
        ("dist.torchrun", "h", "gpu.larg", "Did you mean `gpu.large`?"),
        ("utils.sh", "mounts", "type=bind,src=/a,dst=/b", None),
        ("utils.sh", "mounts", "src=/a", "`type=` must come first"),
        ("utils.sh", "args", "echo 'a", "a quote has no partner"),
    ],
)
def test_what_builtins_know_of_their_parameters(component: str, name: str, text: str, words: str | None) -> None:
    # A named resource is checked once all are loaded.
    assert named_resource_names()
    found = describe(component).parameter(name)
    assert found is not None
    error = check_argument(found, text)
    assert error is None if words is None else words in str(error)


ITEMS = st.text(st.characters(exclude_categories=["C"], exclude_characters="'\"\\"))


@given(st.dictionaries(st.from_regex(r"[A-Z_]+", fullmatch=True), ITEMS, min_size=1))
def test_dicts_are_written_as_they_are_read(value: dict[str, str]) -> None:
    assert parse_value(DICT, to_text(value)) == value


@given(st.lists(st.integers(), max_size=4), st.booleans(), st.floats(allow_nan=False))
def test_other_values_are_written_as_they_are_read(numbers: list[int], flag: bool, share: float) -> None:
    assert parse_value(parameter("list", "int"), to_text(numbers)) == numbers
    assert parse_value(parameter("bool"), to_text(flag)) is flag
    assert parse_value(parameter("float"), to_text(share)) == share
    assert to_text(None) == ""
    assert to_text(Computed("torchx.IMAGE")) == "torchx.IMAGE"
    assert to_text(Enum("Colour", {"RED": "#f00"})["RED"]) == "RED"


@pytest.mark.parametrize(
    ("component", "argv", "arguments"),
    [
        ("utils.echo", ["--msg", "hi there"], {"msg": "hi there"}),
        ("utils.echo", ["--msg=-x"], {"msg": "-x"}),
        ("utils.echo", ["--num", "3"], {"num_replicas": "3"}),
        (
            "dist.torchrun",
            ["-j", "2x4", "--script", "a.py", "--", "--lr", "1"],
            {"j": "2x4", "script": "a.py", "script_args": ["--lr", "1"]},
        ),
        ("dist.torchrun", ["--j=2x4", "-m", "a.b", "x"], {"j": "2x4", "m": "a.b", "script_args": ["x"]}),
        ("utils.sh", ["ls", "-l"], {"args": ["ls", "-l"]}),
        ("utils.sh", ["-h", "gpu.small", "ls"], {"h": "gpu.small", "args": ["ls"]}),
        ("utils.sh", [], {}),
    ],
)
def test_command_lines(component: str, argv: list[str], arguments: dict[str, str | list[str]]) -> None:
    assert parse_command_line(component, argv) == arguments
    assert parse_command_line(component, to_command_line(component, arguments)) == arguments


def test_an_empty_value_is_kept_whatever_its_parameter_is_called(component_file: ComponentFile) -> None:
    name = component_file.write("def f(x: str, args: str) -> AppDef: ...").name("f")
    assert parse_command_line(name, ["--x=", "--args", ""]) == {"x": "", "args": ""}


def test_items_are_one_word_of_a_command_line() -> None:
    assert to_command_line("utils.sh", {"mounts": ["type=bind", "src=/a"]}) == ["--mounts", "type=bind,src=/a"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--message", "x"], "unrecognized arguments.* Valid options: --msg, --image, --num_replicas$"),
        (["--msg", "a", "--msg", "b"], "given twice"),
        (["--msg"], "expected one argument"),
        (["stray"], "unrecognized arguments: stray"),
    ],
)
def test_command_lines_that_are_refused(argv: list[str], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        parse_command_line("utils.echo", argv)


@given(st.text(), st.lists(st.text(), max_size=4))
def test_any_words_survive_a_command_line(entrypoint: str, words: list[str]) -> None:
    arguments: dict[str, str | list[str]] = {"entrypoint": entrypoint}
    if words:
        arguments["args"] = words
    assert parse_command_line("utils.sh", to_command_line("utils.sh", arguments)) == arguments


def test_arguments_become_a_command_line_that_is_read_back() -> None:
    rest = Parameter("args", "var_positional", ValueType("str", "str"))
    number = Parameter("n", "keyword_only", ValueType("int", "int"))
    name = Parameter("name", "keyword_only", ValueType("str", "str", flags=("-nm", "--call")))
    known = [number, name, rest]
    assert flags_of(number) == ["-n", "--n"]
    assert flags_of(name) == ["-nm", "--call", "--name"]
    assert to_command_line("x", {"n": "1", "name": "a", "args": ["b", "-c"]}, known) == [
        *("-n", "1", "-nm", "a", "b", "-c"),
    ]
    assert to_command_line("x", {"n": "-1", "args": ["-c", "b"]}, known) == ["--n=-1", "--", "-c", "b"]
    assert to_command_line("x", {"args": "'b c' d"}, known) == ["b c", "d"]
    assert to_command_line("x", {"name": ["a", "b"]}, known) == ["-nm", "a,b"]
    assert to_command_line("x", {}, known) == []


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--what", "1"], "Valid options: --msg, --image, --num_replicas"),
        (["--msg"], "expected one argument"),
        (["--msg", "a", "--msg", "b"], "--msg is given twice"),
    ],
)
def test_a_command_line_that_is_refused(argv: list[str], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        parse_command_line("utils.echo", argv)


def test_words_after_two_dashes_are_the_components() -> None:
    assert parse_command_line("utils.sh", ["--num_replicas", "2", "--", "-x", "y"]) == {
        "num_replicas": "2",
        "args": ["-x", "y"],
    }
    assert parse_command_line("utils.sh", ["--"]) == {}
