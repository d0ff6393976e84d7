"""A user's own sbatch script as a component: what is read in it, and what becomes of changes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from torchx_tui.components import (
    ValueType,
    build_app,
    component_key,
    describe,
    differing_lines,
    lines_with_changes,
    list_components,
    name_here,
    parse_command_line,
    to_command_line,
)
from torchx_tui.components.sbatch_script import SbatchScript
from torchx_tui.specs import ArgumentError, ComponentLoadError, ComponentNotFoundException
from torchx_tui.specs.batch_script import BatchScript, script_of
from torchx_tui.specs.sbatch_options import LETTERS, OPTIONS, SbatchOption

SCRIPT = """#!/bin/bash -l
# Fine-tunes a model.
#
# One task a node.
#SBATCH --job-name=sft   # what it is called
#SBATCH -N 2 -c96 --time 1-00:00:00
  # a comment
#SBATCH --comment='my run' --exclusive --no-requeue

config=$1
export LR="${2:-1e-5}"
say() { echo "$4"; }
function quiet {
    echo "$5"
}
#SBATCH --mem=1G
srun awk '{print $6}' "$3" "$LR"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.sbatch").write_text(SCRIPT)
    return tmp_path


def built(**arguments: str | list[str]) -> BatchScript:
    made = script_of(build_app("train.sbatch", {"config": "a.yaml", **arguments}).roles)
    assert made is not None
    return made


def test_a_script_may_begin_with_a_byte_order_mark(folder: Path) -> None:
    (folder / "train.sbatch").write_text("\ufeff" + SCRIPT, encoding="utf-8")
    assert built().text.startswith("#!")


def test_options_and_arguments_are_parameters(folder: Path) -> None:
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
    ("line", "options"),
    [
        ("--time=10 --time=20", {"time": "20"}),
        ("-p gpu -A lab", {"partition": "gpu", "account": "lab"}),
        ("-pgpu --mem 4G", {"partition": "gpu", "mem": "4G"}),
        ('--job-name="two words" --hold', {"job-name": "two words", "hold": "true"}),
        ("--time=10#not a value", {"time": "10"}),
        ("-C a100&(nvme|ssd) --hold", {"constraint": "a100&(nvme|ssd)", "hold": "true"}),
        ("--nice --gres=gpu:a100:4", {"nice": "yes", "gres": "gpu:a100:4"}),
        ("--of-the-future=1 --also", {"of-the-future": "1", "also": "true"}),
        ("--hold '--time=10", {"hold": "true"}),
        ("-N 2 stray --mem", {"nodes": "2", "mem": ""}),
        ("-N=2", {"nodes": "2"}),
        ("", {}),
    ],
)
def test_lines_for_sbatch(line: str, options: dict[str, str]) -> None:
    assert SbatchScript(Path("x"), f"#!/bin/sh\n#SBATCH {line}\n").options == options


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("python train.py", []),
        ('python train.py "$@"', []),
        ("a=$1\nshift\nb=$1", []),
        ('lr="${1:?say how fast}"\nn=${2-3}', ["lr", "n"]),
        ("echo $2", ["arg1", "arg2"]),
        ("time=$1", ["arg1"]),
        ("a=$1; echo\nb=$10", ["a"]),
        ("cat <<< '$1'", []),
        ("a='x'$1", ["arg1"]),
        ("a=$1\na=$2", ["a", "arg2"]),
        ("f() { echo $2; }\nrun $1", ["arg1"]),
        ("f() {\n  echo $2\n  echo $3\n}\nrun $1", ["arg1"]),
    ],
)
def test_positional_arguments(body: str, names: list[str]) -> None:
    assert [one.name for one in SbatchScript(Path("x"), f"#!/bin/sh\n{body}\n").positionals] == names


