"""A shell in a running replica: the server's websocket, with a channel for each stream (``v4.channel.k8s.io``).

    python -m torchx_tui.backends.kube.shell CONTEXT NAMESPACE POD CONTAINER PROGRAM [ARGUMENT...]

runs a program in a container on this terminal. CONTEXT is one of the kubeconfig's, empty for the current one; the exit
code is the program's.

`kubernetes.stream.ws_client` does not do: it waits for a connection without a limit, takes the scheme of a proxy for
granted, looks at the environment's proxies by rules of its own, and keeps all that a program prints.
"""

from __future__ import annotations

import json
import math
import os
import ssl
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from ...base.errors import TorchXTuiError
from ...base.timeouts import LimitedCaller
from ...base.typed_data import convert
from ...base.validation import decode_json
from ...specs.errors import BackendUnavailableError, SchedulerError
from ..shared.bounded_command import RUN_BESIDE_BYTES, CommandOutput
from ..shared.terminal_relay import (
    READ,
    raw_terminal,
    read_keys,
    resize_events,
    terminal_size,
    wait_readable,
    write_all,
)
from .api_server import ApiServer, describe_unavailable
from .objects import KubernetesObject, name_of, pods_path
from .pods import image_of

if TYPE_CHECKING:
    import websocket
    from kubernetes.client import Configuration


# Prints the shell to use, with its path or without.
_LOOK = "command -v bash || command -v sh"
# The protocol has no environment: the shell that was found sets TERM and becomes the one that is used.
_START = 'TERM="$0" exec "$1"'


KEYS, SCREEN, ERRORS, RESULT, SIZE = range(5)
"""The channels: what the program reads, what it prints, its stderr, how it ended, the terminal's size."""
_PROTOCOL = "v4.channel.k8s.io"
# Seconds in which the server takes the connection and the node begins the program.
_TIMEOUT_S = 20.0
_CLOSE = 8
# In a runtime's error if the program does not exist.
_MISSING = ("executable file not found", "no such file", "not found in $PATH")
# Ctrl-d: protocols before v5 cannot close stdin.
_END_OF_KEYS = b"\x04"


def shell_command(server: ApiServer, pod: KubernetesObject, container: str, name: str) -> list[str]:
    """Return the argument list of a program that opens a shell in a container on its own terminal.

    It is this module: kubectl is not needed.

    Args:
        server: the server.
        pod: the pod.
        container: which of its containers.
        name: the replica's name, for messages.

    Raises:
        SchedulerError: the image has no shell, or the server does not allow it.
    """
    shell = _find_shell(server, pod, container, name)
    program = [sys.executable, "-m", "torchx_tui.backends.kube.shell"]
    where = [server.context, pod["metadata"]["namespace"], name_of(pod), container]
    return [*program, *where, shell, "-c", _START, os.environ.get("TERM", "xterm"), shell]


def run_command(
    server: ApiServer, pod: KubernetesObject, container: str, name: str, argv: Sequence[str], timeout_s: float
) -> CommandOutput:
    """Run a command in a container and return its output; one that takes too long is left running.

    The server cannot end a command.

    Raises:
        SchedulerError: it cannot be run; the message says why.
    """
    deadline = time.monotonic() + timeout_s
    with run_in_pod(server, pod["metadata"]["namespace"], name_of(pod), container, argv) as running:
        out, err, is_whole = running.output(deadline)
        try:
            code = running.exit_code() if is_whole else None
        except NoSuchProgramError as error:
            raise NoSuchProgramError(f"the image of {name}, {image_of(pod, container)}, has no {argv[0]}") from error
    return CommandOutput(code, out, err)


def _find_shell(server: ApiServer, pod: KubernetesObject, container: str, name: str) -> str:
    """Return the path of the best shell that a container has."""
    try:
        look = run_command(server, pod, container, name, ["sh", "-c", _LOOK], _TIMEOUT_S)
    except NoSuchProgramError:
        look = CommandOutput(1, b"", b"")
    if look.code is None:
        raise SchedulerError(f"the container of {name} does not answer within {_TIMEOUT_S:.0f} s: is it frozen?")
    paths = look.out.decode("utf-8", "replace").split()
    if look.code or not paths:
        raise SchedulerError(
            f"the image of {name}, {image_of(pod, container)}, has no shell (neither bash nor sh): nothing to open"
        )
    return paths[0]


