"""Where the engine is, and why it cannot be used, in words."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import suppress

import docker.errors
import pytest
import requests
from support.scripted_engine import refused
from urllib3.exceptions import MaxRetryError, ProtocolError

from torchx_tui.backends.docker_engine.client import Engine, exec_exit_code
from torchx_tui.backends.docker_engine.unavailable import describe_refusal, explain_unavailable
from torchx_tui.specs.errors import BackendUnavailableError, JobNotFoundError, SchedulerError


def refusal(environment: dict[str, str], timeout: float = 2.0) -> str:
    """Return why an engine cannot be used."""
    engine = Engine(environment, timeout)
    with pytest.raises(BackendUnavailableError) as raised, engine.translate_errors():
        engine.client().api.ping()
    return str(raised.value)


def test_each_thread_has_a_client_of_its_own(docker_engine):
    engine = Engine()
    mine = engine.client()
    assert engine.client() is mine
    others = []
    thread = threading.Thread(target=lambda: others.append(engine.client()))
    thread.start()
    thread.join()
    assert others[0] is not mine
    assert others[0].ping()
    engine.close()
    engine.close()
    assert engine.client() is not mine


def test_a_missing_socket(tmp_path):
    words = refusal({"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    assert f"{tmp_path}/none.sock was not found" in words
    assert "systemctl start docker" in words


def test_a_socket_that_nothing_serves(tmp_path):
    path = str(tmp_path / "dead.sock")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    assert "has stopped" in refusal({"DOCKER_HOST": f"unix://{path}"})


def test_a_machine_without_docker_does_not_import_its_package():
    told = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys\n"
            "from torchx_tui.backends.docker.scheduler import create_scheduler\n"
            "from torchx_tui.specs import BackendUnavailableError\n"
            "scheduler = create_scheduler('s')\n"
            "try:\n"
            "    scheduler.list()\n"
            "except BackendUnavailableError as error:\n"
            "    print(error)\n"
            "scheduler.check()\n"
            "print([name for name in ('docker', 'requests') if name in sys.modules])\n",
        ],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "was not found" in told
    assert told.endswith("[]\n")


def test_a_remote_engine_that_is_not_there():
    assert "correct DOCKER_HOST" in refusal({"DOCKER_HOST": "tcp://127.0.0.1:9"})
    assert "no machine has this name" in refusal({"DOCKER_HOST": "tcp://no-such-machine.invalid:9"})


def test_an_engine_that_hangs():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        assert "does not answer" in refusal({"DOCKER_HOST": f"tcp://127.0.0.1:{silent.getsockname()[1]}"}, 0.3)


def test_tls_without_its_files(tmp_path):
    words = refusal({"DOCKER_HOST": "tcp://127.0.0.1:9", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(tmp_path)})
    assert str(tmp_path) in words
    assert "DOCKER_TLS_VERIFY" in words


def test_an_engine_that_ssh_does_not_reach(tmp_path, monkeypatch):
    (tmp_path / "ssh").write_text("#!/bin/sh\nexit 255\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    words = refusal({"DOCKER_HOST": "ssh://alice@node7"})
    assert words.startswith("The Docker engine at ssh://alice@node7 cannot be used: ")
    assert "try `ssh alice@node7 docker version`" in words


def test_a_wrong_protocol():
    assert "nonsense" in refusal({"DOCKER_HOST": "nonsense://x"})


def test_a_context_that_does_not_exist():
    words = refusal({"DOCKER_CONTEXT": "gone"})
    assert "no Docker context gone" in words
    assert "docker context ls" in words


def test_remote_engines_are_told_from_ours():
    assert Engine({"DOCKER_HOST": "tcp://node7:2375"}).is_remote
    assert Engine({"DOCKER_HOST": "ssh://node7"}).is_remote
    for host in ("unix:///run/user/7/docker.sock", "http+unix:///run/a", "npipe:////./pipe/docker_engine", "/run/a"):
        assert not Engine({"DOCKER_HOST": host}).is_remote
    assert not Engine({"NOTHING": ""}).is_remote


# What needs no engine


def around(error: BaseException) -> Exception:
    """Return an error that carries another one, as requests does."""
    return requests.ConnectionError(ProtocolError("aborted", error))


REMOTE, OURS = "tcp://node7:2375", "unix:///run/docker.sock"
AT_REMOTE, AT_OURS = "The Docker engine at tcp://node7:2375", "The Docker engine at /run/docker.sock"
PODMAN = "unix:///run/user/7/podman/podman.sock"
AT_PODMAN = "The Docker engine at /run/user/7/podman/podman.sock"
TLS_HINT = "check DOCKER_HOST, DOCKER_TLS_VERIFY and ca.pem, cert.pem and key.pem in {} (DOCKER_CERT_PATH)"


@pytest.mark.parametrize(
    ("error", "host", "words"),
    [
        (around(ssl.SSLError(1, "wrong version\nmore")), REMOTE,
         f"{AT_REMOTE} fails with TLS: wrong version: {TLS_HINT.format('~/.docker')}"),
        (docker.errors.APIError("Client sent an HTTP request to an HTTPS server.\n"), REMOTE,
         f"{AT_REMOTE} fails with TLS: Client sent an HTTP request to an HTTPS server.: "),
        (docker.errors.TLSParameterError("no"), REMOTE,
         f"{AT_REMOTE} cannot be used with TLS: a file is missing or no host is given: {TLS_HINT.format('~/.docker')}"),
        (docker.errors.APIError("it is odd"), REMOTE, ""),
        (around(socket.gaierror(-2, "x")), REMOTE,
         f"{AT_REMOTE} cannot be found: no machine has this name: check DOCKER_HOST or `docker context use NAME`"),
        (MaxRetryError(None, "/", socket.gaierror(-2, "x")), REMOTE, f"{AT_REMOTE} cannot be found: no machine"),  # type: ignore[arg-type]
        (around(TimeoutError()), REMOTE, f"{AT_REMOTE} does not answer: it is busy or hangs: check the network"),
        (requests.ReadTimeout(), OURS, f"{AT_OURS} does not answer: it is busy or hangs: see `journalctl -u docker`"),
        (around(PermissionError(errno.EPERM, "x")), OURS, f"{AT_OURS} may not be used by "),
        (around(FileNotFoundError(errno.ENOENT, "x")), OURS,
         f"{AT_OURS} was not found: Docker is not installed or not started. Start it (`systemctl start docker`, or "
         "`systemctl --user start podman.socket` for Podman), or say where it is with DOCKER_HOST or `docker context "
         "use NAME`"),
        (around(ConnectionRefusedError(errno.ECONNREFUSED, "x")), f"http+{OURS}",
         f"{AT_OURS} refuses the connection: it has stopped. Start it (`systemctl start docker`)"),
        (around(ConnectionRefusedError(errno.ECONNREFUSED, "x")), PODMAN,
         f"{AT_PODMAN} refuses the connection: it has stopped. Start it (`systemctl --user start podman.socket`)"),
        (requests.ReadTimeout(), PODMAN,
         f"{AT_PODMAN} does not answer: it is busy or hangs: see `journalctl --user -u podman`"),
        (around(ConnectionRefusedError(errno.ECONNREFUSED, "x")), REMOTE,
         f"{AT_REMOTE} refuses the connection: it has stopped. Start it there, or correct DOCKER_HOST or `docker "
         "context use NAME`"),
        *((around(OSError(number, "No way")), REMOTE,
           f"{AT_REMOTE} cannot be reached: No way: check DOCKER_HOST or `docker context use NAME` and the network")
          for number in (errno.EHOSTUNREACH, errno.ENETUNREACH)),
        (FileNotFoundError(errno.ENOENT, "ssh\nmore"), "ssh://alice@node7",
         "The Docker engine at ssh://alice@node7 cannot be used: [Errno 2] ssh: `pip install paramiko` and try `ssh "
         "alice@node7 docker version`, or forward its socket, `ssh -nNT -L "
         "$HOME/docker.sock:/var/run/docker.sock alice@node7`, and set DOCKER_HOST=unix://$HOME/docker.sock"),
        (around(ConnectionResetError(errno.ECONNRESET, "x")), OURS,
         f"{AT_OURS} closed the connection during an answer: is it restarting?"),
        (OSError(errno.EIO, "x"), OURS, ""),
        (KeyError("odd"), OURS, ""),
    ],
)  # fmt: skip
def test_why_an_engine_cannot_be_used(error, host, words):
    told = str(explain_unavailable(error, host, {}) or "")
    assert told.startswith(words)
    assert bool(told) is bool(words)
    chosen = str(explain_unavailable(error, host, {"DOCKER_HOST": host, "DOCKER_CERT_PATH": "/certs"}) or "")
    assert chosen == told.replace("DOCKER_HOST or `docker context use NAME`", "DOCKER_HOST").replace(
        "~/.docker", "/certs"
    )


def test_a_refusal_without_what_the_sdk_puts_around_it():
    assert describe_refusal(KeyError("odd")) == "'odd'"
    for explanation, words in (
        ("in short", "in short"),
        (b' {"message": "as JSON"}\n', "as JSON"),
        ('{"message": "as JSON"}', "as JSON"),
        ('{"other": 1}', '{"other": 1}'),
        ("[1]", "[1]"),
        (b"\xff", "the engine refused with HTTP status None and gave no reason"),
        (None, "around"),
    ):
        error = docker.errors.APIError("around")
        error.explanation = explanation  # type: ignore[assignment]
        assert describe_refusal(error) == words


def test_an_exit_code_that_comes_late():
    codes = iter([None, None, 0])

    class Api:
        def exec_inspect(self, asked):
            return {"ExitCode": next(codes)}

    assert exec_exit_code(Api(), "e") == 0


def test_errors_are_told_apart(scripted, monkeypatch):
    engine = scripted.engine()

    def asked(app_id=""):
        with engine.translate_errors(app_id):
            engine.client().api.inspect_container("c")

    scripted.answers["GET", "/containers/c/json"] = refused(404, "No such container: c")
    with pytest.raises(JobNotFoundError, match="app-1"):
        asked("app-1")
    with pytest.raises(SchedulerError, match=r"^No such container: c$"):
        asked()
    scripted.answers["GET", "/containers/c/json"] = refused(500, "it is odd")
    with pytest.raises(SchedulerError, match=r"^it is odd$") as refusal:
        asked("app-1")
    assert not isinstance(refusal.value, BackendUnavailableError)
    # The version was asked for once; of an engine that was away it is asked again, as it may be another one then.
    versions = [asked.path for asked in scripted.asked].count("/version")
    assert versions == 1
    scripted.answers["GET", "/containers/c/json"] = lambda asked: None
    with pytest.raises(BackendUnavailableError, match="closed the connection during an answer"):
        asked("app-1")
    scripted.answers["GET", "/containers/c/json"] = 200, {}
    asked()
    assert [asked.path for asked in scripted.asked].count("/version") == 2
    before = engine.client()
    assert engine.client() is before
    closed: list[object] = []
    monkeypatch.setattr(docker.DockerClient, "close", lambda client: closed.append(client))
    engine.new_client(None).close()
    assert [asked.path for asked in scripted.asked].count("/version") == 2
    closed.clear()
    engine.close()
    assert before in closed
    assert engine.client() is not before
    asked()
    assert [asked.path for asked in scripted.asked].count("/version") == 3
    engine.close()
    # What talks another language.
    scripted.answers["GET", "/version"] = refused(400, "Client sent an HTTP request to an HTTPS server.")
    with pytest.raises(BackendUnavailableError, match="fails with TLS"):
        asked()


@pytest.mark.parametrize(
    ("text", "environment", "host"),
    [
        ("", {}, "unix:///var/run/docker.sock"),
        ('{"currentContext": "default"}', {}, "unix:///var/run/docker.sock"),
        ("{}", {}, "unix:///var/run/docker.sock"),
        ('{"currentContext": "elsewhere"}', {}, REMOTE),
        ('{"currentContext": "elsewhere"}', {"DOCKER_CONTEXT": "default"}, "unix:///var/run/docker.sock"),
        ('{"currentContext": "elsewhere"}', {"DOCKER_HOST": "tcp://node8:1"}, "tcp://node8:1"),
        ("{}", {"DOCKER_CONTEXT": "elsewhere"}, REMOTE),
        ("", {"DOCKER_CONTEXT": "gone"}, "unix:///var/run/docker.sock"),
        ("{", {}, "unix:///var/run/docker.sock"),
        ("[]", {}, "unix:///var/run/docker.sock"),
    ],
)
def test_where_an_engine_is(own_home, monkeypatch, text, environment, host):
    monkeypatch.delenv("DOCKER_HOST")
    folder = own_home / ".docker" / "contexts" / "meta" / hashlib.sha256(b"elsewhere").hexdigest()
    folder.mkdir(parents=True)
    meta = {"Name": "elsewhere", "Metadata": {}, "Endpoints": {"docker": {"Host": REMOTE, "SkipTLSVerify": False}}}
    (folder / "meta.json").write_text(json.dumps(meta))
    if text:
        (own_home / ".docker" / "config.json").write_text(text)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Engine().host == host
    assert Engine().is_remote is host.startswith("tcp")


@pytest.mark.parametrize(("docker_is_there", "podman_is_there"), [(True, True), (False, True), (False, False)])
def test_podman_socket_is_used_without_docker(tmp_path, own_home, monkeypatch, docker_is_there, podman_is_there):
    docker_socket, podman_socket = tmp_path / "docker.sock", tmp_path / "podman" / "podman.sock"
    monkeypatch.setattr("torchx_tui.backends.docker_engine.client.DOCKER_SOCKET", str(docker_socket))
    podman_socket.parent.mkdir()
    for path, is_there in ((docker_socket, docker_is_there), (podman_socket, podman_is_there)):
        if is_there:
            path.touch()
    environment = {"XDG_RUNTIME_DIR": str(tmp_path)}
    engine = Engine(environment)
    is_podman = podman_is_there and not docker_is_there
    assert engine.host == f"unix://{podman_socket if is_podman else docker_socket}"
    assert engine.is_found_by_docker is not is_podman
    assert Engine({**environment, "DOCKER_HOST": REMOTE}).host == REMOTE
    assert Engine({**environment, "DOCKER_HOST": REMOTE}).is_found_by_docker


def test_an_engine_of_another_environment_is_not_asked(scripted, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", scripted.host)
    with suppress(docker.errors.DockerException):
        Engine({}).client()
    assert scripted.asked == []
    # Nor this machine's, in the clear, where TLS is wanted and no host is named.
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).touch()
    with pytest.raises(docker.errors.TLSParameterError):
        Engine({"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(tmp_path)}).client()


def test_context_is_of_the_folder_in_docker_config(own_home, tmp_path, monkeypatch):
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    folder = tmp_path / "contexts" / "meta" / hashlib.sha256(b"elsewhere").hexdigest()
    folder.mkdir(parents=True)
    meta = {"Name": "elsewhere", "Metadata": {}, "Endpoints": {"docker": {"Host": REMOTE, "SkipTLSVerify": False}}}
    (folder / "meta.json").write_text(json.dumps(meta))
    (tmp_path / "config.json").write_text('{"currentContext": "elsewhere"}')
    assert Engine().host == REMOTE
