"""Shells and commands in pods."""

import fcntl
import json
import os
import resource
import ssl
import sys
import time
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import pexpect
import pytest
from backend.kubernetes.kubeconfigs import write_kubeconfig
from backend.kubernetes.tables import table
from kubernetes.client import ApiClient, Configuration
from support.scripted_server import status
from support.volcano_jobs import make_job
from support.waiting import PATIENCE

from torchx_tui.backends.kube.api_server import ApiError, ApiServer
from torchx_tui.backends.kube.shell import PodExec, main, relay, run_in_pod
from torchx_tui.backends.kubernetes.scheduler import KubernetesScheduler
from torchx_tui.specs.errors import SchedulerError

from .support import job_on


@pytest.fixture
def command(kubernetes_cluster):
    """Give the command of a shell in a pod that runs."""
    with job_on(kubernetes_cluster) as job:
        job.start("sleep 600")
        job.wait_until_running()
        yield lambda: KubernetesScheduler("torchx").shell_command(job.app_id, "worker", 0)


def spawn(program, arguments):
    return pexpect.spawn(program, arguments, dimensions=(31, 87), timeout=PATIENCE, encoding="utf-8")


def test_shell_on_a_terminal(command, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-color")
    program, *arguments = command()
    child = spawn(program, arguments)
    child.expect("# ")
    child.sendline("hostname; stty size; tty; echo $TERM")
    child.expect(r"job-worker-0-0\s+31 87\s+/dev/pts\S+\s+xterm-color")
    child.setwinsize(41, 99)
    # The new size reaches the shell some moments later.
    child.sendline("while [ \"$(stty size)\" != '41 99' ]; do sleep 0.1; done; echo it is $((6 * 7))")
    child.expect("it is 42")
    # In a process of its own, which ctrl+c ends at any moment.
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


def test_terminal_is_restored(command):
    script = 'before=$(stty -g); "$@"; [ "$before" = "$(stty -g)" ] && echo the same'
    child = spawn("sh", ["-c", script, "sh", *command()])
    child.expect("# ")
    child.sendcontrol("d")
    child.expect("the same")


# On a scripted server

PODS = "/api/v1/namespaces/space/pods"
EXEC = f"{PODS}/job-x-worker-0-0/exec"


def pod(k, **phase):
    labels = {"torchx.pytorch.org/role-name": "worker", "torchx.pytorch.org/replica-id": str(k)}
    own = {"name": f"worker-{k}", "state": {"running": {}} if phase == {"phase": "Running"} else {"waiting": {}}}
    return {
        "metadata": {"name": f"job-x-worker-{k}-0", "namespace": "space", "labels": labels},
        "spec": {"containers": [{"name": f"worker-{k}", "image": "busybox"}, {"name": "side", "image": "other"}]},
        "status": {**phase, "containerStatuses": [own]},
    }


@pytest.fixture
def server(server):
    """Return a server with a job of three replicas: one that runs, one that waits, and one without a pod."""
    server.gives("/apis/batch.volcano.sh/v1alpha1/namespaces/space/jobs/job-x", make_job("job-x", replicas=3))
    server.lists(PODS, pod(0, phase="Running"), pod(1, phase="Pending"))
    return server


REPLICA = ("space:job-x", "worker", 0)


def on(server):
    """Return a scheduler on a server."""
    return KubernetesScheduler("mine", server.client())


class Connection:
    """A websocket that gives frames, and takes what is sent."""

    def __init__(self, *frames):
        self._frames = iter(frames)
        self.sock = SimpleNamespace(pending=lambda: 1)
        self.sent = []
        self.send_binary = self.sent.append
        self.calls = []

    def recv_data_frame(self, control_frame):
        kind, data = next(self._frames, (8, None))
        return kind, None if data is None else SimpleNamespace(data=data)

    def settimeout(self, seconds):
        self.calls.append(seconds)

    def close(self, timeout):
        self.calls.append(f"closed {timeout}")


@pytest.fixture
def connected(monkeypatch):
    """Return what lets connections give frames, and returns the requested connections."""

    def connect(*frames):
        asked = []

        def create(address, **options):
            made = Connection(*frames)
            asked.append((address, {**options, "made": made}))
            return made

        monkeypatch.setattr("websocket.create_connection", create)
        return asked

    return connect


def out(text):
    return 2, b"\x01" + text


def result(**fields):
    return 2, b"\x03" + json.dumps(fields).encode()


SUCCESS = result(status="Success")
FAILED_WITH_7 = result(
    status="Failure", details={"causes": [{"reason": "Odd"}, {"reason": "ExitCode", "message": "7"}]}
)


@pytest.mark.parametrize(("end", "code"), [(SUCCESS, 0), (FAILED_WITH_7, 7)])
def test_command_beside_a_replica(server, connected, end, code):
    printed = (out(b"out"), (9, b"\x01a ping"), (2, b""), (1, b"\x02err"), (0, b"\x01 more"), (2, b"\x07odd"))
    asked = connected(*printed, end, (8, b""), out(b"never"))
    found = on(server).run_beside(*REPLICA, ["ls", "-l"], PATIENCE)
    assert (found.code, found.out, found.err) == (code, b"out more", b"err")
    ((address, options),) = asked
    assert address == (
        f"{server.url.replace('http:', 'ws:')}{EXEC}?container=worker-0&stdout=true&stderr=true&command=ls&command=-l"
    )
    assert (options["subprotocols"], options["http_no_proxy"]) == (["v4.channel.k8s.io"], ["*"])
    assert (options["made"].calls[0], options["made"].calls[-1]) == (20.0, "closed 0")


def test_command_that_takes_too_long(server, connected):
    connected(out(b"out"), SUCCESS)
    late = on(server).run_beside(*REPLICA, ["ls"], 0.0)
    assert (late.code, late.out, late.err) == (None, b"", b"")


def assert_refused(server, message):
    with pytest.raises(SchedulerError) as raised:
        on(server).run_beside(*REPLICA, ["ls"], PATIENCE)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "status",
    [b"{", b"[1]", b"[" * 100_000, b'{"details": 3}', b'{"details": {"causes": [1]}}',
     b'{"details": {"causes": [{"reason": "ExitCode", "message": "x"}]}}'],
    ids=lambda text: repr(text)[:20],
)  # fmt: skip
def test_malformed_status_is_an_error(server, connected, status):
    connected((2, b"\x03" + status))
    assert_refused(server, "the server's message on how the program ended cannot be read")