class NoSuchProgramError(SchedulerError):
    """The container's image has no such program."""


class PodExec:
    """A program that runs in a container.

    Args:
        connection: the websocket.
    """

    def __init__(self, connection: websocket.WebSocket) -> None:
        self._connection: Any = connection
        self._result: bytes | None = None

    def fileno(self) -> int:
        """Return the descriptor to poll before `read`, unless `has_more` is true."""
        return self._connection.fileno()

    @property
    def has_more(self) -> bool:
        """Whether received bytes are buffered above the descriptor."""
        pending = getattr(self._connection.sock, "pending", None)
        return bool(pending and pending())

    def read(self) -> tuple[int, bytes] | None:
        """Wait for the next bytes and return their channel and them; None once the program has ended.

        Raises:
            OSError, WebSocketException: the connection broke off.
        """
        while True:
            kind, frame = self._connection.recv_data_frame(control_frame=True)
            if kind == _CLOSE or frame is None:
                return None
            if kind > _CLOSE or not frame.data:
                continue
            channel, data = frame.data[0], bytes(frame.data[1:])
            if channel != RESULT:
                return channel, data
            self._result = data

    def output(self, deadline: float) -> tuple[bytes, bytes, bool]:
        """Read until the program or the deadline ends; return stdout, stderr and whether the program has ended.

        Raises:
            SchedulerError: the output is too large, or the connection was lost.
        """
        from websocket import WebSocketException

        streams = {SCREEN: bytearray(), ERRORS: bytearray()}
        is_whole = False
        try:
            while not is_whole and (left := deadline - time.monotonic()) > 0:
                if not self.has_more and not wait_readable([self.fileno()], left):
                    break
                # Do not wait longer for an incomplete frame.
                self._connection.settimeout(left)
                frame = self.read()
                is_whole = frame is None
                if frame is not None:
                    streams.setdefault(frame[0], bytearray()).extend(frame[1])
                if sum(map(len, streams.values())) > RUN_BESIDE_BYTES:
                    raise SchedulerError(f"the command printed more than {RUN_BESIDE_BYTES >> 20} MB")
        except (OSError, WebSocketException) as error:
            raise SchedulerError(f"the connection to the pod broke off: {error}") from error
        return bytes(streams[SCREEN]), bytes(streams[ERRORS]), is_whole

    def write(self, channel: int, data: bytes) -> None:
        """Send bytes on a channel."""
        self._connection.send_binary(bytes([channel]) + data)

    def resize(self, columns: int, lines: int) -> None:
        """Send the size of the terminal."""
        self.write(SIZE, json.dumps({"Width": columns, "Height": lines}).encode())

    def exit_code(self) -> int:
        """Return the program's exit code, after `read` gave None.

        Raises:
            NoSuchProgramError: there is none of this name.
            SchedulerError: it could not be run, or the connection broke off before its end.
        """
        if self._result is None:
            raise SchedulerError("the connection to the pod broke off: whether the program still runs is not known")
        try:
            result = convert(decode_json(self._result), _Status)
            codes = [int(cause.message or 1) for cause in result.details.causes if cause.reason == "ExitCode"]
        except (ValueError, RecursionError) as error:
            raise SchedulerError("the server's message on how the program ended cannot be read") from error
        if result.status == "Success" or codes:
            return codes[0] if codes else 0
        kind = NoSuchProgramError if any(text in result.message for text in _MISSING) else SchedulerError
        raise kind(result.message or "it could not be run")


@dataclass
class _Cause:
    reason: str = ""
    message: str = ""


@dataclass
class _Details:
    causes: list[_Cause] = field(default_factory=list)


@dataclass
class _Status:
    """How a program ended, as the server says it (``v1`` Status)."""

    status: str = ""
    message: str = ""
    details: _Details = field(default_factory=_Details)


