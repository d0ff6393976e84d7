"""Where the engine is, and why it cannot be used, in words."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from torchx_tui.backends.docker.containers import all_containers, find_containers, find_replica
from torchx_tui.backends.docker_engine.client import Engine
from torchx_tui.specs import BackendUnavailableError, JobNotFoundError, SchedulerError


def refusal(environment: dict[str, str], timeout: float = 2.0) -> str:
    """Return why an engine cannot be used."""
    engine = Engine(environment, timeout)
    with pytest.raises(BackendUnavailableError) as raised, engine.translate_errors():
        engine.client().api.ping()
    return str(raised.value)


def test_each_thread_has_a_client_of_its_own(docker_engine: str) -> None:
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


def test_a_missing_socket(tmp_path: Path) -> None:
    words = refusal({"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})
    assert f"{tmp_path}/none.sock was not found" in words
    assert "systemctl start docker" in words


def test_a_socket_that_nothing_serves(tmp_path: Path) -> None:
    path = str(tmp_path / "dead.sock")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    assert "has stopped" in refusal({"DOCKER_HOST": f"unix://{path}"})


def test_a_socket_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "theirs.sock"
    path.touch()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("socket.socket.connect", refuse)
    assert "usermod -aG docker" in refusal({"DOCKER_HOST": f"unix://{path}"})


def test_a_machine_without_docker_does_not_import_its_package() -> None:
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


def test_a_remote_engine_that_is_not_there() -> None:
    assert "correct DOCKER_HOST" in refusal({"DOCKER_HOST": "tcp://127.0.0.1:9"})
    assert "no machine has this name" in refusal({"DOCKER_HOST": "tcp://no-such-machine.invalid:9"})


def test_an_engine_that_hangs() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(1)
        assert "does not answer" in refusal({"DOCKER_HOST": f"tcp://127.0.0.1:{silent.getsockname()[1]}"}, 0.3)


def test_tls_without_its_files(tmp_path: Path) -> None:
    words = refusal({"DOCKER_HOST": "tcp://127.0.0.1:9", "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(tmp_path)})
    assert str(tmp_path) in words
    assert "DOCKER_TLS_VERIFY" in words


def test_an_engine_that_ssh_does_not_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ssh").write_text("#!/bin/sh\nexit 255\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    words = refusal({"DOCKER_HOST": "ssh://alice@node7"})
    assert words.startswith("The Docker engine at ssh://alice@node7 cannot be used: ")
    assert "try `ssh alice@node7 docker version`" in words


def test_a_wrong_protocol() -> None:
    assert "nonsense" in refusal({"DOCKER_HOST": "nonsense://x"})


def test_a_context_that_does_not_exist() -> None:
    words = refusal({"DOCKER_CONTEXT": "gone"})
    assert "no Docker context gone" in words
    assert "docker context ls" in words


def test_the_current_context_is_used(docker_engine: str, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST")
    # Docker's own file names: the folder is the SHA-256 of the context's name.
    name = "elsewhere"
    digest = hashlib.sha256(name.encode()).hexdigest()
    folder = own_home / ".docker" / "contexts" / "meta" / digest
    folder.mkdir(parents=True)
    (own_home / ".docker" / "config.json").write_text(json.dumps({"currentContext": name}))
    meta = {"Name": name, "Metadata": {}, "Endpoints": {"docker": {"Host": docker_engine, "SkipTLSVerify": False}}}
    (folder / "meta.json").write_text(json.dumps(meta))
    engine = Engine()
    assert engine.host == docker_engine
    assert engine.client().ping()


def test_remote_engines_are_told_from_ours() -> None:
    assert Engine({"DOCKER_HOST": "tcp://node7:2375"}).is_remote
    assert Engine({"DOCKER_HOST": "ssh://node7"}).is_remote
    assert not Engine({"DOCKER_HOST": "unix:///run/user/7/docker.sock"}).is_remote
    assert not Engine({"NOTHING": ""}).is_remote


def test_refusals_are_in_the_engines_words(docker_engine: str) -> None:
    engine = Engine()
    with pytest.raises(SchedulerError, match=r"^No such container: no-such-container$"), engine.translate_errors():
        engine.client().api.inspect_container("no-such-container")
    with pytest.raises(JobNotFoundError, match="app-1"), engine.translate_errors("app-1"):
        engine.client().api.inspect_container("no-such-container")


def test_containers_of_an_unknown_app(docker_engine: str) -> None:
    engine = Engine()
    assert find_containers(engine, "no-such-app") == []
    assert isinstance(all_containers(engine), list)
    with pytest.raises(JobNotFoundError):
        find_replica(engine, "no-such-app", "worker", 0)


def test_it_is_found_again_when_it_comes_back(own_engine) -> None:
    engine = Engine()
    with engine.translate_errors():
        engine.client().ping()
    own_engine.stop()
    with pytest.raises(BackendUnavailableError), engine.translate_errors():
        engine.client().ping()
    own_engine.start()
    with engine.translate_errors():
        assert engine.client().ping()
