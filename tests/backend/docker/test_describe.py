"""What describe, inspection, check and preflight say, on a real engine."""

import urllib.request

import pytest
import yaml
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.docker_engine.client import Engine
from torchx_tui.backends.shared.secrets import MASK
from torchx_tui.specs.errors import JobNotFoundError
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.workspace import Workspace

SERVE = "import http.server; http.server.test(http.server.SimpleHTTPRequestHandler, port=8000)"


def test_ports_can_be_reached(docker):
    role = Role(
        "web", "python:local", entrypoint="python3", args=["-c", SERVE], num_replicas=2, port_map={"http": 8000}
    )
    app_id = docker.submit(AppDef("job", [role]))
    docker.running(app_id)
    ports = docker.describe(app_id).ports
    assert [(one.role, one.replica, one.name, one.container_port, one.host) for one in ports] == [
        ("web", 0, "http", 8000, ""),
        ("web", 1, "http", 8000, ""),
    ]
    assert len({one.host_port for one in ports}) == 2

    def answers():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{ports[1].host_port}/", timeout=PATIENCE) as answer:
                return answer.status == 200
        except OSError:
            return False

    assert wait_until(answers, "an answer")


def test_the_rank0_host_is_the_first_container(docker):
    app_id = docker.launch("echo $TORCHX_RANK0_HOST $TORCHX_IMAGE $(hostname)", replicas=2)
    docker.ended(app_id)
    names = {k: docker.describe(app_id).roles_statuses[0].replicas[k].hostname for k in (0, 1)}
    for k in (0, 1):
        (line,) = docker.scheduler.log_iter(app_id, "worker", k)
        assert line == f"{names[0]} busybox:local {names[k]}\n"


def test_inspection_masks_secrets(docker):
    app_id = docker.submit(AppDef("job", [docker.role("exit 0", env={"API_TOKEN": "hidden", "A": "shown"})]))
    docker.ended(app_id)
    text = docker.scheduler.describe_native(app_id)
    assert "hidden" not in text
    (data,) = list(yaml.safe_load_all(text))
    assert f"API_TOKEN={MASK}" in data["Config"]["Env"]
    assert "A=shown" in data["Config"]["Env"]
    with pytest.raises(JobNotFoundError):
        docker.scheduler.describe_native("no-such-app")


def test_check_tells_why_there_is_none(tmp_path):
    scheduler = DockerScheduler("mine", Engine({"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}))
    for findings in (scheduler.check(), scheduler.preflight(AppDef("a", [Role("r", "i", entrypoint="e")]), {})):
        (finding,) = findings
        assert finding.level == "error"
        assert "was not found" in finding.what
        assert "systemctl start docker" in finding.hint


def test_preflight_of_a_workspace(docker, tmp_path):
    def found():
        made = docker.role("", workspace=Workspace({str(tmp_path): ""}))
        made.entrypoint, made.args = "torchrun", ["--nnodes", "1", "train.py"]
        return [finding.what for finding in docker.scheduler.preflight(AppDef("job", [made]), {})]

    assert found() == [f"worker: train.py is not in the workspace {tmp_path}"]
    (tmp_path / "train.py").touch()
    assert found() == []