def test_only_what_is_changed_goes_to_the_command_line(folder: Path) -> None:
    plain = built()
    assert (plain.text, plain.options, plain.args) == (SCRIPT, (), ("a.yaml",))
    assert (plain.settings["comment"], plain.settings["nodes"]) == ("my run", "2")
    changed = built(time="2:00:00", nodes="2", requeue="yes", mem="64G", comment="other", LR="2e-5")
    assert changed.options == ("--time=2:00:00", "--requeue", "--mem=64G", "--comment=other")
    assert (changed.args, changed.settings["time"], changed.text) == (("a.yaml", "2e-5"), "2:00:00", SCRIPT)
    # A default in between is said.
    assert built(arg3="x", args="'y z'").args == ("a.yaml", "1e-5", "x", "y z")
    # All of them in a row.
    rest = script_of(build_app("train.sbatch", {"args": ["a.yaml", 'it\'s "so"']}).roles)
    assert rest is not None
    assert rest.args == ("a.yaml", 'it\'s "so"')


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ({"exclusive": "user"}, ("--exclusive=user",)),
        ({"exclusive": "yes", "comment": "my run", "time": "1-00:00:00"}, ()),
        ({"comment": "yes", "gpus": "true"}, ("--comment=yes", "--gpus=true")),
        ({"gpus": "", "mem": "", "signal": ""}, ()),
        ({"requeue": "true"}, ("--requeue",)),
        ({"requeue": "false"}, ()),
        ({"requeue": ""}, ()),
        ({"job-name": "other"}, ("--job-name=other",)),
    ],
)
def test_an_option_of_the_command_line(folder: Path, arguments: dict[str, str], options: tuple[str, ...]) -> None:
    assert built(**arguments).options == options


@pytest.mark.parametrize(
    ("line", "arguments", "options"),
    [
        ("--time=1", {"requeue": "no"}, ("--no-requeue",)),
        ("--requeue", {"requeue": "yes"}, ()),
        ("--exclusive=user", {"exclusive": "yes"}, ("--exclusive",)),
        ("--nice=2", {"nice": "3"}, ("--nice=3",)),
        ("--hold", {"hold": "true"}, ()),
        ("--hold", {"hold": "false"}, "the script has --hold, which no option of sbatch undoes"),
        ("--hold", {"hold": ""}, "the script has --hold, which no option of sbatch undoes"),
        ("--mem=1", {"mem": ""}, "the script sets --mem, and sbatch takes no empty value"),
    ],
)
def test_an_option_beside_one_of_the_script(
    line: str, arguments: dict[str, str], options: tuple[str, ...] | str, tmp_path: Path
) -> None:
    path = tmp_path / "x.sbatch"
    path.write_text(f"#!/bin/sh\n#SBATCH --job-name=x {line}\nrun\n")
    if isinstance(options, str):
        with pytest.raises(ArgumentError, match=options):
            build_app(str(path), arguments)
        return
    made = script_of(build_app(str(path), arguments).roles)
    assert made is not None
    assert made.options == options


def test_the_name_of_a_scripts_job(folder: Path) -> None:
    for arguments, name in (({}, "sft"), ({"job-name": "other"}, "other")):
        app = build_app("train.sbatch", {"config": "a", **arguments})
        made = script_of(app.roles)
        assert made is not None
        assert (app.name, made.settings["job-name"]) == (name, name)


def test_a_script_without_a_name_gets_that_of_its_file(folder: Path) -> None:
    (folder / "plain.sbatch").write_text("#!/bin/sh\ntrue\n")
    app = build_app("plain.sbatch", {})
    made = script_of(app.roles)
    assert made is not None
    assert (app.name, made.options) == ("plain.sbatch", ("--job-name=plain.sbatch",))
    assert made.settings == {"job-name": "plain.sbatch"}


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({}, "needs a value for config"),
        ({"config": ""}, "needs a value for config"),
        ({"config": "a", "time": "soon"}, "`soon` is not a time"),
        ({"config": "a", "mem": "much"}, "`much` is not a size"),
        ({"config": "a", "ntasks": "two"}, "two"),
        ({"config": "a", "open-mode": "over"}, "Use one of append, truncate"),
        ({"config": "a", "exclusive": ""}, "takes no empty value: edit the script"),
        ({"config": "a", "wait": "1"}, "no such argument"),
    ],
)
def test_wrong_arguments_are_refused(folder: Path, arguments: dict[str, str], fault: str) -> None:
    with pytest.raises(ArgumentError, match=fault):
        build_app("train.sbatch", arguments)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"echo\n", "its first line is not #!"),
        (b"#!/bin/sh\r\necho\r\n", "dos2unix"),
        (b"#!/bin/sh\n\xff\n", "UTF-8"),
        (b"#!/bin/sh\n\0\n", "NUL"),
    ],
)
def test_a_file_that_sbatch_refuses(folder: Path, data: bytes, fault: str) -> None:
    (folder / "bad.sbatch").write_bytes(data)
    with pytest.raises(ComponentLoadError, match=fault) as caught:
        describe("bad.sbatch")
    assert caught.value.line == (1 if fault in ("its first line is not #!", "dos2unix") else None)
    assert [listed.error for listed in list_components([folder]) if listed.name == "bad.sbatch"] != [None]


