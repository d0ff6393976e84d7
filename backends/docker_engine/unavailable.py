"""Why a Docker engine cannot be used, and what it refused."""

from __future__ import annotations

import errno
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

from ...base.files import user_name
from ...specs.errors import BackendUnavailableError

_LOCAL = ("unix:", "http+unix:")
_PODMAN_SOCKET = "/podman/podman.sock"
_UNREACHABLE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT)


def explain_unavailable(
    error: BaseException, host: str, environment: Mapping[str, str]
) -> BackendUnavailableError | None:
    """Return the error that says why the engine cannot be reached, and what to do; None if this is of another kind.

    Args:
        error: raised by the SDK, requests, urllib3 or the socket.
        host: the address of the engine, such as ``unix:///var/run/docker.sock``.
        environment: the environment variables that chose it.
    """
    import docker.errors
    import requests

    where, text, chosen_by = format_host(host), str(error), _chosen_by(environment)
    causes = list(_causes(error))

    def cause(*kinds: type[BaseException]) -> Any:
        return next((found for found in causes if isinstance(found, kinds)), None)

    def unavailable(what: str, hint: str) -> BackendUnavailableError:
        return BackendUnavailableError(f"{where} {what}", hint)

    if cause(requests.TooManyRedirects):
        return unavailable("answers with a redirect, which no Docker engine does", f"check {chosen_by}")
    if (tls := cause(ssl.SSLError)) or "HTTPS server" in text:
        return unavailable(f"fails with TLS: {str(tls or text).splitlines()[0]}", _tls_hint(environment))
    if cause(docker.errors.TLSParameterError):
        return unavailable("cannot be used with TLS: a file is missing or no host is given", _tls_hint(environment))
    if isinstance(error, docker.errors.APIError):
        return None
    if cause(socket.gaierror):
        return unavailable("cannot be found: no machine has this name", f"check {chosen_by}")
    if cause(TimeoutError, requests.Timeout):
        return unavailable("does not answer: it is busy or hangs", _log_hint(host))
    numbers = {found.errno: found for found in causes if isinstance(found, OSError)}
    if errno.EACCES in numbers or errno.EPERM in numbers:
        return unavailable(
            f"may not be used by {user_name()}",
            f"join the group of its socket (`sudo usermod -aG docker {user_name()}`, then log in again), or use a "
            "rootless engine of your own",
        )
    if errno.ENOENT in numbers and host.startswith(_LOCAL):
        return missing_engine(host, environment)
    if errno.ECONNREFUSED in numbers:
        start = f"Start it ({_start_command(host)})"
        hint = start if host.startswith(_LOCAL) else f"Start it there, or correct {chosen_by}"
        return unavailable("refuses the connection: it has stopped", hint)
    if number := next((number for number in _UNREACHABLE if number in numbers), 0):
        return unavailable(f"cannot be reached: {numbers[number].strerror}", f"check {chosen_by} and the network")
    if host.startswith("ssh:"):
        return unavailable(f"cannot be used: {text.splitlines()[0]}", _ssh_hint(host))
    if cause(requests.ConnectionError, ConnectionError):
        return unavailable("closed the connection during an answer", "is it restarting?")
    return None


def missing_engine(host: str, environment: Mapping[str, str]) -> BackendUnavailableError:
    """Return the error that says what to do if this machine has no socket of an engine."""
    return BackendUnavailableError(
        f"{format_host(host)} was not found: Docker is not installed or not started",
        "Start it (`systemctl start docker`, or `systemctl --user start podman.socket` for Podman), or say where it "
        f"is with {_chosen_by(environment)}",
    )


def describe_refusal(error: BaseException) -> str:
    """Return the engine's own message of an error."""
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
    """Name the engine at the beginning of a sentence."""
    return f"The Docker engine at {host.removeprefix('http+').removeprefix('unix://')}"


def _start_command(host: str) -> str:
    return "`systemctl --user start podman.socket`" if host.endswith(_PODMAN_SOCKET) else "`systemctl start docker`"


def _log_hint(host: str) -> str:
    if not host.startswith(_LOCAL):
        return "check the network"
    return f"see `journalctl {'--user -u podman' if host.endswith(_PODMAN_SOCKET) else '-u docker'}`"


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
    return "DOCKER_HOST" if environment.get("DOCKER_HOST") else "DOCKER_HOST or `docker context use NAME`"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes, and the errors in its arguments, as requests and urllib3 nest them."""
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
