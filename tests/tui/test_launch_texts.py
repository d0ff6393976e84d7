"""Texts of the Launch screen: commands, partitions, what is shipped, the rows and the documentation of components."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.canned import NOW

from torchx_tui.backends.history.launch_record import LaunchRecord
from torchx_tui.backends.types import PartitionStatus, WorkspaceListing
from torchx_tui.components.model import ComponentSummary, Parameter, ValueType
from torchx_tui.components.sbatch_script import ScriptLine
from torchx_tui.guest.interpreter import Interpreter
from torchx_tui.settings.config import LaunchSettings
from torchx_tui.specs.roles import AppDef
from torchx_tui.specs.status import AppState
from torchx_tui.tui.format import clock
from torchx_tui.tui.launch import preview
from torchx_tui.tui.launch.commands import launch_command, run_command
from torchx_tui.tui.launch.component_docs import last_launch_text
from torchx_tui.tui.launch.component_list import LastLaunch
from torchx_tui.tui.launch.component_picker import launch_text, option_text
from torchx_tui.tui.launch.field_input import first_path
from torchx_tui.tui.launch.partitions import PartitionsFound, partitions_text
from torchx_tui.tui.launch.plan import LaunchPlan
from torchx_tui.tui.launch.preview import diff_text, script_text, workspace_text
from torchx_tui.tui.launch.work import fold_added, request_diff
from torchx_tui.tui.ui.glyphs import UNICODE
from torchx_tui.tui.ui.palette import Text

SECRET = {"context": "c", "api_token": "abc"}
CHANGED = {"r": {"image": "x", "env": "TOKEN=abc"}}


@pytest.mark.parametrize(
    ("component", "scheduler", "cfg", "more", "command"),
    [
        ("utils.echo", "local_cwd", {}, {}, "torchx-tui run --scheduler local_cwd utils.echo"),
        ("demo.train", "local_cwd", {}, {}, "torchx-tui run --scheduler local_cwd demo.train"),
        ("./a.sbatch", "slurm", {}, {}, "torchx-tui run --scheduler slurm ./a.sbatch"),
        ("utils.echo", "slurm@there", {}, {}, "torchx-tui run --scheduler slurm@there utils.echo"),
        (
            "utils.echo", "kubernetes", SECRET, {},
            "torchx-tui run --scheduler kubernetes --scheduler_args 'context=c,api_token=********' utils.echo",
        ),
        (
            "utils.echo", "local_cwd", {"log_dir": "/x"}, {"workspace": "file:///w"},
            "torchx-tui run --scheduler local_cwd --scheduler_args log_dir=/x --workspace file:///w utils.echo",
        ),
        (
            "utils.echo", "local_cwd", {}, {"overrides": CHANGED},
            "torchx-tui run --scheduler local_cwd --set r.image=x --set 'r.env=TOKEN=********' utils.echo",
        ),
        (
            "utils.echo", "local_cwd", {}, {"ignores_config": True},
            "torchx-tui run --scheduler local_cwd --ignore-config utils.echo",
        ),
    ],
)  # fmt: skip
def test_the_command_that_does_the_same(component, scheduler, cfg, more, command):
    parameters = [Parameter("msg", "keyword_only", ValueType("str", "str"), "")]
    plan = replace(LaunchPlan(component, {"msg": "a b"}, {}, scheduler, cfg), **more)
    assert shlex.join(run_command(plan, parameters)) == f"{command} --msg 'a b'"


@pytest.mark.parametrize(
    ("has_torchx", "wants_torchx", "component", "program"),
    [
        (True, True, "utils.echo", "torchx"),
        (True, True, "demo.train", "torchx-tui"),
        (True, True, "./a.sbatch", "torchx-tui"),
        (True, False, "utils.echo", "torchx-tui"),
        (False, True, "utils.echo", "torchx-tui"),
    ],
)
def test_torchx_is_named_where_project_has_it(has_torchx, wants_torchx, component, program, tmp_path, monkeypatch):
    """Programs of the project are looked at and not run."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", *(["torchx"] if has_torchx else [])):
        (programs / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/run\n")
        (programs / name).chmod(0o755)
    (tmp_path / "a.sbatch").write_text("#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)
    record = LaunchRecord("1", NOW, "local_cwd", "torchx", {}, component=component)
    assert launch_command(record, LaunchSettings(copy_torchx_command=wants_torchx))[0] == program
    assert not (tmp_path / "run").exists()


def test_a_job_of_no_component_has_no_command():
    plan = LaunchPlan("", {}, {}, "local_cwd", {}, base=AppDef("train", []))
    assert run_command(plan, []) == ["#", "train", "was not made by a component that is known here"]
    assert (plan.name, plan.interpreter()) == ("train", "")
    assert plan.made_app() is plan.base


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        (None, ""),
        (Interpreter(sys.executable, "VIRTUAL_ENV"), ""),
        (Interpreter("/venv/bin/python", "VIRTUAL_ENV"), "/venv/bin/python (VIRTUAL_ENV)"),
    ],
)
def test_the_interpreter_is_named_where_it_is_not_our_own(monkeypatch, chosen, shown):
    monkeypatch.setattr("torchx_tui.components.build.interpreter_of", lambda component: chosen)
    assert LaunchPlan("utils.echo", {}, {}, "local_cwd", {}).interpreter() == shown