def test_a_script_that_is_no_file(folder: Path) -> None:
    os.mkfifo(folder / "pipe.sbatch")
    with pytest.raises(ComponentLoadError) as caught:
        describe("pipe.sbatch")
    assert caught.value.reason == "it is a named pipe, not a regular file"


def test_scripts_are_listed_and_found(folder: Path) -> None:
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


@pytest.mark.parametrize("word", ["hetjob", "packjob"])
def test_a_heterogeneous_script_keeps_its_options(word: str, folder: Path) -> None:
    text = f"#!/bin/sh\n#SBATCH -n 1\n#SBATCH {word}\n#SBATCH -n 2\nsrun hostname\n"
    assert SbatchScript(Path("x"), text).options == {"ntasks": "1"}
    (folder / "het.sbatch").write_text(text)
    doc = describe("het.sbatch")
    assert [parameter.name for parameter in doc.parameters] == ["args"]
    assert ["heterogeneous" in finding.description for finding in doc.findings] == [True]


def test_the_command_line_and_back(folder: Path) -> None:
    texts = parse_command_line("train.sbatch", ["--time", "2:00:00", "--", "a.yaml", "2e-5", "x", "-y"])
    assert texts == {"time": "2:00:00", "config": "a.yaml", "LR": "2e-5", "arg3": "x", "args": ["-y"]}
    assert parse_command_line("train.sbatch", to_command_line("train.sbatch", texts)) == texts


def test_what_differs_between_two_scripts() -> None:
    assert differing_lines("a\nb\nc\n", "a\nB\nc\nd\n") == [(2, "b", "B"), (4, "", "d")]
    assert differing_lines("a\n" * 300, "b\n" + "a\n" * 300) == [(1, "", "b")]
    assert len(differing_lines("a\n" * 60, "b\n" * 60)) == 50
    before = [f"{number}\n" for number in range(2000)]
    assert differing_lines("".join(before), "".join(before[:-1])) == [(2000, "1999", "")]
    before.append("more")
    assert differing_lines("".join(before), "0\n") == [(1, "2,001 lines", "1 lines, others than before")]
    assert differing_lines("".join(before), "".join(before)) == []


def test_what_is_submitted_beside_the_lines_of_a_script() -> None:
    text = "#!/bin/sh\n#SBATCH -p a --nodes=4\n#SBATCH --nodes=2\nLR=${LR:-1}\n#SBATCH --time=1\nsrun a ${TOKENS}\n"
    changed = {"partition": "b", "nodes": "8", "time": "2", "LR": "3", "TOKEN": "4", "args": "5"}
    found = lines_with_changes(text, changed)
    assert [(line.number, line.given) for line in found] == [
        # The last of several lines counts, none behind the first command; a name is a whole word.
        (1, ()), (2, ("partition=b",)), (3, ("nodes=8",)), (0, ("time=2",)), (4, ("LR=3",)), (5, ()), (6, ()),
    ]  # fmt: skip
    assert [line.text for line in found if line.number] == text.splitlines()


def test_added_options_stand_behind_the_first_line_of_a_script_without_any() -> None:
    found = lines_with_changes("#!/bin/sh\nrun ${2} $1 $12\nrun $1\n", {"time": "2", "arg1": "x", "arg2": "y"})
    assert found == [
        (1, "#!/bin/sh", ()), (0, "", ("time=2",)), (2, "run ${2} $1 $12", ("arg1=x", "arg2=y")), (3, "run $1", ()),
    ]  # fmt: skip


def test_a_python_file_without_a_function_is_no_script(folder: Path) -> None:
    (folder / "train.py").write_text("#!/usr/bin/env python\n")
    with pytest.raises(ComponentNotFoundException, match="There is no component"):
        describe("./train.py")


