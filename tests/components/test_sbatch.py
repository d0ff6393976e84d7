"""An sbatch script as a component: what is read in it, and what is submitted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.tables import toml_table

from torchx_tui.components.build import build_app
from torchx_tui.components.command_line import parse_command_line, to_command_line
from torchx_tui.components.finder import component_key, describe, list_components, name_here
from torchx_tui.components.sbatch_script import SbatchScript, differing_lines, lines_with_changes
from torchx_tui.specs.batch_script import script_of
from torchx_tui.specs.errors import ArgumentError, ComponentLoadError, ComponentNotFoundException

DATA = toml_table(Path(__file__).with_name("sbatch.toml"))
SCRIPT, INPUTS = DATA["scripts"]["sft"], DATA["scripts"]["inputs"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    (tmp_path / "train.sbatch").write_text(SCRIPT)
    return tmp_path


@pytest.mark.parametrize("body", DATA["read"])
def test_script_is_read(body):
    script = SbatchScript(Path("x"), f"#!/bin/bash\n{body}\n")
    found = {
        "options": script.options,
        "arguments": [one.name for one in script.positionals],
        "defaults": {one.name: one.default for one in script.positionals if one.default is not None},
        "variables": {one.name: one.default for one in script.variables if one.default is not None},
        "required": {one.name: one.message for one in script.variables if one.default is None},
        "comment": script.comment,
    }
    expected = DATA["read"][body]
    assert {key: found[key] for key in expected} == expected


def submitted(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what is submitted of train.sbatch, whose text is unchanged."""
    app = build_app("train.sbatch", arguments)
    made = script_of(app.roles)
    assert made is not None
    assert made.text == Path("train.sbatch").read_text()
    return {
        "name": app.name,
        "args": list(made.args),
        "options": list(made.options),
        "env": dict(made.env),
        "settings": dict(made.settings),
    }


@pytest.mark.parametrize(("script", "arguments", "expected"), DATA["built"]["rows"])
def test_script_is_submitted(folder, script, arguments, expected):
    (folder / "train.sbatch").write_text(DATA["scripts"].get(script, f"#!/bin/sh\n{script}\nrun\n"))
    if isinstance(expected, str):
        with pytest.raises(ArgumentError, match=expected):
            build_app("train.sbatch", arguments)
        return
    found = submitted(arguments)
    assert {key: found[key] for key in expected} == expected


def test_byte_order_mark_is_removed(folder):
    (folder / "train.sbatch").write_text("\ufeff" + SCRIPT, encoding="utf-8")
    made = script_of(build_app("train.sbatch", {"config": "a"}).roles)
    assert made is not None
    assert made.text.startswith("#!")


def test_variable_of_the_environment_is_not_required(folder, monkeypatch):
    (folder / "train.sbatch").write_text(INPUTS)
    # What is set here travels anyway.
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert submitted({})["env"] == {}


def test_options_and_arguments_are_parameters(folder):
    doc = describe("train.sbatch")
    assert (doc.kind, doc.scheduler, doc.line, doc.summary, doc.description) == (
        "script", "slurm", 1, "Fine-tunes a model.", "One task a node.",
    )  # fmt: skip
    first = {parameter.name: parameter.default for parameter in doc.parameters[3:10]}
    assert first == {
        "job-name": "sft", "nodes": "2", "cpus-per-task": "96", "time": "1-00:00:00", "comment": "my run",
        "exclusive": "yes", "requeue": "false",
    }  # fmt: skip
    ends = [(parameter.name, parameter.required) for parameter in (*doc.parameters[:3], doc.parameters[-1])]
    assert ends == [("config", True), ("LR", False), ("arg3", False), ("args", False)]
    # Below the first command a line is a comment.
    memory = doc.parameter("mem")
    assert memory is not None
    assert memory.default is None


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"echo\n", "its first line is not #!"),
        (b"#!/bin/sh\r\necho\r\n", "dos2unix"),
        (b"#!/bin/sh\n\xff\n", "UTF-8"),
        (b"#!/bin/sh\n\0\n", "NUL"),
    ],
)
def test_file_that_sbatch_refuses(folder, data, fault):
    (folder / "bad.sbatch").write_bytes(data)
    with pytest.raises(ComponentLoadError, match=fault) as caught:
        describe("bad.sbatch")
    assert caught.value.line == (1 if fault in ("its first line is not #!", "dos2unix") else None)
    assert [listed.error for listed in list_components([folder]) if listed.name == "bad.sbatch"] != [None]


