"""A Python script as a component: what is read in it, and what it is started with."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import time
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.tables import toml_table
from support.waiting import wait_until

from torchx_tui.base.modules import SearchPath, module_path
from torchx_tui.components.build import build_app
from torchx_tui.components.command_line import parse_command_line, to_command_line
from torchx_tui.components.finder import component_key, describe, list_components, name_here
from torchx_tui.components.model import REQUIRED
from torchx_tui.components.script_arguments import ScriptArgument, command_words
from torchx_tui.components.script_source import read_script_text
from torchx_tui.components.values import to_text
from torchx_tui.specs.errors import ArgumentError, ComponentLoadError, ComponentNotFoundException

DATA = toml_table(Path(__file__).with_name("python_script.toml"))
SOURCES = {name: row["source"] for name, row in DATA["read"].items()}
ROWS = [(table["source"], *row) for table in DATA["words"] for row in table["rows"]]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(argument: ScriptArgument) -> str:
    """Return an argument as the table has it."""
    # Python 3.10 writes a space before the colon.
    default = "required" if argument.default is REQUIRED else str(argument.default).replace("lambda :", "lambda:")
    is_flag = argument.arity == 0 and not argument.repeats
    parts = [
        f"{argument.name} {argument.style} {argument.type.name} {default}",
        *argument.type.flags,
        f"flag off {argument.off}" if argument.off else "flag" if is_flag else "",
        ", ".join(argument.type.choices),
        f"'{argument.help}'" if argument.help and argument.style not in ("command", "variable") else "",
        str(argument.arity) if argument.arity not in (0, 1) else "",
        f"only {', '.join(argument.commands)}" if argument.commands else "",
        f"needed by {', '.join(argument.needed_by)}" if argument.needed_by else "",
    ]
    return " | ".join(filter(None, parts))


@pytest.mark.parametrize("name", DATA["read"])
def test_arguments_are_read(name, tmp_path):
    found = read_script_text(SOURCES[name].encode(), tmp_path / "train.py")
    assert list(map(shown, found.arguments)) == DATA["read"][name]["expected"]
    assert [f"{line} {what}" for line, what in found.notes] == DATA["read"][name].get("notes", [])


IMPORTING = """
from transformers import HfArgumentParser, TrainingArguments
from mylib.options import Extra, get_parser
TYPES = (Extra, TrainingArguments)
HfArgumentParser(TYPES)
get_parser().parse_args()
"""
MODULES = {
    "own/mylib/options.py": """
import argparse
from dataclasses import dataclass
from .common import add_common
DEPTH = 3
@dataclass
class Extra:
    width: int = DEPTH + 1
def get_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--depth", type=int, default=DEPTH)
    add_common(parser)
    return parser
""",
    "own/mylib/common.py": "def add_common(parser):\n    parser.add_argument('--seed', type=int, default=1)\n",
    "env/transformers/__init__.py": """
raise SystemExit("run")
if TYPE_CHECKING:
    from .trainer import (
        Trainer,
        TrainingArguments as TrainingArguments,
    )
""",
    "env/transformers/trainer.py": """
from .base import Base
@dataclass
class TrainingArguments(Base):
    learning_rate: float = field(default=5e-5, metadata={"help": "the rate"})
    _gpus: int = field(init=False)
""",
    "env/transformers/base.py": "@dataclass\nclass Base:\n    output_dir: str | None = None\n",
}


@pytest.fixture
def modules(tmp_path):
    for name, text in MODULES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def read_importing(folder: Path, source: str = IMPORTING) -> tuple[list[str], list[str]]:
    """Read a script in the folder own, with the packages of the folder env."""
    environment = SearchPath((str(folder / "env"),))
    found = read_script_text(
        source.encode(), folder / "own/train.py", installed=lambda name: module_path(name, environment)
    )
    return [*map(shown, found.arguments)], [what for _, what in found.notes]


def test_arguments_of_imported_modules_are_read(modules):
    assert read_importing(modules) == (
        [
            "width option int 4",
            "output_dir option str None",
            "learning_rate option float 5e-05 | 'the rate'",
            "depth option int 3",
            "seed option int 1",
        ],
        [],
    )


@pytest.mark.parametrize(
    "file", ["own/mylib/options.py", "env/transformers/trainer.py", "env/transformers/__init__.py"]
)
@pytest.mark.parametrize("damage", ["missing", "fifo", "syntax", "circle", "large"])
def test_a_damaged_module_costs_its_own_arguments(modules, file, damage):
    path = modules / file
    path.unlink()
    if damage == "fifo":
        os.mkfifo(path)
    elif damage != "missing":
        texts = {
            "syntax": "class TrainingArguments(:\nclass Extra(:\n",
            "circle": "from . import TrainingArguments\nfrom .options import Extra\n",
            "large": "x = 1\n" * 200_000,
        }
        path.write_text(texts[damage])
    arguments, notes = read_importing(modules)
    lost = "mylib.options.Extra" if file.startswith("own") else "transformers.TrainingArguments"
    assert f"the arguments of {lost}" in notes
    assert ("width option int 4" in arguments) is not file.startswith("own")


def test_calls_of_installed_packages_are_not_followed(modules):
    source = "import argparse, transformers.helper\ntransformers.helper.run()\n"
    (modules / "env/transformers/helper.py").write_text("def run():\n    ArgumentParser().add_argument('--no')\n")
    assert read_importing(modules, source) == ([], [])


def built(typed: str) -> list[str]:
    """Return the words after the script's name; the command that is shown gives the same ones."""
    texts = parse_command_line("train.py", shlex.split(typed))
    (role,) = build_app("train.py", texts).roles
    again = parse_command_line("train.py", to_command_line("train.py", texts))
    assert build_app("train.py", again).roles[0].args == role.args
    return role.args[1:]