@table("shell.yaml", "commands", "frames message")
def test_command_that_cannot_be_run(server, connected, frames, message):
    connected(*(result(**frame) for frame in frames))
    assert_refused(server, message)


def test_output_of_a_command_is_bounded(server, connected, monkeypatch):
    monkeypatch.setattr("torchx_tui.backends.kube.shell.RUN_BESIDE_BYTES", 1 << 20)
    connected(out(bytes(1 << 21)))
    assert_refused(server, "the command printed more than 1 MB")


@pytest.mark.parametrize(
    "act", [KubernetesScheduler.shell_command, partial(KubernetesScheduler.run_beside, argv=["ls"])]
)
def test_replica_that_does_not_run(server, act):
    def assert_needed(k, words):
        with pytest.raises(SchedulerError, match=f"^{words}: this needs a running replica$"):
            act(on(server), "space:job-x", "worker", k)

    assert_needed(1, "worker/1 of space:job-x is pending")
    assert_needed(2, "the pod of worker/2 of space:job-x does not exist")
    server.lists(PODS, pod(2))
    assert_needed(2, "worker/2 of space:job-x is unknown")


@pytest.mark.parametrize(("term", "used"), [(None, "xterm"), ("vt100", "vt100")])
def test_shell_command(server, connected, monkeypatch, term, used):
    monkeypatch.delenv("TERM") if term is None else monkeypatch.setenv("TERM", term)
    connected((2, b"\x02no bash"), out(b"/bin/bash\n"), out(b"/bin/sh\n"), SUCCESS)
    assert on(server).shell_command(*REPLICA) == [
        sys.executable, "-m", "torchx_tui.backends.kube.shell", "", "space", "job-x-worker-0-0", "worker-0",
        "/bin/bash", "-c", 'TERM="$0" exec "$1"', used, "/bin/bash",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "frames", [[out(b"/bin/sh\n"), FAILED_WITH_7], [SUCCESS], [result(message="not found in $PATH")]]
)
def test_image_without_a_shell(server, connected, frames):
    connected(*frames)
    with pytest.raises(SchedulerError, match=r"^the image of worker/0, busybox, has no shell"):
        on(server).shell_command(*REPLICA)


@table("shell.yaml", "refusals", "answer error words reason")
def test_refused_connection(server, answer, error, words, reason):
    server.answers["GET", EXEC] = tuple(answer) if answer else lambda asked: None
    with pytest.raises(SchedulerError) as raised:
        on(server).run_beside(*REPLICA, ["ls"], PATIENCE)
    assert (type(raised.value).__name__, words in str(raised.value)) == (error, True)
    if isinstance(raised.value, ApiError):
        assert (str(raised.value), raised.value.status, raised.value.reason) == (words, answer[0], reason or "")


