"""An API server that answers as a test scripts it, on loopback: faults and refusals that a real one is slow to show."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, urlsplit

from kubernetes.client import ApiClient, Configuration

from torchx_tui.backends.kube.api_server import ApiServer

# The status; and an object, which is sent as JSON, or bytes, or an iterator of bytes, which are sent as they come.
# A third one is the headers besides.
Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]


class Asked(NamedTuple):
    """One request."""

    method: str
    path: str
    params: dict[str, str]
    body: Any
    headers: dict[str, str]


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

    def client(self) -> ApiClient:
        configuration = Configuration()
        configuration.host = self.url
        return ApiClient(configuration)

    def api(self, timeout: float = 10.0) -> ApiServer:
        """Return what asks it."""
        return ApiServer(client=self.client(), timeout=timeout)

    def gives(self, path: str, content: Any) -> None:
        """Answer GET requests of a path with this content."""
        self.answers["GET", path] = 200, content

    def lists(self, path: str, *items: Any) -> None:
        """Answer GET requests of a path with a list of objects."""
        self.gives(path, {"items": [*items]})

    def serves(self, *versions: str) -> None:
        """Have these versions of API groups, such as ``batch/v1``."""
        self.gives("/apis", {"groups": [{"versions": [{"groupVersion": one}]} for one in versions]})

    def requests(self, method: str = "", path: str = "") -> list[Asked]:
        """Return the requests received, of a method or a path only."""
        return [one for one in self.asked if method in ("", one.method) and path in ("", one.path)]

    def paths(self, method: str) -> list[str]:
        """Return the paths that were asked for."""
        return [one.path for one in self.requests(method)]

    def answer(self, asked: Asked) -> Answer | None:
        """Return the answer to a request; None closes the connection."""
        self.asked.append(asked)
        found = self.answers.get((asked.method, asked.path), (201, asked.body) if asked.method == "POST" else NOT_FOUND)
        return found(asked) if callable(found) else found


class Stream:
    """The content of an answer that goes on until the test ends it: objects as JSON, one a line, or bytes."""

    def __init__(self) -> None:
        self._parts: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def put(self, *parts: Any) -> None:
        for part in parts:
            self._parts.put(part if isinstance(part, bytes) else json.dumps(part).encode() + b"\n")

    def end(self) -> None:
        self._parts.put(None)

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> bytes:
        part = self._parts.get()
        if part is None:
            raise StopIteration
        return part


Made = TypeVar("Made", bound=ScriptedServer)


@contextmanager
def scripted_server(port: int = 0) -> Iterator[ScriptedServer]:
    """Give a server that runs, on a free port where none is named."""
    with serving(ScriptedServer(), port) as made:
        yield made


@contextmanager
def serving(made: Made, port: int = 0) -> Iterator[Made]:
    """Let a server run, on a free port where none is named."""

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            parts = urlsplit(self.path)
            params = dict(parse_qsl(parts.query))
            headers = {name.title(): value for name, value in self.headers.items()}
            asked = Asked(self.command, parts.path, params, self._body(), headers)
            answer = made.answer(asked)
            if answer is None:
                self.close_connection = True
                return
            code, content, *more = answer
            self.send_response(code)
            for name, value in (more[0] if more else {}).items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            if not isinstance(content, Iterator):
                text = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_header("Content-Length", str(len(text)))
                content = iter([text])
            self.end_headers()
            # Who asked may have gone.
            with suppress(ConnectionError):
                for part in content:
                    self.wfile.write(part)

        def _body(self) -> Any:
            if self.headers.get("Transfer-Encoding") == "chunked":
                parts = []
                while size := int(self.rfile.readline(), 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return json.loads(body) if body else None

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