def test_what_would_be_shipped(monkeypatch):
    monkeypatch.setattr(preview, "MAX_FILES", 2)
    assert workspace_text(None, "it is \x1b[31mgone").plain == "it is gone"
    assert workspace_text(None, "").plain == "Reading the workspace"
    files = [("small", 10), ("large", 4096), ("b", 20), ("a", 20)]
    assert workspace_text(WorkspaceListing(files), "").plain.splitlines() == [
        "4 files, 4.1 KB", "no ignore file: everything is shipped", "", "    4.1 KB  large", "      20 B  a",
        "and 2 smaller ones",
    ]  # fmt: skip
    listing = WorkspaceListing(files[:2], {"x": 2, "y": 1200}, [".gitignore"], is_whole=False)
    assert workspace_text(listing, "").plain.splitlines() == [
        "2 files, 4.1 KB and more: not all files were counted", "by .gitignore", "   1,200 left out by y",
        "       2 left out by x", "", "    4.1 KB  large", "      10 B  small",
    ]  # fmt: skip


def test_the_lines_of_a_script(monkeypatch):
    monkeypatch.setattr(preview, "MAX_SCRIPT_LINES", 3)
    changed, added = ScriptLine(2, "#SBATCH --time=10", ("time=20",)), ScriptLine(0, "", ("a=1", "b=2"))
    lines = [ScriptLine(1, "#!/bin/sh"), changed, added, ScriptLine(3, "srun")]
    shown = ["   1   #!/bin/sh", "   2 ≠ #SBATCH --time=10   time=20", "     + a=1 b=2"]
    end = ["", "The file itself is not changed: the changes are passed to sbatch."]
    assert script_text(lines, UNICODE).plain.splitlines() == [*shown, "and 1 more line", *end]
    assert script_text(lines[:3], UNICODE).plain.splitlines() == [*shown, *end]


def test_the_difference_to_the_last_launch():
    assert diff_text([], False).plain == "This component has not been launched here before"
    assert diff_text([], True).plain == "Same as the last launch"
    assert diff_text([], False, []).plain == "Same as the job that ran"
    assert diff_text([], False, ["a is lost"]).plain == "a is lost\nOtherwise the same"
    assert diff_text([("n", "1", "2")], False, [], ["-n: 1", "+n: 2"]).plain == (
        "n\n  - 1\n  + 2\n\nIn the request:\n  -n: 1\n  +n: 2\n"
    )
    assert diff_text([("lr", "0.1", ""), ("n", "", "2")], True).plain == "lr\n  - 0.1\n  + none\nn\n  - none\n  + 2\n"


def test_partitions():
    partitions = [
        PartitionStatus({}, "main", 3, 10, 8, 16, 7200, NOW + 7200),
        PartitionStatus({}, "a-very-long-name", 0, 5, fault="not [now]"),
        PartitionStatus({}, "soon", 1, 1, start=NOW + 30),
        PartitionStatus({}, "later", 1, 1),
    ]
    assert partitions_text(None).plain == "Waiting for the backend's estimates"
    assert partitions_text(PartitionsFound([], "no \x1b[31mway", NOW)).plain == "no way"
    assert partitions_text(PartitionsFound(partitions, "", NOW)).plain.splitlines() == [
        "PARTITION      NODES    GPUS  LIMIT   STARTS",
        f"main            3/10    8/16  2h 00m  {clock(NOW + 7200, NOW)}  in 2h 00m",
        "a-very-long~     0/5       -  none    not [now]",
        "soon             1/1       -  none    now",
        "later            1/1       -  none    ",
        "",
        f"free / all, at {clock(NOW, NOW)}, for the current request",
    ]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("utils.echo", f"utils.echo{' ' * 16}mine"),
        ("a" * 24, f"{'a' * 24}  mine"),
        ("a" * 25, f"{'a' * 23}…  mine"),
        # Of a path the end is seen; such letters are two cells wide.
        ("folder/" * 6 + "x.py:job", "…/folder/folder/x.py:job  mine"),
        ("日本" * 20 + "/x", f"…{'日本' * 5}/x   mine"),
        ("日本" * 20, f"{'日本' * 5}日 …  mine"),
    ],
)
def test_a_row_of_the_picker_fits_its_width(name, row):
    shown = option_text(ComponentSummary(name, "file", Path(), 0), "", Text("mine"), 30, UNICODE)
    assert shown.plain == row
    assert shown.cell_len == 30