def test_script_that_is_no_file(folder):
    os.mkfifo(folder / "pipe.sbatch")
    with pytest.raises(ComponentLoadError) as caught:
        describe("pipe.sbatch")
    assert caught.value.reason == "it is a named pipe, not a regular file"


def test_scripts_are_listed_and_found(folder):
    (folder / "run.sh").write_text("#!/bin/sh\n#SBATCH -n 1\nsrun hostname\n")
    (folder / "other.sh").write_text("#!/bin/sh\necho\n")
    (folder / "part.sh").write_text("#SBATCH -n 1\n")
    # Only the first 200 lines are searched.
    (folder / "far.sh").write_text("#!/bin/sh\n" + 199 * "\n" + "#SBATCH -n 1\n")
    (folder / "near.sh").write_text("#!/bin/sh\n" + 198 * "\n" + "#SBATCH\n")
    names = [listed.name for listed in list_components([folder]) if listed.kind == "script"]
    assert names == ["./near.sh", "./run.sh", "train.sbatch"]
    for name in names:
        key = component_key(name)
        assert key == str(folder / name)
        assert name_here(key) == name
    with pytest.raises(ComponentNotFoundException, match="there is no file"):
        describe("./none.sh")


def test_command_line_and_back(folder):
    texts = parse_command_line("train.sbatch", ["--time", "2:00:00", "--", "a.yaml", "2e-5", "x", "-y"])
    assert texts == {"time": "2:00:00", "config": "a.yaml", "LR": "2e-5", "arg3": "x", "args": ["-y"]}
    assert parse_command_line("train.sbatch", to_command_line("train.sbatch", texts)) == texts


def test_differing_lines():
    assert differing_lines("a\nb\nc\n", "a\nB\nc\nd\n") == [(2, "b", "B"), (4, "", "d")]
    assert differing_lines("a\n" * 300, "b\n" + "a\n" * 300) == [(1, "", "b")]
    assert len(differing_lines("a\n" * 60, "b\n" * 60)) == 50
    before = [f"{number}\n" for number in range(2000)]
    assert differing_lines("".join(before), "".join(before[:-1])) == [(2000, "1999", "")]
    before.append("more")
    assert differing_lines("".join(before), "0\n") == [(1, "2,001 lines", "1 lines, others than before")]
    assert differing_lines("".join(before), "".join(before)) == []


def test_changes_beside_the_lines_of_a_script():
    text = "#!/bin/sh\n#SBATCH -p a --nodes=4\n#SBATCH --nodes=2\nLR=${LR:-1}\n#SBATCH --time=1\nsrun a ${TOKENS}\n"
    changed = {"partition": "b", "nodes": "8", "time": "2", "LR": "3", "TOKEN": "4", "args": "5"}
    found = lines_with_changes(text, changed)
    assert [(line.number, line.given) for line in found] == [
        # The last of several lines counts, none behind the first command; a name is a whole word.
        (1, ()), (2, ("partition=b",)), (3, ("nodes=8",)), (0, ("time=2",)), (4, ("LR=3",)), (5, ()), (6, ()),
    ]  # fmt: skip
    assert [line.text for line in found if line.number] == text.splitlines()


def test_added_options_follow_the_first_line():
    found = lines_with_changes("#!/bin/sh\nrun ${2} $1 $12\nrun $1\n", {"time": "2", "arg1": "x", "arg2": "y"})
    assert found == [
        (1, "#!/bin/sh", ()), (0, "", ("time=2",)), (2, "run ${2} $1 $12", ("arg1=x", "arg2=y")), (3, "run $1", ()),
    ]  # fmt: skip


@pytest.mark.parametrize("name", [f"{'x' * 300}.sbatch", f"./{'x' * 300}.sh"])
def test_name_that_is_too_long(folder, name):
    with pytest.raises(ComponentLoadError, match="File name too long"):
        describe(name)


