"""The Docker engine that is talked to: where it is, a client for each thread, and its errors in words."""

from __future__ import annotations

import errno
import json
import os
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.files import home_folder, path_exists, read_file, user_name
from ...base.timeouts import LimitedCaller
from ...base.validation import decode_json
from ...specs.errors import BackendUnavailableError, JobNotFoundError, SchedulerError

if TYPE_CHECKING:
    import docker


_TIMEOUT_S = 60.0
"""How long an answer may take; removing many containers of a busy engine takes some seconds."""
DOCKER_SOCKET = "/var/run/docker.sock"
# How long a program that has ended in a container may have no exit code yet.
_EXIT_CODE_TIMEOUT_S = 5.0


def describe_unavailable(error: BaseException, host: str, environment: Mapping[str, str]) -> str:
    """Describe why the engine cannot be reached and what to do; empty where the error is of another kind.

    Args:
        error: what the SDK, or what lies below it, raised.
        host: where the engine should be, such as ``unix:///var/run/docker.sock``.
        environment: the environment variables that chose it.
    """
    import docker.errors
    import requests

    where = format_host(host)
    causes = list(_causes(error))
    text = str(error)
    if any(isinstance(cause, requests.TooManyRedirects) for cause in causes):
        return f"{where} answers with a redirect, which no Docker engine does: check {_chosen_by(environment)}"
    if any(isinstance(cause, ssl.SSLError) for cause in causes) or "HTTPS server" in text:
        return f"TLS with {where} fails: {_last(causes, ssl.SSLError, text)}: {_tls_hint(environment)}"
    if any(isinstance(cause, docker.errors.TLSParameterError) for cause in causes):
        return f"{where} cannot be used with TLS: a file is missing or no host is given: {_tls_hint(environment)}"
    if isinstance(error, docker.errors.APIError):
        return ""
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return f"{where} cannot be found: no machine has this name: check {_chosen_by(environment)}"
        if isinstance(cause, (TimeoutError, requests.Timeout)):
            return f"{where} does not answer: it is busy or hangs; {_look_hint(host)}"
        if isinstance(cause, OSError) and (words := _describe_os_error(cause, host, environment)):
            return words
    if host.startswith("ssh:"):
        return f"{where} cannot be used: {text.splitlines()[0]}: {_ssh_hint(host)}"
    if any(isinstance(cause, (requests.ConnectionError, ConnectionError)) for cause in causes):
        return f"{where} closed the connection during an answer: is it restarting?"
    return ""


def describe_missing_engine(host: str, environment: Mapping[str, str]) -> str:
    """Say what to do where this machine has no socket of an engine.

    Args:
        host: where it should be.
        environment: the environment variables that chose it.
    """
    return (
        f"{format_host(host)} was not found: Docker is not installed or not started. Start it "
        f"(`systemctl start docker`, or `systemctl --user start podman.socket` for Podman), or say where it is with "
        f"{_chosen_by(environment)}"
    )


def describe_refusal(error: BaseException) -> str:
    """Return the engine's refusal, without what the SDK puts around it."""
    import docker.errors

    if not isinstance(error, docker.errors.APIError):
        return str(error)
    explanation = error.explanation
    if isinstance(explanation, bytes):
        explanation = explanation.decode("utf-8", "replace")
    text = str(explanation or error).strip()
    try:
        text = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        pass
    if not any(map(str.isalnum, text)):
        return f"the engine refused with HTTP status {error.status_code} and gave no reason"
    return text


def format_host(host: str) -> str:
    """Format where the engine is, for the beginning of a sentence."""
    return f"The Docker engine at {host.removeprefix('http+').removeprefix('unix://')}"


def exec_exit_code(api: Any, exec_id: str) -> int | None:
    """Return the exit code of a program in a container whose output has ended; None if the engine is too slow."""
    until = time.monotonic() + _EXIT_CODE_TIMEOUT_S
    while True:
        code = api.exec_inspect(exec_id)["ExitCode"]
        if code is not None or time.monotonic() > until:
            return code
        time.sleep(0.02)


def _describe_os_error(cause: OSError, host: str, environment: Mapping[str, str]) -> str:
    where = format_host(host)
    is_local = host.startswith(("unix:", "http+unix:"))
    if cause.errno in (errno.EACCES, errno.EPERM):
        return (
            f"{where} may not be used by {user_name()}: join the group of its socket (`sudo usermod -aG docker "
            f"{user_name()}`, then log in again), or use a rootless engine of your own"
        )
    if cause.errno == errno.ENOENT and is_local:
        return describe_missing_engine(host, environment)
    if cause.errno == errno.ECONNREFUSED:
        return f"{where} refuses the connection: it has stopped. {_start_hint(host, is_local, environment)}"
    if cause.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT):
        return f"{where} cannot be reached: {cause.strerror}: check {_chosen_by(environment)} and the network"
    return ""


