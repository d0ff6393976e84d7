"""Why an API server refused, or cannot be reached, in words, with what to do."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

from ..logs.sanitize import plain

# How the server words what a user may not do (apiserver: registry/authorization, responsewriters.forbiddenMessage).
_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)

# Who came without a name, to a server.
_NOBODY = "system:anonymous"


def refused_words(status: int, said: Mapping[str, Any], context: str, wait: float = 0.0) -> str:
    """Return why a request was refused.

    Args:
        status: the HTTP status.
        said: the server's answer, a ``v1`` Status where it is one.
        context: the context that was used.
        wait: the seconds after which a server that is busy wants to be asked again.
    """
    message = plain(str(said.get("message") or said.get("reason") or f"HTTP {status}"))
    if status == 401:
        return f"{_of(context)} does not know who you are: the token or certificate is wrong or expired; log in again"
    if status == 403 and (found := _FORBIDDEN.search(message)):
        return _forbidden_words(found)
    if status == 429:
        return f"{_of(context)} is busy and asks to wait for {wait:.0f} s (HTTP 429)"
    if status == 410:
        return "what was read so far is too old by now: it is read anew"
    if status >= 500:
        return f"{_of(context)} cannot answer now (HTTP {status}): {message}"
    return message


def unavailable_words(error: BaseException, host: str, context: str) -> str:
    """Return why a server cannot be reached.

    Args:
        error: what urllib3, the socket or the package `kubernetes` raised.
        host: the server's address, where it is known.
        context: the context that was used.
    """
    where = f"{_of(context)} ({host})" if host else _of(context)
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"{where} shows a certificate that is not trusted: {cause.verify_message}: check its authority"
        if isinstance(cause, ssl.SSLError):
            return f"TLS with {where} fails: {_first_line(cause)}: check the certificates of the kubeconfig"
        if isinstance(cause, socket.gaierror):
            return f"{where} cannot be found: no machine has this name: check server in the kubeconfig, and the network"
        if isinstance(cause, ConnectionRefusedError):
            return f"{where} is not there: nothing listens: is it started, and is a tunnel needed?"
        if isinstance(cause, TimeoutError) or type(cause).__name__ in ("ReadTimeoutError", "ConnectTimeoutError"):
            return f"{where} does not answer: it is busy, or the way to it is cut"
        if type(cause).__name__ == "ProxyError":
            return f"the proxy to {where} does not work: {_first_line(cause)}: check HTTPS_PROXY or proxy-url"
        if isinstance(cause, FileNotFoundError):
            return f"{_of(context)} needs {cause.filename}, which is not there: check the kubeconfig"
        if type(cause).__name__ == "ConfigException":
            return f"the kubeconfig cannot be used: {_first_line(cause)}"
        if isinstance(cause, (ConnectionError, EOFError)) or type(cause).__name__ == "ProtocolError":
            return f"{where} went away in the midst of an answer: is it being restarted?"
    return f"{where} cannot be used: {_first_line(error)}"


def _forbidden_words(found: re.Match[str]) -> str:
    resource = ".".join(part for part in (found["resource"], found["group"]) if part)
    where = f" in namespace {found['namespace']}" if found["namespace"] else " in the whole cluster"
    if found["user"] == _NOBODY:
        return plain(
            f"the API server does not know who you are, and nobody else may {found['verb']} {resource}{where}: the "
            "kubeconfig's token or certificate is missing, or the program that it names for it does not work"
        )
    return plain(
        f"not allowed: {found['user']} may not {found['verb']} {resource}{where}: "
        "ask who runs the cluster for a role that has it"
    )


def _of(context: str) -> str:
    return f"the API server of {context}" if context else "the API server"


def _first_line(error: BaseException) -> str:
    return plain((str(error) or type(error).__name__).splitlines()[0][:200])


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came of, the innermost first."""
    chain: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and found not in chain:
        chain.append(found)
        inner = getattr(found, "reason", None) or getattr(found, "original_error", None)
        found = inner if isinstance(inner, BaseException) else found.__cause__ or found.__context__
    yield from reversed(chain)