def test_variables_are_parameters(folder):
    (folder / "train.sbatch").write_text(INPUTS)
    found = {each.name: each for each in describe("train.sbatch").parameters}
    defaults = {name: found[name].default for name in ("LR", "OUT")}
    assert defaults == {"LR": "1e-5", "OUT": ""}
    assert found["HF_TOKEN"].required
    assert found["HF_TOKEN"].help == "put your token there"
    assert found["LR"].help == "The variable LR of the script's environment"
    assert not {"run", "SLURM_JOB_ID", "HOME", "NOT", "OPTIND", "CONFIG"} & found.keys()


@pytest.mark.parametrize(("line", "expected"), DATA["tables"]["messages"])
def test_message_of_an_argument(folder, line, expected):
    (folder / "train.sbatch").write_text(f"#!/bin/sh\n{line}\nrun $1 ${{2:-fast}}\n")
    first, second, *_ = describe("train.sbatch").parameters
    assert [first.name, first.required, first.help] == expected
    assert (second.name, second.default, second.help) == ("arg2", "", "The script's argument $2")


def test_types_of_parameters(folder):
    directives = (
        "#SBATCH -p a --hold --exclusive --nodes=2 --open-mode=append --signal=9 --nice=2 --kill-on-invalid-dep=x"
    )
    body = "shift\nrun ${LR:-1} $@"
    (folder / "train.sbatch").write_text(f"#!/bin/sh\n{directives}\n{body}\n")
    (folder / "plain.sbatch").write_text("#!/bin/sh\n#SBATCH --ntasks=many\nrun $1\n")
    each = [each for name in ("plain", "train") for each in describe(f"{name}.sbatch").parameters]
    found = {}
    for one in each:
        words = f"{one.type.name}{'?' * one.type.optional} {one.form} {' '.join(map(repr, one.choices))}"
        found[one.name] = " ".join(words.split())
    assert {name: found[name] for name in DATA["types"]} == DATA["types"]
    others = {"arg1": "positional", "args": "var_positional"}
    assert {parameter.kind for parameter in each if parameter.name not in others} == {"keyword_only"}
    assert {parameter.name: parameter.kind for parameter in each if parameter.name in others} == others
    helps = [(parameter.name, parameter.help) for parameter in each]
    assert ("open-mode", "What becomes of that file when the job is requeued") in helps
    assert ("nice", "sbatch(1) explains it") in helps
    assert [words for name, words in helps if name == "args"] == [
        *("Further arguments of the script", "The script's arguments"),
    ]
    # A value that is no number stays as it is.
    kept = describe("plain.sbatch").parameter("ntasks")
    assert kept is not None
    assert (kept.type_text, kept.optional, kept.default) == ("str", True, "many")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("#SBATCH --of-the-future=1 --nodes=2 --also", "options that sbatch may not know: of-the-future, also"),
        ("#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH -n 2", "a heterogeneous job"),
    ],
)
def test_finding_about_a_script(folder, lines, words):
    (folder / "train.sbatch").write_text(f"#!/bin/sh\n{lines}\nrun\n")
    doc = describe("train.sbatch")
    (found,) = doc.findings
    assert found.description.startswith(words)
    assert (found.name, found.line, found.char, found.severity) == ("sbatch", 1, 0, "warning")
    # The options of a heterogeneous job stay in its script.
    assert ([one.name for one in doc.parameters] == ["args"]) == ("hetjob" in lines)


def test_comment_reads_no_variable():
    found = lines_with_changes("#!/bin/sh\n# $LR and $1\nrun ${LR:-1} $1\n", {"LR": "2", "arg1": "x"})
    assert [line.given for line in found] == [(), (), ("LR=2", "arg1=x")]


@pytest.mark.parametrize("part", ["$(", "${A:-", '"$(', '"`', "`", "'", '"', "((", "<<A\n", "\\"])
def test_endless_nesting(tmp_path, part):
    script = tmp_path / "deep.sbatch"
    script.write_text("#!/bin/bash\n#SBATCH --time=5\nLR=${LR:-1}\n" + part * 20_000)
    names = [parameter.name for parameter in describe(str(script)).parameters]
    assert {"LR", "time"} < {*names}