def _start_hint(host: str, is_local: bool, environment: Mapping[str, str]) -> str:
    if is_local:
        return f"Start it (`systemctl {'--user start podman.socket' if _is_podman(host) else 'start docker'}`)"
    return f"Start it there, or correct {_chosen_by(environment)}"


def _look_hint(host: str) -> str:
    if not host.startswith(("unix:", "http+unix:")):
        return "check the network"
    return f"see `journalctl {'--user -u podman' if _is_podman(host) else '-u docker'}`"


def _is_podman(host: str) -> bool:
    return host.endswith("/podman/podman.sock")


def _tls_hint(environment: Mapping[str, str]) -> str:
    folder = environment.get("DOCKER_CERT_PATH") or "~/.docker"
    return f"check DOCKER_HOST, DOCKER_TLS_VERIFY and ca.pem, cert.pem and key.pem in {folder} (DOCKER_CERT_PATH)"


def _ssh_hint(host: str) -> str:
    machine = host.partition("://")[2]
    return (
        f"`pip install paramiko` and try `ssh {machine} docker version`, or forward its socket, `ssh -nNT -L "
        f"$HOME/docker.sock:/var/run/docker.sock {machine}`, and set DOCKER_HOST=unix://$HOME/docker.sock"
    )


def _chosen_by(environment: Mapping[str, str]) -> str:
    if environment.get("DOCKER_HOST"):
        return "DOCKER_HOST"
    return "DOCKER_HOST or `docker context use NAME`"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, what caused it and what it carries: requests and urllib3 wrap one another in arguments."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        cause = left.pop(0)
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        left += [cause.__cause__, cause.__context__, getattr(cause, "reason", None)]
        left += [carried for carried in cause.args if isinstance(carried, BaseException)]


def _last(causes: list[BaseException], kind: type[BaseException], otherwise: str) -> str:
    texts = [str(cause) for cause in causes if isinstance(cause, kind)]
    return (texts or [otherwise])[-1].splitlines()[0]


