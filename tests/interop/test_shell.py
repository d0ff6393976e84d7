"""The shell beside TorchX's own: `torchx tui`, `.torchxconfig`, and what scripts read of either."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.shell import shell
from support.terminal import Terminal

from torchx_tui.backends import torchxconfig

OPTIONS = "log_dir = None\nprependCwd = yes\nauto_set_cuda_visible_devices = 0\n"
SECTIONS = "[component:a.b]\nJ = 1x2\nenv = A=B,C=D\n[component:]\nx = 1\n[cli:run]\ncomponent = a.b\n"


@pytest.fixture
def their_config(torchx: str) -> Any:
    return importlib.import_module("torchx.runner.config")


def test_torchx_tui_opens_the_dashboard(torchx: str, tmp_path: Path) -> None:
    torchx_command = str(Path(sys.executable).with_name("torchx"))
    told = subprocess.run([torchx_command, "tui", "--help"], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert told.returncode == 0
    assert told.stdout.startswith("usage: torchx tui ")
    assert "--read-only" in told.stdout
    with Terminal([torchx_command, "tui", "--ascii"], cwd=tmp_path) as app:
        app.wait("No jobs yet")
        app.press("q")
        assert app.wait_for_end() == 0


def test_torchx_tui_without_a_terminal_says_what_to_use(torchx: str, tmp_path: Path) -> None:
    told = subprocess.run(
        [str(Path(sys.executable).with_name("torchx")), "tui"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (told.returncode, "the dashboard needs a terminal" in told.stderr) == (2, True)


def test_files_are_read_alike(their_config: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TORCHXCONFIG")
    (tmp_path / ".torchxconfig").write_text(f"[local_cwd]\n{OPTIONS}{SECTIONS}")
    dirs = [str(tmp_path)]
    ours: dict[str, Any] = {}
    theirs: dict[str, Any] = {}
    torchxconfig.apply("local_cwd", ours, dirs)
    their_config.apply("local_cwd", theirs, dirs)
    assert ours == theirs == {"log_dir": None, "prepend_cwd": True, "auto_set_cuda_visible_devices": False}
    for prefix in ("component", "cli", "none"):
        assert torchxconfig.load_sections(prefix, dirs) == their_config.load_sections(prefix, dirs)
    assert torchxconfig.get_config("cli", "run", "component", dirs) == "a.b"
    assert torchxconfig.find_configs(dirs) == their_config.find_configs(dirs)


@pytest.mark.parametrize("required_only", [True, False])
def test_files_are_written_alike(their_config: Any, required_only: bool) -> None:
    ours, theirs = io.StringIO(), io.StringIO()
    # Those of Docker and Kubernetes have options of our own besides.
    torchxconfig.dump(ours, ["local_cwd"], required_only)
    their_config.dump(theirs, ["local_cwd"], required_only)
    assert ours.getvalue() == theirs.getvalue()


def test_a_required_option_is_written_alike(their_config: Any) -> None:
    ours, theirs = io.StringIO(), io.StringIO()
    torchxconfig.dump(ours, ["kubernetes"], required_only=True)
    their_config.dump(theirs, ["kubernetes"], required_only=True)
    assert ours.getvalue() == theirs.getvalue()


def test_run_prints_the_same_json(cli: Any, tmp_path: Path) -> None:
    argv = ["run", "-s", "local_cwd", "--json", "utils.echo", "--msg", "hi"]
    theirs, ours = json.loads(cli(*argv)), json.loads(shell(*argv, cwd=tmp_path).stdout)
    assert list(ours) == list(theirs)
    assert (ours["scheduler"], ours["state"]) == (theirs["scheduler"], theirs["state"])


def test_dryrun_prints_the_same_json(cli: Any, tmp_path: Path) -> None:
    argv = ["run", "-s", "local_cwd", "--dryrun", "--json", "--workspace="]
    words = ["utils.sh", "--num_replicas", "2", "--env", "A=1", "--", "echo", "hi"]
    theirs, ours = json.loads(cli(*argv, *words)), json.loads(shell(*argv, *words, cwd=tmp_path).stdout)
    assert list(ours) == list(theirs)
    assert ours["cfg"] == theirs["cfg"]
    role, their_role = ours["app"]["roles"][0], theirs["app"]["roles"][0]
    for name in ("name", "image", "entrypoint", "args", "num_replicas", "resource", "max_retries", "mounts"):
        assert role[name] == their_role[name], name


def test_flags_of_run_are_theirs(torchx: str, tmp_path: Path) -> None:
    theirs = subprocess.run(
        [sys.executable, "-m", "torchx.cli.main", "run", "--help"], capture_output=True, text=True, check=False
    ).stdout
    ours = shell("run", "--help").stdout
    for flag in ("--scheduler", "-cfg", "--scheduler_args", "--dryrun", "--wait", "--log", "--workspace",
                 "--buck-target", "--parent_run_id", "--tee_logs", "--stdin", "--json"):  # fmt: skip
        assert flag in theirs
        assert flag in ours