def test_program_says_why_it_cannot_connect(server, tmp_path, monkeypatch, capsys):
    path = write_kubeconfig(tmp_path / "kubeconfig", {"token": "t"}, server.url)
    monkeypatch.setenv("KUBECONFIG", str(path))
    server.answers["GET", EXEC] = status(404, "NotFound", "there is no such pod")
    assert main(["test", "space", "job-x-worker-0-0", "worker-0", "sh"]) == 1
    assert capsys.readouterr().err == "there is no such pod\n"
    asked = server.asked[-1]
    assert asked.headers["Authorization"] == "Bearer t"
    options = {"stdout": "true", "stderr": "false", "stdin": "true", "tty": "true"}
    assert asked.params == {"container": "worker-0", "command": "sh", **options}


@pytest.fixture
def connect(connected, monkeypatch):
    """Return what connects to a pod by these settings, and returns the connection's address and options."""
    # It would read the files, and import a proxy's package.
    monkeypatch.setattr("kubernetes.client.rest.RESTClientObject", lambda _: SimpleNamespace(pool_manager=None))

    def connect_with(**settings):
        configuration = Configuration()
        configuration.host = "https://server.test:6443"
        for name, value in settings.items():
            setattr(configuration, name, value)
        calls = connected()
        with run_in_pod(ApiServer(client=ApiClient(configuration)), "space", "p", "c", ["sh"]):
            return calls[0]

    return connect_with


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, {"cert_reqs": ssl.CERT_REQUIRED}),
        ({"verify_ssl": False}, {"cert_reqs": ssl.CERT_NONE, "check_hostname": False}),
        ({"ssl_ca_cert": "ca.pem", "cert_file": "c.pem", "key_file": "k.pem", "tls_server_name": "name"},
         {"cert_reqs": ssl.CERT_REQUIRED, "ca_certs": "ca.pem", "certfile": "c.pem", "keyfile": "k.pem",
          "server_hostname": "name"}),
    ],
)  # fmt: skip
def test_tls_of_a_connection(connect, settings, options):
    address, found = connect(**settings)
    assert address.startswith("wss://server.test:6443/api/v1/namespaces/space/pods/p/exec?")
    assert found["sslopt"] == options


@pytest.mark.parametrize(
    ("proxy", "kind"),
    [("http://proxy.test:3128", "http"), ("socks5://proxy.test:3128", "socks5"), ("//proxy.test:3128", "http")],
)
def test_proxy_of_a_connection(connect, proxy, kind):
    options = connect(proxy=proxy)[1]
    names = ("http_proxy_host", "http_proxy_port", "proxy_type")
    assert [options[name] for name in names] == ["proxy.test", 3128, kind]
    assert "http_no_proxy" not in options


def test_descriptor_above_1023_is_read(server, connected):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < 2048:
        pytest.skip("the limit of open files is too low")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    reading, writing = os.pipe()
    high = fcntl.fcntl(reading, fcntl.F_DUPFD, 1500)
    os.write(writing, b"x")
    connection: Any = Connection(out(b"read"), SUCCESS)
    connection.sock, connection.fileno = object(), lambda: high
    assert PodExec(connection).output(time.monotonic() + PATIENCE) == (b"read", b"", True)
    for descriptor in (reading, writing, high):
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def terminal():
    """Give the other end of this process's terminal."""
    keyboard, screen = os.openpty()
    # Not in a fixture: pytest replaces the streams between setup and test.
    with open(screen) as opened, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", opened)
        patch.setattr(sys, "stdout", opened)
        yield keyboard
    os.close(keyboard)


def test_frozen_container_is_an_error():
    (silent, *others), (resized, *more) = os.pipe(), os.pipe()
    connection: Any = Connection()
    connection.sock, connection.fileno = object(), lambda: silent
    with terminal(), pytest.raises(SchedulerError, match=r"the container does not answer within 0 s: is it frozen\?"):
        relay(PodExec(connection), resized, 0.05)
    for descriptor in (silent, resized, *others, *more):
        os.close(descriptor)


def test_frozen_container_is_not_one_without_a_shell(server, connected, monkeypatch):
    monkeypatch.setattr(PodExec, "output", lambda running, deadline: (b"", b"", False))
    connected()
    with pytest.raises(SchedulerError, match="the container of worker/0 does not answer within 20 s: is it frozen"):
        on(server).shell_command(*REPLICA)


def test_size_is_sent_first(monkeypatch):
    connection: Any = Connection(out(b"shown"))
    connection.fileno = lambda: -1
    monkeypatch.setattr("torchx_tui.backends.kube.shell.terminal_size", lambda: os.terminal_size((87, 31)))
    # main() would need a terminal of its own.
    with terminal() as keyboard:
        relay(PodExec(connection), -2)
        assert os.read(keyboard, 100) == b"shown"
    assert connection.sent == [b'\x04{"Width": 87, "Height": 31}']