INPUTS = """#!/bin/bash
#SBATCH --time=10
while getopts ":c:n:v" opt; do
  case $opt in
    c) CONFIG=$OPTARG ;;
    n)
      count="${OPTARG}" ;;
    v) set -x ;;
  esac
done
shift $((OPTIND - 1))
LR=${LR:-1e-5}
run=done
: "${HF_TOKEN:?put your token there}" ${run:-x} ${SLURM_JOB_ID:-0} ${HOME:-/}  # ${NOT:-read}
python train.py --lr "$LR" --out "${OUT:-$HOME/out}" "$@"
"""


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    (tmp_path / "train.sbatch").write_text(INPUTS)
    return tmp_path


def test_variables_and_options_of_a_script_are_parameters(inputs: Path) -> None:
    found = {each.name: each for each in describe("train.sbatch").parameters}
    told = {name: found[name].default for name in ("CONFIG", "count", "opt_v", "LR", "OUT")}
    assert told == {"CONFIG": None, "count": None, "opt_v": False, "LR": "1e-5", "OUT": ""}
    assert found["HF_TOKEN"].required
    assert found["HF_TOKEN"].help == "put your token there"
    assert found["LR"].help == "The variable LR of the script's environment"
    assert not {"run", "SLURM_JOB_ID", "HOME", "NOT", "OPTIND"} & found.keys()


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("for i in 1 2; do run ${i:-x}; done", []),
        ("while read -r name # a line\ndo run ${name:-x}; done", []),
        ("x=1  # ${NOT:-1}\nrun ${x:-1}", []),
        ('run ${LR:-"1e-5"} ${TO=out}', [("LR", "1e-5", ""), ("TO", "out", "")]),
        ("run ${LR:-1} ${LR:-2}\nLR=3", [("LR", "1", "")]),
        ('run ${OUT:?"say where"} ${A?}', [("OUT", None, "say where"), ("A", None, "")]),
    ],
)
def test_variables_of_a_script(body: str, found: list[tuple[str, str | None, str]]) -> None:
    variables = SbatchScript(Path("x"), f"#!/bin/sh\n{body}\n").variables
    assert [(variable.name, variable.default, variable.message) for variable in variables] == found


def test_two_letters_of_one_variable_have_names_of_their_own() -> None:
    text = "while getopts a:b:c: opt; do\na) x=$OPTARG ;;\nb) x=$OPTARG ;;\ndone\nc)\n"
    assert [option.name for option in SbatchScript(Path("x"), text).letter_options] == ["x", "opt_b", "opt_c"]


def test_what_becomes_of_variables_and_options(inputs: Path) -> None:
    values = {"CONFIG": "a b.yaml", "opt_v": "true", "LR": "2e-5", "OUT": "", "HF_TOKEN": "x,y=z", "args": ["more"]}
    made = script_of(build_app("train.sbatch", values).roles)
    assert made is not None
    assert made.args == ("-c", "a b.yaml", "-v", "more")
    again = script_of(build_app("train.sbatch", {**values, "CONFIG": "", "count": "3", "opt_v": "false"}).roles)
    assert again is not None
    assert again.args == ("-n", "3", "more")
    assert made.env == {"LR": "2e-5", "HF_TOKEN": "x,y=z"}