@contextmanager
def run_in_pod(
    server: ApiServer, namespace: str, pod: str, container: str, command: Sequence[str], *, tty: bool = False
) -> Iterator[PodExec]:
    """Run a program in a container; it may read the keys of a terminal.

    Args:
        server: the server.
        namespace: the pod's.
        pod: its name.
        container: which of its containers.
        command: the program and its arguments.
        tty: with a terminal, and with what is typed.

    Raises:
        SchedulerError: the server refused, or cannot be reached.
    """
    import websocket

    query = [("container", container), ("stdout", "true"), ("stderr", "false" if tty else "true")]
    query += [("stdin", "true"), ("tty", "true")] if tty else []
    query += [("command", part) for part in command]
    settings = server.configuration()
    # http becomes ws, and https wss.
    address = f"ws{settings.host.removeprefix('http')}{pods_path(namespace, pod)}/exec?{urlencode(query)}"
    headers = [f"{name}: {value}" for name, value in server.headers().items()]
    # A redirect would send the token to another server.
    connect = partial(
        websocket.create_connection, address, timeout=_TIMEOUT_S, header=headers, subprotocols=[_PROTOCOL],
        sslopt=_tls(settings), redirect_limit=0, **_proxy(settings),
    )  # fmt: skip
    try:
        connection = LimitedCaller("kubernetes-exec").call(connect, 2 * _TIMEOUT_S)
    except websocket.WebSocketBadStatusException as error:
        raise server.refusal(error.status_code, bytes(error.resp_body or b"")) from error
    except Exception as error:  # whatever the websocket, TLS and the socket raise
        raise BackendUnavailableError(describe_unavailable(error, server.host, server.context)) from error
    # For the rest of a frame that has begun, and for a container that no longer takes what is typed.
    connection.settimeout(_TIMEOUT_S)
    try:
        yield PodExec(connection)
    finally:
        connection.close(timeout=0)


def _tls(settings: Configuration) -> dict[str, Any]:
    given = {
        "ca_certs": settings.ssl_ca_cert,
        "certfile": settings.cert_file,
        "keyfile": settings.key_file,
        "server_hostname": settings.tls_server_name,
    }
    check = (
        {"cert_reqs": ssl.CERT_REQUIRED}
        if settings.verify_ssl
        else {"cert_reqs": ssl.CERT_NONE, "check_hostname": False}
    )
    return {**check, **{name: value for name, value in given.items() if value}}


def _proxy(settings: Configuration) -> dict[str, Any]:
    if not settings.proxy:
        # Else variables of the environment would be looked at, the exceptions among them by other rules.
        return {"http_no_proxy": ["*"]}
    proxy = urlsplit(settings.proxy)
    return {"http_proxy_host": proxy.hostname, "http_proxy_port": proxy.port, "proxy_type": proxy.scheme or "http"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a program in a container until it ends; return its exit code."""
    context, namespace, pod, container, *command = sys.argv[1:] if arguments is None else arguments
    server = ApiServer(context or None)
    try:
        with run_in_pod(server, namespace, pod, container, command, tty=True) as running:
            with raw_terminal(sys.stdin.fileno()), resize_events() as resized:
                relay(running, resized)
            return running.exit_code()
    except TorchXTuiError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        server.close()


def relay(running: PodExec, resized: int, answer_s: float = _TIMEOUT_S) -> None:
    """Relay keys and output between the terminal and the program until one side ends.

    Args:
        running: the program.
        resized: can be read when the terminal's size has changed.
        answer_s: seconds in which the program has to print something.

    Raises:
        SchedulerError: it prints nothing: its container may be frozen.
    """
    from websocket import WebSocketException

    keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
    _resize(running)
    sources = [running.fileno(), keys, resized]
    # After a connection that broke off the result is missing, which `exit_code` reports.
    deadline = time.monotonic() + answer_s
    with suppress(OSError, WebSocketException):
        while True:
            left = deadline - time.monotonic()
            ready = [sources[0]] if running.has_more else wait_readable(sources, left if left < math.inf else None)
            if left <= 0 and sources[0] not in ready:
                raise SchedulerError(f"the container does not answer within {answer_s:.0f} s: is it frozen?")
            if resized in ready:
                os.read(resized, READ)
                _resize(running)
            if sources[0] in ready:
                frame = running.read()
                if frame is None:
                    return
                write_all(screen, frame[1])
                deadline = math.inf
            if keys in ready:
                data = read_keys(keys)
                running.write(KEYS, data or _END_OF_KEYS)
                if not data:
                    sources.remove(keys)


def _resize(running: PodExec) -> None:
    size = terminal_size()
    running.resize(size.columns, size.lines)


if __name__ == "__main__":
    sys.exit(main())
