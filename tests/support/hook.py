"""A web server on loopback that keeps what is posted to it."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hook:
    """A web server that keeps what is posted; ``answers`` are its codes, the last one for ever, 0 hangs."""

    def __init__(self) -> None:
        self.posted: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.answers = [200]
        self.released = threading.Event()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                hook.posted.append((self.path, dict(self.headers), body))
                code = hook.answers.pop(0) if len(hook.answers) > 1 else hook.answers[0]
                if code == 0:
                    hook.released.wait()
                    code = 200
                self.send_response(code)
                self.send_header("Location", "http://127.0.0.1:1/")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
