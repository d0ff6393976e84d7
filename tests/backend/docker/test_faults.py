"""What goes wrong on a real engine: the right state, the reason in words, nothing left behind."""

import socket
import subprocess
import sys
import time

import pytest
from support.waiting import wait_until

from torchx_tui.specs.errors import SchedulerError
from torchx_tui.specs.mounts import BindMount
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState


def refusal(docker, *roles):
    """Return why a launch is refused; nothing may be left of it."""
    with pytest.raises(SchedulerError) as raised:
        docker.submit(AppDef("job", list(roles)))
    assert docker.containers() == []
    assert "was not launched" in str(raised.value)
    return str(raised.value)


def test_a_command_that_is_missing(docker):
    role = Role("worker", "busybox:local", entrypoint="no-such-program", num_replicas=3)
    words = refusal(docker, docker.role("sleep 3600", "first", num_replicas=2), role)
    assert "worker/" in words
    assert "no such command: no-such-program" in words


def test_an_image_that_is_missing(docker):
    words = refusal(docker, docker.role("sleep 3600", "first"), docker.role("true", image="no-such-image:1"))
    assert "worker/0: there is no image no-such-image:1" in words


def test_a_name_that_is_taken(docker):
    info = docker.scheduler.submit_dryrun(AppDef("job", [docker.role("sleep 3600", num_replicas=3)]), {"pull": False})
    taken = info.request.containers[2].kwargs["name"]
    other = docker.api.create_container("busybox:local", ["sh"], name=taken)
    try:
        with pytest.raises(
            SchedulerError, match=rf"worker/2: the name {taken} is taken .*docker rm {other['Id'][:12]}"
        ):
            docker.scheduler.schedule(info)
        assert docker.containers() == []
    finally:
        docker.api.remove_container(other["Id"])


def test_gpus_without_a_runtime(docker):
    words = refusal(docker, docker.role("true", resource=Resource(cpu=1, gpu=2, memMB=64)))
    assert "worker/0: there is no GPU runtime" in words
    assert "gpu=0" in words


def test_a_port_that_is_in_use(docker):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        info = docker.scheduler.submit_dryrun(AppDef("job", [docker.role("sleep 3600")]), {"pull": False})
        # As a role's own `pre_proc` may ask for it.
        info.request.containers[0].kwargs["ports"] = {"80/tcp": ("127.0.0.1", port)}
        with pytest.raises(SchedulerError, match=rf"worker/0: port 127\.0\.0\.1:{port} is in use"):
            docker.scheduler.schedule(info)
    assert docker.containers() == []


def test_a_mount_whose_source_is_missing(docker):
    words = refusal(docker, docker.role("true", mounts=[BindMount("/no/such/folder", "/data")]))
    assert "/no/such/folder does not exist" in words


def test_more_cpus_than_there_are(docker):
    assert "ask for fewer" in refusal(docker, docker.role("true", resource=Resource(cpu=10_000, gpu=0, memMB=64)))


def test_replicas_reach_one_another_by_name(docker):
    # The other one may start a little later.
    script = "until ping -c 1 -W 5 $TORCHX_RANK0_HOST; do sleep 0.1; done"
    app_id = docker.submit(AppDef("job", [docker.role("sleep 3600", "first"), docker.role(script, "second")]))
    second = wait_until(lambda: docker.describe(app_id).roles_statuses[1].replicas[0].exit_code is not None, "the ping")
    assert second
    assert docker.describe(app_id).roles_statuses[1].replicas[0].exit_code == 0


def test_out_of_memory(docker):
    program = "x = bytearray(200 * 1024 * 1024); print(len(x))"
    role = Role("eater", "python:local", entrypoint="python3", args=["-c", program], resource=Resource(1, 0, 32))
    app_id = docker.submit(AppDef("job", [role]))
    described = docker.ended(app_id)
    assert described.state == AppState.FAILED
    assert described.msg == "out of memory: killed at its limit of 32 MB (exit 137): eater/0"


def test_retries_are_the_engines(docker):
    app_id = docker.launch("exit 4", max_retries=2)
    described = wait_until(
        lambda: (found := docker.describe(app_id)).num_restarts == 2 and found.has_ended and found, "two restarts"
    )
    assert described.state == AppState.FAILED
    assert described.roles_statuses[0].replicas[0].restarts == 2


def test_a_container_that_someone_else_removed(docker):
    app_id = docker.launch("sleep 3600", replicas=3)
    docker.running(app_id)
    docker.api.remove_container(docker.containers(app_id)[0]["Id"], force=True)
    described = docker.describe(app_id)
    assert described.state == AppState.RUNNING
    assert described.msg.startswith("1 replica was removed by someone else")
    states = [one.state for one in described.roles_statuses[0].replicas]
    assert sorted(states) == [AppState.RUNNING, AppState.RUNNING, AppState.UNKNOWN]
    docker.scheduler.cancel(app_id)
    assert docker.ended(app_id).state == AppState.FAILED


def test_stubborn_replicas_take_one_grace_period(make_docker):
    docker = make_docker(grace_seconds=5)
    app_id = docker.launch("trap '' TERM; while :; do sleep 0.2; done", replicas=8)
    docker.running(app_id)
    began = time.monotonic()
    docker.scheduler.cancel(app_id)
    asked = time.monotonic() - began
    docker.ended(app_id)
    took = time.monotonic() - began
    assert asked < 4  # far from a grace for each
    assert took < 8 * 5 / 2
    assert {one.exit_code for one in docker.describe(app_id).roles_statuses[0].replicas} == {137}


def test_a_cancel_goes_on_without_us(docker):
    app_id = docker.launch("trap '' TERM; while :; do sleep 0.2; done", replicas=3)
    docker.running(app_id)
    program = (
        "import sys; from torchx_tui.backends.docker.scheduler import DockerScheduler; "
        "DockerScheduler('other', grace_seconds=2).cancel(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", program, app_id], check=True)
    assert {one.exit_code for one in docker.ended(app_id).roles_statuses[0].replicas} == {137}