def test_a_variable_that_has_to_be_given(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="HF_TOKEN"):
        build_app("train.sbatch", {})
    # What is set here travels anyway.
    monkeypatch.setenv("HF_TOKEN", "secret")
    made = script_of(build_app("train.sbatch", {}).roles)
    assert made is not None
    assert made.env == {}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (': "${1:?say which config}"', ("arg1", True, "say which config")),
        (': ${1:?"say which"}', ("arg1", True, "say which")),
        ('config="${1:?say which}"', ("config", True, "say which")),
        ('config=${1?"say which"}', ("config", True, "say which")),
        ('config="${1:?}"', ("config", True, "The script's argument $1")),
        ("config=$1", ("config", True, "The script's argument $1")),
        ('config="${1:-a.yaml}"', ("config", False, "The script's argument $1")),
    ],
)
def test_the_message_of_a_positional_argument(
    line: str, told: tuple[str, bool, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.sbatch").write_text(f"#!/bin/sh\n{line}\nrun $1 ${{2:-fast}}\n")
    first, second, *_ = describe("train.sbatch").parameters
    assert (first.name, first.required, first.help) == told
    assert (second.name, second.default, second.help) == ("arg2", "", "The script's argument $2")


@pytest.mark.parametrize(
    ("value", "default"),
    [
        *(("$1", None), ("${1}", None), ("${1:-a}", "a"), ("${1-a}", "a"), ("${1:=a}", "a"), ("${1=a}", "a")),
        *(("${1:-}", ""), ('${1:-"a b"}', "a b"), ("${1:?a}", None)),
    ],
)
def test_the_default_of_a_positional_argument(value: str, default: str | None) -> None:
    for line in (f"a={value}", f'export a="{value}"  # what', f"declare -x a={value}; echo"):
        (found,) = SbatchScript(Path("x"), f"#!/bin/sh\n{line}\n").positionals
        assert (found.number, found.name, found.default) == (1, "a", default)


@pytest.mark.parametrize(
    ("lines", "comment"),
    [
        ("# Trains.\n#\n# On one node.\necho\n# Not this.\n", "Trains.\n\nOn one node."),
        ("\n#SBATCH -n 1\n\n# Trains.\n#SBATCH -N 1\n# Not this.\n", "Trains."),
        ("# Trains.\n\n# Not this.\n", "Trains."),
        ("echo\n# Not this.\n", ""),
    ],
)
def test_the_comment_of_a_script(lines: str, comment: str) -> None:
    assert SbatchScript(Path("x"), f"#!/bin/sh\n{lines}").comment == comment


def test_the_types_of_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    directives = (
        "#SBATCH -p a --hold --exclusive --nodes=2 --open-mode=append --signal=9 --nice=2 --kill-on-invalid-dep=x"
    )
    body = "while getopts c:v opt; do :; done\nshift\nrun ${LR:-1} $@"
    (tmp_path / "train.sbatch").write_text(f"#!/bin/sh\n{directives}\n{body}\n")
    (tmp_path / "plain.sbatch").write_text("#!/bin/sh\n#SBATCH --ntasks=many\nrun $1\n")
    each = [each for name in ("plain", "train") for each in describe(f"{name}.sbatch").parameters]
    found = {parameter.name: (parameter.type, parameter.form) for parameter in each}
    text, option = ValueType("str", "str"), ValueType("str", "str", optional=True)
    whole, flag = ValueType("int", "int", optional=True), ValueType("bool", "bool", optional=True)
    assert found.items() >= {
        "arg1": (text, ""), "args": (text, ""), "LR": (text, ""), "opt_c": (option, ""),
        "opt_v": (ValueType("bool", "bool"), ""), "partition": (option, ""), "hold": (flag, ""), "nodes": (option, ""),
        "exclusive": (replace(option, choices=("yes", "user", "mcs", "topo", "")), ""),
        "open-mode": (replace(option, choices=("append", "truncate", "")), ""), "kill-on-invalid-dep": (option, ""),
        "nice": (option, ""), "ntasks": (whole, ""), "gpus": (option, ""), "time": (option, "time"),
        "mem": (option, "memory"),
    }.items()  # fmt: skip
    others = {"arg1": "positional", "args": "var_positional"}
    assert {parameter.kind for parameter in each if parameter.name not in others} == {"keyword_only"}
    assert {parameter.name: parameter.kind for parameter in each if parameter.name in others} == others
    helps = [(parameter.name, parameter.help) for parameter in each]
    assert ("open-mode", "What becomes of that file when the job is requeued") in helps
    assert ("nice", "sbatch(1) explains it") in helps
    assert [words for name, words in helps if name == "args"] == [
        *("Further arguments of the script", "The script's arguments"),
    ]
    # What is no number in the script stays as it is.
    kept = describe("plain.sbatch").parameter("ntasks")
    assert kept is not None
    assert (kept.type, kept.default) == (option, "many")


def test_what_is_said_of_odd_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.sbatch").write_text("#!/bin/sh\n#SBATCH --of-the-future=1 --nodes=2 --also\nrun\n")
    (tmp_path / "b.sbatch").write_text("#!/bin/sh\n#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH -n 2\nrun\n")
    (unknown,), (het,) = (describe(f"{name}.sbatch").findings for name in ("a", "b"))
    assert unknown.description == "options that sbatch may not know: of-the-future, also"
    assert het.description.startswith("a heterogeneous job")
    for found in (unknown, het):
        assert (found.name, found.line, found.char, found.severity) == ("sbatch", 1, 0, "warning")


def test_the_options_of_sbatch() -> None:
    assert OPTIONS["gres"] == SbatchOption("gres", help='Generic resources of each node, such as "gpu:a100:4"')
    assert OPTIONS["core-spec"] == SbatchOption("core-spec", "S", "int")
    assert OPTIONS["wait-all-nodes"] == SbatchOption("wait-all-nodes", choices=("0", "1"))
    assert "".join(sorted(LETTERS)) == "ABCDFGHJLMNOQSWabcdeikmnopqstvwx"
    assert all(LETTERS[letter].letter == letter for letter in LETTERS)


def script(body: str) -> SbatchScript:
    return SbatchScript(Path("x"), f"#!/bin/bash\n{body}\n")


@pytest.mark.parametrize(
    "body",
    [
        # Escaped, quoted, or of a document whose end is quoted: the shell of the script reads none of it.
        'srun bash -c "run \\${1:-x} \\$2 \\${LR:-1}"',
        "srun bash -c '\n  it $1 ${LR:-1}\n'",
        "cat > run.sh <<'EOF'\nrun $1 ${LR:-1}\nEOF",
        'cat > run.sh << "EOF"\nrun $1 ${LR:-1}\nEOF',
        "cat <<-\\EOF\n\trun $1 ${LR:-1}\n\tEOF",
        "cat << EOF\nrun \\$1 \\${LR:-1}\nshift\nEOF",
        "OK=$(python - <<'PY'\nprint(f'{1}$1${LR:-1}')\nPY\n)",
        "# don't read $1 ${LR:-1}\necho \"it's\"  # nor $2",
        "echo $'it\\'s $1 ${LR:-1}'",
        "echo $((1 << 2)) ${#list[@]} ${list[0]} $# $@ ${name%.*}",
    ],
)
def test_what_the_shell_does_not_read_is_no_input(body: str) -> None:
    found = script(body)
    assert (found.positionals, found.variables) == ([], [])


@pytest.mark.parametrize(
    ("body", "names", "variables"),
    [
        ("cat << EOF > node.sh\nrun $1 ${LR:-1}\nEOF\nrun ${TO:-x}", ["arg1"], {"LR": "1", "TO": "x"}),
        ("cat <<A <<'B'\n${X:-1}\nA\n${Y:-1}\nB\nrun $2", ["arg1", "arg2"], {"X": "1"}),
        ("cat <<< ${X:-1}\nrun $1", ["arg1"], {"X": "1"}),
        ("echo don\\'t $1 ${X:-1}", ["arg1"], {"X": "1"}),
        ('x=$(dirname "${OUT:-/tmp}") `echo ${Y:-2}`', [], {"OUT": "/tmp", "Y": "2"}),
        ('a=$1 b=$2; c="$3"', ["a", "b", "c"], {}),
        ("[ -z $1 ] && a=no || a=$1", ["a"], {}),
    ],
)
def test_what_the_shell_reads_is_an_input(body: str, names: list[str], variables: dict[str, str]) -> None:
    found = script(body)
    assert [one.name for one in found.positionals] == names
    assert {each.name: each.default for each in found.variables} == variables


def test_an_argument_that_is_named_in_one_case_only_may_be_left_out() -> None:
    assert [one.default for one in script("[ -z $1 ] && a=no || a=$1").positionals] == [""]


@pytest.mark.parametrize(
    ("read", "default"),
    [
        ("${X:-'a b'}", "a b"), ('${X:-"a b"}', "a b"), ('"${X:-"a b"}"', "a b"), ("\"${X:-'a'}\"", "'a'"),
        ("${X:-it\\'s}", "it's"), ('${X:-"say \\"so\\""}', 'say "so"'), ("${X:-'$HOME'}", "$HOME"),
        ("${X:-$HOME}", ""), ('${X:-"$(date)"}', ""), ("${X:-a} b", "a"), ("${X:-{a,b\\}}", "{a,b}"),
        ('${X:-"{{ a }}"}', "{{ a }}"), ("${X:-}", ""), ("${X:-a${Y:-b}}", ""),
    ],
)  # fmt: skip
def test_a_default_is_without_its_quotes(read: str, default: str) -> None:
    (found, *_) = script(f"run {read}").variables
    assert (found.name, found.default) == ("X", default)
    # So is that of an argument.
    (argument,) = script(f"a={read.replace('X', '1')}").positionals
    assert argument.default == default


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ('if [ "$M" = fast ]; then\n  N=8\nfi\n: "${N:=32}"', ["N"]),
        ("[ -n x ] && N=8\nrun ${N:-32}", ["N"]),
        ("case $M in\n  a) N=8 ;;\nesac\nrun ${N:-32}", ["N"]),
        ("while true; do N=8; done\nrun ${N:-32}", ["N"]),
        ("if true; then N=8; run ${N:-32}; fi", []),
        ("if true; then echo; fi\nN=8\nrun ${N:-32}", []),
        ("N=${M:-1}\nrun ${N:-2}", ["M"]),
        ("export A=1 N=2\nrun ${N:-3}", []),
        ("echo fi done\nN=1\nrun ${N:-2}", []),
    ],
)
def test_a_variable_that_is_set_for_certain_is_none(body: str, names: list[str]) -> None:
    assert [each.name for each in script(body).variables] == names


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("--tasks-per-node=4", {"ntasks-per-node": "4"}),
        ("--part gpu --cpus-per-t=2", {"partition": "gpu", "cpus-per-task": "2"}),
        # Two options begin so.
        ("--cpus-per=2", {"cpus-per": "2"}),
        ("--mail-type=BEGIN --mail-type END,BEGIN", {"mail-type": "BEGIN,END"}),
        ("--mail-type=BEGIN\n#SBATCH --mail-type=END,BEGIN", {"mail-type": "BEGIN,END"}),
        ("--no-kill=off --consolidate-segments --spread-segments", {
            "no-kill": "off", "consolidate-segments": "true", "spread-segments": "true"}),
        ("--resources flat:2 --mem-update=20@10 --container-type oci", {
            "resources": "flat:2", "mem-update": "20@10", "container-type": "oci"}),
    ],
)  # fmt: skip
def test_names_of_options_as_sbatch_takes_them(line: str, options: dict[str, str]) -> None:
    assert script(f"#SBATCH {line}").options == options


