"""Which types parameters may have, how these are written, and what the fields of a role are."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchx_tui.components.checked import checked_resource
from torchx_tui.components.model import (
    REQUIRED,
    AnnotationError,
    ComponentDoc,
    Parameter,
    ValueType,
    read_annotation,
)
from torchx_tui.components.programs import program_text
from torchx_tui.components.role_overrides import ROLE_FIELDS, override_roles, role_texts
from torchx_tui.components.values import check_argument, parse_value, to_text
from torchx_tui.specs import AppDef, ArgumentError, Role, Workspace


def read(text: str, **enums: tuple[str, ...]) -> ValueType:
    return read_annotation(ast.parse(text, mode="eval").body, enums)


STR_LIST = ValueType("list", "list[str]", ("str",))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        *((name, ValueType(name, name)) for name in ("str", "int", "float", "bool")),
        *((name, ValueType("list", "list", ("str",))) for name in ("list", "List", "typing.List", "t.List")),
        *((name, ValueType("dict", "dict", ("str", "str"))) for name in ("dict", "Dict", "typing.Dict")),
        *((name, ValueType("tuple", "tuple")) for name in ("tuple", "Tuple", "typing.Tuple")),
        *((f"{name}[str]", STR_LIST) for name in ("list", "List", "typing.List")),
        *((f"{name}[str, int]", ValueType("dict", "dict[str,int]", ("str", "int"))) for name in ("dict", "t.Dict")),
        ("tuple[int, str]", ValueType("tuple", "tuple[int,str]", ("int", "str"))),
        ("Tuple[int, ...]", ValueType("tuple", "tuple[int,...]", ("int", "..."))),
        ("Optional[int]", ValueType("int", "int", optional=True)),
        ("typing.Optional[list[str]]", ValueType("list", "list[str]", ("str",), optional=True)),
        ("int | None", ValueType("int", "int", optional=True)),
        ("None | int", ValueType("int", "int", optional=True)),
        ("Union[int, None]", ValueType("int", "int", optional=True)),
        ("Literal['a', 'b']", ValueType("str", "Literal['a', 'b']", choices=("a", "b"))),
        ("Literal[1, 2]", ValueType("int", "Literal[1, 2]", choices=("1", "2"))),
        ("Annotated[int, '-n', 'words', 3, '--number']", ValueType("int", "int", flags=("-n", "--number"))),
        ("Annotated[int, 'words']", ValueType("int", "int")),
        ("Mode", ValueType("other", "Mode")),
    ],
)
def test_types_that_a_text_can_be_turned_into(text: str, found: ValueType) -> None:
    assert read(text) == found


def test_a_class_of_names_has_them_for_choices() -> None:
    assert read("Mode", Mode=("FAST", "SLOW")) == ValueType("other", "Mode", choices=("FAST", "SLOW"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("set[str]", "Unsupported container type 'set'"),
        ("a.b.c[str]", "Unsupported container type 'a.b.c'"),
        ("typing.Any", "Unsupported argument type 'typing.Any'"),
        ("collections.list", "Unsupported argument type 'collections.list'"),
        ("dict[str]", r"Malformed dict type 'dict\[str\]', expected exactly two"),
        ("dict[list[int], str]", r"Non-primitive key type 'list\[int\]'"),
        ("dict[str, list[int]]", r"Non-primitive value type 'list\[int\]'"),
        ("list[str, int]", "Non-primitive element type"),
        ("list[list[int]]", r"Non-primitive element type 'list\[int\]'"),
        ("tuple[int]", "expected element types"),
        ("tuple[int, list[int]]", r"Non-primitive element type 'list\[int\]'"),
        ("Literal['a', 1]", "use texts only or whole numbers only"),
        ("Literal[True]", "use texts only or whole numbers only"),
        ("Literal[a]", "use texts only or whole numbers only"),
        ("int | str", "Unsupported argument type"),
        ("Union[int, str, None]", "Unsupported container type 'Union'"),
        ("Annotated[int]", "Unsupported container type 'Annotated'"),
    ],
)
def test_types_that_it_cannot(text: str, words: str) -> None:
    with pytest.raises(AnnotationError, match=words):
        read(text)


def test_what_a_parameter_says_of_its_type() -> None:
    given = Parameter("n", "keyword_only", ValueType("int", "int", optional=True, choices=("1",)))
    assert (given.type_text, given.optional, given.choices, given.required) == ("int", True, ("1",), True)
    assert (given.help, given.form, given.default is REQUIRED, bool(REQUIRED)) == ("", "", True, False)
    assert not Parameter("n", "keyword_only", given.type, 1).required
    assert not Parameter("n", "var_positional", given.type).required
    doc = ComponentDoc("c", "file", "", "", [given])
    assert doc.parameter("n") is given
    assert doc.parameter("m") is None
    assert (doc.line, doc.module, doc.findings) == (0, "", ())


# Values


@pytest.mark.parametrize(
    ("items", "text", "value"),
    [
        ((), "a, b", ("a", "b")),
        (("int", "..."), "1,2,3", (1, 2, 3)),
        (("int", "str"), "1,x", (1, "x")),
        ((), " ", ()),
    ],
)
def test_tuples(items: tuple[str, ...], text: str, value: tuple[object, ...]) -> None:
    parameter = Parameter("t", "keyword_only", ValueType("tuple", "tuple", items))
    assert parse_value(parameter, text) == value
    assert parse_value(parameter, to_text(value)) == value


def test_a_tuple_of_another_length_is_refused() -> None:
    parameter = Parameter("t", "keyword_only", ValueType("tuple", "tuple", ("int", "str")))
    with pytest.raises(ArgumentError, match=r"`1` has 1 items\. Use 2: int, str"):
        parse_value(parameter, "1")


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [("topology", "1x2", "2by2"), ("resource", "gpu.small", "gpu.none"), ("mounts", "type=bind,src=/a,dst=/b", "x")],
)
def test_the_form_of_a_builtins_parameter(form: str, good: str, bad: str) -> None:
    kind = ValueType("list", "list[str]", ("str",)) if form == "mounts" else ValueType("str", "str")
    parameter = Parameter("p", "keyword_only", kind, form=form)
    assert check_argument(parameter, good) is None
    assert check_argument(parameter, bad)
    assert check_argument(parameter, "") is None
    assert check_argument(Parameter("p", "keyword_only", kind), bad) is None


def test_a_named_resource_stands_for_figures() -> None:
    named = checked_resource(0, 0, 0, "gpu.small")
    assert (named.cpu, named.gpu > 0, named.memMB > 0) == (8, True, True)


# Fields of a role


def test_the_fields_of_a_role_have_types() -> None:
    types = {
        name: (field.kind, field.type.kind, field.type.name, field.type.items) for name, field in ROLE_FIELDS.items()
    }
    texts = ("image", "resource", "retry_policy", "workspace", "entrypoint")
    assert types == {
        **dict.fromkeys(texts, ("keyword_only", "str", "str", ())),
        **dict.fromkeys(("num_replicas", "cpu", "gpu", "memMB", "max_retries"), ("keyword_only", "int", "int", ())),
        "env": ("keyword_only", "dict", "dict[str, str]", ("str", "str")),
        "mounts": ("keyword_only", "list", "list[str]", ("str",)),
        "args": ("var_positional", "str", "str", ()),
    }
    assert all(field.help for name, field in ROLE_FIELDS.items() if name != "args")
    assert ROLE_FIELDS["retry_policy"].choices == ("REPLICA", "APPLICATION", "ROLE")


def test_a_long_workspace_is_one_line() -> None:
    projects = {f"/{'long' * 30}/{number}": f"to/{number}" for number in range(20)}
    text = role_texts(Role("r", "", workspace=Workspace(projects)))["workspace"]
    assert "\n" not in text
    app = AppDef("a", [Role("r", "")])
    assert override_roles(app, {"r": {"workspace": text}}).roles[0].workspace == Workspace(projects)


# Programs


def run(name: str, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program_text(name), *words],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_demo_by_itself_is_one_rank_of_twenty_steps() -> None:
    done = run("demo.py", "--step_seconds", "0")
    assert done.returncode == 0, done.stderr
    first, *steps, last = done.stdout.splitlines()
    assert first.startswith("\x1b[1mrank 0 of 1\x1b[0m pid ")
    assert [line.split()[1] for line in steps] == [f"{number}/20" for number in range(1, 21)]
    assert last == "\x1b[32mdone\x1b[0m after 20 steps"
    bars = done.stderr.replace("\r", "\n").splitlines()
    assert [line for line in bars if line.startswith("loading data")][0::9] == [
        "loading data  10% [###...........................] 1/10",
        "loading data 100% [##############################] 10/10",
    ]
    assert len([line for line in bars if line.startswith("saving")]) == 5
    warned = [line.split("waited ")[1].split()[0] for line in bars if "WARNING" in line]
    assert len(warned) == 2
    assert all(20 <= int(waited) <= 90 for waited in warned)


def test_the_demo_leaves_its_error_where_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    words = ("--step_seconds", "0", "--steps", "3", "--fail_at_step", "2")
    done = run("demo.py", *words, TORCHELASTIC_ERROR_FILE=str(path))
    assert done.returncode == 1
    told = json.loads(path.read_text())["message"]
    assert told["message"].startswith("FloatingPointError: loss is nan at step 2")
    assert set(told["extraInfo"]) == {"py_callstack", "timestamp"}
    assert told["extraInfo"]["timestamp"].isdigit()
    assert run("demo.py", *words, "--rank", "1").returncode == 0
    assert run("demo.py", *words, "--rank", "1", "--fail_rank", "1").returncode == 1


def test_booth_by_itself_is_trial_0(tmp_path: Path) -> None:
    assert run("booth.py", "--x1", "1", "--x2", "3", "--tracker_base", str(tmp_path)).returncode == 0
    assert (tmp_path / "0").is_file()
    for missing in ("--x1", "--x2", "--tracker_base"):
        given = {"--x1": "1", "--x2": "3", "--tracker_base": str(tmp_path)}
        del given[missing]
        done = run("booth.py", *(word for pair in given.items() for word in pair))
        assert done.returncode == 2
        assert f"the following arguments are required: {missing}" in done.stderr
    for missing, given in (("--src", "--dst"), ("--dst", "--src")):
        assert f"the following arguments are required: {missing}" in run("copy.py", given, "x").stderr
