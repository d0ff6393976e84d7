"""The builtin components: what they give, and what their programs do."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.tables import toml_table
from support.waiting import PATIENCE

from torchx_tui.components.build import build_app
from torchx_tui.components.finder import describe, get_builtin_source, read_component
from torchx_tui.components.programs import program_text
from torchx_tui.specs.roles import Role, macros

ROWS = toml_table(Path(__file__).with_name("builtins.toml"))


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def role_of(component: str, **texts: str | list[str]) -> Role:
    return build_app(component, texts).roles[0]


def run(role: Role, number: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
    applied = macros.Values("", "app", str(number)).apply(role)
    # The interpreter of the tests stands for the `python3` of the job's machine.
    argv = [sys.executable if applied.entrypoint == "python3" else applied.entrypoint, *applied.args]
    variables = {**os.environ, **applied.env, **env}
    return subprocess.run(argv, capture_output=True, text=True, env=variables, timeout=PATIENCE, check=False)


@pytest.mark.parametrize(("component", "texts", "names", "entrypoint", "replicas", "resource"), ROWS["defaults"])
def test_defaults(component, texts, names, entrypoint, replicas, resource):
    app = build_app(component, texts)
    (role,) = app.roles
    assert ([app.name, role.name], role.entrypoint) == (names, entrypoint)
    assert (role.num_replicas, role.max_retries, role.mounts, app.metadata) == (replicas, 0, [], {})
    assert [role.resource.cpu, role.resource.gpu, role.resource.memMB] == resource


@pytest.mark.parametrize("row", ROWS["defaults"], ids=lambda row: row[0])
def test_printed_builtin_makes_the_same_app(row, tmp_path):
    name, texts = row[:2]
    (tmp_path / "copied.py").write_text(get_builtin_source(name))
    copied = f"{tmp_path / 'copied.py'}:{name.partition('.')[2]}"
    assert read_component(copied).findings == ()
    assert build_app(copied, texts) == build_app(name, texts)


def test_source_of_a_file_that_is_not_python_text(tmp_path):
    (tmp_path / "jobs.py").write_bytes(b"# -*- coding: latin-1 -*-\ndef f() -> AppDef: return '\xe9'\n")
    assert get_builtin_source(f"{tmp_path / 'jobs.py'}:f").endswith("return '\ufffd'\n")


def test_sh_quotes_each_argument():
    role = role_of("utils.sh", args=["printf", "%s|", "a b", "$HOME", ";"])
    assert role.entrypoint == "sh"
    assert run(role).stdout == "a b|$HOME|;|"


@pytest.mark.parametrize(("component", "texts", "expected"), ROWS["roles"])
def test_roles(component, texts, expected):
    app = build_app(component, texts)
    (role,) = app.roles
    fields = {name: value for name, value in expected.items() if hasattr(role, name)}
    assert {name: getattr(role, name) for name in fields} == fields
    assert expected.get("variables", {}).items() <= role.env.items()
    assert expected.get("line", "") in role.args[-1]
    assert expected.get("app", app.name) == app.name


def test_torchrun_on_one_node():
    app = build_app("dist.torchrun", {"script": "jobs/train.py", "j": "1x2", "script_args": ["--lr", "0.1"]})
    (role,) = app.roles
    assert (app.name, role.name, role.num_replicas, role.min_replicas, role.port_map) == (
        *("train", "train", 1, 1, {"c10d": 29500}),
    )
    line = (
        "torchrun --rdzv_backend c10d --rdzv_endpoint localhost:0 --rdzv_id '${app_id}' --nnodes 1 --nproc_per_node 2"
        " --tee 3 --role '' jobs/train.py --lr 0.1"
    )
    assert role.args == ["-c", line]
    assert role.env["TORCHX_TRACKING_EXPERIMENT_NAME"] == "default-experiment"
    assert role.env["TORCHX_TRACKING_RUN_NAME"] == "train"


@pytest.mark.parametrize(("env", "host"), [({"FIRST_HOST": "node-0"}, "node-0"), ({}, "localhost")])
def test_torchrun_meets_at_the_first_node(tmp_path, env, host):
    role = role_of("dist.torchrun", m="a.b", j="1:3x8", rdzv_conf="join_timeout=9")
    assert (role.num_replicas, role.min_replicas, role.name) == (3, 1, "b")
    fake = tmp_path / "torchrun"
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(0o755)
    applied = macros.Values("", "app-1", "0", rank0_env="FIRST_HOST").apply(role)
    argv, environ = [applied.entrypoint, *applied.args], {"PATH": f"{tmp_path}:{os.environ['PATH']}", **env}
    words = subprocess.run(argv, capture_output=True, text=True, env=environ, check=True).stdout
    assert f" --rdzv_endpoint {host}:29500 --rdzv_id app-1 --nnodes 1:3 " in words
    assert " --rdzv_conf join_timeout=9 " in words
    assert words.endswith(" -m a.b\n")


def test_deprecated_components():
    with pytest.warns(DeprecationWarning, match=r"use dist\.torchrun"):
        build_app("dist.ddp", {"script": "a.py"})
    ddp, spmd, usual = (
        {one.name: one.default for one in describe(f"dist.{name}").parameters} for name in ("ddp", "spmd", "torchrun")
    )
    assert ddp == usual
    assert spmd.items() <= {**usual, "args": (), "h": "gpu.small", "j": "1x1"}.items()


def test_log_level_of_the_launch(monkeypatch):
    monkeypatch.delenv("LOGLEVEL", raising=False)
    assert role_of("dist.torchrun", script="a.py").env["LOGLEVEL"] == "WARNING"
    monkeypatch.setenv("LOGLEVEL", "DEBUG")
    assert role_of("dist.torchrun", script="a.py").env["LOGLEVEL"] == "DEBUG"
    assert role_of("dist.torchrun", script="a.py", env="LOGLEVEL=INFO").env["LOGLEVEL"] == "INFO"


def test_booth(tmp_path):
    done = run(role_of("utils.booth", x1="1", x2="3", trial_idx="7", tracker_base=str(tmp_path / "a" / "out")))
    assert done.stdout == "booth(1, 3) = 0\n"
    assert json.loads((tmp_path / "a" / "out" / "7").read_text()) == {"booth_eval": 0.0}
    # Further trials, beside the first, and where neither term is 0.
    for number, base in enumerate((f"file://{tmp_path}/a/out", f"{tmp_path}/a/out")):
        done = run(role_of("utils.booth", x1="2", x2="5", trial_idx=str(number), tracker_base=base))
        assert done.stdout == "booth(2, 5) = 41\n"
        assert json.loads((tmp_path / "a" / "out" / str(number)).read_text()) == {"booth_eval": 41.0}


def test_copy(tmp_path):
    (tmp_path / "a").write_bytes(b"\0data")
    assert run(role_of("utils.copy", src=str(tmp_path / "a"), dst=f"file://{tmp_path}/b")).returncode == 0
    for target in (tmp_path / "new" / "b", tmp_path / "new" / "c"):
        done = run(role_of("utils.copy", src=f"file://{tmp_path}/b", dst=str(target)))
        assert done.stdout == f"copied file://{tmp_path}/b to {target}\n"
        assert target.read_bytes() == b"\0data"


@pytest.mark.parametrize(
    ("program", "names"), [("booth.py", "--x1, --x2, --tracker_base"), ("copy.py", "--src, --dst")]
)
def test_programs_require_their_arguments(program, names):
    argv = [sys.executable, "-c", program_text(program)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.rpartition(": ")[2]) == (2, f"{names}\n")


def demo(**texts: str) -> Role:
    return role_of("demo.train", steps="12", step_seconds="0.001", **texts)


def test_demo_is_one_rank_of_twenty_steps():
    done = run(role_of("demo.train", step_seconds="0", num_replicas="1"))
    assert done.returncode == 0, done.stderr
    first, *steps, last = done.stdout.splitlines()
    assert first.startswith("\x1b[1mrank 0 of 1\x1b[0m pid ")
    assert steps[0].startswith("step 1/20 loss \x1b[32m")
    assert [line.split()[1] for line in steps] == [f"{number}/20" for number in range(1, 21)]
    assert last == "\x1b[32mdone\x1b[0m after 20 steps"
    bars = done.stderr.replace("\r", "\n").splitlines()
    assert [line for line in bars if line.startswith("loading data")][0::9] == [
        "loading data  10% [###...........................] 1/10",
        "loading data 100% [##############################] 10/10",
    ]
    assert len([line for line in bars if line.startswith("saving")]) == 5
    warned = [line.split("waited ")[1].split()[0] for line in bars if "\x1b[33mWARNING\x1b[0m " in line]
    assert (len(warned), all(20 <= int(waited) <= 90 for waited in warned)) == (2, True)


def test_demo_sleeps(monkeypatch):
    naps: list[float] = []
    here, really_sleep = threading.get_ident(), time.sleep

    def sleep(seconds: float) -> None:
        # Threads of other tests may sleep meanwhile.
        naps.append(seconds) if threading.get_ident() == here else really_sleep(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr("sys.argv", ["demo.train", "--steps", "3", "--step_seconds", "1"])
    runpy.run_module("torchx_tui.components.programs.demo", run_name="__main__")
    assert naps == [0.2] * 10 + [1.0] * 3 + [0.2] * 5


def test_demo_fails(tmp_path):
    role = demo(fail_at_step="3", fail_rank="1")
    error_file = tmp_path / "error.json"
    assert run(role, 0, TORCHELASTIC_ERROR_FILE=str(error_file)).returncode == 0
    assert not error_file.exists()
    done = run(role, 1, TORCHELASTIC_ERROR_FILE=str(error_file))
    assert done.returncode == 1
    assert "step 2/12" in done.stdout
    assert "step 3/12" not in done.stdout
    assert "Traceback (most recent call last):" in done.stderr
    assert done.stderr.count('File "<string>"') >= 4
    assert done.stderr.rstrip().splitlines()[-1].startswith("FloatingPointError: loss is nan at step 3")
    message = json.loads(error_file.read_text())["message"]
    assert message["message"].startswith("FloatingPointError: loss is nan at step 3")
    assert "train_step" in message["extraInfo"].pop("py_callstack")
    assert message["extraInfo"].pop("timestamp").isdigit()
    assert message["extraInfo"] == {}


def test_demo_flushes_each_line():
    applied = macros.Values("", "app", "0").apply(role_of("demo.train", step_seconds="0.2"))
    process = subprocess.Popen(
        [sys.executable, *applied.args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(2)]
    process.kill()
    # Kept back, all lines would come together at the end.
    rest, _ = process.communicate()
    assert lines[1].startswith("step 1/20")
    assert "step 20/20" not in rest
