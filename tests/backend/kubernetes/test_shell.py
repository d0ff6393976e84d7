"""A shell in a pod, in a real pseudo-terminal."""

from __future__ import annotations

import json
import os
import ssl
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import pexpect
import pytest
from kubernetes.client import ApiClient, Configuration
from support.scripted_server import scripted_server, status
from support.volcano_jobs import make_job
from support.waiting import PATIENCE

from torchx_tui.backends.kubernetes.api_server import ApiError, ApiServer
from torchx_tui.backends.kubernetes.beside import run_beside
from torchx_tui.backends.kubernetes.shell import KEYS, PodExec, _relay, main, run_in_pod, shell_command
from torchx_tui.specs import BackendUnavailableError, SchedulerError

from .support import job_on


@pytest.fixture
def job(kubernetes_cluster):
    with job_on(kubernetes_cluster) as made:
        yield made


def test_a_shell_on_a_terminal(job, monkeypatch):
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


def test_the_terminal_is_as_it_was_afterwards(job):
    job.start("sleep 600")
    job.wait_until_running()
    command = shell_command(job.server, job.app_id, "worker", 0)
    child = pexpect.spawn("sh", ["-c", 'before=$(stty -g); "$@"; [ "$before" = "$(stty -g)" ] && echo the same', "sh",
                                 *command], timeout=PATIENCE, encoding="utf-8")  # fmt: skip
    child.expect("# ")
    child.sendcontrol("d")
    child.expect("the same")


# Where a server answers as it is told to

OF_SPACE = "/api/v1/namespaces/space/pods"
EXEC = f"{OF_SPACE}/job-x-worker-0-0/exec"


@pytest.fixture
def server():
    """Give a server with a job of three replicas: one that runs, one that waits, and one without a pod."""
    with scripted_server() as made:
        job = make_job("job-x", replicas=3)
        made.answers["GET", "/apis/batch.volcano.sh/v1alpha1/namespaces/space/jobs/job-x"] = 200, job
        made.answers["GET", OF_SPACE] = 200, {"items": [pod(0, "Running"), pod(1, "Pending")]}
        yield made


def pod(k, phase=None):
    own = {"name": f"worker-{k}", "state": {"running": {}} if phase == "Running" else {"waiting": {}}}
    return {
        "metadata": {"name": f"job-x-worker-{k}-0", "namespace": "space"},
        "spec": {"containers": [{"name": f"worker-{k}", "image": "busybox"}, {"name": "side", "image": "other"}]},
        "status": {"phase": phase, "containerStatuses": [own]},
    }


class Connection:
    """A websocket that gives frames, and takes what is sent."""

    def __init__(self, *frames):
        self._frames = iter(frames)
        self.sock = SimpleNamespace(pending=lambda: 1)
        self.sent: list[bytes] = []
        self.send_binary = self.sent.append
        self.calls: list[Any] = []

    def recv_data_frame(self, control_frame):
        kind, data = next(self._frames, (8, None))
        return kind, None if data is None else SimpleNamespace(data=data)

    def settimeout(self, seconds):
        self.calls.append(seconds)

    def close(self, timeout):
        self.calls.append(f"closed {timeout}")


@pytest.fixture
def connected(monkeypatch):
    """Return what lets connections give frames, and returns what connections are asked for."""

    def connect(*frames):
        asked: list[tuple[str, dict[str, Any]]] = []

        def create(address, **options):
            made = Connection(*frames)
            asked.append((address, {**options, "made": made}))
            return made

        monkeypatch.setattr("websocket.create_connection", create)
        return asked

    return connect


def result(**told):
    return 2, b"\x03" + json.dumps(told).encode()


FAILED_WITH_7 = result(
    status="Failure", details={"causes": [{"reason": "Odd"}, {"reason": "ExitCode", "message": "7"}]}
)


