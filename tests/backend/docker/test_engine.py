"""Where the engine is, and why it cannot be used, in words."""

import errno
import hashlib
import json
import os
import re
import socket
import ssl
import subprocess
import sys
from contextlib import suppress

import docker.errors
import pytest
import requests
from support.background import in_background
from support.scripted_engine import refused
from support.tables import tables
from support.waiting import PATIENCE
from urllib3.exceptions import MaxRetryError, ProtocolError

from torchx_tui.backends.docker_engine.client import Engine, exec_exit_code
from torchx_tui.backends.docker_engine.unavailable import describe_refusal, explain_unavailable
from torchx_tui.specs.errors import BackendUnavailableError, JobNotFoundError, SchedulerError

table = tables(__file__)


def refusal(environment, timeout=2.0):
    """Return why an engine cannot be used."""
    engine = Engine(environment, timeout)
    with pytest.raises(BackendUnavailableError) as raised, engine.translate_errors():
        engine.client().api.ping()
    return str(raised.value)


def test_each_thread_has_a_client_of_its_own(docker_engine):
    engine = Engine()
    mine = engine.client()
    assert engine.client() is mine
    other = in_background(engine.client).result(PATIENCE)
    assert other is not mine
    assert other.ping()
    engine.close()
    engine.close()
    assert engine.client() is not mine


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


def test_an_engine_that_hangs():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        assert "does not answer" in refusal({"DOCKER_HOST": f"tcp://127.0.0.1:{silent.getsockname()[1]}"}, 0.3)


