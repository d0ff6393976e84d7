"""The builtin components: what they give, and what their programs do."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from support.waiting import PATIENCE

from torchx_tui.components import DEFAULT_IMAGE, build_app, describe
from torchx_tui.components.programs import program_text
from torchx_tui.specs import ArgumentError, BindMount, Role, macros

PROGRAMS = ["demo.py", "booth.py", "copy.py"]


def role_of(component: str, **texts: str | list[str]) -> Role:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return build_app(component, texts).roles[0]


def run(role: Role, number: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
    applied = macros.Values("", "app", str(number)).apply(role)
    # The interpreter of the tests stands for the `python3` of the job's machine.
    argv = [sys.executable if applied.entrypoint == "python3" else applied.entrypoint, *applied.args]
    variables = {**os.environ, **applied.env, **env}
    return subprocess.run(argv, capture_output=True, text=True, env=variables, timeout=PATIENCE, check=False)


def test_echo() -> None:
    role = role_of("utils.echo", msg="hi", num_replicas="3")
    assert (role.entrypoint, role.args, role.num_replicas, role.image) == ("echo", ["hi"], 3, DEFAULT_IMAGE)


@pytest.mark.parametrize(
    ("component", "texts", "names", "replicas", "resource"),
    [
        ("utils.echo", {}, ("echo", "echo"), 1, (1, 0, 1024)),
        ("utils.touch", {"file": "x"}, ("touch", "touch"), 1, (1, 0, 1024)),
        ("utils.sh", {}, ("sh", "sh"), 1, (1, 0, 1024)),
        ("utils.copy", {"src": "a", "dst": "b"}, ("torchx-utils-copy", "torchx-utils-copy"), 1, (1, 0, 1024)),
        ("utils.booth", {"x1": "1", "x2": "3"}, ("torchx-utils-booth", "torchx-utils-booth"), 1, (1, 0, 1024)),
        ("utils.python", {"m": "a.b"}, ("torchx_utils_python", "python"), 1, (1, 0, 1024)),
        ("utils.binary", {"entrypoint": "/bin/ls"}, ("torchx_utils_binary", "binary"), 1, (1, 0, 1024)),
        ("dist.torchrun", {"script": "a.py"}, ("a", "a"), 1, (2, 0, 1024)),
        ("dist.spmd", {"script": "a.py"}, ("a", "a"), 1, (8, 1, 32768)),
        ("demo.train", {}, ("demo-train", "trainer"), 2, (1, 0, 512)),
    ],
)
def test_what_is_asked_for_where_nothing_is_said(
    component: str, texts: dict[str, str], names: tuple[str, str], replicas: int, resource: tuple[int, int, int]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        app = build_app(component, texts)
    (role,) = app.roles
    assert (app.name, role.name) == names
    assert (role.num_replicas, role.max_retries, role.mounts, app.metadata) == (replicas, 0, [], {})
    assert (role.resource.cpu, role.resource.gpu, role.resource.memMB) == resource


def test_sh_quotes_each_argument() -> None:
    role = role_of("utils.sh", args=["printf", "%s|", "a b", "$HOME", ";"])
    assert role.entrypoint == "sh"
    assert run(role).stdout == "a b|$HOME|;|"


def test_sh_takes_mounts_environment_and_a_host() -> None:
    role = role_of("utils.sh", env="A=1", mounts="type=bind,src=/a,dst=/b,readonly", h="gpu.small", args=["ls"])
    assert role.env["A"] == "1"
    assert "LOGLEVEL" in role.env
    assert role.mounts == [BindMount("/a", "/b", True)]
    assert role.resource.gpu == 1


def test_python() -> None:
    assert role_of("utils.python", m="a.b", args=["--x"]).args == ["-m", "a.b", "--x"]
    assert role_of("utils.python", c="print(1)").args == ["-c", "print(1)"]
    assert role_of("utils.python", script="a.py").args == ["a.py"]
    assert role_of("utils.python", script="a.py").env == {}
    assert role_of("utils.python", m="a.b").env == {"HYDRA_MAIN_MODULE": "a.b"}


def test_binary_needs_no_image() -> None:
    role = role_of("utils.binary", entrypoint="/bin/ls", args=["-l"])
    assert (role.image, role.entrypoint, role.args) == ("<NONE>", "/bin/ls", ["-l"])


def test_torchrun_on_one_node() -> None:
    app = build_app("dist.torchrun", {"script": "jobs/train.py", "j": "1x2", "script_args": ["--lr", "0.1"]})
    (role,) = app.roles
    assert (app.name, role.name, role.entrypoint, role.num_replicas, role.min_replicas) == (
        "train",
        "train",
        "bash",
        1,
        1,
    )
    assert role.args == [
        "-c",
        "torchrun --rdzv_backend c10d --rdzv_endpoint localhost:0 --rdzv_id '${app_id}' --nnodes 1 --nproc_per_node 2"
        " --tee 3 --role '' jobs/train.py --lr 0.1",
    ]
    assert role.port_map == {"c10d": 29500}
    assert role.env["TORCHX_TRACKING_EXPERIMENT_NAME"] == "default-experiment"
    assert role.env["TORCHX_TRACKING_RUN_NAME"] == "train"


def test_torchrun_on_many_nodes_meets_at_the_first(tmp_path: Path) -> None:
    role = role_of("dist.torchrun", m="a.b", j="1:3x8", rdzv_conf="join_timeout=PATIENCE")
    assert (role.num_replicas, role.min_replicas, role.name) == (3, 1, "b")
    fake = tmp_path / "torchrun"
    fake.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n')
    fake.chmod(0o755)
    applied = macros.Values("", "app-1", "0", rank0_env="FIRST_HOST").apply(role)
    path = f"{tmp_path}:{os.environ['PATH']}"
    for env, host in (({"FIRST_HOST": "node-0"}, "node-0"), ({}, "localhost")):
        done = subprocess.run(
            [applied.entrypoint, *applied.args], capture_output=True, text=True, env={"PATH": path, **env}, check=True
        )
        words = done.stdout.splitlines()
        assert words[words.index("--rdzv_endpoint") + 1] == f"{host}:29500"
        assert words[words.index("--rdzv_id") + 1] == "app-1"
        assert words[words.index("--nnodes") + 1] == "1:3"
        assert words[words.index("--rdzv_conf") + 1] == "join_timeout=PATIENCE"
        assert words[-2:] == ["-m", "a.b"]


@pytest.mark.parametrize(
    ("name", "experiment", "run_name"),
    [
        ("/", "default-experiment", "train"),
        ("exp/", "exp", "train"),
        ("/run", "default-experiment", "run"),
        ("run", "default-experiment", "run"),
        ("exp/run", "exp", "run"),
    ],
)
def test_names_of_experiment_and_run(name: str, experiment: str, run_name: str) -> None:
    app = build_app("dist.torchrun", {"script": "train.py", "name": name})
    assert app.name == run_name
    assert app.roles[0].env["TORCHX_TRACKING_EXPERIMENT_NAME"] == experiment


@pytest.mark.parametrize(
    ("component", "texts", "nodes", "workers"),
    [
        ("dist.torchrun", {"j": "4"}, 1, 4),
        ("dist.torchrun", {"j": "2", "h": "aws_p4d.24xlarge"}, 2, 8),
        ("dist.torchrun", {"j": "2", "h": "gpu.small"}, 2, 1),
        ("dist.torchrun", {"j": "2x4", "h": "aws_p4d.24xlarge"}, 2, 4),
        ("dist.ddp", {"j": "2", "h": "aws_p4d.24xlarge"}, 1, 2),
        ("dist.spmd", {"j": "2", "h": "aws_p4d.24xlarge"}, 2, 8),
        ("dist.spmd", {}, 1, 1),
    ],
)
def test_nodes_and_workers(component: str, texts: dict[str, str], nodes: int, workers: int) -> None:
    role = role_of(component, script="a.py", **texts)
    assert role.num_replicas == nodes
    assert f"--nproc_per_node {workers} " in role.args[1]


def test_earlier_names_say_what_to_use() -> None:
    with pytest.warns(DeprecationWarning, match=r"use dist\.torchrun"):
        build_app("dist.ddp", {"script": "a.py"})
    ddp, spmd, usual = (
        {one.name: one.default for one in describe(f"dist.{name}").parameters} for name in ("ddp", "spmd", "torchrun")
    )
    assert ddp == usual
    assert spmd.items() <= {**usual, "args": (), "h": "gpu.small", "j": "1x1"}.items()


def test_the_level_of_logs_is_that_of_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOGLEVEL", raising=False)
    assert role_of("dist.torchrun", script="a.py").env["LOGLEVEL"] == "WARNING"
    monkeypatch.setenv("LOGLEVEL", "DEBUG")
    assert role_of("dist.torchrun", script="a.py").env["LOGLEVEL"] == "DEBUG"
    assert role_of("dist.torchrun", script="a.py", env="LOGLEVEL=INFO").env["LOGLEVEL"] == "INFO"


def test_debugging_sets_pytorchs_variables() -> None:
    role = role_of("dist.torchrun", script="a.py", debug="yes")
    plain = role_of("dist.torchrun", script="a.py")
    assert dict(role.env.items() - plain.env.items()) == {
        "CUDA_LAUNCH_BLOCKING": "1",
        "NCCL_DESYNC_DEBUG": "1",
        "TORCH_DISTRIBUTED_DEBUG": "DETAIL",
        "TORCH_SHOW_CPP_STACKTRACES": "1",
    }


def test_booth_writes_where_torchx_reads_it(tmp_path: Path) -> None:
    done = run(role_of("utils.booth", x1="1", x2="3", trial_idx="7", tracker_base=str(tmp_path / "a" / "out")))
    assert done.stdout == "booth(1, 3) = 0\n"
    assert json.loads((tmp_path / "a" / "out" / "7").read_text()) == {"booth_eval": 0.0}
    # Further trials, beside the first, and where neither term is 0.
    for number, base in enumerate((f"file://{tmp_path}/a/out", f"{tmp_path}/a/out")):
        done = run(role_of("utils.booth", x1="2", x2="5", trial_idx=str(number), tracker_base=base))
        assert done.stdout == "booth(2, 5) = 41\n"
        assert json.loads((tmp_path / "a" / "out" / str(number)).read_text()) == {"booth_eval": 41.0}


def test_copy(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\0data")
    assert run(role_of("utils.copy", src=str(tmp_path / "a"), dst=f"file://{tmp_path}/b")).returncode == 0
    for target in (tmp_path / "new" / "b", tmp_path / "new" / "c"):
        done = run(role_of("utils.copy", src=f"file://{tmp_path}/b", dst=str(target)))
        assert done.stdout == f"copied file://{tmp_path}/b to {target}\n"
        assert target.read_bytes() == b"\0data"


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_plain_enough_to_travel(name: str) -> None:
    text = program_text(name)
    assert "$" not in text
    compile(text, name, "exec")
    assert macros.Values("", "", "").substitute(text) == text


def demo(**texts: str) -> Role:
    return role_of("demo.train", steps="12", step_seconds="0.001", **texts)


def test_demo_trains() -> None:
    role = demo(num_replicas="3")
    assert (role.entrypoint, role.num_replicas) == ("python3", 3)
    assert role.args[-4:] == ["--fail_at_step", "-1", "--fail_rank", "0"]
    done = run(role, 2)
    assert done.returncode == 0
    steps = [line for line in done.stdout.splitlines() if line.startswith("step ")]
    assert len(steps) == 12
    assert steps[0].startswith("step 1/12 loss \033[32m")
    assert "rank 2" in steps[0]
    assert "\rloading data  10% [###..." in done.stderr.replace("\n", "\r")
    assert "loading data 100% [##############################] 10/10\n" in done.stderr
    assert "\033[33mWARNING\033[0m " in done.stderr
    assert "\033[1m" in done.stdout


def test_demo_takes_as_long_as_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    monkeypatch.setattr("time.sleep", naps.append)
    monkeypatch.setattr("sys.argv", ["demo.train", "--steps", "3", "--step_seconds", "1"])
    runpy.run_module("torchx_tui.components.programs.demo", run_name="__main__")
    assert naps == [0.2] * 10 + [1.0] * 3 + [0.2] * 5


def test_demo_fails_where_it_is_told_to(tmp_path: Path) -> None:
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
    assert message["message"].startswith("FloatingPointError: loss is nan")
    assert "train_step" in message["extraInfo"]["py_callstack"]


def test_demo_prints_each_line_at_once() -> None:
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


@pytest.mark.parametrize(("component", "texts"), [("utils.python", {"m": ""}), ("dist.torchrun", {"script": ""})])
def test_an_empty_program_is_none(component: str, texts: dict[str, str]) -> None:
    with pytest.raises(ArgumentError, match="give exactly one of"):
        build_app(component, texts)


@pytest.mark.parametrize(
    ("component", "texts", "entrypoint"),
    [
        ("utils.echo", {}, "echo"),
        ("utils.touch", {"file": "x"}, "touch"),
        ("utils.sh", {"args": "x"}, "sh"),
        ("utils.sh", {"entrypoint": "bash"}, "bash"),
        ("utils.copy", {"src": "a", "dst": "b"}, "python3"),
        ("utils.booth", {"x1": "1", "x2": "3"}, "python3"),
        ("utils.python", {"m": "a.b"}, "python"),
        ("utils.binary", {"entrypoint": "/bin/ls"}, "/bin/ls"),
        ("dist.torchrun", {"script": "a.py"}, "bash"),
        ("dist.ddp", {"script": "a.py"}, "bash"),
        ("demo.train", {}, "python3"),
    ],
)
def test_what_a_builtin_runs(component: str, texts: dict[str, str], entrypoint: str) -> None:
    assert role_of(component, **texts).entrypoint == entrypoint


@pytest.mark.parametrize(
    ("j", "backend", "words"),
    [
        ("1x2", "c10d", "--rdzv_endpoint localhost:0 --rdzv_id '${app_id}' --nnodes 1 --nproc_per_node 2 --tee 3"),
        ("2x2", "c10d", "--rdzv_endpoint $${${rank0_env}:=localhost}:29500 --rdzv_id '${app_id}' --nnodes 2"),
        ("2x2", "static", "--role '' --node_rank '${replica_id}' a.py"),
    ],
)
def test_the_command_of_torchrun(j: str, backend: str, words: str) -> None:
    line = role_of("dist.torchrun", script="a.py", j=j, rdzv_backend=backend).args[-1]
    assert line.startswith(f"torchrun --rdzv_backend {backend} ")
    assert words in line
    assert ("--node_rank" in line) == (backend == "static")
