"""The API server of one context: requests and answers as plain JSON, and answers that come bit by bit.

The package `kubernetes` reads the kubeconfig and makes the connections. Its models are not used: they change from
release to release, and turning ten thousand jobs into them takes seconds.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from ...base.timeouts import LimitedCaller
from ...base.typed_data import convert
from ...base.validation import decode_json
from ...logs.text.sanitize import plain
from ...specs.errors import BackendUnavailableError, NotAllowedError, SchedulerError
from ..shared.bounded_answer import read_answer
from ..shared.streaming_response import StreamingResponse
from .kubeconfig import CredentialPlugin, Login, in_cluster, is_set_up, kubeconfig_files, read_contexts, read_login
from .objects import items_of, name_of

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, Configuration


# The API server's message for a missing right (responsewriters.forbiddenMessage).
_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)

# The user of a request without credentials.
_NOBODY = "system:anonymous"


# Why a server cannot be reached, by the names of exceptions of Python, urllib3 and the package kubernetes.
_UNAVAILABLE = {
    "SSLCertVerificationError": "{where} shows a certificate that is not trusted: {verify}: check its authority",
    "SSLError": "TLS with {where} fails: {line}: check the certificates of the kubeconfig",
    "gaierror": "{where} cannot be found: no machine has this name: check server in the kubeconfig, and the network",
    "ConnectionRefusedError": "{where} refuses the connection: is it running, and do you need a tunnel?",
    "TimeoutError ReadTimeoutError ConnectTimeoutError": "{where} does not answer: it is busy, or the way to it is cut",
    "ProxyError": "the proxy to {where} does not work: {line}: check HTTPS_PROXY or proxy-url",
    "FileNotFoundError": "{server} needs {file}, which does not exist: check the kubeconfig",
    "ConfigException": "the kubeconfig cannot be used: {line}",
    "ConnectionError EOFError ProtocolError": "{where} closed the connection during an answer: is it restarting?",
}

# Entries of a user that take precedence over a program.
_TOKENS = ("token", "tokenFile")
JSON = "application/json"
# Seconds in which a server takes a connection and begins to answer.
TIMEOUT_S = 10.0
# Limit of the whole answer, in limits of one part.
_WHOLE = 6
# Retries after HTTP 429, and the longest wait (s) before one.
_TRIES, _LONGEST_WAIT = 3, 3.0
# Long answers have connections of their own beyond these.
_MOST_CONNECTIONS = 8


def describe_refusal(status: int, message: str, context: str, wait: float = 0.0) -> str:
    """Describe why a request was refused.

    Args:
        status: the HTTP status.
        message: the server's own message.
        context: the context that was used.
        wait: the seconds after which a server that is busy wants to be asked again.
    """
    message = plain(message) or f"HTTP {status}"
    if status == 401:
        return f"{_of(context)} does not know who you are: the token or certificate is wrong or expired; log in again"
    if status == 403 and (match := _FORBIDDEN.search(message)):
        return _describe_forbidden(match)
    if status == 429:
        return f"{_of(context)} is busy and asks to wait for {wait:.0f} s (HTTP 429)"
    if status == 410:
        return "the list is outdated: it is read again"
    if status >= 500:
        return f"{_of(context)} cannot answer now (HTTP {status}): {message}"
    return message


def describe_unavailable(error: BaseException, host: str, context: str) -> str:
    """Describe why a server cannot be reached.

    Args:
        error: what urllib3, the socket or the package `kubernetes` raised.
        host: the server's address, where it is known.
        context: the context that was used.
    """
    where = f"{_of(context)} ({host})" if host else _of(context)
    for cause in _causes(error):
        kinds = {base.__name__ for base in type(cause).__mro__}
        for names, words in _UNAVAILABLE.items():
            if kinds & set(names.split()):
                return words.format(
                    where=where,
                    server=_of(context),
                    line=_first_line(cause),
                    verify=getattr(cause, "verify_message", ""),
                    file=getattr(cause, "filename", ""),
                )
    return f"{where} cannot be used: {_first_line(error)}"


def _describe_forbidden(match: re.Match[str]) -> str:
    name, slash, part = match["resource"].partition("/")
    resource = ".".join(filter(None, (name, match["group"]))) + slash + part
    where = f" in namespace {match['namespace']}" if match["namespace"] else " in the whole cluster"
    if match["user"] == _NOBODY:
        return plain(
            f"the API server does not know who you are, and nobody else may {match['verb']} {resource}{where}: the "
            "kubeconfig's token or certificate is missing, or the program that it names for it does not work"
        )
    return plain(
        f"not allowed: {match['user']} may not {match['verb']} {resource}{where}: "
        "ask the cluster's administrator for this right"
    )


def _of(context: str) -> str:
    return f"the API server of {context}" if context else "the API server"


def _first_line(error: BaseException) -> str:
    return plain((str(error) or type(error).__name__).splitlines()[0][:200])


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came of, the innermost first."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        inner = getattr(cause, "reason", None) or getattr(cause, "original_error", None)
        cause = inner if isinstance(inner, BaseException) else cause.__cause__ or cause.__context__
    yield from reversed(chain)


class _Loaded(NamedTuple):
    """Where the server is and how the user is known to it, with its connections."""

    configuration: Configuration
    pool: Any
    renew_at: float


class ApiError(SchedulerError):
    """The server refused a request.

    Args:
        message: what the server says, in words, with what to do.
        status: the HTTP status.
        reason: the server's reason in one word, such as ``NotFound``.
        details: what it says besides, such as the fields at fault.
        is_missing_right: whether the user lacks a right, not, say, a quota.
    """

    def __init__(
        self, message: str, status: int, reason: str, details: Mapping[str, Any], *, is_missing_right: bool
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.details = details
        self.is_missing_right = is_missing_right


class ForbiddenError(ApiError, NotAllowedError):
    """The server does not let this user do it."""


class ApiServer:
    """One API server, as one user; every method may be called from any thread.

    Args:
        context: the context of the kubeconfig. Where None: the client's; else the server of the cluster that this
            program runs in, else the current context.
        client: gives the configuration in place of a kubeconfig.
        timeout: seconds that the next part of an answer may take.
        plugin: runs the program that the kubeconfig names for a token.
    """

    def __init__(
        self,
        context: str | None = None,
        client: ApiClient | None = None,
        *,
        timeout: float = TIMEOUT_S,
        plugin: CredentialPlugin | None = None,
    ) -> None:
        self._asked_context = context or ""
        self._client = client
        self._timeout = timeout
        self._plugin = plugin or CredentialPlugin()
        self._caller = LimitedCaller("api-server-request")
        # Held while somebody logs in, which may take long: `close` does not need it.
        self._loading = threading.Lock()
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def context(self) -> str:
        """The context's name; empty where none was named and none is current, or where this is the cluster's own."""
        if self._asked_context or self._client is not None or in_cluster():
            return self._asked_context
        try:
            return read_contexts().current
        except ValueError:
            return ""

    @property
    def namespace(self) -> str:
        """The context's default namespace, else ``default``."""
        try:
            return read_contexts().namespaces.get(self.context, "default")
        except ValueError:
            return "default"

    @property
    def host(self) -> str:
        """The server's address; empty where nothing was asked of it yet."""
        loaded = self._loaded
        return loaded.configuration.host if loaded else ""

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Ask the server, and return the object that it answers with.

        Args:
            method: such as ``GET``.
            path: such as ``/api/v1/namespaces``.
            params: the query.
            body: an object that goes along.
            timeout: seconds for each part of the answer; the default of this server if None. The whole answer may take
                six times as long.

        Raises:
            ApiError: the server refused.
            BackendUnavailableError: it cannot be reached, or knows no such user, or answered with something else; the
                message says why and what to do.
        """
        import msgspec

        answer = self._ask(method, path, params, body, timeout)[1]
        try:
            return msgspec.json.decode(answer, type=dict[str, Any])
        except (ValueError, RecursionError) as error:
            raise BackendUnavailableError(
                f"{self.host} answered {path} with something that is not an object: {answer[:80]!r}: "
                "is there a proxy, or a login page, in between?"
            ) from error

    def find(self, path: str, *, timeout: float | None = None) -> dict[str, Any] | None:
        """Return an object; None if it does not exist. See `request`."""
        try:
            return self.request("GET", path, timeout=timeout)
        except ApiError as error:
            if error.status != 404:
                raise
        return None

    def list_names(self, path: str, limit: int) -> list[str] | None:
        """Return the names of objects that can be shown; None where they may not be listed."""
        try:
            items = items_of(self.request("GET", path, params={"limit": limit}))
        except ApiError:
            return None
        return [name for item in items if plain(name := name_of(item)) == name]

    def open(
        self, path: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None, accept: str = JSON
    ) -> StreamingResponse:
        """Ask for an answer that comes bit by bit, on a connection of its own.

        Args:
            path: what is asked for.
            params: the query.
            timeout: seconds in which the answer has to begin; the server's own where None.
            accept: the kind of answer.

        Raises:
            ApiError, BackendUnavailableError: see `request`.
        """
        return StreamingResponse(self._ask("GET", path, params, None, timeout, accept, is_stream=True)[0])

    def configuration(self) -> Configuration:
        """Return where the server is, and how this user is known to it.

        Raises:
            BackendUnavailableError: there is no such context, or its user cannot be logged in.
        """
        return self._load().configuration

    def headers(self) -> dict[str, str]:
        """Return the headers that make this user known, with a fresh token; empty where a certificate does.

        Raises:
            BackendUnavailableError: the token cannot be had.
        """
        configuration = self._load().configuration
        try:
            # The key of the token in `api_key` depends on the release of the package; this name does not.
            setting = configuration.auth_settings().get("BearerToken")
            token = str((setting and setting["value"]) or "").strip()
        except Exception as error:  # whatever a token's source raises
            raise self._unavailable(error) from error
        # The error of an HTTP client would quote the token.
        if not token.isprintable():
            raise BackendUnavailableError(
                f"the token for {_of(self.context)} has a line break or a control character: correct it in the "
                "kubeconfig, or in the program that prints it"
            )
        return {"Authorization": token} if token else {}

    def close(self) -> None:
        """Close the connections that nobody uses, and end the program that is asked for a token; waits for nothing.

        Where no such program is needed, another request reads the kubeconfig anew.
        """
        self._plugin.close()
        self._replace(None)

    # Inside

    def _ask(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        timeout: float | None,
        accept: str = JSON,
        *,
        is_stream: bool = False,
    ) -> tuple[Any, bytes]:
        """Return urllib3's response and its body, which is unread for a stream. Raises ApiError if it is refused."""
        import urllib3

        seconds = timeout or self._timeout
        asked = {
            "body": None if body is None else json.dumps(body).encode(),
            "timeout": urllib3.Timeout(connect=min(seconds, TIMEOUT_S), read=seconds),
            # urllib3 would read the body of a redirect without a limit, and send the token to another server.
            "preload_content": False, "retries": False, "redirect": False,
        }  # fmt: skip
        own = {"User-Agent": "torchx-tui", "Accept": accept, "Accept-Encoding": "identity", "Content-Type": JSON}
        query = f"?{urlencode(params)}" if params else ""
        # How often it is asked again: after a token or a certificate may have been renewed in its file, when the
        # server is busy, and on a new connection where a server that was started anew had closed the one that was kept.
        left = {401: 1, 429: _TRIES - 1, "lost": int(method == "GET")}
        while True:
            loaded = self._load()
            url = f"{loaded.configuration.host.rstrip('/')}{path}{query}"
            headers = {**own, **self.headers()}

            def exchange(loaded: _Loaded = loaded, url: str = url, headers: Any = headers) -> tuple[Any, bytes]:
                deadline = time.monotonic() + seconds * _WHOLE
                response = loaded.pool.request(method, url, headers=headers, **asked)
                is_unread = is_stream and response.status < 400
                return response, b"" if is_unread else read_answer(response, deadline)

            try:
                response, answer = self._caller.call(exchange, seconds * _WHOLE)
            except Exception as error:  # whatever urllib3, ssl and the socket raise
                is_lost = isinstance(error, (urllib3.exceptions.ProtocolError, ConnectionResetError))
                if is_lost and left["lost"]:
                    left["lost"] -= 1
                    continue
                raise self._unavailable(error) from error
            if response.status < 400:
                return response, answer
            wait = _seconds(response.headers.get("Retry-After"))
            if not left.get(response.status) or wait > _LONGEST_WAIT:
                raise self.refusal(response.status, answer, wait)
            left[response.status] -= 1
            if response.status == 401:
                self._replace(None)
            else:
                time.sleep(wait)

    def _load(self) -> _Loaded:
        """Log in where that is needed."""
        with self._loading:
            loaded = self._loaded
            if loaded is not None and time.time() < loaded.renew_at:
                return loaded
            if self._client is None and not is_set_up():
                raise BackendUnavailableError("There is no kubeconfig: create ~/.kube/config, or name it in KUBECONFIG")
            try:
                configuration, renew_at = self._configuration()
            except Exception as error:  # whatever a broken kubeconfig, or a program that it names, raises
                raise self._unavailable(error) from error
            from kubernetes.client.rest import RESTClientObject

            configuration.connection_pool_maxsize = _MOST_CONNECTIONS
            loaded = _Loaded(configuration, RESTClientObject(configuration).pool_manager, renew_at)
            self._replace(loaded)
            return loaded

    def _replace(self, loaded: _Loaded | None) -> None:
        with self._lock:
            before, self._loaded = self._loaded, loaded
        if before is not None:
            before.pool.clear()

    def _configuration(self) -> tuple[Configuration, float]:
        """Read the kubeconfig; return it with the time from which it has to be read anew."""
        from kubernetes import config
        from kubernetes.client import Configuration

        if self._client is not None:
            return self._client.configuration, math.inf
        made = Configuration()
        if not self._asked_context and in_cluster():
            config.load_incluster_config(client_configuration=made)
            return made, math.inf
        context = self.context
        login = read_login(context)
        # A token takes precedence over a program, as in the package.
        if login is not None and isinstance(login.user.get("exec"), dict) and not any(map(login.user.get, _TOKENS)):
            return made, self._log_in_by_plugin(login, made)
        # The package looks at KUBECONFIG when it is imported only, and takes the last of several current contexts.
        files = ":".join(str(path) for path in kubeconfig_files())
        config.load_kube_config(files, context=context or None, client_configuration=made)
        return made, math.inf

    def _log_in_by_plugin(self, login: Login, made: Configuration) -> float:
        from kubernetes import config

        try:
            credential = self._plugin.ask(login.user["exec"], login.cluster, login.folder)
        except BackendUnavailableError as error:
            raise BackendUnavailableError(
                f"{_of(self.context)} does not know who you are: the kubeconfig has no token, and the program that it "
                f"names for it, {error}"
            ) from error
        user = {name: value for name, value in login.user.items() if name != "exec"} | credential.user
        names = {"cluster": "cluster", "user": "user"}
        config.load_kube_config_from_dict(
            {
                "current-context": "context",
                "contexts": [{"name": "context", "context": names}],
                "clusters": [{"name": "cluster", "cluster": login.cluster}],
                "users": [{"name": "user", "user": user}],
            },
            client_configuration=made,
            persist_config=False,
        )
        return credential.renew_at

    def _unavailable(self, error: Exception) -> BackendUnavailableError:
        if isinstance(error, BackendUnavailableError):
            return error
        return BackendUnavailableError(describe_unavailable(error, self.host, self.context))

    def refusal(self, status: int, answer: bytes, wait: float = 0.0) -> SchedulerError:
        """Return the error for an answer that refuses a request.

        Args:
            status: the HTTP status.
            answer: the body.
            wait: seconds after which the server wants to be asked again.
        """
        refusal = _Refusal(answer[:300].decode("utf-8", "replace").strip())
        with suppress(ValueError, RecursionError):
            data, refusal = decode_json(answer), _Refusal()
            refusal = convert(data, _Refusal)
        words = describe_refusal(status, refusal.message or refusal.reason, self.context, wait)
        if status == 401 or status >= 500:
            return BackendUnavailableError(words)
        made = ForbiddenError if status == 403 else ApiError
        is_missing_right = status == 403 and bool(_FORBIDDEN.search(refusal.message))
        return made(words, status, refusal.reason, refusal.details, is_missing_right=is_missing_right)


@dataclass
class _Refusal:
    """A server's answer that refuses a request (``v1`` Status)."""

    message: str = ""
    reason: str = ""
    details: dict[str, Any] = field(default_factory=dict)


def _seconds(text: str | None) -> float:
    try:
        return max(0.1, float(text or 1))
    except ValueError:
        return 1.0
