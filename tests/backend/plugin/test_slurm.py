"""TorchX's Slurm scheduler: what is mended in it, and the shell's commands on a real cluster."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.command import Command, command_runner
from support.torchx_plugins import forget_plugins
from support.waiting import wait_until

from torchx_tui.backends import registry
from torchx_tui.backends.plugin import slurm
from torchx_tui.backends.plugin.convert import our_app

ACCOUNTED = """\
7|allocation|PENDING
8+0|trainer-0|RUNNING
8+1|trainer-1|RUNNING
9|odd|name|CANCELLED by 1000
10|reader-0|OUT_OF_ME+
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what puts a program first on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def put(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(stat.S_IRWXU)

    return put


def test_a_job_of_several_parts_is_listed_once(program: Any, tmp_path: Path) -> None:
    (tmp_path / "accounted").write_text(ACCOUNTED)
    program("sacct", f'echo "$@" >{tmp_path}/asked; cat {tmp_path}/accounted')
    assert [tuple(one) for one in slurm._accounted()] == [
        ("7", "", "PENDING"),
        ("8", "trainer-0", "RUNNING"),
        ("9", "odd|name", "CANCELLED"),
        ("10", "reader-0", "OUT_OF_ME"),
    ]
    assert "--user" in (tmp_path / "asked").read_text()


def test_it_is_set_up_where_its_commands_and_settings_are(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("sbatch", "exit 0")
    monkeypatch.delenv("SLURM_CONF")
    assert slurm.is_set_up()
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "none"))
    assert not slurm.is_set_up()
    monkeypatch.setenv("SLURM_CONF", str(tmp_path))
    assert slurm.is_set_up()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not slurm.is_set_up()


def test_the_request_is_torchxs(torchx: None, fresh_registry: None, program: Any) -> None:
    # Without settings it looks for them in the network.
    program("sinfo", "echo slurm 24.05.8")
    from torchx import specs
    from torchx.schedulers.slurm_scheduler import create_scheduler

    mount = specs.BindMount("/data", "/data")
    theirs = specs.AppDef("app", [
        specs.Role(
            "trainer", "image", entrypoint="python", args=["-m", "it's", "${app_id}/${replica_id}"], env={"A": "b c"},
            num_replicas=2, max_retries=3, resource=specs.Resource(4, 1, 2048), mounts=[mount],
        ),
        specs.Role("reader", "image", entrypoint="cat", resource=specs.Resource(1, 0, 64)),
    ])  # fmt: skip
    cfg: Any = {"partition": "main", "comment": "two words", "mail-type": "END"}
    expected = str(create_scheduler("torchx").submit_dryrun(theirs, cfg))
    assert "hetjob" in expected
    assert "--comment=two words" in expected
    assert str(registry.create_scheduler("slurm", "torchx").submit_dryrun(our_app(theirs), cfg)) == expected


@pytest.mark.slow
def test_the_commands_of_the_shell(
    torchx: None,
    fresh_registry: None,
    slurm_cluster: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command: Command = command_runner(capsys, monkeypatch)
    assert "partition=PARTITION (str, None)" in command("runopts", "slurm").out
    assert "#SBATCH --job-name=sh-1 " in command("dryrun", "-s", "slurm", *_SH).out
    refused = command("run", "-s", "slurm", "-cfg", "partition=nowhere", *_SH)
    assert refused.code != 0
    # What sbatch printed is the reason.
    assert "slurm could not launch" in refused.err
    assert "invalid partition" in refused.err.lower()
    assert "sbatch: error" not in refused.out
    ran = command("run", "-s", "slurm", *_SH)
    handle = ran.out.strip()
    wait_until(lambda: _state(command, handle) == "RUNNING", "the job's start")
    wait_until(lambda: "replica 1" in command("log", f"{handle}/sh/1").out, "the log of the second replica")
    # A process of its own knows what the commands' own one does.
    forget_plugins()
    # Accounting hears of a job some seconds after the controller.
    row = wait_until(lambda: _row(command, handle), "the job in the list")
    assert row["state"] == "RUNNING"
    second = str(int(row["app_id"]) + 1)
    assert second not in {one["app_id"] for one in json.loads(command("list", "-s", "slurm", "--json").out)}
    assert command("cancel", handle).code == 0
    wait_until(lambda: _state(command, handle) == "CANCELLED", "the job's end")
    queued = subprocess.run(["squeue", "-h", "-t", "R,PD", "-j", row["app_id"]], capture_output=True, text=True)
    assert queued.stdout == ""


_SH = ("utils.sh", "--num_replicas", "2", "--", "sh", "-c", "echo replica $SLURM_PROCID; exec sleep 300")


def _row(command: Command, handle: str) -> dict[str, Any] | None:
    rows = json.loads(command("list", "-s", "slurm", "--json").out)
    return next((row for row in rows if row["handle"] == handle), None)


def _state(command: Command, handle: str) -> str:
    ended = command("status", handle, "--json")
    return ended.data["state"] if ended.code == 0 else ""