class Engine:
    """A Docker engine, chosen as Docker's own command line does.

    That is ``DOCKER_HOST`` with ``DOCKER_TLS_VERIFY`` and ``DOCKER_CERT_PATH``, else the context that
    ``DOCKER_CONTEXT`` or Docker's configuration names, else this machine's socket: Docker's, or Podman's of this user
    where there is none of Docker. It is looked up anew after an engine could not be reached.

    Args:
        environment: the environment variables; this process's where None.
        timeout: how long an answer may take, in seconds.
    """

    def __init__(self, environment: Mapping[str, str] | None = None, timeout: float = _TIMEOUT_S) -> None:
        self._environment = environment
        self._timeout = timeout
        self._own = threading.local()
        self._caller = LimitedCaller("docker-request")
        self._clients: weakref.WeakSet[docker.DockerClient] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._generation = 0
        self._version: str | None = None

    @property
    def host(self) -> str:
        """Where the engine is, such as ``unix:///var/run/docker.sock``, as far as can be told without asking it."""
        if known := self._known_host():
            return known
        try:
            return str(self._where().get("base_url") or self._local_host)
        except Exception:  # whatever a broken configuration raises: it is told in words where it is used
            return self._environ.get("DOCKER_HOST") or self._local_host

    @property
    def is_remote(self) -> bool:
        """Whether the engine is on another machine, whose files and loopback address are not ours."""
        return not self.host.startswith(("unix:", "http+unix:", "npipe:", "/"))

    @property
    def is_found_by_docker(self) -> bool:
        """Whether Docker's own command line finds this engine: it does not look for Podman's socket."""
        return self._known_host() in ("", self._environ.get("DOCKER_HOST"), f"unix://{DOCKER_SOCKET}")

    def client(self) -> docker.DockerClient:
        """Return this thread's client. The SDK's pool of connections breaks where threads share one.

        Raises:
            docker.errors.DockerException, OSError: the engine cannot be reached; use within `translate_errors`.
        """
        kept: tuple[int, docker.DockerClient] | None = getattr(self._own, "client", None)
        if kept is not None and kept[0] == self._generation:
            return kept[1]
        generation = self._generation
        made = self._new(self._timeout)
        self._own.client = (generation, made)
        with self._lock:
            self._clients.add(made)
        return made

    def new_client(self, timeout: float | None) -> docker.DockerClient:
        """Return a client for one long answer, such as a followed log, that its caller closes.

        Args:
            timeout: how long the next part of an answer may take, in seconds; as long as it likes where None.

        Raises:
            docker.errors.DockerException, OSError: the engine cannot be reached; use within `translate_errors`.
        """
        return self._new(timeout)

    def close(self) -> None:
        """Close every thread's client; one that is asked for later is a new one."""
        with self._lock:
            clients = list(self._clients)
            self._clients.clear()
            self._generation += 1
            self._version = None
        for client in clients:
            client.close()

    @contextmanager
    def translate_errors(self, app_id: str = "") -> Iterator[None]:
        """Within this, errors of the SDK and of the connection are ours, in words.

        Args:
            app_id: the app that is asked about: what the engine does not know is then no longer there.

        Raises:
            BackendUnavailableError: the engine cannot be reached; the message says why and what to do.
            JobNotFoundError: the engine does not know what ``app_id`` is made of.
            SchedulerError: the engine refused.
        """
        missing = self._missing_socket()
        if missing:
            self._forget()
            raise BackendUnavailableError(describe_missing_engine(missing, self._environ))
        import docker.errors
        import urllib3

        try:
            yield
        except docker.errors.NotFound as error:
            if app_id:
                raise JobNotFoundError(app_id, "local_docker") from error
            raise SchedulerError(describe_refusal(error)) from error
        except docker.errors.APIError as error:
            if words := describe_unavailable(error, self.host, self._environ):
                self._forget()
                raise BackendUnavailableError(words) from error
            raise SchedulerError(describe_refusal(error)) from error
        # What requests raises is an OSError.
        except (docker.errors.DockerException, urllib3.exceptions.HTTPError, OSError) as error:
            self._forget()
            words = describe_unavailable(error, self.host, self._environ)
            raise BackendUnavailableError(words or f"{format_host(self.host)} cannot be used: {error}") from error

    @property
    def _environ(self) -> Mapping[str, str]:
        return os.environ if self._environment is None else self._environment

    def _new(self, timeout: float | None) -> docker.DockerClient:
        import docker

        from .bounded_api import BoundedApi

        # A thread may live for one question only: the version, once asked for, is not asked for again.
        # Skip the SDK's constructor, which only makes its own API client.
        made = docker.DockerClient.__new__(docker.DockerClient)
        made.api = BoundedApi(
            self._caller, timeout=timeout, version=self._version, use_ssh_client=True, **self._where()
        )
        self._version = str(made.api.api_version)
        return made

    def _where(self) -> dict[str, Any]:
        """Return the arguments that lead a client to the engine.

        Raises:
            BackendUnavailableError: the context does not exist.
        """
        from docker.context import ContextAPI
        from docker.context.config import get_current_context_name
        from docker.utils import kwargs_from_env

        environ = self._environ
        # The SDK takes an empty mapping for none at all.
        settings: dict[str, Any] = {**kwargs_from_env(environment=dict(environ) or {"DOCKER_HOST": ""})}
        if settings.get("base_url"):
            return settings
        name = environ.get("DOCKER_CONTEXT") or get_current_context_name()
        context = ContextAPI.get_context(name)
        if context is None:
            raise BackendUnavailableError(
                f"There is no Docker context {name}: list them with `docker context ls`, choose one with "
                "`docker context use NAME`, or unset DOCKER_CONTEXT"
            )
        # The default context is this machine's socket; TLS without a host is an error that the client words.
        if context.Host and name != "default":
            settings["base_url"] = context.Host
            if context.TLSConfig is not None:
                settings["tls"] = context.TLSConfig
        if len(settings) == 0:
            settings["base_url"] = self._local_host
        return settings

    @property
    def _local_host(self) -> str:
        """The socket of this machine's engine."""
        runtime = self._environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
        podman = f"{runtime}/podman/podman.sock"
        return f"unix://{podman if not path_exists(DOCKER_SOCKET) and path_exists(podman) else DOCKER_SOCKET}"

    def _known_host(self) -> str:
        """Return where the engine is if that can be told without Docker's package, which takes long to import."""
        environ = self._environ
        host = environ.get("DOCKER_HOST", "")
        return host or ("" if environ.get("DOCKER_CONTEXT") or _chosen_context(environ) else self._local_host)

    def _missing_socket(self) -> str:
        """Return this machine's socket if that is the engine, and is not there; empty otherwise."""
        host = self._known_host()
        path = host.removeprefix("unix://")
        return host if path != host and path and not path_exists(path) else ""

    def _forget(self) -> None:
        """Look for the engine anew next time: it may come back elsewhere, or with another version."""
        with self._lock:
            self._generation += 1
            self._version = None


def _chosen_context(environ: Mapping[str, str]) -> str:
    """Return the context that ``docker context use`` chose, empty where it is this machine's socket."""
    named, home = environ.get("DOCKER_CONFIG"), home_folder()
    if not named and home is None:
        return ""
    folder = Path(named) if named else Path(home or "", ".docker")
    try:
        chosen = decode_json(read_file(folder / "config.json")).get("currentContext", "")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, AttributeError):
        return "unknown"  # the package says what is wrong with it
    return "" if chosen == "default" else str(chosen)
