"""What the engine, the SDK and the connection say when something fails, in words, with what to do."""

from __future__ import annotations

import errno
import json
import socket
import ssl
from collections.abc import Iterator, Mapping

from ..user import user_name


def unavailable_words(error: BaseException, host: str, environment: Mapping[str, str]) -> str:
    """Return why the engine cannot be reached and what to do; empty where the error is of another kind.

    Args:
        error: what the SDK, or what lies below it, raised.
        host: where the engine should be, such as ``unix:///var/run/docker.sock``.
        environment: the environment variables that chose it.
    """
    import docker.errors
    import requests

    where = host_words(host)
    causes = list(_causes(error))
    text = str(error)
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
        if isinstance(cause, OSError) and (words := _os_words(cause, host, environment)):
            return words
    if host.startswith("ssh:"):
        return f"{where} cannot be used: {text.splitlines()[0]}: {_ssh_hint(host)}"
    if any(isinstance(cause, (requests.ConnectionError, ConnectionError)) for cause in causes):
        return f"{where} went away in the midst of an answer: is it being restarted?"
    return ""


def not_there_words(host: str, environment: Mapping[str, str]) -> str:
    """Return what to do where this machine has no socket of an engine.

    Args:
        host: where it should be.
        environment: the environment variables that chose it.
    """
    return (
        f"{host_words(host)} is not there: Docker is not installed or not started. Start it "
        f"(`systemctl start docker`), or say where it is with {_chosen_by(environment)}"
    )


def refused_words(error: BaseException) -> str:
    """Return what the engine answered instead of doing what was asked, without the SDK's trimmings."""
    import docker.errors

    if not isinstance(error, docker.errors.APIError):
        return str(error)
    said = error.explanation
    if isinstance(said, bytes):
        said = said.decode("utf-8", "replace")
    text = str(said or error).strip()
    try:
        text = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        pass
    return text


def host_words(host: str) -> str:
    """Return where the engine is, for the beginning of a sentence."""
    return f"The Docker engine at {host.removeprefix('http+').removeprefix('unix://')}"


def _os_words(cause: OSError, host: str, environment: Mapping[str, str]) -> str:
    where = host_words(host)
    is_local = host.startswith(("unix:", "http+unix:"))
    if cause.errno in (errno.EACCES, errno.EPERM):
        return (
            f"{where} may not be used by {user_name()}: join the group of its socket (`sudo usermod -aG docker "
            f"{user_name()}`, then log in again), or use a rootless engine of your own"
        )
    if cause.errno == errno.ENOENT and is_local:
        return not_there_words(host, environment)
    if cause.errno == errno.ECONNREFUSED:
        return f"{where} refuses the connection: it has stopped. {_start_hint(is_local, environment)}"
    if cause.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT):
        return f"{where} cannot be reached: {cause.strerror}: check {_chosen_by(environment)} and the network"
    return ""


def _start_hint(is_local: bool, environment: Mapping[str, str]) -> str:
    if is_local:
        return "Start it (`systemctl start docker`)"
    return f"Start it there, or correct {_chosen_by(environment)}"


def _look_hint(host: str) -> str:
    return "see `journalctl -u docker`" if host.startswith(("unix:", "http+unix:")) else "check the network"


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
    found = [str(cause) for cause in causes if isinstance(cause, kind)]
    return (found or [otherwise])[-1].splitlines()[0]