@table("unusable", "environment words")
def test_an_engine_that_cannot_be_used(tmp_path, monkeypatch, environment, words):
    (tmp_path / "ssh").write_text("#!/bin/sh\nexit 255\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "dead.sock"))
    told = refusal({name: value.format(tmp=tmp_path) for name, value in environment.items()})
    assert re.search(words.format(tmp=tmp_path), told)


@pytest.mark.parametrize(
    ("host", "is_remote"),
    [
        ("tcp://node7:2375", True),
        ("ssh://node7", True),
        ("unix:///run/user/7/docker.sock", False),
        ("http+unix:///run/a", False),
        ("npipe:////./pipe/docker_engine", False),
        ("/run/a", False),
    ],
)
def test_remote_engines_are_told_from_ours(host, is_remote):
    assert Engine({"DOCKER_HOST": host}).is_remote is is_remote
    assert not Engine({"NOTHING": ""}).is_remote


# What needs no engine


def around(error):
    """Return an error that carries another one, as requests does."""
    return requests.ConnectionError(ProtocolError("aborted", error))


REMOTE = "tcp://node7:2375"
ERRORS = {
    "TLS fails": around(ssl.SSLError(1, "wrong version\nmore")),
    "no TLS": docker.errors.APIError("Client sent an HTTP request to an HTTPS server.\n"),
    "no files for TLS": docker.errors.TLSParameterError("no"),
    "refusal": docker.errors.APIError("it is odd"),
    "no address": around(socket.gaierror(-2, "x")),
    "no address in retries": MaxRetryError(None, "/", socket.gaierror(-2, "x")),  # type: ignore[arg-type]
    "timeout": around(TimeoutError()),
    "slow answer": requests.ReadTimeout(),
    "not permitted": around(PermissionError(errno.EPERM, "x")),
    "no file": around(FileNotFoundError(errno.ENOENT, "x")),
    "connection refused": around(ConnectionRefusedError(errno.ECONNREFUSED, "x")),
    "no route": around(OSError(errno.EHOSTUNREACH, "No way")),
    "no network": around(OSError(errno.ENETUNREACH, "No way")),
    "no ssh": FileNotFoundError(errno.ENOENT, "ssh\nmore"),
    "connection reset": around(ConnectionResetError(errno.ECONNRESET, "x")),
    "disk": OSError(errno.EIO, "x"),
    "fault": KeyError("odd"),
}


@table("errors", "error host words")
def test_why_an_engine_cannot_be_used(error, host, words):
    told = str(explain_unavailable(ERRORS[error], host, {}) or "")
    place = host.removeprefix("http+").removeprefix("unix://")
    assert told.startswith(words and f"The Docker engine at {place} {words}")
    assert bool(told) is bool(words)
    chosen = explain_unavailable(ERRORS[error], host, {"DOCKER_HOST": host, "DOCKER_CERT_PATH": "/certs"})
    expected = told.replace("DOCKER_HOST or `docker context use NAME`", "DOCKER_HOST").replace("~/.docker", "/certs")
    assert str(chosen or "") == expected


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


@pytest.fixture
def engine(scripted):
    made = scripted.engine()
    yield made
    made.close()


@pytest.fixture
def ask(scripted, engine):
    """Return what asks the engine for a container, with the answer that is given."""

    def inspect(answer, app_id=""):
        scripted.answers["GET", "/containers/c/json"] = answer
        with engine.translate_errors(app_id):
            engine.client().api.inspect_container("c")

    return inspect


def test_errors_are_told_apart(scripted, ask):
    gone, odd = refused(404, "No such container: c"), refused(500, "it is odd")
    with pytest.raises(JobNotFoundError, match="app-1"):
        ask(gone, "app-1")
    with pytest.raises(SchedulerError, match=r"^No such container: c$"):
        ask(gone)
    with pytest.raises(SchedulerError, match=r"^it is odd$") as refusal:
        ask(odd, "app-1")
    assert not isinstance(refusal.value, BackendUnavailableError)
    with pytest.raises(BackendUnavailableError, match="closed the connection during an answer"):
        ask(lambda asked: None, "app-1")
    # What talks another language.
    scripted.answers["GET", "/version"] = refused(400, "Client sent an HTTP request to an HTTPS server.")
    with pytest.raises(BackendUnavailableError, match="fails with TLS"):
        ask(odd)


def test_version_is_asked_for_again_after_an_outage(scripted, engine, ask, monkeypatch):
    def versions():
        return scripted.paths("GET").count("/version")

    there = 200, {}
    ask(there)
    ask(there)
    assert versions() == 1
    with pytest.raises(BackendUnavailableError):
        ask(lambda asked: None)
    # It may be another engine now.
    ask(there)
    before = engine.client()
    assert engine.client() is before
    closed = []
    monkeypatch.setattr(docker.DockerClient, "close", lambda client: closed.append(client))
    engine.new_client(None).close()
    assert versions() == 2
    closed.clear()
    engine.close()
    assert before in closed
    assert engine.client() is not before
    ask(there)
    assert versions() == 3


def add_context(folder):
    """Add a Docker context named elsewhere to a folder of Docker's settings."""
    kept = folder / "contexts/meta" / hashlib.sha256(b"elsewhere").hexdigest()
    kept.mkdir(parents=True)
    meta = {"Name": "elsewhere", "Metadata": {}, "Endpoints": {"docker": {"Host": REMOTE, "SkipTLSVerify": False}}}
    (kept / "meta.json").write_text(json.dumps(meta))


@table("hosts", "text environment host")
def test_where_an_engine_is(own_home, monkeypatch, text, environment, host):
    monkeypatch.delenv("DOCKER_HOST")
    add_context(own_home / ".docker")
    if text:
        (own_home / ".docker/config.json").write_text(text)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (Engine().host, Engine().is_remote) == (host, host.startswith("tcp"))


@pytest.mark.parametrize(("docker_is_there", "podman_is_there"), [(True, True), (False, True), (False, False)])
def test_podman_socket_is_used_without_docker(tmp_path, own_home, monkeypatch, docker_is_there, podman_is_there):
    docker_socket, podman_socket = tmp_path / "docker.sock", tmp_path / "podman/podman.sock"
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


def test_context_is_of_the_folder_in_docker_config(tmp_path, monkeypatch):
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    add_context(tmp_path)
    (tmp_path / "config.json").write_text('{"currentContext": "elsewhere"}')
    assert Engine().host == REMOTE