@pytest.mark.parametrize(
    ("state", "wide", "words"),
    [(AppState.FAILED, True, "✗ Failed   1h"), (AppState.FAILED, False, "✗   1h"), (None, True, "   1h")],
)
def test_how_the_last_launch_went(state, wide, words):
    assert launch_text(LastLaunch(NOW - 3600, state), NOW, wide, UNICODE).plain == words


@pytest.mark.parametrize(
    ("width", "fields", "words"),
    [
        (80, {}, "✗ Failed  train-zq2wmx7v5hkdfd"),
        (54, {}, "✗ Failed  train-…kdfd"),
        (49, {}, "✗ Failed  train-z…"),
        (48, {}, "✗ Failed"),
        (80, {"app_id": "", "expected_app_id": "train-1"}, "✗ Failed  train-1"),
        (80, {"app_id": ""}, "✗ Failed"),
        (80, {"state": ""}, "  train-zq2wmx7v5hkdfd"),
    ],
)
def test_how_often_a_component_was_launched(width, fields, words):
    record = LaunchRecord("1", NOW - 3600, "local_cwd", "torchx", {}, state="FAILED", app_id="train-zq2wmx7v5hkdfd")
    record = replace(record, **fields)
    text = last_launch_text([record, record], NOW, width, UNICODE).plain
    assert text == f"\nLaunched 2 times, last 1h ago: {words}\n"


def test_a_path_is_completed_by_the_first_that_begins_so(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name in (".hidden", "data/b.csv", "data/a.csv", "data.txt"):
        (tmp_path / name).touch()
    assert first_path("da") == "data/"
    assert first_path("data.") == "data.txt"
    assert first_path("data/") == "data/a.csv"
    assert first_path(f"{tmp_path}/data/b") == f"{tmp_path}/data/b.csv"
    assert first_path("~/data/") == "~/data/a.csv"
    assert first_path(".h") == ".hidden"
    assert first_path("") == "data/"
    assert (first_path("gone/"), first_path("x"), first_path("~nobody-there/")) == (None, None, None)


FOLDED = """\
args:
- |
  env:
    FOO: in a program
env:
  A: 1
  TORCHX_X: 2
  B: |-
    text
    C: 2
  TORCH_Y: |
    more
spec:
- env:
  - name: A
    value: '1'
  - name: TORCHX_B
    valueFrom: {}
  image: i
"""


def test_variables_that_are_added_are_folded():
    shown = fold_added(FOLDED, {"A", "B"})
    assert shown.splitlines() == [
        *FOLDED.splitlines()[:6],
        "  B: |-", "    text", "    C: 2", "  # 2 variables of torchx-tui not shown",
        "spec:", "- env:", "  - name: A", "    value: '1'", "  # 1 variable of torchx-tui not shown", "  image: i",
    ]  # fmt: skip
    assert fold_added(FOLDED, {"A", "B", "TORCHX_X", "TORCH_Y", "TORCHX_B"}) == FOLDED


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("a: 1\nb: 2\n", "a: 1\nb: 2\n", []),
        ("a: 1\nb: 2\nc: 3\n", "a: 1\nb: 4\nc: 3\nd: 5\n", ["-b: 2", "+b: 4", "+d: 5"]),
        (
            "# 12 bytes\nname: Job-m6z726ptsmz9gd\n",
            "# 13 bytes\nname: job-x0x0x0x0x0xx\n",
            ["-name: Job-ID", "+name: job-ID"],
        ),
        ("name: my-job-m6z726ptsmz9gd\n", "name: my-job-x0x0x0x0x0xx\n", []),
        ("name: my-job-short\n", "name: my-job-other\n", ["-name: my-job-short", "+name: my-job-other"]),
        ("a\n" * 2_001, "b\n", []),
        ("", "\n".join(map(str, range(150))), [*(f"+{k}" for k in range(100)), "and 50 more lines"]),
    ],
)
def test_lines_in_which_requests_differ(before, now, expected):
    assert request_diff(before, now, "my-job" if "my-job" in before else "Job") == expected
