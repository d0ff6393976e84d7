"""What an engine answers, as the user sees it: findings, waits and reasons, limits and mounts. No engine is needed."""

import platform
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.scripted_engine import listed
from support.tables import toml_table

from torchx_tui.backends.api import Stream
from torchx_tui.backends.docker import labels
from torchx_tui.backends.docker.app_def import roles_of
from torchx_tui.backends.docker.containers import (
    address,
    describe_health,
    exit_code,
    finished_at,
    seconds_of,
    started_at,
)
from torchx_tui.backends.docker.networks import networks_to_create
from torchx_tui.backends.docker.preflight import engine_cluster, engine_findings, launch_findings
from torchx_tui.backends.docker.refusals import explain_refusal
from torchx_tui.backends.docker.request import DockerContainer, DockerOpts, host_name
from torchx_tui.backends.docker.run_line import docker_run_line
from torchx_tui.backends.docker.scheduler import DockerScheduler
from torchx_tui.backends.docker.states import exited_state, summarize, why
from torchx_tui.specs.errors import BackendUnavailableError
from torchx_tui.specs.mounts import BindMount, VolumeMount
from torchx_tui.specs.named_resources_aws import EFA_DEVICE
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState

ROWS = toml_table(Path(__file__).with_name("engine_answers.toml"))

INFO = {"NCPU": 8, "MemTotal": 16_000_000_000, "Driver": "overlay2", "ServerVersion": "24.0"}


class CannedEngine:
    """Answers as an engine does, from what a test put into it."""

    def __init__(
        self,
        info,
        images=None,
        failure=None,
    ):
        self._info = info
        self._images = images or []
        self._failure = failure
        self.host = "unix:///run/docker.sock"
        self.is_remote = False
        self.closed = 0
        self.api = self

    @contextmanager
    def translate_errors(self):
        if self._failure:
            raise self._failure
        yield

    def new_client(self, timeout=None):
        return self

    client = new_client

    def info(self):
        return self._info

    def images(self):
        return self._images

    def close(self):
        self.closed += 1


def findings(**changes):
    engine: Any = CannedEngine({**INFO, **changes})
    found = engine_findings(engine)
    assert engine.closed == 1
    return [(one.level, one.what) for one in found]


def test_of_an_engine_elsewhere_only_the_size_is_known():
    engine: Any = CannedEngine({**INFO, "Name": "far", "ContainersRunning": 2})
    engine.is_remote = True
    (pool,) = engine_cluster(engine).pools
    note = "8 CPUs, 15 GB; how much is free is not known, 2 containers running"
    assert (pool.name, pool.kind, pool.cpus, pool.note) == ("far", "machine", 0, note)
    engine.is_remote = False
    (here,) = engine_cluster(engine).pools
    assert (here.name, here.cpus, here.note) == (platform.node(), psutil.cpu_count(), "2 containers running")


@pytest.mark.parametrize(("info", "more"), ROWS["engines"])
def test_findings_of_an_engine(info, more):
    first, *others = findings(**info)
    assert first == ("ok", "Docker 24.0 at /run/docker.sock: 8 cpu, 16 GB, overlay2")
    assert others == [tuple(one) for one in more]


def test_the_engines_version_and_size():
    assert findings(ServerVersion="5.4.2", BuildahVersion="1.39")[0][1].startswith("Podman 5.4.2 at /run/docker.sock")
    assert findings(MemTotal=None)[0][1].endswith("8 cpu, 0 GB, overlay2")
    away: Any = CannedEngine(INFO)
    away.is_remote = True
    assert [one.level for one in engine_findings(away)] == ["ok", "warning"]
    gone: Any = CannedEngine(INFO, failure=BackendUnavailableError("no engine answers", "start it: now"))
    (finding,) = engine_findings(gone)
    assert (finding.level, finding.what, finding.hint) == ("error", "no engine answers", "start it: now")


def faults(role, *, pull=True, remote=False, images=(), **changes):
    engine: Any = CannedEngine({**INFO, **changes}, [{"Id": "sha256:a", "RepoTags": ["here:latest"]}, *images])
    engine.is_remote = remote
    found = launch_findings(engine, AppDef("x", [role]), DockerOpts(pull=pull))
    assert all(one.hint for one in found)
    return [f"{one.level}: {one.what}" for one in found]


def role(image="here", cpu=1, gpu=0, memory=64, **fields):
    return Role("r", image, entrypoint="sh", resource=Resource(cpu, gpu, memory), **fields)


@pytest.mark.parametrize(("asked", "engine", "expected"), ROWS["launches"])
def test_what_a_launch_would_find(asked, engine, expected):
    assert faults(role(**asked), **engine) == expected


def test_a_launch_without_limits_on_the_engines_side():
    assert faults(role(cpu=9), NCPU=None) == faults(role(memory=99999), MemTotal=None) == []


