"""What a launch would start: the environment of its replicas, the request as text, and advice."""

import os
import shutil
import socket
import sys
from pathlib import Path

import pytest
import yaml
from backend.local.support import app, role

from torchx_tui.backends.local import request
from torchx_tui.backends.local.environment import (
    count_gpus,
    launcher_environment,
    replica_environment,
    visible_devices,
)
from torchx_tui.backends.local.image_provider import ReplicaParam
from torchx_tui.specs.errors import AppDefError
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role


def test_added_path_comes_before_the_inherited():
    made = replica_environment({"PATH": "/b"}, {"PATH": "/a", "X": "1"})
    assert made == {"PATH": "/a:/b", "X": "1", "PYTHONUNBUFFERED": "x"}
    assert replica_environment({"PATH": "/b", "PYTHONUNBUFFERED": ""}, {"PATH": ""}) == {"PATH": ""}


def test_job_of_this_process_is_not_inherited(monkeypatch):
    names = {"TORCHX_JOB_ID", "TORCHELASTIC_ERROR_FILE", "PET_LOG_DIR", "KEPT"}
    for name in names:
        monkeypatch.setenv(name, "x")
    assert set(launcher_environment()) & names == {"KEPT"}


@pytest.mark.parametrize(
    ("path", "expected"), [("/a:/b", "/a:/b:HERE"), ("HERE:/a", "HERE:/a"), ("", f"{os.defpath}:HERE")]
)
def test_folder_of_this_python_is_on_the_path(monkeypatch, path, expected):
    here = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", path.replace("HERE", here))
    assert launcher_environment()["PATH"] == expected.replace("HERE", here)


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Return a function that puts a program ``nvidia-smi`` on PATH."""
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def write(text):
        folder.mkdir(exist_ok=True)
        (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{text}\n")
        (folder / "nvidia-smi").chmod(0o755)

    return write


TWO_GPUS = '[ "$1" = -L ] && printf "GPU 0: A\\n  MIG 1g: x\\nGPU 1: A\\n"'


def test_gpus_are_counted_until_some_are_found(nvidia_smi, monkeypatch):
    assert count_gpus() == 0
    for text, count in (("echo no driver; exit 9", 0), (TWO_GPUS, 2), ("exit 9", 2)):
        nvidia_smi(text)
        assert count_gpus() == count
    monkeypatch.setenv("PATH", "/none")
    assert count_gpus() == 0


def with_gpus(name, replicas, gpu):
    return role("exit 0", name=name, replicas=replicas, resource=Resource(1, gpu, 1))


def test_gpus_are_assigned_in_order_or_not_at_all():
    made = AppDef("x", [with_gpus("a", 2, 1), with_gpus("b", 1, 0), with_gpus("c", 1, 2), with_gpus("d", 1, -1)])
    assert visible_devices(made, 4) == {"a": ["0", "1"], "c": ["2,3"]}
    assert visible_devices(made, 3) == {}


def test_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(request, "logout_findings", list)
    (machine,) = request.machine_findings(tmp_path / "a/b")
    assert machine.level == "ok"
    assert machine.what.startswith(f"this machine: {os.cpu_count()} cpu, ")
    asked = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append((path, mode)))
    _, fault = request.machine_findings(tmp_path / "a/b")
    assert (fault.level, fault.what) == ("error", f"{tmp_path} cannot be written")
    assert fault.hint == "set XDG_STATE_HOME to a folder that can"
    assert asked == [(tmp_path, os.W_OK)]


def advice(local, made):
    return [f"{one.level} {one.what}" for one in local.scheduler.preflight(made, {})]


@pytest.mark.parametrize(
    ("replicas", "text"),
    [(0, []), (2, []), (3, ["warning 3 gpu asked for, this machine has 2"])],
)
def test_more_gpus_than_the_machine_has(local, nvidia_smi, replicas, text):
    nvidia_smi(TWO_GPUS)
    made = AppDef("x", [with_gpus("r", replicas or 1, 1 if replicas else 0)])
    assert advice(local, made) == text
    assert all(one.hint for one in local.scheduler.preflight(made, {}))
    assert ", 2 gpu, " in local.scheduler.check()[0].what


def test_gpus_on_a_machine_without(local, monkeypatch):
    monkeypatch.setattr(request, "count_gpus", lambda: 0)
    assert advice(local, AppDef("x", [with_gpus("r", 1, 1)])) == ["warning 1 gpu asked for, this machine has none"]


@pytest.mark.parametrize("state", ["free", "taken", "waits out its last connection"])
def test_port_of_another_process(local, state):
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
        endpoints = (f"localhost:{port}", f"$${{TORCHX_RANK0_HOST:=localhost}}:{port}")
        for made, what in (
            (app("exit 0", port_map={"ui": port}), f"port {port} (ui)"),
            (app(f"exit 0 --master_port={port}"), f"port {port}"),
            (app(f"exit 0 --port {port} --port {port}"), f"port {port}"),
            *((app(f"exit 0 --rdzv_endpoint {endpoint} x.py"), f"port {port}") for endpoint in endpoints),
        ):
            warning = f"warning r: {what} is taken by another process"
            assert advice(local, made) == ([warning] if state == "taken" else [])
            hints = {one.hint for one in local.scheduler.preflight(made, {})}
            assert hints <= {"choose another one, or 0 for any"}
        assert advice(local, app(f"exit 0 --rdzv_endpoint 10.0.0.5:{port} x.py")) == []
        for odd in (0, 65_536, -1):
            assert advice(local, app("exit 0", port_map={"ui": odd})) == []


def test_missing_script_or_python(local, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()

    def found(entrypoint, *args):
        return advice(local, AppDef("job", [Role("r", "", entrypoint=entrypoint, args=list(args))]))

    assert found(sys.executable, "train.py") == []
    assert found("bash", "-c", f"{sys.executable} train.py") == []
    gone = [f"error r: there is no file gone.py in {tmp_path}"]
    assert found(sys.executable, "-u", "gone.py", "--lr", "1") == gone
    assert found("bash", "-c", f"exec {sys.executable} -m torch.distributed.run --nnodes 1 gone.py") == gone
    assert found("bash", "-c", "/no/such/python3 train.py") == ["error r: /no/such/python3 is not an executable file"]
    assert found("bash", "-c", "python3.99 train.py") == ["error r: no such command: python3.99"]
    assert found("no-such-program") == ["error r: no such command: no-such-program"]
    # A program beside this Python is found by the launcher's path.
    there = shutil.which("torchrun", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    wanted = [] if there else ["error r: no such command: torchrun"]
    assert found("bash", "-c", "torchrun --nnodes 1 train.py") == wanted
    # A folder can be entered by those who may execute it.
    assert found(str(tmp_path)) == [f"error r: {tmp_path} is not an executable file"]


# The request

OWN = {"LR", "PATH", "PET_LOG_DIR", "TORCHELASTIC_ERROR_FILE", "TORCHX_JOB_ID", "TORCHX_RANK0_HOST"}


@pytest.mark.parametrize("insight", [False, True])
def test_request_as_text(make_local, monkeypatch, insight):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    monkeypatch.setenv("INHERITED", "1")
    made = app("echo 'a b'", replicas=2, env={"LR": "0.1", "PATH": "/of/role", "HF_TOKEN": "hunter2"})
    info = make_local(insight=insight).scheduler.submit_dryrun(made, {"log_dir": "/logs"})
    app_id = info.request.app_id
    assert "hunter2" not in str(info)
    shown = yaml.safe_load(str(info))
    replicas = shown["roles"].pop("r")
    assert shown == {"app_id": app_id, "log_dir": f"/logs/session/{app_id}", "roles": {}}
    env = replicas[0].pop("env")
    assert replicas[0] == {"replica": 0, "command": ["sh", "-c", "echo 'a b'"], "cwd": os.getcwd()}
    assert [replica["replica"] for replica in replicas] == [0, 1]
    # What is added for questions to its ranks is shown, what is inherited is not.
    assert {*OWN, "HF_TOKEN"} <= set(env)
    assert ("TORCHX_TUI_INSIGHT" in env, "PYTHONUNBUFFERED" in env, "INHERITED" in env) == (insight, insight, False)
    assert (env["LR"], env["PATH"]) == ("0.1", f"/of/role:{os.getcwd()}")
    folder = Path("/logs/session", app_id, "insight", "r")
    assert info.request.insight_folders() == ([folder] if insight else [])


def test_invalid_apps_are_refused(local):
    wrong = [
        ("no roles", AppDef("job")),
        ("two roles r", AppDef("job", [role("x"), role("x", name="s"), role("x")])),
        ("entrypoint", AppDef("job", [Role("r", "")])),
        ("replicas", app("x", replicas=0)),
        ("NUL", app("a\0b")),
        ("NUL", app("x", env={"A": "b\0"})),
        ("variable", app("x", env={"A=B": "c"})),
        ("name", app("x", name="a/b")),
        ("name", AppDef("job", [role("x", name="a/b")])),
    ]
    for text, made in wrong:
        with pytest.raises(AppDefError, match=text):
            local.start(made)
    assert not local.root.exists()


@pytest.mark.parametrize(
    ("name", "text"),
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
def test_names_of_folders(name, text):
    faults = list(request.name_faults(AppDef(name, [Role(name, "")])))
    assert [(fault.role, fault.name) for fault in faults] == ([] if text is None else [("", name), (name, name)])
    if text is None:
        request.check_name("It", name)
    else:
        with pytest.raises(AppDefError, match=f"^It is .*: {text}$"):
            request.check_name("It", name)


def test_two_roles_of_one_name_would_have_one_log():
    (fault,) = request.name_faults(AppDef("job", [Role("r", ""), Role("s", ""), Role("r", "")]))
    assert (fault.role, fault.name) == ("r", "r")
    assert "job has two roles r" in fault.words


@pytest.mark.parametrize(
    ("name", "shown"),
    [("", "empty"), ("a\nb", r"'a\nb'"), ("/" * 40, "/" * 40), ("/" * 41, "/" * 40 + "…")],
)
def test_refused_name_is_shown(name, shown):
    with pytest.raises(AppDefError) as refused:
        request.check_name("It", name)
    assert str(refused.value).startswith(f"It is {shown}: ")


def test_request_without_insight():
    param = ReplicaParam(["sh"], {"A": "1"}, cwd="/")
    made = request.PopenRequest("job-1", "/logs/s/job-1", {"r": [param]})
    assert made.insight_folders() == []
    assert made.started_environment("r", param, {"PYTHONUNBUFFERED": "x", "PATH": "/bin"}) == {"A": "1"}
    assert yaml.safe_load(str(made))["roles"]["r"][0]["env"] == {"A": "1"}
