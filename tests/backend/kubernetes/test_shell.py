"""A shell in a pod, in a real pseudo-terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pexpect
import pytest
from support.kubernetes_cluster import KubernetesCluster
from support.waiting import PATIENCE

from torchx_tui.backends.kubernetes.describe import described_now, port_forward_line
from torchx_tui.backends.kubernetes.shell import shell_command
from torchx_tui.specs import JobNotFoundError, SchedulerError

from .support import Job, job_on


@pytest.fixture
def job(kubernetes_cluster: KubernetesCluster) -> Iterator[Job]:
    with job_on(kubernetes_cluster) as made:
        yield made


def test_a_shell_on_a_terminal(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-color")
    job.start("sleep 600")
    job.wait_until_running()
    command = shell_command(job.server, job.app_id, "worker", 0)
    child = pexpect.spawn(command[0], command[1:], dimensions=(31, 87), timeout=PATIENCE, encoding="utf-8")
    child.expect("# ")
    child.sendline("hostname; stty size; tty; echo $TERM")
    child.expect(r"job-worker-0-0\s+31 87\s+/dev/pts\S+\s+xterm-color")
    child.setwinsize(41, 99)
    # The new size reaches the shell some moments later.
    child.sendline("while [ \"$(stty size)\" != '41 99' ]; do sleep 0.1; done; echo it is $((6 * 7))")
    child.expect("it is 42")
    # In a process of its own, so that no moment is left in which nobody would end.
    child.sendline("sh -c 'echo begun $((1 + 1)); exec sleep 3600'")
    child.expect("begun 2")
    child.sendcontrol("c")
    child.expect("# ")
    # More than a frame at once.
    child.sendline("seq 1 20000 | tail -c 70000; echo all of $((10 + 1))")
    child.expect("all of 11")
    child.sendline("exit 5")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 5


def test_the_terminal_is_as_it_was_afterwards(job: Job) -> None:
    job.start("sleep 600")
    job.wait_until_running()
    command = shell_command(job.server, job.app_id, "worker", 0)
    child = pexpect.spawn("sh", ["-c", 'before=$(stty -g); "$@"; [ "$before" = "$(stty -g)" ] && echo the same', "sh",
                                 *command], timeout=PATIENCE, encoding="utf-8")  # fmt: skip
    child.expect("# ")
    child.sendcontrol("d")
    child.expect("the same")


def test_bash_where_the_image_has_it(job: Job) -> None:
    job.start("cp /bin/busybox /bin/bash; sleep 600")
    job.wait_until_running()
    assert shell_command(job.server, job.app_id, "worker", 0)[-1] == "/bin/bash"


def test_an_image_without_a_shell(job: Job) -> None:
    # A container may lose what its image had.
    job.start("", command=["sh", "-c", "rm -f /bin/sh /bin/bash /bin/ash; exec /bin/busybox sleep 600"])
    job.wait_until_running()
    with pytest.raises(SchedulerError, match="busybox:local, has no shell"):
        shell_command(job.server, job.app_id, "worker", 0)


def test_a_replica_that_does_not_run(job: Job) -> None:
    job.start("true").wait()
    with pytest.raises(SchedulerError, match=r"worker/0 of .* is succeeded: this needs a running replica"):
        shell_command(job.server, job.app_id, "worker", 0)
    with pytest.raises(ValueError, match="worker"):
        shell_command(job.server, job.app_id, "nobody", 0)
    with pytest.raises(JobNotFoundError):
        shell_command(job.server, f"{job.cluster.namespace}:no-such-app", "worker", 0)


def test_the_program_says_what_is_wrong(kubernetes_cluster: KubernetesCluster) -> None:
    module = "torchx_tui.backends.kubernetes.shell"
    program = [sys.executable, "-m", module, "''", kubernetes_cluster.namespace, "no-such-pod", "main", "sh"]
    said, code = pexpect.run(
        " ".join(program), withexitstatus=True, encoding="utf-8", timeout=PATIENCE, env=dict(os.environ)
    )
    assert code == 1
    assert "no-such-pod" in said
    assert "Traceback" not in said


def test_ports_of_running_replicas_come_with_their_commands(job: Job) -> None:
    ports = [{"name": "tensorboard", "containerPort": 6006}, {"name": "dns", "containerPort": 53, "protocol": "UDP"}]
    job.start("sleep 600", container={"ports": ports})
    job.wait_until_running()
    found = described_now(job.server, job.app_id)
    assert found is not None
    (port,) = found[1].ports
    assert (port.role, port.replica, port.name, port.container_port) == ("worker", 0, "tensorboard", 6006)
    assert port.command.endswith(f"--namespace {job.cluster.namespace} port-forward pod/job-worker-0-0 6006:6006")


@pytest.mark.parametrize(
    ("context", "port", "expected"),
    [
        ("lab", 8080, "kubectl --context lab --namespace team port-forward pod/job-worker-0-0 8080:8080"),
        ("", 80, "kubectl --namespace team port-forward pod/job-worker-0-0 8080:80"),
        ("a b", 6006, "kubectl --context 'a b' --namespace team port-forward pod/job-worker-0-0 6006:6006"),
    ],
)
def test_how_a_port_is_reached(context: str, port: int, expected: str) -> None:
    assert port_forward_line(context, "team", "job-worker-0-0", port) == expected
