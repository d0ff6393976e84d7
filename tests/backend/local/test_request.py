"""What a launch would start: the environment of its replicas, the request as text, and advice."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from backend.local.support import app

from torchx_tui.backends.local import request
from torchx_tui.backends.local.environment import (
    count_gpus,
    launcher_environment,
    replica_environment,
    role_path,
    visible_devices,
)
from torchx_tui.backends.local.image_provider import ReplicaParam
from torchx_tui.backends.local.scheduler import LocalScheduler
from torchx_tui.specs import AppDef, AppDefError, Resource, Role


def test_the_text_before_path() -> None:
    given = {"PATH": "/role:"}
    assert role_path(given, ["/extra"], "/cwd", True) == "/cwd:/extra:/role"
    assert role_path(given, ["/extra"], "/cwd", False) == "/extra:/role:/cwd"
    assert role_path({}, [], None, True) == ""


def test_what_a_launch_adds_comes_before_what_is_inherited() -> None:
    assert replica_environment({"PATH": "/b"}, {"PATH": "/a", "X": "1"}) == {
        "PATH": "/a:/b",
        "X": "1",
        "PYTHONUNBUFFERED": "x",
    }
    assert replica_environment({"PATH": "/b", "PYTHONUNBUFFERED": ""}, {"PATH": ""}) == {"PATH": ""}


def test_a_job_does_not_inherit_the_job_that_this_process_is_part_of(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCHX_JOB_ID", "TORCHELASTIC_ERROR_FILE", "PET_LOG_DIR", "KEPT"):
        monkeypatch.setenv(name, "x")
    folder = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", "/a:/b")
    env = launcher_environment()
    assert set(env) & {"TORCHX_JOB_ID", "TORCHELASTIC_ERROR_FILE", "PET_LOG_DIR", "KEPT"} == {"KEPT"}
    assert env["PATH"] == f"/a:/b:{folder}"
    monkeypatch.setenv("PATH", f"{folder}:/a")
    assert launcher_environment()["PATH"] == f"{folder}:/a"
    monkeypatch.setenv("PATH", "")
    assert launcher_environment()["PATH"] == f"{os.defpath}:{folder}"


def write_program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_gpus_are_counted_until_some_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    assert count_gpus() == 0
    write_program(folder, "nvidia-smi", "echo no driver; exit 9")
    assert count_gpus() == 0
    write_program(folder, "nvidia-smi", '[ "$1" = -L ] && printf "GPU 0: A\\n  MIG 1g: x\\nGPU 1: A\\n"')
    assert count_gpus() == 2
    write_program(folder, "nvidia-smi", "exit 9")
    assert count_gpus() == 2
    monkeypatch.setenv("PATH", "/none")
    assert count_gpus() == 0


def test_gpus_are_dealt_out_in_order_or_not_at_all() -> None:
    roles = [
        Role(name, "", num_replicas=count, resource=Resource(1, gpu, 1))
        for name, count, gpu in (("a", 2, 1), ("b", 1, 0), ("c", 1, 2), ("d", 1, -1))
    ]
    dealt = {"a": ["0", "1"], "c": ["2,3"]}
    assert visible_devices(AppDef("x", roles), 4) == dealt
    assert visible_devices(AppDef("x", roles), 3) == {}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "logout_findings", list)
    (machine,) = request.machine_findings(tmp_path / "a" / "b")
    assert machine.level == "ok"
    assert machine.what.startswith(f"this machine: {os.cpu_count()} cpu, ")
    asked: list[object] = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append((path, mode)))
    _, fault = request.machine_findings(tmp_path / "a" / "b")
    assert (fault.level, fault.what) == ("error", f"{tmp_path} cannot be written")
    assert fault.hint == "set XDG_STATE_HOME to a folder that can"
    assert asked == [(tmp_path, os.W_OK)]


@pytest.mark.parametrize(("available", "words"), [(0, "this machine has none"), (1, "this machine has 1"), (2, "")])
def test_more_gpus_than_there_are(monkeypatch: pytest.MonkeyPatch, available: int, words: str) -> None:
    monkeypatch.setattr(request, "count_gpus", lambda: available)
    app = AppDef("x", [Role("r", "", num_replicas=2, resource=Resource(1, 1, 1))])
    found = list(request._gpus(app))
    assert [one.level for one in found] == (["warning"] if words else [])
    assert all(one.what == f"2 gpu asked for, {words}" and one.hint for one in found)


@pytest.mark.parametrize("state", ["free", "taken", "waits out its last connection"])
def test_a_port_that_another_process_has_is_told_of(tmp_path: Path, state: str) -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("", 0))
        server.listen()
        port = server.getsockname()[1]
        if state.startswith("waits"):
            with socket.create_connection(("127.0.0.1", port)) as client:
                server.accept()[0].close()
                assert client.recv(1) == b""
        if state != "taken":
            server.close()
        scheduler = LocalScheduler("s", root=tmp_path, handle_signals=False)
        for made, what in (
            (app("exit 0", port_map={"ui": port}), f"r: port {port} (ui)"),
            (app(f"exit 0 --master_port={port}"), f"r: port {port}"),
            (app(f"exit 0 --port {port} --port {port}"), f"r: port {port}"),
        ):
            found = [(one.level, one.what, one.hint) for one in scheduler.preflight(made, {})]
            told = ("warning", f"{what} is taken by another process", "choose another one, or 0 for any")
            assert found == ([told] if state == "taken" else [])
        for odd in (0, 65_536, -1):
            assert scheduler.preflight(app("exit 0", port_map={"ui": odd}), {}) == []


# The request

OWN = {"LR", "PATH", "PET_LOG_DIR", "TORCHELASTIC_ERROR_FILE", "TORCHX_JOB_ID", "TORCHX_RANK0_HOST"}


@pytest.mark.parametrize("insight", [False, True])
def test_a_request_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, insight: bool) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    monkeypatch.setenv("INHERITED", "1")
    scheduler = LocalScheduler("s", root=tmp_path, handle_signals=False, insight=insight)
    info = scheduler.submit_dryrun(app("exit 0", env={"LR": "0.1", "PATH": "/of/role"}), {"log_dir": "/logs"})
    app_id = info.request.app_id
    shown = yaml.safe_load(str(info))
    assert list(shown) == ["app_id", "log_dir", "roles"]
    assert (shown["app_id"], shown["log_dir"]) == (app_id, f"/logs/s/{app_id}")
    (replica,) = shown["roles"]["r"]
    assert list(replica) == ["replica", "command", "cwd", "env"]
    assert (replica["replica"], replica["command"], replica["cwd"]) == (0, ["sh", "-c", "exit 0"], os.getcwd())
    # What is added for questions to its ranks is shown, what is inherited is not.
    assert OWN.issubset(replica["env"])
    assert ("TORCHX_TUI_INSIGHT" in replica["env"], "PYTHONUNBUFFERED" in replica["env"]) == (insight, insight)
    assert "INHERITED" not in replica["env"]
    assert replica["env"]["PATH"] == f"/of/role:{os.getcwd()}"
    folder = Path("/logs/s", app_id, "insight", "r")
    assert info.request.insight_folders() == ([folder] if insight else [])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x" * 200, None),
        ("x" * 201, "it is too long for a folder's name, so it can have up to 200 bytes"),
        ("é" * 101, "it is too long for a folder's name, so it can have up to 200 bytes"),
        ("", "it becomes a folder's name, so give one"),
        (".", "it becomes a folder's name, so it can have no slash and not be dots alone"),
        ("..", "it becomes a folder's name, so it can have no slash and not be dots alone"),
        ("a/b", "it becomes a folder's name, so it can have no slash and not be dots alone"),
        ("a\nb", "it becomes a folder's name, so it can have no control characters"),
        ("...", None),
        ("a b", None),
    ],
)
def test_a_name_becomes_a_folders(name: str, words: str | None) -> None:
    if words is None:
        request.check_name("It", name)
        assert list(request.name_faults(AppDef(name, [Role(name, "")]))) == []
        return
    with pytest.raises(AppDefError, match=f"^It is .*: {words}$"):
        request.check_name("It", name)
    faults = list(request.name_faults(AppDef(name, [Role(name, "")])))
    assert [(fault.role, fault.name) for fault in faults] == [("", name), (name, name)]


def test_two_roles_of_one_name_would_have_one_log() -> None:
    (fault,) = request.name_faults(AppDef("job", [Role("r", ""), Role("s", ""), Role("r", "")]))
    assert (fault.role, fault.name) == ("r", "r")
    assert "job has two roles r" in fault.words


@pytest.mark.parametrize(
    ("name", "shown"),
    [("", "empty"), ("a\nb", r"'a\nb'"), ("/" * 40, "/" * 40), ("/" * 41, "/" * 40 + "…")],
)
def test_a_name_that_is_refused_is_shown(name: str, shown: str) -> None:
    with pytest.raises(AppDefError) as refused:
        request.check_name("It", name)
    assert str(refused.value).startswith(f"It is {shown}: ")


def test_ranks_cannot_be_asked_unless_that_is_wanted() -> None:
    param: Any = ReplicaParam(["sh"], {"A": "1"}, cwd="/")
    made = request.PopenRequest("job-1", "/logs/s/job-1", {"r": [param]})
    assert made.insight_folders() == []
    assert made.started_environment("r", param, {"PYTHONUNBUFFERED": "x", "PATH": "/bin"}) == {"A": "1"}
    assert yaml.safe_load(str(made))["roles"]["r"][0]["env"] == {"A": "1"}
