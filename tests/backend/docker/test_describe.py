"""What describe, inspection, check and preflight say, on a real engine."""

from __future__ import annotations

import platform
import time
import urllib.request
from typing import Any

import pytest
import yaml
from support.waiting import PATIENCE, wait_until

from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.docker_engine.client import Engine
from torchx_tui.backends.history.journal import Journal
from torchx_tui.backends.runner import Runner
from torchx_tui.backends.shared.secrets import MASK
from torchx_tui.base.files import user_name
from torchx_tui.specs.errors import JobNotFoundError
from torchx_tui.specs.mounts import BindMount
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState
from torchx_tui.specs.workspace import Workspace

SERVE = "import http.server; http.server.test(http.server.SimpleHTTPRequestHandler, port=8000)"


def test_everything_about_an_app(docker):
    app = AppDef(
        "job", [docker.role("sleep 3600", "a"), docker.role("sleep 3600", "b", num_replicas=2)], metadata={"team": "x"}
    )
    before = time.time()
    app_id = docker.submit(app)
    described = docker.running(app_id)
    assert described.roles == app.roles
    assert (described.name, described.user, described.host) == ("job", user_name(), platform.node())
    assert described.submitted_at is not None
    assert before - 1 <= described.submitted_at <= time.time()
    assert [(status.role, len(status.replicas)) for status in described.roles_statuses] == [("a", 1), ("b", 2)]
    assert described.metadata["team"] == "x"
    assert described.image == "busybox:local"
    assert described.metadata["image of a"].startswith("sha256:")
    replica = described.roles_statuses[1].replicas[1]
    container = docker.containers(app_id)[0]
    assert replica.hostname in [one["Names"][0][1:] for one in docker.containers(app_id)]
    assert replica.pid
    assert replica.started_at is not None
    assert replica.hostaddr in [
        one["NetworkSettings"]["Networks"]["torchx"]["IPAddress"] for one in docker.containers(app_id)
    ]
    assert container["Labels"][labels.USER] == user_name()


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


def test_it_can_be_relaunched_from_what_the_engine_keeps(docker, tmp_path):
    runner = Runner(docker.session, journal=Journal(tmp_path), schedulers={"local_docker": docker.scheduler})
    app = AppDef("job", [docker.role("exit 0", env={"A": "1"}, num_replicas=2)])
    handle = runner.run(app, "local_docker", {"pull": False})
    # Another machine's journal knows nothing of it.
    runner.journal.forget(runner.journal.records()[0])
    again = runner.relaunch(handle)
    described = runner.job(again).describe()
    assert described is not None
    assert described.roles == app.roles


def test_cancel_and_list_through_the_runner(docker, tmp_path):
    runner = Runner(docker.session, journal=Journal(tmp_path), schedulers={"local_docker": docker.scheduler})
    handle = runner.run(AppDef("job", [docker.role("sleep 3600", num_replicas=2)]), "local_docker", {"pull": False})
    docker.running(handle.rpartition("/")[2])
    runner.job(handle).cancel()
    ended = runner.job(handle).wait()
    assert ended is not None
    assert ended.state == AppState.CANCELLED
    (row,) = [row for row in runner.list("local_docker") if row.app_handle == handle]
    assert (row.state, row.msg.startswith(f"cancelled by {user_name()}")) == (AppState.CANCELLED, True)


def test_list_asks_once_whatever_the_number(docker, monkeypatch):
    docker.ended(docker.launch("exit 1", replicas=3))
    asked: list[str] = []
    api: Any = docker.api
    get = api.get

    def counted(url, **kwargs):
        asked.append(url)
        return get(url, **kwargs)

    monkeypatch.setattr(api, "get", counted)
    assert docker.scheduler.list()
    assert [url.rpartition("/containers")[2] for url in asked] == ["/json"]


def test_check_tells_of_the_engine(docker):
    finding = docker.scheduler.check()[0]
    assert finding.level == "ok"
    assert finding.what.startswith("Docker ")
    assert " cpu, " in finding.what


def test_check_tells_why_there_is_none(tmp_path):
    scheduler = DockerScheduler("mine", Engine({"DOCKER_HOST": f"unix://{tmp_path}/none.sock"}))
    for findings in (scheduler.check(), scheduler.preflight(AppDef("a", [Role("r", "i", entrypoint="e")]), {})):
        (finding,) = findings
        assert finding.level == "error"
        assert "was not found" in finding.what
        assert "systemctl start docker" in finding.hint


@pytest.mark.parametrize(
    ("changes", "cfg", "level", "words"),
    [
        ({}, {}, None, ""),
        ({"image": "no-such:1"}, {}, "warning", "no-such:1 is not here"),
        ({"image": "no-such@sha256:" + "0" * 64}, {}, "warning", "is not here"),
        ({"image": "no-such:1"}, {"pull": False}, "error", "pulling is off"),
        ({"image": "sha256:" + "0" * 64}, {}, "error", "cannot be pulled"),
        ({"resource": Resource(1, 2, 64)}, {}, "warning", "no NVIDIA runtime"),
        ({"resource": Resource(9999, 0, 64)}, {}, "error", "9999 cpu asked for"),
        ({"resource": Resource(1, 0, 2)}, {}, "error", "too little"),
        ({"resource": Resource(1, 0, 1 << 40)}, {}, "warning", "the engine has"),
        ({"resource": Resource(1, 0, 64, devices={"no/such": 1})}, {}, "warning", "no/such is not known"),
        ({"mounts": [BindMount("/no/such", "/x")]}, {}, "error", "/no/such does not exist"),
    ],
)
def test_preflight(docker, changes, cfg, level, words):
    findings = docker.scheduler.preflight(AppDef("job", [docker.role("true", **changes)]), cfg)
    if level is None:
        assert findings == []
    else:
        (finding,) = findings
        assert finding.level == level
        assert words in finding.what
        assert finding.hint


def test_preflight_of_a_workspace(docker, tmp_path):
    def found():
        made = docker.role("", workspace=Workspace({str(tmp_path): ""}))
        made.entrypoint, made.args = "torchrun", ["--nnodes", "1", "train.py"]
        return [finding.what for finding in docker.scheduler.preflight(AppDef("job", [made]), {})]

    assert found() == [f"worker: train.py is not in the workspace {tmp_path}"]
    (tmp_path / "train.py").touch()
    assert found() == []


def test_a_failing_health_check_is_told(docker):
    info = docker.scheduler.submit_dryrun(AppDef("job", [docker.role("sleep 3600")]), {"pull": False})
    second = 10**9
    info.request.containers[0].kwargs["healthcheck"] = {
        "test": ["CMD", "false"], "interval": second, "timeout": second, "retries": 1,
    }  # fmt: skip
    app_id = docker.scheduler.schedule(info)
    wait_until(lambda: "health check fails: worker/0" in docker.describe(app_id).msg, "the failing check")
    (row,) = [row for row in docker.scheduler.list() if row.app_id == app_id]
    assert (row.state, row.msg) == (AppState.RUNNING, "its health check fails: worker/0")
    assert "health check: unhealthy" in docker.describe(app_id).roles_statuses[0].replicas[0].reason
