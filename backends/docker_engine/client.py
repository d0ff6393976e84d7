"""A Docker engine: its address, a client for each thread, and its errors."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.files import home_folder, path_exists, read_file
from ...base.timeouts import LimitedCaller
from ...base.validation import decode_json
from ...specs.errors import BackendUnavailableError, JobNotFoundError, SchedulerError
from .unavailable import describe_refusal, explain_unavailable, format_host, missing_engine

if TYPE_CHECKING:
    import docker


_TIMEOUT_S = 60.0
"""How long an answer may take; removing many containers of a busy engine takes some seconds."""
DOCKER_SOCKET = "/var/run/docker.sock"
# How long a program that has ended in a container may have no exit code yet.
_EXIT_CODE_TIMEOUT_S = 5.0


def exec_exit_code(api: Any, exec_id: str) -> int | None:
    """Return the exit code of a program in a container whose output has ended; None if the engine is too slow."""
    until = time.monotonic() + _EXIT_CODE_TIMEOUT_S
    while True:
        code = api.exec_inspect(exec_id)["ExitCode"]
        if code is not None or time.monotonic() > until:
            return code
        time.sleep(0.02)


class Engine:
    """A Docker engine, chosen as Docker's own command line does.

    That is ``DOCKER_HOST`` with ``DOCKER_TLS_VERIFY`` and ``DOCKER_CERT_PATH``, else the context that
    ``DOCKER_CONTEXT`` or Docker's configuration names, else this machine's socket: Docker's, or Podman's of this user
    if there is none of Docker's. It is looked up again after an engine could not be reached.

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
            raise missing_engine(missing, self._environ)
        import docker.errors
        import urllib3

        try:
            yield
        except docker.errors.NotFound as error:
            if app_id:
                raise JobNotFoundError(app_id, "local_docker") from error
            raise SchedulerError(describe_refusal(error)) from error
        except docker.errors.APIError as error:
            if unavailable := explain_unavailable(error, self.host, self._environ):
                self._forget()
                raise unavailable from error
            raise SchedulerError(describe_refusal(error)) from error
        # What requests raises is an OSError.
        except (docker.errors.DockerException, urllib3.exceptions.HTTPError, OSError) as error:
            self._forget()
            unavailable = explain_unavailable(error, self.host, self._environ)
            raise unavailable or BackendUnavailableError(f"{format_host(self.host)} cannot be used: {error}") from error

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
