"""An API server that answers as a test scripts it, on loopback: faults and refusals that a real one is slow to show."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from kubernetes.client import ApiClient, Configuration

from torchx_tui.backends.kubernetes.api_server import ApiServer

Answer = tuple[int, dict[str, Any]]


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    params: dict[str, str]
    body: Any


def status(code: int, reason: str, message: str, **details: Any) -> Answer:
    """Return a refusal as a server words it."""
    return code, {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}


NOT_FOUND = status(404, "NotFound", "it is not there", name="it", kind="things")


class ScriptedServer:
    """Answers by method and path, else creates what is posted and finds nothing."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: dict[tuple[str, str], Answer | Callable[[Asked], Answer | None]] = {}
        self.url = ""
        self.authorizations: list[str | None] = []

    def api(self, timeout: float = 10.0) -> ApiServer:
        """Return what asks it."""
        configuration = Configuration()
        configuration.host = self.url
        return ApiServer(client=ApiClient(configuration), timeout=timeout)

    def paths(self, method: str) -> list[str]:
        """Return the paths that were asked for."""
        return [one.path for one in self.asked if one.method == method]

    def answer(self, asked: Asked) -> Answer | None:
        """Return the answer to a request; None closes the connection."""
        self.asked.append(asked)
        found = self.answers.get((asked.method, asked.path), (201, asked.body) if asked.method == "POST" else NOT_FOUND)
        return found(asked) if callable(found) else found


@contextmanager
def scripted_server(port: int = 0) -> Iterator[ScriptedServer]:
    """Give a server that runs, on a free port where none is named."""
    made = ScriptedServer()

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = Asked(self.command, parts.path, dict(parse_qsl(parts.query)), json.loads(body) if body else None)
            made.authorizations.append(self.headers.get("Authorization"))
            answer = made.answer(asked)
            if answer is None:
                self.close_connection = True
                return
            text = json.dumps(answer[1]).encode()
            self.send_response(answer[0])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = do_PUT = _handle

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