def test_a_command_beside_a_replica(server, connected):
    printed = ((2, b"\x01out"), (9, b"\x01a ping"), (2, b""), (1, b"\x02err"), (0, b"\x01 more"), (2, b"\x07odd"))
    for end, code in ((result(status="Success"), 0), (FAILED_WITH_7, 7)):
        asked = connected(*printed, end, (8, b""), (2, b"\x01never"))
        found = run_beside(server.api(), "space:job-x", "worker", 0, ["ls", "-l"], PATIENCE)
        assert (found.code, found.out, found.err) == (code, b"out more", b"err")
        ((address, options),) = asked
        base, _, query = address.partition("?")
        assert base == server.url.replace("http:", "ws:") + EXEC
        assert query == "container=worker-0&stdout=true&stderr=true&command=ls&command=-l"
        assert options["subprotocols"] == ["v4.channel.k8s.io"]
        assert options["http_no_proxy"] == ["*"]
        assert (options["made"].calls[0], options["made"].calls[-1]) == (None, "closed 0")
    late = run_beside(server.api(), "space:job-x", "worker", 0, ["ls"], 0.0)
    assert (late.code, late.out, late.err) == (None, b"", b"")


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([], "the connection to the pod broke off: whether the program still runs is not known"),
        ([result(status="Failure", message="it is odd")], "it is odd"),
        ([result(status="Failure")], "it could not be run"),
        ([result(message='exec: "ls": executable file not found')], "the image of worker/0, busybox, has no ls"),
        ([result(message="stat /x: no such file or directory")], "the image of worker/0, busybox, has no ls"),
        ([(2, b"\x01" + bytes(1 << 21))], "the command printed more than 1 MB"),
    ],
)
def test_a_command_that_cannot_be_run(server, connected, monkeypatch, frames, words):
    monkeypatch.setattr("torchx_tui.backends.kubernetes.shell.RUN_BESIDE_BYTES", 1 << 20)
    connected(*frames)
    with pytest.raises(SchedulerError) as raised:
        run_beside(server.api(), "space:job-x", "worker", 0, ["ls"], PATIENCE)
    assert str(raised.value) == words


@pytest.mark.parametrize(
    ("k", "words"),
    [(1, "worker/1 of space:job-x is pending: this"), (2, "the pod of worker/2 of space:job-x does not exist: this")],
)
def test_what_needs_a_running_replica(server, k, words):
    api = server.api()
    for act in (shell_command, partial(run_beside, argv=["ls"], timeout_s=PATIENCE)):
        with pytest.raises(SchedulerError, match=f"^{words} needs a running replica$"):
            act(api, "space:job-x", "worker", k)
    server.answers["GET", OF_SPACE] = 200, {"items": [pod(2)]}
    with pytest.raises(SchedulerError, match=r"^worker/2 of space:job-x is unknown: "):
        shell_command(server.api(), "space:job-x", "worker", 2)


@pytest.mark.parametrize(("given", "told"), [(None, "xterm"), ("vt100", "vt100")])
def test_the_shell_that_is_found(server, connected, monkeypatch, given, told):
    monkeypatch.delenv("TERM") if given is None else monkeypatch.setenv("TERM", given)
    connected((2, b"\x02no bash"), (2, b"\x01/bin/bash\n"), (2, b"\x01/bin/sh\n"), result(status="Success"))
    program = [sys.executable, "-m", "torchx_tui.backends.kubernetes.shell", ""]
    assert shell_command(server.api(), "space:job-x", "worker", 0) == [
        *program, "space", "job-x-worker-0-0", "worker-0", "/bin/bash", "-c", 'TERM="$0" exec "$1"', told, "/bin/bash",
    ]  # fmt: skip
    for frames in ([FAILED_WITH_7], [result(status="Success")], [result(message="not found in $PATH")]):
        connected((2, b"\x01/bin/sh\n"), FAILED_WITH_7) if frames == [FAILED_WITH_7] else connected(*frames)
        with pytest.raises(SchedulerError, match=r"^the image of worker/0, busybox, has no shell"):
            shell_command(server.api(), "space:job-x", "worker", 0)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (status(403, "Forbidden", "no exec"), ApiError, "no exec"),
        (status(401, "Unauthorized", "x"), BackendUnavailableError, "the API server does not know who you are"),
        (status(500, "InternalError", "dial"), BackendUnavailableError, "cannot answer now .HTTP 500.: dial"),
        ((400, b" odd\xff\n"), ApiError, "^odd\ufffd$"),
        ((400, b"[]"), ApiError, "^HTTP 400$"),
        (None, BackendUnavailableError, "the API server"),
    ],
)
def test_a_shell_that_the_server_refuses(server, answer, kind, words):
    server.answers["GET", EXEC] = (lambda asked: None) if answer is None else answer
    with pytest.raises(kind, match=words) as raised:
        run_beside(server.api(), "space:job-x", "worker", 0, ["ls"], PATIENCE)
    if isinstance(raised.value, ApiError):
        assert (raised.value.status, raised.value.reason) == (answer[0], "Forbidden" if answer[0] == 403 else "")