def test_devices_and_mounts_of_a_launch():
    odd = Role("r", "here", entrypoint="sh", resource=Resource(1, 0, 64, devices={"odd": 1, EFA_DEVICE: 1}))
    assert faults(odd) == ["warning: r: the device odd is not known here"]
    mounted = role(mounts=[BindMount("/no/such", "/x"), BindMount("/", "/y"), VolumeMount("v", "/z")])
    assert faults(mounted) == ["error: r: the mount's source /no/such does not exist"]
    assert faults(mounted, remote=True) == []


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("busybox:local", "localhost/busybox:local"),
        ("busybox", "localhost/busybox:latest"),
        ("python:3.12", "docker.io/library/python:3.12"),
        ("a/b:1", "docker.io/a/b:1"),
    ],
)
def test_preflight_finds_short_names_of_podman(image, tag):
    assert faults(role(image), images=[{"Id": "sha256:b", "RepoTags": [tag]}]) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        *ROWS["commands"],
        ({"labels": {labels.APP_DEF: "{}"}}, f"--label '{labels.APP_DEF}=<2 bytes of JSON>'"),
        ({"ports": {"80/tcp": ("127.0.0.1", None)}}, "--publish 127.0.0.1::80/tcp"),
        ({"ports": {"80/tcp": ("127.0.0.1", 8080)}}, "--publish 127.0.0.1:8080:80/tcp"),
        ({"ports": {"80/tcp": None}}, "--publish 80/tcp"),
    ],
)
def test_the_command_that_makes_a_container(arguments, words):
    line = docker_run_line("i", ["run", "--token", "x"], arguments)
    assert line == f"docker run --detach {words} i run --token '********'".replace("  ", " ")


def test_a_host_name_is_short_enough_for_the_kernel():
    assert host_name("a" * 63, 7) == "a" * 63
    assert host_name("a" * 64, 7) == "a" * 61 + "-7"


# A start that is refused


@pytest.mark.parametrize(("answer", "words"), ROWS["refusals"])
def test_why_a_container_is_not_started(answer, words):
    assert explain_refusal(answer, DockerContainer("busybox", ["run", "-x"], {})) == (words or answer)


def test_a_command_of_the_image_that_is_missing():
    words = explain_refusal(
        'OCI runtime create failed: exec: "run": executable file not found in $PATH', DockerContainer("busybox", [], {})
    )
    assert words == "no such command: the image's own: the image busybox does not have it"


def test_which_networks_have_to_be_made():
    given = ["torchx", None, "", "bridge", "host", "none", "default", "mine", "torchx"]
    assert networks_to_create(given) == ["torchx", "mine"]


def test_capabilities_are_those_of_an_engine():
    can = DockerScheduler.capabilities
    assert can.retries
    assert set(can.log_streams) == set(Stream)
    assert not can.remembers_cancel


# States


@pytest.mark.parametrize(("age", "states", "words"), ROWS["waits"])
def test_what_an_app_waits_for(monkeypatch, age, states, words):
    monkeypatch.setattr(time, "time", lambda: 100.0 + age)
    containers = [listed(k, *state.split(" ", 1)) for k, state in enumerate(states)]
    assert why(summarize("app-x", containers)) == words


def test_times_of_an_engine():
    assert seconds_of("1970-01-01T00:00:02.5Z") == 2.5
    assert (seconds_of("0001-01-01T00:00:00Z"), seconds_of(""), seconds_of(None)) == (None, None, None)
    state = {"StartedAt": "1970-01-01T00:00:01Z", "FinishedAt": "1970-01-01T00:00:03Z"}
    for word, end in (("exited", 3.0), ("dead", 3.0), ("running", None), ("restarting", None)):
        inspected = {"State": {**state, "Status": word, "ExitCode": 7}}
        assert (started_at(inspected), finished_at(inspected)) == (1.0, end)
    assert exit_code({"State": {"ExitCode": 7}}, AppState.FAILED) == 7
    assert exit_code({"State": {"ExitCode": 0}}, AppState.SUCCEEDED) == 0
    assert exit_code({"State": {"ExitCode": 0}}, AppState.RUNNING) is None
    assert [exited_state(code) for code in (0, 1, None)] == [AppState.SUCCEEDED, AppState.FAILED, AppState.FAILED]


@pytest.mark.parametrize(("found", "words"), ROWS["health"])
def test_a_health_check_that_fails(found, words):
    assert describe_health({"State": {"Health": found}}) == words
    assert describe_health({"State": {}}) == ""


def test_the_address_in_the_apps_network():
    networks = {"a": {"IPAddress": ""}, "b": {"IPAddress": "172.29.0.2"}}
    assert address({"NetworkSettings": {"Networks": networks}}) == "172.29.0.2"
    assert address({"NetworkSettings": {"Networks": None}}) is None
    assert address({}) is None


# Roles by their containers


def rebuilt(**host):
    marks = {labels.APP_ID: "job-x1", labels.ROLE_NAME: "worker", labels.REPLICA_ID: "0"}
    config = {"Labels": marks, "Cmd": ["run"], "Env": [], "Image": "i"}
    (role,) = roles_of([{"Image": "sha256:a", "Config": config, "HostConfig": host}], lambda _: (), [])
    return role


def test_limits_become_a_resource_again():
    assert rebuilt().resource == Resource(cpu=-1, gpu=0, memMB=-1)
    asked = rebuilt(NanoCpus=2_000_000_000, Memory=64 << 20, DeviceRequests=[{"Count": 2}, {"Count": None}])
    assert (asked.resource.cpu, asked.resource.gpu, asked.resource.memMB) == (2, 2, 64)
    assert isinstance(asked.resource.cpu, int)
    half = rebuilt(NanoCpus=500_000_000, DeviceRequests=[{"Count": -1}])
    assert (half.resource.cpu, half.resource.gpu) == (0.5, 0)