@pytest.mark.parametrize(("source", "typed", "expected"), ROWS)
def test_typed_arguments_become_words(folder, source, typed, expected):
    (folder / "train.py").write_text(SOURCES[source])
    if isinstance(expected, list):
        assert built(typed) == expected
        return
    with pytest.raises(ArgumentError, match=re.escape(expected)):
        built(typed)


def test_command_is_shown_as_the_script_takes_it(folder):
    (folder / "train.py").write_text(SOURCES["argparse"])
    texts = {"data": "a,b", "fp16": "true", "cache": "false", "tag": "x", "args": ["-x", "1"]}
    shown = ["--data", "a", "b", "--fp16", "--tag", "x", "--no-cache", "--", "-x", "1"]
    assert to_command_line("train.py", texts) == shown


OPTIONS = [
    ("type=int, default=3", "int"),
    ("type=float, default=0.5", "float"),
    ("default='a'", "text"),
    ("type=int", "int"),
    ("action='store_true'", "flag"),
    ("action=argparse.BooleanOptionalAction, default=True", "bool"),
    ("nargs='*', type=int", "ints"),
    ("nargs='+', default=['x']", "texts"),
    ("nargs=2, type=float, default=[1.0, 2.0]", "floats2"),
    ("action='append', type=int", "ints"),
    ("choices=['a', 'b'], default='a'", "choice"),
    ("type=bool, default=False", "bool"),
    ("action='count', default=0", "count"),
]
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=8)
VALUES: dict[str, Any] = {
    "int": st.integers(-99, 99),
    "float": st.floats(allow_nan=False, allow_infinity=False, width=16),
    "text": TEXTS,
    "flag": st.just(True),
    "bool": st.booleans(),
    "ints": st.lists(st.integers(0, 99), min_size=1, max_size=3),
    "texts": st.lists(TEXTS.filter(lambda text: not text.startswith("-")), min_size=1, max_size=3),
    "floats2": st.lists(st.integers(0, 9).map(float), min_size=2, max_size=2),
    "choice": st.sampled_from("ab"),
    "count": st.integers(0, 3),
}
ARGUMENTS = st.lists(
    st.sampled_from(OPTIONS).flatmap(lambda option: st.tuples(st.just(option[0]), VALUES[option[1]])), max_size=5
)


@given(arguments=ARGUMENTS, positional=st.none() | TEXTS)
@example(arguments=[("default='a'", "-b")], positional="-x")
def test_argparse_parses_what_is_built(arguments, positional):
    lines = ["import argparse", "p = argparse.ArgumentParser()"]
    lines += [f"p.add_argument('--a{number}', {keywords})" for number, (keywords, _) in enumerate(arguments)]
    lines += [] if positional is None else ["p.add_argument('file')"]
    source = "\n".join(lines)
    texts = {f"a{number}": to_text(value) for number, (_, value) in enumerate(arguments)}
    texts |= {} if positional is None else {"file": positional}
    read = read_script_text(f"{source}\np.parse_args()\n".encode(), Path("/none/train.py"))
    assert read.notes == []
    names: dict[str, Any] = {}
    exec(source, names)
    parser: argparse.ArgumentParser = names["p"]
    parsed = vars(parser.parse_args(command_words(read.arguments, texts, [])))
    assert parsed == {f"a{n}": value for n, (_, value) in enumerate(arguments)} | (
        {} if positional is None else {"file": positional}
    )