def test_the_program_tells_why_it_cannot_be_opened(server, tmp_path, monkeypatch, capsys):
    clusters = [{"name": "c", "cluster": {"server": server.url}}]
    contexts = [{"name": "here", "context": {"cluster": "c", "user": "u"}}]
    found = {"clusters": clusters, "contexts": contexts, "users": [{"name": "u", "user": {"token": "t"}}]}
    (tmp_path / "kubeconfig").write_text(json.dumps(found))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    server.answers["GET", EXEC] = status(404, "NotFound", "there is no such pod")
    assert main(["here", "space", "job-x-worker-0-0", "worker-0", "sh"]) == 1
    assert capsys.readouterr().err == "there is no such pod\n"
    asked = server.asked[-1]
    assert asked.headers["Authorization"] == "Bearer t"
    options = {"stdout": "true", "stderr": "false", "stdin": "true", "tty": "true"}
    assert asked.params == {"container": "worker-0", "command": "sh", **options}


def test_the_way_to_a_pod(connected, monkeypatch):
    # The files are read, and a proxy's package is imported, where they are used.
    monkeypatch.setattr("kubernetes.client.rest.RESTClientObject", lambda _: SimpleNamespace(pool_manager=None))

    def asked(**settings):
        configuration = Configuration()
        configuration.host = "https://server.test:6443"
        for name, value in settings.items():
            setattr(configuration, name, value)
        calls = connected()
        with run_in_pod(ApiServer(client=ApiClient(configuration)), "space", "p", "c", ["sh"]):
            pass
        return calls[0]

    address, options = asked()
    assert address.startswith("wss://server.test:6443/api/v1/namespaces/space/pods/p/exec?")
    assert options["sslopt"] == {"cert_reqs": ssl.CERT_REQUIRED}
    proxied = asked(proxy="http://proxy.test:3128")[1]
    names = ("http_proxy_host", "http_proxy_port", "proxy_type")
    assert [proxied[name] for name in names] == ["proxy.test", 3128, "http"]
    assert "http_no_proxy" not in proxied
    assert asked(proxy="socks5://proxy.test:1080")[1]["proxy_type"] == "socks5"
    assert asked(proxy="//proxy.test:3128")[1]["proxy_type"] == "http"
    assert asked(verify_ssl=False)[1]["sslopt"] == {"cert_reqs": ssl.CERT_NONE, "check_hostname": False}
    files = {"ssl_ca_cert": "ca.pem", "cert_file": "c.pem", "key_file": "k.pem", "tls_server_name": "name"}
    assert asked(**files)[1]["sslopt"] == {
        "cert_reqs": ssl.CERT_REQUIRED,
        "ca_certs": "ca.pem",
        "certfile": "c.pem",
        "keyfile": "k.pem",
        "server_hostname": "name",
    }


def test_what_is_typed_and_how_large_the_terminal_is():
    connection: Any = Connection()
    running = PodExec(connection)
    running.write(KEYS, b"ls")
    running.resize(87, 31)
    assert connection.sent == [b"\x00ls", b'\x04{"Width": 87, "Height": 31}']
    assert running.has_more
    connection.sock = object()
    assert not running.has_more


def test_a_program_is_told_the_size_of_its_terminal_first(monkeypatch):
    keyboard, screen = os.openpty()
    connection: Any = Connection((2, b"\x01shown"))
    connection.fileno = lambda: -1
    monkeypatch.setattr("torchx_tui.backends.kubernetes.shell.terminal_size", lambda: os.terminal_size((87, 31)))
    with open(screen) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        monkeypatch.setattr(sys, "stdout", terminal)
        _relay(PodExec(connection), -2)
        assert os.read(keyboard, 100) == b"shown"
    os.close(keyboard)
    assert connection.sent == [b'\x04{"Width": 87, "Height": 31}']
