"""A proxy in front of an API server that records what is asked, and can be told to fail."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import urllib3


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    params: dict[str, str]

    @property
    def is_watch(self) -> bool:
        return self.params.get("watch") == "true"

    @property
    def is_followed(self) -> bool:
        return "follow" in self.params


class Answer(NamedTuple):
    """What the proxy answers in place of the server."""

    status: int
    body: bytes
    headers: dict[str, str] = {}


class ApiProxy:
    """Forwards requests to a server, as the user of its kubeconfig.

    Args:
        cluster: has a ``kubeconfig`` and gives its ``_settings``.
        folder: where a kubeconfig is written whose server is the proxy.
    """

    def __init__(self, cluster: Any, folder: Path) -> None:
        settings = cluster.settings()
        self._target = settings.host
        self._pool = urllib3.PoolManager(
            ca_certs=settings.ssl_ca_cert, cert_file=settings.cert_file, key_file=settings.key_file, retries=False,
            maxsize=100,
        )  # fmt: skip
        self.asked: list[Asked] = []
        self.received = 0
        """Bytes of answers that were handed on."""
        self.fault: Callable[[Asked], Answer | None] = lambda asked: None
        """Gives the answer in place of the server's, None where there is no fault."""
        self._lock = threading.Lock()
        self._open: set[Any] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.kubeconfig = folder / "proxy.kubeconfig"
        context = {"cluster": "proxy", "user": "nobody", "namespace": cluster.namespace}
        self.kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "proxy",
                    "clusters": [{"name": "proxy", "cluster": {"server": self.host}}],
                    "users": [{"name": "nobody", "user": {}}],
                    "contexts": [{"name": "proxy", "context": context}],
                }
            )
        )
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def requests(self, chosen: Callable[[Asked], object] = lambda asked: True) -> list[Asked]:
        """Return the requests so far that are chosen."""
        with self._lock:
            return [asked for asked in self.asked if chosen(asked)]

    def forget(self) -> None:
        """Begin to count anew."""
        with self._lock:
            self.asked.clear()
            self.received = 0

    def open_answers(self) -> int:
        """Return how many answers are under way."""
        with self._lock:
            return len(self._open)

    def cut(self) -> None:
        """Break off every answer that is under way."""
        with self._lock:
            answers = list(self._open)
        for answer in answers:
            with suppress(OSError):
                answer.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        self._server.shutdown()
        self._server.server_close()
        self._pool.clear()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                proxy._handle(self)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = handle_any

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler

    def _handle(self, handler: BaseHTTPRequestHandler) -> None:
        url = urlsplit(handler.path)
        params = {name: values[0] for name, values in parse_qs(url.query).items()}
        asked = Asked(handler.command, url.path, params)
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length) if length else None
        with self._lock:
            self.asked.append(asked)
        fault = self.fault(asked)
        try:
            if fault is not None:
                _whole(handler, fault)
            else:
                self._forward(handler, asked, body)
        except (OSError, urllib3.exceptions.HTTPError, ValueError):
            handler.close_connection = True

    def _forward(self, handler: BaseHTTPRequestHandler, asked: Asked, body: bytes | None) -> None:
        headers = {name: value for name, value in handler.headers.items() if name in ("Content-Type", "Accept")}
        response = self._pool.request(
            asked.method, self._target + handler.path, body=body, headers=headers, preload_content=False,
            decode_content=False, timeout=urllib3.Timeout(connect=5, read=None),
        )  # fmt: skip
        if not (asked.is_watch or asked.is_followed):
            data = response.read()
            response.release_conn()
            self.received += len(data)
            _whole(handler, Answer(response.status, data, {"Content-Type": response.headers.get("Content-Type", "")}))
            return
        with self._lock:
            self._open.add(handler.connection)
        try:
            handler.send_response(response.status)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            while data := response.read1():
                self.received += len(data)
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            handler.wfile.write(b"0\r\n\r\n")
        finally:
            response.close()
            with self._lock:
                self._open.discard(handler.connection)


def _whole(handler: BaseHTTPRequestHandler, answer: Answer) -> None:
    handler.send_response(answer.status)
    for name, value in answer.headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(answer.body)))
    handler.end_headers()
    handler.wfile.write(answer.body)


@contextmanager
def api_proxy(cluster: Any, folder: Path) -> Iterator[ApiProxy]:
    """Give a proxy in front of a cluster."""
    proxy = ApiProxy(cluster, folder)
    try:
        yield proxy
    finally:
        proxy.close()