def test_click_parses_what_is_built(tmp_path):
    read = read_script_text(SOURCES["click"].encode(), tmp_path / "train.py")
    texts = {"lr": "0.5", "arch": "b", "aug": "false", "tag": "x,y", "steps": "3", "debug": "true", "files": "p,q"}
    words = command_words(read.arguments, texts, [])
    names: dict[str, Any] = {"__name__": "script"}
    exec(SOURCES["click"], names)
    main: click.Command = names["main"]
    assert main.make_context("x", words).params == {
        "lr": 0.5, "arch": "b", "aug": False, "tag": ("x", "y"), "steps": 3, "debug": True, "seed": 1,
        "files": ("p", "q"),
    }  # fmt: skip


def write_configuration(folder: Path, files: dict[str, str]) -> None:
    """Write a script whose configuration is conf/c.yaml, and configurations by their paths."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.yaml").write_text(text)
    (folder / "train.py").write_text(
        "import hydra\n@hydra.main(config_path='conf', config_name='c')\ndef main(cfg): ...\nmain()\n"
    )


def test_changed_hydra_configuration_is_read_again(folder):
    for value in ("1", "2"):
        write_configuration(folder, {"conf/c": f"lr: {value}\n"})
        wait_until(lambda text=value: str(describe("train.py").parameters[0].default) == text, value)


def test_hydra_configuration_is_read(folder):
    models = {f"conf/model/{name}": "width: 8\n" for name in ("small", "base", "large")}
    text = "defaults:\n  - model: small\n  - _self_\n"
    text += "lr: 0.1\ndata: ???\nname: run, one\nout: ${name}\noptim: {beta: 0.9}\n"
    write_configuration(folder, {**models, "conf/c": text})
    found = {parameter.name: parameter for parameter in describe("train.py").parameters if not parameter.part}
    assert list(found) == ["model", "model.width", "lr", "data", "name", "out", "optim.beta", "args"]
    assert (found["model"].choices, found["lr"].default, str(found["out"].default)) == (
        ("base", "large", "small"), 0.1, "${name}",
    )  # fmt: skip
    texts = parse_command_line("train.py", ["lr=1", "--model", "large", "data=a=b", "name=it's", "--", "+new=2"])
    (role,) = build_app("train.py", texts).roles
    assert role.args == ["train.py", "model=large", "lr=1", "data='a=b'", r"name='it\'s'", "+new=2"]


CONFIGURATION = {
    "conf/c": "defaults: [base, model: small, db@backup: sql, override hydra/launcher: slurm, _self_]\nlr: 0.1\n",
    "conf/base": "seed: 1\nlr: 0.2\n",
    "conf/model/small": "defaults: [optim: adam, /data: text]\nwidth: 8\nname: null\n",
    "conf/model/optim/adam": "beta: 0.9\n",
    "conf/data/text": "# @package _global_\npath: ???\n",
    "conf/db/sql": "host: here\n",
}


def test_files_that_a_hydra_configuration_includes_are_read(folder):
    write_configuration(folder, CONFIGURATION)
    described = describe("train.py")
    assert described.findings == ()
    found = [item for item in described.parameters if not item.part and item.name != "args"]
    assert {item.name: "required" if item.default is REQUIRED else str(item.default) for item in found} == {
        "seed": "1",
        "lr": "0.2 or 0.1",
        "model": "small",
        "model/optim": "adam",
        "model.optim.beta": "0.9 (model/optim=adam)",
        "data": "text",
        "path": "required",
        "model.width": "8 (model=small)",
        "model.name": "null (model=small)",
        "db@backup": "sql",
        "backup.host": "here (db=sql)",
    }
    texts = parse_command_line("train.py", ["path=x", "model=small", "model.width=8", "seed=1", "backup.host=b"])
    (role,) = build_app("train.py", texts).roles
    assert role.args == ["train.py", "path=x", "model.width=8", "backup.host=b"]


LAUGHS = "\n".join(["a0: &a0 [lol]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))])
DEEP = "a: {b: {c: {d: {e: {f: {g: {h: {i: {j: 1}}}}}}}}}\nk: {l: {m: {n: {o: {p: {q: {r: 1}}}}}}}\n"


@pytest.mark.parametrize(
    ("text", "expected", "notes"),
    [
        ("lr: 1e-3\nid: '1e-3'\ns: 2E5\n", {"lr": "float 0.001", "id": "str 1e-3", "s": "float 200000.0"}, []),
        ("defaults: [/base]\n", {"seed": "int 1"}, []),
        ("defaults: [db/sql]\n", {"db.host": "str here"}, []),
        ("defaults: [../secret]\n", {}, ["the configuration ../secret.yaml, which is in another folder"]),
        ("defaults: [{../..: secret}]\n", {}, []),
        ("defaults: [again]\nlr: 1\n", {"seed": "int 2", "lr": "int 1"}, ["the configuration missing.yaml ("]),
        (DEEP, {"k.l.m.n.o.p.q.r": "int 1"}, ["the keys below a.b.c.d.e.f.g.h.i"]),
        (LAUGHS, {}, ["the configuration c.yaml (it has more than 100,000 values"]),
    ],
)
def test_configurations_of_hydra(folder, text, expected, notes):
    files = {
        "secret": "secret: 42\n",
        "conf/base": "seed: 1\n",
        "conf/db/sql": "host: here\n",
        "conf/again": "defaults: [c, missing]\nseed: 2\n",
        "conf/c": text,
    }
    write_configuration(folder, files)
    found = read_script_text((folder / "train.py").read_bytes(), folder / "train.py")
    assert {item.name: f"{item.type.name} {item.default}" for item in found.arguments} == expected
    assert len(found.notes) == len(notes)
    assert all(what.startswith(note) for (_, what), note in zip(found.notes, notes, strict=True))


def test_long_list_of_a_configuration_is_cut(folder):
    write_configuration(folder, {"conf/c": f"a: [{', '.join('1' * 5_000)}]"})
    found = describe("train.py").parameters[0]
    assert len(str(found.default)) < 2_000


def test_fields_of_the_launch_make_way_for_the_script(folder):
    (folder / "train.py").write_text(
        'import argparse\np = argparse.ArgumentParser()\np.add_argument("--gpu", type=int, default=3)\n'
        'p.add_argument("--args")\np.parse_args()\n'
    )
    names = [parameter.name for parameter in describe("train.py").parameters]
    assert names[:2] == ["gpu", "args"]
    assert (names[-1], "job_gpu" in names, "cpu" in names) == ("job_args", True, True)
    (role,) = build_app("train.py", {"gpu": "0", "job_gpu": "2"}).roles
    assert (role.args, role.resource.gpu) == (["train.py", "--gpu", "0"], 2)


def test_torchrun_starts_the_script(folder):
    (folder / "train gpt.py").write_text("print(1)\n")
    texts = {"launcher": "torchrun", "nnodes": "2", "nproc_per_node": "4", "gpu": "4", "args": "--lr 1"}
    app = build_app("train gpt.py", texts)
    (role,) = app.roles
    assert (app.name, role.name, role.num_replicas, role.resource.gpu) == ("train-gpt", "train-gpt", 2, 4)
    assert "--nnodes 2 --nproc_per_node 4" in role.args[1]
    assert role.args[1].endswith("'train gpt.py' --lr 1")


def test_changed_variables_are_in_the_environment(folder):
    (folder / "train.py").write_text(SOURCES["environment"])
    (role,) = build_app("train.py", {"LR": "0.2", "MODE": "fast"}).roles
    assert (role.args, role.env) == (["train.py"], {"LR": "0.2", "MODE": "fast"})
    assert build_app("train.py", {"LR": "0.1"}).roles[0].env == {}


def test_module_is_a_script(folder):
    (folder / "pkg").mkdir()
    (folder / "pkg" / "__init__.py").write_text("")
    (folder / "pkg" / "run.py").write_text(SOURCES["tyro"])
    (folder / "pkg" / "__main__.py").write_text(SOURCES["absl"])
    app = build_app("-m pkg.run", {"kind": "b"})
    assert (app.name, app.roles[0].args) == ("run", ["-m", "pkg.run", "--kind", "b"])
    assert describe("-m pkg").path == folder / "pkg" / "__main__.py"
    with pytest.raises(ComponentNotFoundException, match=r"there is no module pkg\.none here"):
        describe("-m pkg.none")


def test_scripts_are_listed_and_libraries_are_not(folder):
    (folder / "train.py").write_text(f'"""Trains it. All of it."""\n{SOURCES["tyro"]}')
    (folder / "nano.py").write_text(SOURCES["nanogpt"])
    (folder / "old.py").write_text('if __name__ == "__main__":\n    print "python 2"\n')
    (folder / "library.py").write_text('def f():\n    return p.parse_args()\nNAME = "__main__"\n')
    (folder / "both.py").write_text(
        "from torchx_tui.specs import AppDef\ndef job() -> AppDef:\n    '''Do.'''\n"
        "    return AppDef('x')\nif __name__ == '__main__':\n    job()\n"
    )
    listed = [item for item in list_components([folder]) if item.kind in ("file", "script")]
    found = [(item.name, item.kind, item.summary) for item in listed]
    assert found == [
        ("both.py:job", "file", "Do."),
        ("both.py", "script", ""),
        ("nano.py", "script", ""),
        ("old.py", "script", ""),
        ("train.py", "script", "Trains it."),
    ]


def test_key_is_the_same_in_all_folders(folder, monkeypatch):
    (folder / "jobs").mkdir()
    key = component_key("jobs/train.py")
    assert (key, name_here(key)) == (f"{folder}/jobs/train.py", "jobs/train.py")
    monkeypatch.chdir(folder / "jobs")
    assert name_here(key) == "train.py"
    assert component_key("-m pkg.run") == name_here("-m pkg.run") == "-m pkg.run"


def test_file_of_components_with_a_syntax_error_is_refused(folder):
    (folder / "jobs.py").write_text("def job() -> AppDef:\n    return AppDef(\n")
    with pytest.raises(ComponentLoadError, match=r"jobs\.py:2: syntax error"):
        describe("jobs.py")


HOSTILE = {
    "10 MB": (b"x = 1\n" * 1_700_000, "it has more than 150 kB"),
    "deep": (b"(" * 100_000, "syntax error: too many nested parentheses"),
    "long chain": (b"x = " + b"1+" * 20_000 + b"1\n", "it is too deeply nested to read"),
    "syntax": (b"def f(:\n", "syntax error"),
    "nul": (b"x = 1\0\n", "null bytes"),
    "encoding": (b"# coding: nonsense\n", "nonsense"),
    "not utf-8": (b"x = '\xff'\n", "syntax error"),
    "endless": (b"def f(n):\n    f(n)\n    f(n)\n    f(n)\n    f(n)\nf(1)\n" * 50, ""),
    "growing": (b"a = [1]\ns = 'x'\nfor i in range(10**9):\n    a = a + a\n    s = s + s\n    t = f'{s}{s}'\n", ""),
    "odd calls": (
        b"import argparse\np = argparse.ArgumentParser(parents=5)\np.add_subparsers(dest=5)\n"
        b"p.add_argument('--a', nargs=10**12, help=3, type=4, default=p)\np.add_argument('')\np.set_defaults(a=p)\n",
        "whose name is an expression",
    ),
    "diamonds": (
        b"import tyro\nclass A0:\n    a: int = 1\n    @staticmethod\n    def f(): ...\nclass B0: ...\n"
        + b"".join(
            b"class A%d(A%d, B%d): ...\nclass B%d(A%d, B%d): ...\n" % (n, n - 1, n - 1, n, n - 1, n - 1)
            for n in range(1, 60)
        )
        + b"A59.none()\ntyro.cli(A59)\n",
        "",
    ),
    "nested in itself": (
        b"import tyro\nclass A:\n"
        + b"".join(b"    f%d: A = field(default_factory=A)\n" % n for n in range(60))
        + b"tyro.cli(A)\n",
        "",
    ),
    "circle": (b"class A(B): ...\nclass B(A): ...\nA().f()\nimport tyro\ntyro.cli(B)\n", ""),
    "power": (b"a = 9 ** 9 ** 9 ** 9\nb = 'x' * 10 ** 10\n", ""),
    "yaml": (
        b"import hydra\n@hydra.main(config_path='.', config_name='c')\ndef main(): ...\nmain()\n",
        "configuration",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_script_is_read_in_time(folder, name):
    text, reason = HOSTILE[name]
    (folder / "train.py").write_bytes(text)
    (folder / "c.yaml").write_text("a: &a [x, x]\n" + "b: [" * 5_000)
    began = time.thread_time()
    doc = describe("train.py")
    assert time.thread_time() - began < 3
    findings = " ".join(finding.description for finding in doc.findings)
    assert reason in findings
    assert (doc.parameters[-1].name, doc.parameters[-1].kind) == ("args", "var_positional")
    assert build_app("train.py", {"args": "--lr 1"}).roles[0].args == ["train.py", "--lr", "1"]


def test_thousand_arguments_are_read_in_time(folder):
    lines = [f"p.add_argument('--a{number}', type=int, default={number}, help='x')" for number in range(1_000)]
    (folder / "train.py").write_text("\n".join(["import argparse", "p = argparse.ArgumentParser()", *lines]))
    began = time.thread_time()
    parameters = describe("train.py").parameters
    assert time.thread_time() - began < 3
    assert sum(not parameter.part for parameter in parameters) == 1_001
