"""What goes wrong on a real engine: the right state, the reason in words, nothing left behind."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time

import pytest
from backend.docker.support import Docker
from support.waiting import wait_until

from torchx_tui.backends.docker.networks import ensure_network
from torchx_tui.backends.docker_engine.client import Engine
from torchx_tui.backends.shared.progress import Progress, shown_progress
from torchx_tui.specs.errors import LaunchCancelledError, SchedulerError
from torchx_tui.specs.mounts import BindMount
from torchx_tui.specs.resources import Resource
from torchx_tui.specs.roles import AppDef, Role
from torchx_tui.specs.status import AppState


def refusal(docker: Docker, *roles: Role) -> str:
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
    words = refusal(docker, docker.role("true", resource=Resource(cpu=10_000, gpu=0, memMB=64)))
    assert "ask for fewer" in words


def test_a_launch_that_is_ended_meanwhile(docker):
    said: list[str] = []

    def show(text):
        said.append(text)
        if text.startswith("starting"):
            progress.cancel()

    progress = Progress(show)
    with shown_progress(progress), pytest.raises(LaunchCancelledError):
        docker.launch("sleep 3600", replicas=4)
    assert docker.containers() == []
    assert "creating 4 of 4" in said


def test_a_network_that_is_lost_before_the_start_is_made_again(docker):
    name = f"lost-{docker.session}"
    info = docker.scheduler.submit_dryrun(AppDef("job", [docker.role("true")]), {"pull": False})
    info.request.containers[0].kwargs["network"] = name

    def lose(text):
        if text == "creating 1 of 1":
            docker.api.remove_network(name)

    with shown_progress(Progress(lose)):
        app_id = docker.scheduler.schedule(info)
    try:
        assert docker.ended(app_id).state == AppState.SUCCEEDED
    finally:
        docker.remove_all()
        docker.api.remove_network(name)


def test_replicas_reach_one_another_by_name(docker):
    # The other one may start a little later.
    script = "until ping -c 1 -W 5 $TORCHX_RANK0_HOST; do sleep 0.1; done"
    app_id = docker.submit(AppDef("job", [docker.role("sleep 3600", "first"), docker.role(script, "second")]))
    second = wait_until(lambda: docker.describe(app_id).roles_statuses[1].replicas[0].exit_code is not None, "the ping")
    assert second
    assert docker.describe(app_id).roles_statuses[1].replicas[0].exit_code == 0


@pytest.mark.parametrize(
    ("script", "state", "signal", "words"),
    [
        ("exit 0", AppState.SUCCEEDED, "", ""),
        ("exit 1", AppState.FAILED, "", "exit 1: worker/0"),
        ("kill -9 $$$$", AppState.FAILED, "SIGKILL", "exit 137 (SIGKILL): worker/0"),
        ("kill -11 $$$$", AppState.FAILED, "SIGSEGV", "exit 139 (SIGSEGV): worker/0"),
        ("trap 'exit 143' TERM; kill -15 $$$$", AppState.FAILED, "SIGTERM", "exit 143 (SIGTERM): worker/0"),
    ],
)
def test_exit_codes(docker, script, state, signal, words):
    # The first process of a container is deaf to signals that it does not handle; `$$` is a macro's `$`.
    app_id = docker.launch(f"sh -c '{script}'; exit $?" if script.startswith("kill") else script)
    described = docker.ended(app_id)
    (replica,) = described.roles_statuses[0].replicas
    assert (described.state, replica.state, replica.signal) == (state, state, signal)
    assert described.msg == (words or "<NONE>")
    (row,) = [row for row in docker.scheduler.list() if row.app_id == app_id]
    assert (row.state, row.msg) == (state, words)


def test_out_of_memory(docker):
    program = "x = bytearray(200 * 1024 * 1024); print(len(x))"
    role = Role("eater", "python:local", entrypoint="python3", args=["-c", program], resource=Resource(1, 0, 32))
    app_id = docker.submit(AppDef("job", [role]))
    described = docker.ended(app_id)
    assert described.state == AppState.FAILED
    assert described.msg == "out of memory: killed at its limit of 32 MB (exit 137): eater/0"


def test_a_python_error_is_the_reason(docker):
    program = "def f():\n    raise ValueError('no such data set')\nf()"
    role = Role("trainer", "python:local", entrypoint="python3", args=["-c", program])
    described = docker.ended(docker.submit(AppDef("job", [role])))
    assert described.msg == "ValueError: no such data set, exit 1: trainer/0"
    assert described.structured_error_msg.startswith("Traceback (most recent call last):")


def test_a_failed_replica_with_others_running(docker):
    app_id = docker.launch("test ${replica_id} != 1 || exit 3; sleep 3600", replicas=3)

    def failed():
        return "exit 3" in docker.describe(app_id).msg

    wait_until(failed, "the failure of one")
    described = docker.describe(app_id)
    assert described.state == AppState.RUNNING
    assert described.msg == "exit 3: worker/1; 2 of 3 still run"
    assert [one.state for one in described.roles_statuses[0].replicas] == [
        AppState.RUNNING,
        AppState.FAILED,
        AppState.RUNNING,
    ]
    (row,) = [row for row in docker.scheduler.list() if row.app_id == app_id]
    assert (row.state, row.msg, row.replicas_running, row.replicas_wanted) == (described.state, described.msg, 2, 3)


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


def test_what_ended_well_but_for_a_removed_one_is_unknown(docker):
    app_id = docker.launch("exit 0", replicas=2)
    docker.ended(app_id)
    docker.api.remove_container(docker.containers(app_id)[0]["Id"])
    described = docker.describe(app_id)
    assert (described.state, described.has_ended) == (AppState.UNKNOWN, True)
    docker.api.remove_container(docker.containers(app_id)[0]["Id"])
    assert docker.scheduler.describe(app_id) is None
    assert not docker.scheduler.exists(app_id)


def test_many_replicas_at_once(docker):
    app_id = docker.launch("sleep 3600", replicas=64, resource=Resource(cpu=-1, gpu=0, memMB=-1))
    described = docker.running(app_id)
    assert [one.id for one in described.roles_statuses[0].replicas] == list(range(64))
    (row,) = [row for row in docker.scheduler.list() if row.app_id == app_id]
    assert (row.replicas_running, row.replicas_wanted) == (64, 64)
    docker.scheduler.delete(app_id)
    assert docker.containers() == []


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


def test_a_second_cancel_sends_no_second_signal(docker):
    app_id = docker.launch("trap 'echo TERM' TERM; echo ready; while :; do sleep 0.1; done")
    wait_until(lambda: list(docker.scheduler.log_iter(app_id, "worker")), "the trap")
    for _ in range(3):
        docker.scheduler.cancel(app_id)
    docker.ended(app_id)
    assert list(docker.scheduler.log_iter(app_id, "worker")) == ["ready\n", "TERM\n"]


def test_delete_leaves_nothing(docker):
    info = docker.scheduler.submit_dryrun(AppDef("job", [docker.role("sleep 3600", num_replicas=2)]), {"pull": False})
    for one in info.request.containers:
        one.kwargs["volumes"] = ["/anonymous"]
    app_id = docker.scheduler.schedule(info)
    network = docker.api.create_network(f"own-{app_id}", labels={"torchx.pytorch.org/app-id": app_id})
    docker.running(app_id)
    volumes = {mount["Name"] for one in docker.containers(app_id) for mount in one["Mounts"]}
    assert len(volumes) == 2
    docker.scheduler.delete(app_id)
    assert docker.containers() == []
    assert docker.api.networks(ids=[network["Id"]]) == []
    assert not volumes & {one["Name"] for one in docker.api.volumes()["Volumes"] or []}
    assert docker.api.networks(names=["torchx"])


def test_cancel_ends_what_never_started(docker):
    info = docker.scheduler.submit_dryrun(AppDef("job", [docker.role("true", num_replicas=2)]), {"pull": False})
    for one in info.request.containers:
        docker.engine.client().containers.create(one.image, one.command, **one.kwargs)
    app_id = info.request.app_id
    assert docker.describe(app_id).state == AppState.SUBMITTED
    docker.scheduler.cancel(app_id)
    assert not docker.scheduler.exists(app_id)


def test_several_launches_make_the_network_once(docker):
    name = f"own-{docker.session}"
    together = threading.Barrier(8)

    def make():
        engine = Engine()
        engine.client()
        together.wait()
        ensure_network(engine, name)

    for _ in range(3):
        threads = [threading.Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        made = docker.api.networks(names=[name])
        for network in made:
            docker.api.remove_network(network["Id"])
        assert len(made) == 1