def test_sbatch_only_adds_to_what_a_script_mails_on(tmp_path: Path) -> None:
    path = tmp_path / "x.sbatch"
    path.write_text("#!/bin/sh\n#SBATCH -J x --mail-type=BEGIN\n#SBATCH --mail-type=FAIL\nrun\n")
    made = script_of(build_app(str(path), {"mail-type": "BEGIN,FAIL,END"}).roles)
    assert made is not None
    assert made.options == ("--mail-type=BEGIN,FAIL,END",)
    with pytest.raises(ArgumentError, match="the script mails on FAIL, too, and sbatch only adds to that"):
        build_app(str(path), {"mail-type": "BEGIN"})


@pytest.mark.parametrize(
    ("head", "comment"),
    [
        ("##SBATCH --qos=x\n# Trains.\n#SBATCH -N 1", "Trains."),
        ("# Trains.\n##SBATCH --qos=x\n# Not this.", "Trains."),
        ("# SBATCH -N 1\n#### Trains. ####", "Trains."),
        ("######\n# Trains.\n######", "Trains."),
    ],
)
def test_options_that_are_switched_off_are_no_comment(head: str, comment: str) -> None:
    assert script(head).comment == comment


def test_a_mention_in_a_comment_is_not_where_a_variable_is_read() -> None:
    found = lines_with_changes("#!/bin/sh\n# $LR and $1\nrun ${LR:-1} $1\n", {"LR": "2", "arg1": "x"})
    assert [line.given for line in found] == [(), (), ("LR=2", "arg1=x")]


@pytest.mark.parametrize("part", ["$(", "${A:-", '"$(', '"`', "`", "'", '"', "((", "<<A\n", "\\"])
def test_a_script_that_is_nested_without_end(tmp_path: Path, part: str) -> None:
    script = tmp_path / "deep.sbatch"
    script.write_text("#!/bin/bash\n#SBATCH --time=5\nLR=${LR:-1}\n" + part * 20_000)
    names = [parameter.name for parameter in describe(str(script)).parameters]
    assert {"LR", "time"} < {*names}
