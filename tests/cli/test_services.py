"""run on Docker and Kubernetes: what is waited for, and what a signal ends."""

from __future__ import annotations

import json

from support.shell import interrupted, shell
from support.waiting import wait_until

DOCKER = ("run", "-s", "local_docker")
WORDS = ("utils.sh", "--image", "busybox:local", "--memMB", "64", "--")


def test_a_docker_job_is_waited_for_as_torchx_does(command, docker_engine):
    ended = command(*DOCKER, "--json", *WORDS, "echo", "from a container")
    try:
        assert (ended.code, ended.data["state"]) == (0, "SUCCEEDED")
        assert ended.err == "sh/0 from a container\n"
        assert command("wait", ended.data["handle"]).code == 0
    finally:
        command("delete", ended.data["handle"])


def test_a_signal_ends_a_docker_job_and_detach_leaves_it(docker_engine):
    detached = shell(*DOCKER, "--detach", *WORDS, "sleep", "3600").stdout.strip()
    try:
        with interrupted(*DOCKER, *WORDS) as (handle, _):
            states = {handle: "CANCELLED", detached: "RUNNING"}

            def seen(one: str) -> str:
                return json.loads(shell("status", "--json", one).stdout)["state"]

            wait_until(lambda: {one: seen(one) for one in states} == states, "the cancel of one of them")
    finally:
        shell("delete", detached)


def test_a_kubernetes_job_is_left_alone_and_waited_for_when_asked(command, kubernetes_cluster):
    cfg = f"queue=default,namespace={kubernetes_cluster.namespace},reserved_millicpu=1000"
    argv = ["run", "-s", "kubernetes", "-cfg", cfg]
    submitted = command(*argv, *WORDS, "echo", "from a pod")
    assert submitted.code == 0
    handle = submitted.out.strip()
    assert handle.startswith(f"kubernetes://torchx/{kubernetes_cluster.namespace}:sh-")
    assert command("wait", handle).code == 0
    listed = command("list", "-s", "kubernetes", "-cfg", f"namespace={kubernetes_cluster.namespace}", "--json").data
    assert [(one["handle"], one["state"]) for one in listed] == [(handle, "SUCCEEDED")]
    waited = command(*argv, "--log", "--json", *WORDS, "sh", "-c", "echo from a pod; exit 3")
    assert (waited.code, waited.data["state"]) == (1, "FAILED")
    assert "sh/0 from a pod" in waited.err
